"""The agentic pipeline under a virtual clock: what is released, how old it is, and that it ends."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual import VirtualEngine, virtually

from hira.core.errors import HiraError
from hira.trainers.schedule import Gate, Released, Schedule, ScheduleLimits


@dataclass(frozen=True)
class Row:
    """A reply that was sampled: whose it is, and the versions of the weights at the beginning of each segment."""

    problem: int
    step: int
    group: int
    number: int
    versions: tuple[int, ...]
    tokens: int


@dataclass
class World:
    """Problems of random shape on one engine. `steps` is the most of a problem, `segment` the most tokens at a time."""

    engine: VirtualEngine
    seed: int
    size: int = 3
    steps: int = 4
    segment: int | None = None
    longest: int = 200
    gate: Gate = field(default_factory=Gate)
    made: list[Row] = field(default_factory=list)
    schedule: "Schedule[Row] | None" = None
    at_once: int = 0

    async def begin(self, number: int) -> "Step | None":
        assert self.schedule
        self.at_once = max(self.at_once, len(self.schedule.problems))
        chance = random.Random(f"{self.seed}/{number}")
        await asyncio.sleep(chance.choice((0, 0, 0.5)))
        return None if chance.random() < 0.1 else Step(self, number, 1, 1)


@dataclass(frozen=True)
class Step:
    world: World
    problem: int
    step: int
    many: int

    @property
    def groups(self) -> Sequence[str]:
        return [f"{self.step}.{at}" for at in range(self.many)]

    @property
    def size(self) -> int:
        return self.world.size

    async def sample(self, group: int, number: int) -> Row:
        world, versions = self.world, []
        chance = random.Random(f"{world.seed}/{self.problem}/{self.step}/{group}/{number}")
        length = min(world.longest, 1 + int(chance.paretovariate(0.8) * 4))
        for held in range(0, length, world.segment or length):
            async with world.gate:
                assert world.schedule
                versions.append(world.schedule.version)
                await world.engine.decode(min(world.segment or length, length - held), held)
        row = Row(self.problem, self.step, group, number, tuple(versions), length)
        world.made.append(row)
        return row

    def then(self, outputs: Sequence[Sequence[Row]]) -> "Step | None":
        assert [len(group) for group in outputs] == [self.size] * self.many
        chance = random.Random(f"{self.world.seed}/{self.problem}/{self.step}")
        if self.step == self.world.steps or chance.random() < 0.25:
            return None
        return replace(self, step=self.step + 1, many=chance.choice((1, 2)))


@dataclass
class Trained:
    """What updates were made of: the groups with the version of the weights that they were trained at."""

    batches: list[tuple[int, list[Released[Row]]]] = field(default_factory=list)
    pending: int = 0

    @property
    def groups(self) -> list[tuple[int, Released[Row]]]:
        return [(version, group) for version, batch in self.batches for group in batch]


async def trained(
    world: World,
    limits: ScheduleLimits,
    total: int | None,
    *,
    updates: int = 10_000,
    seconds: float = 1.0,
    overlapping: bool = False,
) -> Trained:
    """Take and update until all is done, or so many updates were made. `overlapping` leaves the engine at work."""
    done = Trained()
    schedule = world.schedule = Schedule(world.begin, limits, total=total)
    while len(done.batches) < updates and (batch := await schedule.take()):
        done.batches.append((schedule.version, batch))
        if not overlapping:
            await world.gate.close()
        await asyncio.sleep(seconds)
        schedule.record_update()
        world.gate.open()
    await schedule.aclose()
    await asyncio.sleep(0)
    done.pending = len(asyncio.all_tasks()) - 1 - (world.engine._working is not None)
    return done


shapes = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "size": st.integers(1, 4),
        "steps": st.integers(1, 5),
        "segment": st.sampled_from([None, None, 5, 40]),
    }
)
engines = st.builds(
    VirtualEngine,
    places=st.integers(1, 40),
    step=st.floats(0.001, 0.1),
    row=st.floats(0, 0.01),
    turn=st.integers(1, 20),
)
limits = st.builds(
    lambda problems, least, staleness, more: ScheduleLimits(problems, least, staleness, least + more),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 4),
    st.integers(0, 8),
)


@settings(max_examples=40, deadline=None)
@given(
    shape=shapes,
    engine=engines,
    limits=limits,
    total=st.integers(0, 12),
    seconds=st.floats(0, 5),
    overlapping=st.booleans(),
)
def test_groups_are_complete_and_trained_once_within_the_bound_of_staleness_until_all_is_done(
    shape: dict[str, Any], engine: VirtualEngine, limits: ScheduleLimits, total: int, seconds: float, overlapping: bool
) -> None:
    engine = replace(engine)
    world = World(engine, **shape)
    done = virtually(trained(world, limits, total, seconds=seconds, overlapping=overlapping))
    rows = [row for _, group in done.groups for row in group.outputs]
    for version, group in done.groups:
        assert sorted(row.number for row in group.outputs) == list(range(world.size))
        assert {(row.problem, f"{row.step}.{row.group}") for row in group.outputs} == {(group.problem, group.name)}
        oldest = min(row.versions[0] for row in group.outputs)
        assert group.version <= oldest
        assert 0 <= version - group.version <= limits.staleness
    assert max(Counter(rows).values(), default=1) == 1
    assert set(rows) == set(world.made)  # nothing that was sampled is lost
    assert all(len(batch) >= limits.least for _, batch in done.batches[:-1])
    assert world.at_once <= limits.problems
    assert done.pending == 0


def test_a_fault_in_sampling_is_raised_where_groups_are_taken() -> None:
    class Broken(World):
        async def begin(self, number: int) -> Step | None:
            if number == 3:
                raise HiraError("the search is down")
            return await super().begin(number)

    with pytest.raises(HiraError, match="the search is down"):
        virtually(trained(Broken(VirtualEngine(), seed=1), ScheduleLimits(problems=2, least=1), 10))
