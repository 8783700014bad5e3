"""The MarsRL recipe with real weights: all roles learn, or some while the others stay. `test_marsrl_recipe` has the
pipeline."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

import tiny  # noqa: E402
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402

from hira.agents.run_context import RoleConfig, RunContext  # noqa: E402
from hira.agents.trajectory import Rollout  # noqa: E402
from hira.core.events import Events, Reader  # noqa: E402
from hira.core.policy import Sampling  # noqa: E402
from hira.evaluation.rewards.answers import ByWords  # noqa: E402
from hira.evaluation.rewards.match import exact  # noqa: E402
from hira.policies.dialects import DIALECTS  # noqa: E402
from hira.policies.local import LocalPolicy  # noqa: E402
from hira.policies.local.batching import BatchingEngine  # noqa: E402
from hira.policies.local.template import Template  # noqa: E402
from hira.trainers import records  # noqa: E402
from hira.trainers.agentic import Agentic  # noqa: E402
from hira.trainers.configuration import Configuration, ModelConfig, RolloutConfig, StageConfig, TrainConfig  # noqa: E402
from hira.trainers.credit import Credit, marsrl  # noqa: E402
from hira.trainers.grpo import RoleTrainer  # noqa: E402
from hira.trainers.rollouts import Collector, Problem, Rollouts  # noqa: E402
from hira.trainers.rows import Collected  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.heavy]
torch.set_num_threads(1)
SAID = (r"\boxed{4}", r"\boxed{5}", "\nVerdict: correct", "\nVerdict: incorrect", "so")
ADAPTERS = {"solver": "one", "verifier": "two", "corrector": "three"}
PROBLEMS = [Problem(f"p{at}", f"{at} + {4 - at}?", ("4",)) for at in range(4)]


def tokenizer() -> Any:
    """A vocabulary of what may be said; every other word is one and the same."""
    made = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "<word>": 2}, unk_token="<word>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_tokens([AddedToken(one, normalized=False) for one in SAID])
    found: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<word>"
    )
    found.chat_template = "{% for message in messages %}{{ message.content }} {% endfor %}"
    return found


TWO = RolloutConfig(questions=4, attempts=8)


def base() -> Any:
    return tiny.base(
        vocab_size=3 + len(SAID), max_position_embeddings=1024, initializer_range=0.1, tie_word_embeddings=False
    )


def model() -> Any:
    return tiny.adapted(base(), ("one", "two", "three"), rank=4)


def learned(
    folder: Path,
    made: Any,
    *,
    steps: int,
    credit: Credit = marsrl,
    roles: frozenset[str] = frozenset(),
    kept: list[Collected] | None = None,
) -> list[dict[str, Any]]:
    """A run of so many steps; what was told of each."""
    words = tokenizer()
    template = Template(words)
    engine = BatchingEngine(made, template)
    policy = LocalPolicy("tiny", template, engine, ADAPTERS, versioned=True)
    part = RoleConfig(policy, Sampling(max_tokens=5), DIALECTS["tags"])

    @asynccontextmanager
    async def opened(run: str, question: str, _: Any, readers: Sequence[Reader]) -> AsyncIterator[RunContext]:
        yield RunContext({"*": part}, Rollout(run, question, "marsrl"), Events(*readers))

    with asyncio.Runner() as runner:
        own = Rollouts(opened, None, PROBLEMS, ByWords(exact), config=TWO)  # type: ignore[arg-type]
        collector = Collector(runner, Agentic(own, StageConfig(roles=tuple(sorted(roles)))).collect, engine.pause)

        def collect(update: int) -> Collected:
            found = collector(update)
            if kept is not None:
                kept.append(found)
            return found

        train = TrainConfig(steps=steps, lr=0.02, save_every=2, checkpointing=False, keep=5)
        whole = Configuration(model=ModelConfig(adapters=ADAPTERS, bits=32), train=train)
        RoleTrainer(made, words, whole, collect, credit, folder, on_update=engine.record_update).run()
    return [one for one in records.read(folder / records.METRICS) if "reward" in one]


def weights(made: Any, adapter: str) -> dict[str, Any]:
    return {name: one.detach().clone() for name, one in made.named_parameters() if f".{adapter}." in name}


def rise(told: list[dict[str, Any]], name: str, of: int = 4) -> float:
    """By how much a figure rose from its first values to its last."""
    values = [one[name] for one in told if name in one]
    return float(sum(values[-of:]) / of - sum(values[:of]) / of)


def test_all_roles_learn_in_groups_of_one_input(tmp_path: Path) -> None:
    kept: list[Collected] = []
    told = learned(tmp_path, model(), steps=16, kept=kept)
    assert rise(told, "solver/reward") > 0.3
    assert rise(told, "corrector1/reward") > 0.2
    assert rise(told, "verifier1/unreadable") < -0.2
    assert all(one.get("solver/sampler_drift", 0.0) < 1e-4 for one in told)
    for group in (group for one in kept for group in one.groups):
        assert len(group.attempts) == 8
        assert len({row.input for attempt in group.attempts for row in attempt.rows}) == 1
    assert {"solver", "verifier", "corrector"} <= {
        row.role for one in kept for group in one.groups for attempt in group.attempts for row in attempt.rows
    }


@pytest.mark.parametrize(
    ("roles", "moved", "frozen"), [({"solver"}, "one", "two"), ({"verifier", "corrector"}, "two", "one")]
)
def test_only_the_roles_that_are_trained_change(roles: set[str], moved: str, frozen: str, tmp_path: Path) -> None:
    """MarsRL-S and MarsRL-VC, section 4.3."""
    made = model()
    before = weights(made, moved) | weights(made, frozen)
    learned(tmp_path, made, steps=6, roles=frozenset(roles), credit=partial(marsrl, roles=roles))
    assert all(torch.equal(one, before[name]) for name, one in weights(made, frozen).items())
    assert any(not torch.equal(one, before[name]) for name, one in weights(made, moved).items())
