"""A training run from its first step to its last: what changes, what must not, and what stops it."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from tiny import groups, model, trainer  # noqa: E402

from hira.core.errors import HiraError  # noqa: E402
from hira.trainers import records  # noqa: E402
from hira.trainers.credit import matpo  # noqa: E402
from hira.trainers.grpo import RoleTrainer  # noqa: E402
from hira.trainers.records import last_checkpoint  # noqa: E402
from hira.trainers.rows import Collected  # noqa: E402
from hira.trainers.weights import fingerprint  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.heavy]
OWN = {"planner": "one", "*": "two"}


def collect(update: int) -> Collected:
    """Other rollouts in each update, the same for the same number."""
    return Collected(groups(100 + update), {"answered": 1.0}, ({"rollout": f"mixed/{update}", "answer": "yes"},))


def weights(made: Any) -> dict[str, Any]:
    return {name: one.detach().clone() for name, one in made.named_parameters()}


@pytest.mark.parametrize("adapters", [{"*": "default"}, OWN], ids=["one adapter", "an adapter for each role"])
def test_every_parameter_of_every_adapter_changes_and_nothing_of_the_base(
    adapters: dict[str, str], tmp_path: Path
) -> None:
    made = model(sorted(set(adapters.values())), fresh=True)
    before, base = weights(made), fingerprint(made)
    trainer(tmp_path, made, collect, matpo, steps=2, adapters=adapters).run()
    for name, one in weights(made).items():
        assert ("lora_" in name) != bool((one == before[name]).all()), name
    assert fingerprint(made) == base


def test_a_run_that_is_resumed_in_the_middle_equals_one_that_was_not_stopped(tmp_path: Path) -> None:
    settings = {"steps": 4, "save_every": 2, "adapters": OWN, "beta": 0.1, "schedule": "linear"}
    whole = model(("one", "two"), fresh=True)
    trainer(tmp_path / "whole", whole, collect, matpo, **settings).run()

    class Stopped(RuntimeError):
        pass

    def stopping(update: int) -> Collected:
        if update == 3:
            raise Stopped
        return collect(update)

    with pytest.raises(Stopped):
        trainer(tmp_path / "parts", model(("one", "two"), fresh=True), stopping, matpo, **settings).run()
    again = model(("one", "two"), fresh=True, seed=0)
    trainer(tmp_path / "parts", again, collect, matpo, **settings).run(resume=True)
    for name, one in weights(whole).items():
        assert torch.equal(one, weights(again)[name]), name
    timed = {"rollout_seconds", "update_seconds", "update_tokens_per_second", "train_runtime"}

    def told(folder: str) -> list[dict[str, Any]]:
        found = records.read(tmp_path / folder / records.METRICS)
        return [{name: value for name, value in one.items() if name not in timed} for one in found if "loss" in one]

    assert told("whole") == told("parts")
    assert [one["step"] for one in records.read(tmp_path / "parts" / records.ROLLOUTS)] == [1, 2, 3, 4]


class Stuck(RoleTrainer):
    """A trainer whose optimiser's work is undone."""

    def check_step(self) -> None:
        for name, one in self.model.named_parameters():
            if "lora_B" in name:
                one.data.zero_()
        super().check_step()


class Merged(RoleTrainer):
    """A trainer that changes a weight of the base."""

    def check_step(self) -> None:
        super().check_step()
        next(one for name, one in self.model.named_parameters() if "lora_" not in name).data[0, 0] += 1e-3


class Small(RoleTrainer):
    """A trainer on a device that has no room left."""

    def compute_loss(self, *_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("out of memory")


def test_a_run_that_cannot_come_to_anything_is_stopped_and_says_why(tmp_path: Path) -> None:
    for kind, told in (
        (Stuck, "still has no effect on the model"),
        (Merged, "the base's weights have changed"),
        (Small, "does not fit into the memory.*budget 120 tokens"),
    ):
        with pytest.raises(HiraError, match=rf"(?s){told}"):
            trainer(tmp_path / kind.__name__, model(fresh=True), collect, matpo, kind=kind).run()


def test_a_loss_that_is_not_a_number_stops_the_run_before_the_step(tmp_path: Path) -> None:
    made = model(fresh=True)
    next(one for name, one in made.named_parameters() if "lora_A" in name).data[0, 0] = float("nan")
    before = weights(made)
    with pytest.raises(HiraError, match="so step 1 was not made"):
        trainer(tmp_path, made, collect, matpo).run()
    assert all(torch.equal(one, before[name]) or "lora_A" in name for name, one in weights(made).items())
    assert records.read(tmp_path / records.ROLLOUTS)


def test_a_full_disk_is_a_clear_error_and_the_last_checkpoint_is_kept(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no device that is always full")
    trainer(tmp_path, model(fresh=True), collect, matpo, steps=1, save_every=1).run()
    (tmp_path / records.METRICS).unlink()
    (tmp_path / records.METRICS).symlink_to("/dev/full")
    run = trainer(tmp_path, model(fresh=True), collect, matpo, steps=2, save_every=2)
    with pytest.raises(HiraError, match="the disk is full"):
        run.run()
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-1"
