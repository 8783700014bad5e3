"""The weights in training behind the policy seam: workflows as they are, prompts as at run time, rows from turns."""

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from later import Later, later, needs
from scripted_engine import ScriptedEngine, Speaking
from tiny_hf import FORGETFUL, tiny_model, tiny_tokenizer, with_adapters

from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Rollout, Trajectory, Turn
from hira.core.messages import user
from hira.core.policy import Request, Sampling
from hira.policies.dialects import DIALECTS
from hira.policies.local import LocalPolicy
from hira.policies.local.template import Template
from hira.runtime.registry import make_workflow
from hira.runtime.settings import Settings
from hira.tools import Toolbox
from hira.tools.documents import Index, browse_documents, search_documents
from hira.tools.files import files_tool
from hira.tools.python import open_python
from hira.trainers.rows import rows_of
from hira.workflows import WORKFLOWS, HiRA, rollout

torch = later("torch")
BatchingEngine = later("hira.policies.local.batching:BatchingEngine")
pytestmark = [
    needs("torch", "transformers", "peft"),
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning"),
]
ASEAN = Path(__file__).parent.parent / "data" / "asean"
QUESTION = "What is the capital of Myanmar?"
TOKENIZER: Any = Later(lambda: tiny_tokenizer(window=1_000_000))


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[Toolbox]:
    index = Index([ASEAN])
    yield Toolbox(
        search=search_documents(index),
        browse=browse_documents(index),
        files=files_tool([ASEAN / "myanmar.md"]),
        python=open_python(tmp_path),
    )
    index.close()


async def ran(name: str, dialect: str, live: LocalPolicy, tools: Toolbox, *, chain: bool = False) -> Rollout:
    """A run of the workflow in which `offline` decides what the weights say."""
    part = RoleConfig(Speaking(live), dialect=DIALECTS[dialect], continuation="chain" if chain else "turns")
    context = RunContext({"*": part}, tools=tools, files=(ASEAN / "myanmar.md",))
    return await rollout(make_workflow(Settings(workflow=name)), QUESTION, context)


def turns(record: Rollout) -> list[Turn]:
    return [turn for trajectory in record.trajectories.values() for turn in trajectory.turns]


def seen(turn: Turn) -> tuple[int, ...]:
    assert turn.completion.tokens
    return turn.completion.tokens.prompt


def at_run_time(turn: Turn, template: Template) -> tuple[int, ...]:
    """The ids of the prompt that a server would make of the same request: the template's text, encoded as a whole."""
    return tuple(template.encode(template.prompt(turn.request)))


def leaves_out_the_end(trajectory: Trajectory) -> int:
    """How often a chain carries on what the model had ended with its end token, which the run-time prompt leaves
    out."""
    pairs = pairwise(trajectory.turns)
    return sum(after.request.continues and before.completion.stop is None for before, after in pairs)


WAYS = [("hira", dialect, False) for dialect in DIALECTS] + [("hira", "tags", True)]
WAYS += [(name, "tags", False) for name in WORKFLOWS if name != "hira"]


@pytest.mark.parametrize(("name", "dialect", "chain"), WAYS)
async def test_a_rollout_sees_the_token_ids_of_the_run_time_prompt(
    name: str, dialect: str, chain: bool, tools: Toolbox
) -> None:
    live = LocalPolicy("tiny", Template(TOKENIZER), ScriptedEngine(TOKENIZER))
    record = await ran(name, dialect, live, tools, chain=chain)
    assert record.failure is None
    assert turns(record)
    assert [seen(turn) for turn in turns(record)] == [at_run_time(turn, live.template) for turn in turns(record)]
    assert live.conversations.counts["broken"] == sum(map(leaves_out_the_end, record.trajectories.values()))
    assert live.conversations.counts["rows"] == len(rows_of(record).rows)


async def test_a_template_that_rewrites_breaks_rows_and_still_shows_the_run_time_prompt(tools: Toolbox) -> None:
    class Thinking(Speaking):
        async def complete(self, request: Request, watch: Any = None) -> Any:
            from scripted_engine import NEXT, written

            NEXT.set(f"<think>\nhm\n</think>\n\n{written(await self.offline.complete(request))}")
            return await self.policy.complete(request, watch)

    tokenizer = tiny_tokenizer(FORGETFUL, window=1_000_000)
    live = LocalPolicy("tiny", Template(tokenizer), ScriptedEngine(tokenizer))
    context = RunContext({"*": RoleConfig(Thinking(live), dialect=DIALECTS["tags"])}, tools=tools)
    record = await rollout(HiRA(), QUESTION, context)
    assert record.status == "answered"
    assert all(turn.completion.reasoning == "hm" for turn in turns(record))
    assert [seen(turn) for turn in turns(record)] == [at_run_time(turn, live.template) for turn in turns(record)]
    assert live.conversations.counts["broken"] == rows_of(record).breaks > 0


async def test_a_role_speaks_with_its_adapter_and_tells_the_version_of_its_weights() -> None:
    tokenizer = tiny_tokenizer()
    model = with_adapters(tiny_model(tokenizer), "planner", "worker")
    template = Template(tokenizer)
    engine = BatchingEngine(model, template)
    adapters = {"planner": "planner", "judge": None, "*": "worker"}
    live = LocalPolicy("tiny", template, engine, adapters, versioned=True)
    asked = {
        name: Request((user("Question?"),), Sampling(0.0, max_tokens=12), conversation=name)
        for name in ("planner", "2/code.3", "judge", "1/planner")
    }
    told = {name: await live.complete(request) for name, request in asked.items()}
    assert [one.model for one in told.values()] == ["tiny:planner@0", "tiny:worker@0", "tiny@0", "tiny:planner@0"]
    assert told["planner"].text == told["1/planner"].text
    assert len({one.text for one in told.values()}) == 3
    with engine.pause(), torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B.planner" in name:
                parameter.mul_(-3)
        engine.record_update()
    later = {name: await live.complete(request) for name, request in asked.items()}
    assert later["planner"].model == "tiny:planner@1"
    assert later["planner"].text != told["planner"].text, "the new weights speak"
    assert later["judge"].text == told["judge"].text
