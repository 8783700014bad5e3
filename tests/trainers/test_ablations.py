"""What the parts of MATPO and the balancing of MARS are worth, in miniature: the programs of benchmarks/training."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rollouts_made import attempt, group, row

from hira.trainers.configuration import RolloutConfig
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
    assert faulty.told["worker/without_advantage"] == pytest.approx(3 / 5)


@pytest.mark.usefixtures("programs")
async def test_the_policy_of_the_ablations_speaks_tokens_that_make_one_row_a_conversation(tmp_path: Path) -> None:
    import keepers  # type: ignore[import-not-found]
    import matpo as program

    from hira.runtime.factory import open_session
    from hira.runtime.settings import Settings
    from hira.trainers.rollouts import Rollouts, open_contexts

    world, novice = keepers.made(0), keepers.Novice()
    world.write(tmp_path)
    context = await open_session(
        Settings(model="offline", docs=(tmp_path,), workflow="matpo", sandbox="off"),
        policies={"*": novice},
        workflow=program.FULL,
    )
    problems = world.problems(held_out=False)
    made = await Rollouts(
        open_contexts(context), program.FULL, problems, program.REWARD, config=RolloutConfig(questions=2, attempts=3)
    ).collect(0)
    await context.aclose()
    assert made.measures["row_breaks"] == made.measures["rows_dropped"] == 0
    rows = [one for group in made.groups for attempt in group.attempts for one in attempt.rows]
    assert [one.role for one in rows] == ["planner", "worker"] * 6
    decided = [id_ for one in rows for id_, own in zip(one.completion, one.mask, strict=True) if own and id_ > 1]
    assert sorted(decided) == sorted(novice.decisions)
