"""One update is what the papers' loss says, however its rows are packed."""

import errno
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from later import later, needs

from hira.core.errors import HiraError
from hira.trainers import records
from hira.trainers.credit import Credit, grpo, mars, matpo
from hira.trainers.rows import Collected, Credited, Group

torch = later("torch")
groups, hand_written, logprobs = later("tiny:groups"), later("tiny:hand_written"), later("tiny:logprobs")
model, trainer = later("tiny:model"), later("tiny:trainer")
pytestmark = [needs("torch", "trl"), pytest.mark.filterwarnings("default")]
SLOW = pytest.mark.heavy
SHARED = {"*": "default"}
OWN = {"planner": "one", "*": "two"}
SYSTEMS = partial(mars, system1="worker", system2="planner")
SCHEMES: dict[str, Credit] = {
    "grpo": grpo,
    "dapo": partial(grpo, norm="dapo"),
    "dr_grpo": partial(grpo, norm="dr_grpo", scale="none", longest=64),
    "matpo": matpo,
    "matpo by role": partial(matpo, norm="role_mean"),
    "matpo by token": partial(matpo, norm="token_mean"),
    "mars": SYSTEMS,
    "mars by trajectory": partial(SYSTEMS, baseline="trajectory", balance=False),
}


def gradients() -> Any:
    """Keeps the gradients of each step, as the optimiser is given them."""
    from transformers import TrainerCallback

    class Gradients(TrainerCallback):
        def __init__(self) -> None:
            self.steps: list[dict[str, Any]] = []

        def on_pre_optimizer_step(self, _args: Any, _state: Any, _control: Any, **known: Any) -> None:
            named = known["model"].named_parameters()
            self.steps.append({name: one.grad.clone() for name, one in named if one.grad is not None})

    return Gradients()


def trained(folder: Path, made: Any, given: Any, credit: Credit, **settings: Any) -> tuple[dict[str, Any], float]:
    """The gradients and the loss of one update."""
    kept = gradients()
    run = trainer(folder, made, given, credit, **settings)
    run.add_callback(kept)
    loss = run.run().training_loss
    return kept.steps[0], loss


def by_hand(made: Any, credited: Credited, **settings: Any) -> tuple[dict[str, Any], float]:
    made.zero_grad()
    loss = hand_written(made, credited, **settings)
    loss.backward()
    return {name: one.grad.clone() for name, one in made.named_parameters() if one.grad is not None}, float(
        loss.detach()
    )


def apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The relative distance of two sets of gradients."""
    assert one.keys() == other.keys()
    difference = sum(float(((one[name] - other[name]) ** 2).sum()) for name in one)
    size = sum(float((other[name] ** 2).sum()) for name in one)
    return (difference / size) ** 0.5


@pytest.mark.parametrize(
    ("scheme", "adapters"),
    [("matpo", SHARED), ("matpo", OWN), *(pytest.param(one, OWN, marks=SLOW) for one in SCHEMES if one != "matpo")],
    ids=lambda one: one if isinstance(one, str) else f"{len(one)} adapters",
)
def test_one_step_is_that_of_a_hand_written_loss(scheme: str, adapters: dict[str, str], tmp_path: Path) -> None:
    names = sorted(set(adapters.values()))
    credit, given = SCHEMES[scheme], groups(3)
    found, loss = trained(tmp_path, model(names), given, credit, adapters=adapters)
    wanted, wanted_loss = by_hand(model(names), credit(given), adapters=adapters)
    assert apart(found, wanted) < 1e-5
    assert loss == pytest.approx(wanted_loss, rel=1e-4, abs=1e-6)


@SLOW
def test_the_divergence_from_the_base_without_adapter_is_added(tmp_path: Path) -> None:
    given = groups(4)
    found, _ = trained(tmp_path, model(("one", "two")), given, matpo, adapters=OWN, beta=0.3)
    wanted, _ = by_hand(model(("one", "two")), matpo(given), adapters=OWN, beta=0.3)
    plain, _ = by_hand(model(("one", "two")), matpo(given), adapters=OWN)
    assert apart(found, wanted) < 1e-5
    assert apart(plain, wanted) > 1e-2


@SLOW
def test_the_second_iteration_is_clipped_against_the_policy_that_sampled(tmp_path: Path) -> None:
    given, kept = groups(5), gradients()
    run = trainer(tmp_path, model(), given, matpo, steps=2, iterations=2, lr=0.05)
    run.add_callback(kept)
    run.run()
    made, credited = model(), matpo(given)
    old = {at: logprobs(made, one.row).detach() for at, one in enumerate(credited.rows)}
    optimiser = torch.optim.AdamW([one for one in made.parameters() if one.requires_grad], lr=0.05, weight_decay=0.0)
    for step in range(2):
        wanted, _ = by_hand(made, credited, adapters=SHARED, old=old)
        assert apart(kept.steps[step], wanted) < 1e-4
        optimiser.step()
    unclipped, _ = by_hand(model(), credited, adapters=SHARED, old=old, low=1e9, high=1e9)
    assert apart(kept.steps[1], unclipped) > 1e-2


def test_the_ratio_of_stale_rows_is_that_to_the_weights_that_sampled_them(tmp_path: Path) -> None:
    """The rows' own log-probabilities are not those of the weights, as those of older weights are not; taken as the
    trainer's, every ratio would be 1, and the gradient another."""
    given = groups(6)
    credited = matpo(given)
    old = {at: torch.tensor(one.row.logprobs) for at, one in enumerate(credited.rows)}
    found, _ = trained(tmp_path, model(), given, matpo, old="sampler")
    wanted, _ = by_hand(model(), credited, adapters=SHARED, old=old)
    fresh, _ = by_hand(model(), credited, adapters=SHARED)
    assert apart(found, wanted) < 1e-4
    assert apart(fresh, wanted) > 1e-2


def test_the_pipeline_compares_with_the_weights_that_sampled() -> None:
    from hira.trainers.configuration import Configuration
    from hira.trainers.training import compare_with_sampler

    assert Configuration().train.old == "trainer"
    assert compare_with_sampler(Configuration()).train.old == "sampler"


@SLOW
@pytest.mark.parametrize("budget", [1, 100_000])
def test_results_do_not_hang_on_how_rows_are_packed(budget: int, tmp_path: Path) -> None:
    given = groups(7)
    found, _ = trained(tmp_path / "a", model(("one", "two")), given, matpo, adapters=OWN, budget=budget, beta=0.1)
    other, _ = trained(tmp_path / "b", model(("one", "two")), given, matpo, adapters=OWN, budget=150, beta=0.1)
    assert apart(found, other) < 1e-5


def test_the_gradient_of_every_masked_token_is_exactly_zero(tmp_path: Path) -> None:
    """The gradient with respect to each token's log-probability: zero wherever the role did not sample it."""
    from hira.trainers.grpo import RoleTrainer

    seen: list[Any] = []

    class Watched(RoleTrainer):
        def score(self, model: Any, batch: Any) -> Any:
            scores = super().score(model, batch)
            scores.logps.retain_grad()
            seen.append((scores.logps, batch["weights"]))
            return scores

    trainer(tmp_path, model(), groups(9), matpo, kind=Watched).run()
    assert seen
    for logps, weights in seen:
        assert bool((logps.grad[weights == 0] == 0).all())
        assert bool((logps.grad[weights > 0] != 0).all())


def test_the_figures_of_an_update_count_its_tokens_its_padding_and_the_time_that_it_took(tmp_path: Path) -> None:
    began = time.perf_counter()
    run = trainer(tmp_path, model(("one", "two")), groups(4), matpo, adapters=OWN, steps=2, budget=60, save_every=1)
    run.run()
    took = time.perf_counter() - began
    credited = matpo(groups(4))
    learned = [one.row for one in credited.rows if one.weight and one.advantage]
    told = [one for one in records.read(tmp_path / records.METRICS) if "micro_batches" in one]
    assert [one["step"] for one in told] == [1, 2]
    for figures in told:
        assert 0 < figures["rollout_seconds"] + figures["update_seconds"] < took
        tokens = figures["update_tokens_per_second"] * figures["update_seconds"]
        assert tokens == pytest.approx(sum(row.length for row in learned)), "prompts and replies, each once"
        padded = tokens / (1 - figures["padding"])
        assert padded == pytest.approx(round(padded))
        assert padded / figures["micro_batches"] <= figures["largest_micro_batch"] <= 60
        roles = {role: sum(row.tokens for row in learned if row.role == role) for role in ("planner", "worker")}
        mean = sum(figures[f"{role}/entropy"] * tokens for role, tokens in roles.items()) / sum(roles.values())
        assert figures["entropy"] == pytest.approx(mean), "the mean over all tokens"
    rollouts = records.read(tmp_path / records.ROLLOUTS)
    assert {one["step"] for one in rollouts} <= {1, 2}
    assert [(tmp_path / f"checkpoint-{step}" / records.COMPLETE).is_file() for step in (1, 2)] == [True, True]
    trainer(tmp_path, model(("one", "two")), groups(4), matpo, adapters=OWN, steps=3, budget=60).run(resume=True)
    steps = [one["step"] for one in records.read(tmp_path / records.METRICS)]
    assert steps == [1, 2, 3], "a resumed run goes on after its last checkpoint"


def test_over_a_base_in_four_bits_adapters_are_half_as_wide_and_the_base_is_left_alone() -> None:
    """QLoRA, section 3."""
    from hira.trainers.configuration import Configuration, ModelConfig
    from hira.trainers.grpo import prepare_weights

    for bits, width in ((4, torch.bfloat16), (16, torch.float32), (32, torch.float32)):
        made = model(("one", "two"))
        prepare_weights(made, Configuration(model=ModelConfig(bits=bits)))
        kinds = {("lora_" in name, one.requires_grad, one.dtype) for name, one in made.named_parameters()}
        assert kinds == {(True, True, width), (False, False, torch.float32)}


def test_a_run_that_is_over_ends_after_its_step_with_a_checkpoint(tmp_path: Path) -> None:
    run = trainer(tmp_path, model(), groups(1), matpo, steps=5)
    seen: list[int] = []

    def finish(step: int) -> None:
        seen.append(step)
        run.over = step == 2

    run.on_update = finish
    run.run()
    assert seen == [1, 2]
    assert [place.name for place in tmp_path.glob("checkpoint-*")] == ["checkpoint-2"]
    assert (tmp_path / "checkpoint-2" / records.COMPLETE).is_file()


def test_rollouts_are_made_anew_when_the_last_ones_have_had_their_iterations(tmp_path: Path) -> None:
    asked: list[int] = []

    def collect(update: int) -> Collected:
        asked.append(update)
        return Collected(tuple(groups(update)))

    trainer(tmp_path, model(), collect, matpo, steps=5, iterations=2).run()
    assert asked == [0, 1, 2]


@pytest.mark.parametrize(("settings", "many"), [({}, 2), ({"old": "sampler"}, 3), ({"iterations": 2}, 3)])
def test_equal_rows_are_one_only_where_the_ratio_is_always_1(
    settings: dict[str, Any], many: int, tmp_path: Path
) -> None:
    one, other = groups(1)[0].attempts[:2]
    attempts = (replace(one, reward=1.0), replace(one, number=1, reward=1.0), replace(other, number=2, reward=0.0))
    given = [Group("q", tuple(replace(made, rows=made.rows[:1]) for made in attempts))]
    batches = trainer(tmp_path, model(), given, grpo, **settings).prepare_update()
    assert sum(len(micro.rows) for micro, _ in batches) == many


def test_the_first_process_alone_writes_figures_and_completes_a_checkpoint(tmp_path: Path) -> None:
    from transformers import TrainerState

    for first in (False, True):
        state = TrainerState(global_step=3, is_world_process_zero=first)
        record = trainer(tmp_path, model(), (), grpo).record
        record.on_log(None, state, None, {"loss": 1.0})
        record.on_save(None, state, None)
        written = [records.read(tmp_path / name) for name in (records.METRICS, f"checkpoint-3/{records.COMPLETE}")]
        assert written == ([[{"step": 3, "loss": 1.0}], [{"step": 3}]] if first else [[], []])


def test_an_update_without_any_signal_leaves_the_weights_alone(tmp_path: Path) -> None:
    made = model()
    before = {name: one.clone() for name, one in made.named_parameters()}
    dead = tuple(group for group in groups(10) if group.problem in {"dead", "alone"})
    trainer(tmp_path, made, dead, matpo).run()
    assert all(bool((one == before[name]).all()) for name, one in made.named_parameters())


def test_a_step_that_breaks_the_weights_is_told_and_never_saved(tmp_path: Path) -> None:
    def adapters(made: Any) -> dict[str, Any]:
        return {name: one.detach().clone() for name, one in made.named_parameters() if "lora_" in name}

    made = model()
    before = adapters(made)
    settings = {"warmup": 1, "save_every": 1, "lr": 1e30}  # a rate of nothing, then one that breaks all
    with pytest.raises(HiraError, match="after step 2, an output of the adapter 'default' is not a number") as caught:
        trainer(tmp_path, made, groups(1), matpo, steps=3, **settings).run()
    assert "lower the learning rate" in caught.value.fix
    assert not all(torch.equal(one, before[name]) for name, one in adapters(made).items())
    assert [place.name for place in tmp_path.glob("checkpoint-*")] == ["checkpoint-1"]
    again = model(seed=1)
    trainer(tmp_path, again, groups(1), matpo, steps=1, **settings).run(resume=True)
    assert all(torch.equal(one, before[name]) for name, one in adapters(again).items()), "it is from before"


def test_a_disk_that_is_full_or_a_checkpoint_that_cannot_be_written_says_so_and_other_errors_stay(
    tmp_path: Path,
) -> None:
    def fail(error: OSError) -> None:
        def collect(_: int) -> Collected:
            raise error

        trainer(tmp_path, model(), collect, matpo).run()

    with pytest.raises(HiraError, match="the disk is full") as full:
        fail(OSError(errno.ENOSPC, "No space left on device", "elsewhere"))
    assert "checkpoint-0" in full.value.where
    with pytest.raises(HiraError, match="checkpoint-0 cannot be written: Permission denied"):
        fail(PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "checkpoint-0" / "adapter")))
    with pytest.raises(FileNotFoundError):
        fail(FileNotFoundError(errno.ENOENT, "No such file", "questions.jsonl"))
