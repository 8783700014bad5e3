"""The agentic pipeline: it trains on complete groups while other replies are still sampled, in segments."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

from hira.policies.local.engine import Engine, Sampled, SampleRequest
from hira.trainers import records
from hira.trainers.agentic import Agentic, MemberOutput, Stage
from hira.trainers.calls import seed_of
from hira.trainers.rollouts import Collector, Problem, choose_problems
from hira.trainers.rows import Collected
from hira.trainers.schedule import Gate, Schedule, ScheduleLimits

SCHEDULE = "schedule.jsonl"


class PipelinedCollector(Collector):
    """Makes the rollouts of a trainer whose policy samples through the `gate` (`Segmented`), which the trainer opens
    after each update. `folder` has a record of the problems in progress, which a resumed run begins again; its rows
    differ from those of an uninterrupted run, because replies that were sampled and not yet trained on are lost."""

    def __init__(
        self,
        runner: asyncio.Runner,
        agentic: Agentic,
        limits: ScheduleLimits,
        gate: Gate,
        folder: Path,
        *,
        pause: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        super().__init__(runner, self._take, pause)
        self.agentic = agentic
        self.limits = limits
        self.gate = gate
        process, processes = agentic.rollouts.share
        self.path = folder / (SCHEDULE if processes == 1 else f"{process}-{SCHEDULE}")
        self.schedule: Schedule[MemberOutput] | None = None

    def close(self) -> None:
        self.gate.open()
        if self.schedule is not None:
            self.runner.run(self.schedule.aclose())

    async def _take(self, update: int) -> Collected:
        if self.schedule is None:  # as it was after the previous update
            records.cut(self.path, update)
            known = records.read(self.path)
            first, again = (known[-1]["next"], known[-1]["under_way"]) if known else (0, [])
            self.schedule = Schedule(self._begin, self.limits, first=first, again=again)
        schedule = self.schedule
        self.gate.open()
        schedule.record_update(update)
        with self.agentic.report_progress():
            batch = await schedule.take()
            await self.gate.close()
        collected = self.agentic.collect_groups([group.outputs for group in batch])
        state = {"step": update + 1, "next": schedule.next, "under_way": schedule.problems}
        records.append_records(self.path, [state])
        ages = [update - group.version for group in batch] or [0]
        measures = {
            "staleness": mean(ages),
            "staleness/most": max(ages),
            "groups": len(batch),
            "groups_under_way": schedule.sampling,
            "problems_under_way": len(schedule.problems),
        }
        return replace(collected, measures={**collected.measures, **measures})

    def problem(self, number: int) -> Problem:
        """Return the problem with that number: shuffled passes over all problems, one after another."""
        rollouts = self.agentic.rollouts
        process, processes = rollouts.share
        (problem,) = choose_problems(rollouts.problems, number * processes + process, 1, rollouts.seed)
        return problem

    async def _begin(self, number: int) -> Stage | None:
        return await self.agentic.begin(self.problem(number), number)


@dataclass(eq=False, slots=True)
class Segmented:
    """An engine that passes a gate before each segment of at most `segment` tokens; None samples whole replies.

    With stop strings a reply is sampled whole, since a stop string might span two segments.
    """

    engine: Engine
    gate: Gate
    segment: int | None = None

    @property
    def window(self) -> int:
        return self.engine.window

    async def sample(self, request: SampleRequest) -> Sampled:
        sampling, room = request.sampling, self.window - len(request.prompt)
        most = max(1, min(room, sampling.max_tokens or room))
        length = most if request.stops or self.segment is None else self.segment
        whole: Sampled | None = None
        while True:
            held = whole.ids if whole else ()
            seed = sampling.seed if sampling.seed is None or not held else seed_of(sampling.seed, len(held))
            limited = replace(sampling, max_tokens=min(length, most - len(held)), seed=seed)
            async with self.gate:
                part = await self.engine.sample(replace(request, prompt=(*request.prompt, *held), sampling=limited))
            if whole is not None:  # the version is that of the oldest segment
                ids, logprobs = (*whole.ids, *part.ids), (*whole.logprobs, *part.logprobs)
                whole = replace(part, ids=ids, logprobs=logprobs, version=min(whole.version, part.version))
            else:
                whole = part
            if part.finish == "stop" or len(whole.ids) >= most or not part.ids:
                return whole

    async def aclose(self) -> None:
        await self.engine.aclose()
