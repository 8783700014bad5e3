"""What the agentic pipeline trains in the time in which the synchronous schedule waits for its slowest replies.

    python benchmarks/training/pipeline.py [--hours 60] [--write]

The schedule is hira's own, `hira.trainers.schedule`, under a virtual clock; the engine is virtual too: every step gives
each of 128 rows a token and takes 20 ms and 0.1 ms for each row, and a reply that is carried on is read again at 20,000
tokens a second. Replies are as long as MarsRL's at its beginning (section 4.3: the Solver 19k tokens on average,
Verifier and Corrector 5k), with a long tail that is cut at 64k; 8 members a group, 2 outputs picked, at most 5 steps.
Of the outputs of a Verifier, those of which a Corrector goes on are drawn as well, so that many problems end early.
The engine stands still while weights are updated, as on one GPU: an update takes 1 s for 20,000 tokens.

All schedules have the same engine and updates of about as many groups: those of 16 problems. As in Fig. 3 of the paper,
the pipeline begins 16 new problems while the earlier ones are at later steps, so 80 are under way. A synchronous
schedule could fill its engine too, with updates that are five times as large and so five times as few; and a pipeline
could have only 16 problems under way. Both are shown beside it.

Expected before the run (a pilot with another simulation found x 1.48, and x 1.63 to 1.76 with segments):
- the pipeline trains at least 1.3 times the tokens of the synchronous schedule, with segments at least 1.5 times;
- no token is trained on that is older than the bound on staleness.
"""

import argparse
import asyncio
import math
import platform
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean

from hira.trainers.schedule import Gate, Released, Schedule, ScheduleLimits

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from virtual import VirtualEngine, virtually

RESULTS = Path(__file__).parents[1] / "results" / "pipeline.md"
PLACES, SIZE, PICKS, STEPS, CAP = 128, 8, 2, 5, 65_536
PROBLEMS, UNDER_WAY, STALENESS = 16, 80, 4
MEAN = {"solver": 19_000, "verifier": 5_000, "corrector": 5_000}
SPREAD = 0.9
GOES_ON = 0.75
TOKENS_A_SECOND = 20_000


@dataclass
class World:
    segment: int | None
    seed: int
    engine: VirtualEngine = field(default_factory=lambda: VirtualEngine(PLACES, 0.02, 1e-4, 1 / 20_000, 256))
    gate: Gate = field(default_factory=Gate)
    several: int = 0
    replies: int = 0

    async def begin(self, number: int) -> "Step":
        return Step(self, number, 1)


@dataclass(frozen=True)
class Step:
    """One step of a problem; outputs are how many tokens were sampled."""

    world: World
    problem: int
    step: int
    size: int = SIZE

    @property
    def groups(self) -> Sequence[str]:
        return [f"{self.step}.{at}" for at in range(1 if self.step == 1 else PICKS)]

    @property
    def role(self) -> str:
        return "solver" if self.step == 1 else "verifier" if self.step % 2 == 0 else "corrector"

    async def sample(self, group: int, number: int) -> int:
        world = self.world
        chance = random.Random(f"{world.seed}/{self.problem}/{self.step}/{group}/{number}")
        length = min(CAP, 1 + int(chance.lognormvariate(math.log(MEAN[self.role]) - SPREAD**2 / 2, SPREAD)))
        segment = world.segment or length
        for held in range(0, length, segment):
            async with world.gate:
                await world.engine.decode(min(segment, length - held), held)
        world.several += length > segment
        world.replies += 1
        return length

    def then(self, outputs: Sequence[Sequence[int]]) -> "Step | None":
        del outputs
        chance = random.Random(f"{self.world.seed}/{self.problem}/{self.step}")
        flagged = self.role != "verifier" or chance.random() < GOES_ON
        return replace(self, step=self.step + 1) if flagged and self.step < STEPS else None


@dataclass
class Told:
    """What a schedule came to."""

    tokens: int = 0
    groups: int = 0
    updates: int = 0
    oldest: int = 0
    ages: float = 0.0
    hours: float = 0.0
    decoding: float = 0.0
    several: float = 0.0

    def add(self, batch: Sequence[Released[int]], version: int) -> None:
        self.tokens += sum(sum(group.outputs) for group in batch)
        self.groups += len(batch)
        self.updates += 1
        self.oldest = max(self.oldest, *(version - group.version for group in batch))
        self.ages += sum(version - group.version for group in batch)

    @property
    def rate(self) -> float:
        return self.tokens / self.hours / 3600


async def synchronous(world: World, seconds: float, problems: int) -> Told:
    """All steps of so many problems, then one update on all of it."""
    told, first = Told(), 0
    while asyncio.get_running_loop().time() < seconds:
        everything = ScheduleLimits(problems, 10**9, 10**9, 10**9)
        schedule: Schedule[int] = Schedule(world.begin, everything, first=first, total=first + problems)
        await _update(await schedule.take(), world, told, 0)
        await schedule.aclose()
        first += problems
    return _ended(told, world)


async def pipeline(world: World, seconds: float, least: int, problems: int) -> Told:
    """Updates on complete groups, while later steps of the same problems and other problems are sampled."""
    told = Told()
    schedule: Schedule[int] = Schedule(world.begin, ScheduleLimits(problems, least, STALENESS, 10 * least))
    while asyncio.get_running_loop().time() < seconds:
        batch = await schedule.take()
        await _update(batch, world, told, schedule.version)
        schedule.record_update()
    await schedule.aclose()
    return _ended(told, world)


async def _update(batch: Sequence[Released[int]], world: World, told: Told, version: int) -> None:
    await world.gate.close()
    told.add(batch, version)
    await asyncio.sleep(sum(sum(group.outputs) for group in batch) / TOKENS_A_SECOND)
    world.gate.open()


def _ended(told: Told, world: World) -> Told:
    told.hours = asyncio.get_running_loop().time() / 3600
    told.decoding = world.engine.tokens / told.hours / 3600
    told.several = world.several / world.replies
    return told


@dataclass(frozen=True)
class Setting:
    name: str
    problems: int
    segment: int | None = None
    waits: bool = False

    def played(self, seed: int, seconds: float, least: int) -> Told:
        world = World(self.segment, seed)
        if self.waits:
            return virtually(synchronous(world, seconds, self.problems))
        return virtually(pipeline(world, seconds, least, self.problems))


SETTINGS = (
    Setting("synchronous", PROBLEMS, waits=True),
    Setting("pipeline", UNDER_WAY),
    *(Setting(f"pipeline, segments of {at:,}", UNDER_WAY, at) for at in (32_768, 16_384, 8_192)),
    Setting("synchronous, five times as large updates", UNDER_WAY, waits=True),
    Setting("pipeline, 16 problems under way", PROBLEMS),
    Setting("pipeline, 16 problems under way, segments of 16,384", PROBLEMS, 16_384),
)
HEAD = """| schedule | trained tokens a second | ÷ synchronous | groups an update | age | oldest | in several segments |
|---|---|---|---|---|---|---|"""


def line(setting: Setting, many: Sequence[Told], base: float) -> str:
    """A row of the table: the mean over seeds, and from the least to the most."""
    rates = [one.rate for one in many]
    groups, updates = sum(one.groups for one in many), sum(one.updates for one in many)
    return (
        f"| {setting.name} | {mean(rates):,.0f} | {mean(rates) / base:.2f} "
        f"({min(rates) / base:.2f} to {max(rates) / base:.2f}) | {groups / updates:.0f} "
        f"| {sum(one.ages for one in many) / groups:.2f} | {max(one.oldest for one in many)} "
        f"| {100 * mean(one.several for one in many):.0f} % |"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hours", type=float, default=30)
    options.add_argument("--seeds", type=int, default=2)
    options.add_argument("--write", action="store_true")
    asked = options.parse_args()
    print(HEAD)
    rows, least, base = list[str](), 1, 1.0
    found: dict[Setting, Sequence[Told]] = {}
    for setting in SETTINGS:
        found[setting] = many = [setting.played(seed, asked.hours * 3600, least) for seed in range(asked.seeds)]
        if setting is SETTINGS[0]:
            least = round(sum(one.groups for one in many) / sum(one.updates for one in many))
            base = mean(one.rate for one in many)
        rows.append(line(setting, many, base))
        print(rows[-1], flush=True)
    told = verdicts(found, base)
    print("", *told, sep="\n")
    if asked.write:
        RESULTS.write_text(page(rows, told, asked.hours, asked.seeds), encoding="utf-8")


def verdicts(found: Mapping[Setting, Sequence[Told]], base: float) -> list[str]:
    """What was expected, of the seed with the least gain."""

    def least(settings: Sequence[Setting]) -> float:
        return min(min(one.rate for one in found[setting]) / base for setting in settings)

    oldest = max(one.oldest for many in found.values() for one in many)
    held = {
        "the pipeline trains at least 1.3 times the tokens": least(SETTINGS[1:2]) >= 1.3,
        "with segments at least 1.5 times, of any length": least(SETTINGS[2:5]) >= 1.5,
        f"no token is older than {STALENESS} updates (the oldest: {oldest})": oldest <= STALENESS,
    }
    return [f"- expected and {'found' if holds else 'NOT found'}: {name}" for name, holds in held.items()]


def page(rows: Sequence[str], told: Sequence[str], hours: float, seeds: int) -> str:
    table, expected = "\n".join((HEAD, *rows)), "\n".join(told)
    return f"""# The agentic pipeline

Made by `python benchmarks/training/pipeline.py --hours {hours:g} --seeds {seeds} --write`: Python
{platform.python_version()}, virtual time. The engine has {PLACES} places, staleness is bounded by {STALENESS} updates.
What was expected before the run stands in the file.

{table}

{expected}

Age is in updates, of groups when they were trained on, counted from when their first member was begun. What helps is
that the engine stays full: with only as many problems under way as the synchronous schedule has, the pipeline gains
little; and a synchronous schedule that waits for five times as many problems trains as many tokens, in updates that are
five times as large and so five times as few.
"""


if __name__ == "__main__":
    main()
