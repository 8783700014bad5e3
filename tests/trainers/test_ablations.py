"""What the parts of MATPO and the balancing of MARS are worth, in miniature: the programs of benchmarks/training."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rollouts_made import attempt, group, row

from hira.trainers.credit import matpo

FOLDER = Path(__file__).parents[2] / "benchmarks" / "training"


@pytest.fixture
def programs() -> Iterator[None]:
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))
    for name in ("matpo", "keepers", "balance"):
        sys.modules.pop(name, None)


@pytest.mark.heavy
@pytest.mark.usefixtures("programs")
def test_matpo_is_worth_more_than_without_any_of_its_parts() -> None:
    pytest.importorskip("torch")
    import matpo as program  # type: ignore[import-not-found]

    sizes = program.Sizes(updates=16, questions=3, rate=0.15, exam=3)
    found: dict[str, Any] = program.ran(list(program.VARIANTS), 1, sizes)
    after = {name: program.mean(found, name) for name in found}
    assert after["full"] > found["full"][0].before + 0.2
    assert min(after["full"] - one for name, one in after.items() if name != "full") >= 0.1, after


@pytest.mark.heavy
@pytest.mark.usefixtures("programs")
def test_balancing_keeps_the_share_of_system_2_that_concatenation_loses() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    import balance  # type: ignore[import-not-found]

    gradients = balance.shares_of_gradients(questions=4)
    assert balance.missed(balance.shares(), gradients) == []
    assert gradients["MARS, balanced"][-1] > 3 * gradients["concatenated, all tokens alike"][-1]


@pytest.mark.usefixtures("programs")
def test_the_fault_of_the_released_mask_is_what_it_is_said_to_be() -> None:
    import matpo as program

    planner = row("planner", 2, tool=2)
    right = attempt(
        0, 1.0, row("planner", 2, tool=2, rollout="a"), row("worker", 5, rollout="a", conversation="1/worker")
    )
    wrong = attempt(1, 0.0, row("planner", 2, tool=2, rollout="b"))
    assert planner.mask == (1, 1, 0, 0)
    sound, faulty = matpo([group(right, wrong)]), program.released_mask([group(right, wrong)])
    (worker,) = [one for one in faulty.rows if one.row.role == "worker"]
    assert worker.row.mask == (1, 1, 0, 0, 0)
    assert [one.weight for one in faulty.rows] == [one.weight for one in sound.rows]
    assert faulty.figures["worker/without_advantage"] == pytest.approx(3 / 5)
