"""The collector of the agentic pipeline: updates get complete groups, and a resumed run begins again what was lost."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_agentic import agentic, half

from hira.trainers import records
from hira.trainers.pipeline import SCHEDULE, PipelinedCollector
from hira.trainers.rollouts import Problem, choose_problems
from hira.trainers.schedule import Gate, ScheduleLimits

LIMITS = ScheduleLimits(problems=2, least=3, staleness=2, most=6)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as opened:
        yield opened


def test_each_update_takes_enough_groups_says_how_old_they_are_and_records_what_is_in_progress(
    runner: asyncio.Runner, tmp_path: Path
) -> None:
    gate = Gate()
    collect = PipelinedCollector(runner, agentic(half), LIMITS, gate, tmp_path)
    for update in range(4):
        assert not gate.inside
        made = collect(update)
        assert gate.closed, "no reply is sampled while weights change"
        groups, ages = len(made.groups), (made.measures["staleness"], made.measures["staleness/most"])
        assert groups == made.measures["groups"] >= LIMITS.least
        assert 0 <= ages[0] <= ages[1] <= min(update, LIMITS.staleness)
        assert all(len(group.attempts) == 4 for group in made.groups)
        known = records.read(tmp_path / "schedule.jsonl")
        assert [record["step"] for record in known] == list(range(1, update + 2))
        assert len(known[-1]["under_way"]) == made.measures["problems_under_way"] <= LIMITS.problems
        assert all(number < known[-1]["next"] for number in known[-1]["under_way"])
        assert collect.schedule is not None
        assert made.measures["groups_under_way"] == collect.schedule.sampling
    collect.close()
    assert not gate.closed
    assert not collect.schedule or not collect.schedule.problems, "nothing is left at work"


class Watched(PipelinedCollector):
    """A collector that keeps the numbers of the problems it begins."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.begun: list[int] = []

    def problem(self, number: int) -> Problem:
        self.begun.append(number)
        return super().problem(number)


def test_a_new_run_begins_with_the_first_problem_and_leaves_none_out(runner: asyncio.Runner, tmp_path: Path) -> None:
    collect = Watched(runner, agentic(half), LIMITS, Gate(), tmp_path)
    collect(0)
    collect.close()
    assert collect.begun == list(range(len(collect.begun)))


def test_a_resumed_run_begins_with_the_problems_that_were_in_progress_and_then_the_next(
    runner: asyncio.Runner, tmp_path: Path
) -> None:
    for step, under_way in ((1, [1]), (2, [5, 3]), (3, [8])):
        records.append_records(tmp_path / SCHEDULE, [{"step": step, "next": 2 * step + 3, "under_way": under_way}])
    collect = Watched(runner, agentic(half), LIMITS, Gate(), tmp_path)
    for update in range(2, 8):
        collect(update)
    collect.close()
    begun = collect.begun
    assert begun[:3] == [5, 3, 7], "those of the second update's record, then the next"
    assert [record["step"] for record in records.read(tmp_path / SCHEDULE)] == list(range(1, 9))
    assert begun == [5, 3, *range(7, begun[-1] + 1)]


def test_problems_come_in_shuffled_passes_and_each_process_takes_its_share(
    runner: asyncio.Runner, tmp_path: Path
) -> None:
    made = agentic(half)
    alone = PipelinedCollector(runner, made, LIMITS, Gate(), tmp_path)
    first = [alone.problem(number).id for number in range(6)]
    assert sorted(first[:3]) == sorted(first[3:]) == ["p0", "p1", "p2"]
    rollouts = made.rollouts
    assert first == [
        problem.id for number in range(6) for problem in choose_problems(rollouts.problems, number, 1, rollouts.seed)
    ]
    shares = []
    for process in range(2):
        rollouts.share = (process, 2)
        one = PipelinedCollector(runner, made, LIMITS, Gate(), tmp_path)
        shares.append([one.problem(number).id for number in range(3)])
        assert one.path == tmp_path / f"{process}-{SCHEDULE}"
    assert [problem for pair in zip(*shares, strict=True) for problem in pair] == first
