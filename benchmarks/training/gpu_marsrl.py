"""MarsRL with a random model on one device: the synchronous schedule and the agentic pipeline, each for as long.

The recipe's own workflow, stages, schedule, segments, credit and trainer; every token is sampled for real. What random
weights cannot say is drawn for each reply, by its problem, step and number alone: how long it is, and what it says in
the end (a right or a wrong solution, a verdict). So the n-th problem is the same work in every way, and all groups have
a signal. What was sampled counts as thought: the next role reads what the reply says in the end, as with a reasoning
model.

Replies are as long as MarsRL's at its beginning (section 4.3: the Solver 19k tokens on average, Verifier and Corrector
5k, cut at 64k; segments of 16k, section 4.1), all divided by `scale`. As in `pipeline.py`, the pipeline has five times
as many problems under way as the synchronous schedule, its updates have as many groups, and the engine has as many
places either way.

Expected before the run: the pipeline trains at least 1.3 times the tokens of the synchronous schedule in a second, with
segments at least 1.5 times; no token is trained on that is older than the bound; nothing is decoded while weights are
updated, since trainer and engine share them.
"""

import asyncio
import math
import random
import statistics
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from course import Clock, Counting, Course, Draining, Ends
from workload import model

from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Rollout
from hira.core.events import Events, Reader
from hira.core.policy import Completion, Policy, Request, Watch
from hira.evaluation.rewards.answers import ByWords
from hira.evaluation.rewards.match import equal
from hira.policies.dialects import DIALECTS
from hira.policies.local import LocalPolicy
from hira.policies.local.template import Template
from hira.testing.script import role_of
from hira.trainers import records
from hira.trainers.agentic import Agentic
from hira.trainers.configuration import Configuration, ModelConfig, RolloutConfig, StageConfig, TrainConfig
from hira.trainers.credit.masking import drop_mastered
from hira.trainers.grpo import RoleTrainer
from hira.trainers.pipeline import PipelinedCollector, Segmented
from hira.trainers.plan import DecoderShape
from hira.trainers.recipes import MARSRL as RECIPE
from hira.trainers.rollouts import Collector, Problem, Rollouts
from hira.trainers.schedule import ScheduleLimits
from hira.workflows.marsrl import MarsRL

MEAN = {"solver": 19_000, "verifier": 5_000, "corrector": 5_000}
CAP, SEGMENT, SPREAD = 65_536, 16_384, 0.9
PICKS, STEPS = 2, 5
ADAPTERS = {"*": "default"}


@dataclass(frozen=True)
class Load:
    """How large everything is. An update of the synchronous schedule takes `questions` problems; a way ends with the
    update after which `seconds` are over, or with the last of `steps`."""

    questions: int = 8
    attempts: int = 8
    places: int = 64
    staleness: int = 4
    scale: int = 200
    seconds: float = 120.0
    steps: int = 12

    @property
    def groups(self) -> int:
        """Of a problem that goes through all steps, times those of an update."""
        return self.questions * (1 + PICKS * (STEPS - 1))

    @property
    def limits(self) -> ScheduleLimits:
        return ScheduleLimits(5 * self.questions, self.groups, self.staleness, 2 * self.groups)


FULL = Load()
SMALL = Load(questions=1, attempts=4, places=8, scale=2_000, seconds=30.0, steps=4)


def stages(way: str, load: Load) -> StageConfig:
    """How groups are made in each of the three ways."""
    if way == "synchronous":
        return StageConfig(picks=PICKS)
    limits, segment = load.limits, SEGMENT // load.scale if way == "segments" else 0
    return StageConfig(picks=PICKS, staleness=limits.staleness, problems=limits.problems, groups=limits.least,
                       segment=segment)  # fmt: skip


def sums(many: int = 2_000) -> list[Problem]:
    """Questions with one answer each."""
    chance = random.Random("sums")
    drawn = [(chance.randrange(100, 1000), chance.randrange(100, 1000)) for _ in range(many)]
    return [Problem(f"p{at}", f"How much is {a} + {b}?", (str(a + b),)) for at, (a, b) in enumerate(drawn)]


@dataclass
class Ending:
    """The live policy samples as many tokens as were drawn; then the reply says what was drawn."""

    policy: Policy
    run: str
    gold: str
    scale: int

    @property
    def model(self) -> str:
        return self.policy.model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        role = role_of(request.conversation)
        chance = random.Random(self.run.partition("-")[2])  # after the update's number, which hangs on the way
        mean = math.log(MEAN[role] / self.scale) - SPREAD**2 / 2
        wanted, most = 1 + int(chance.lognormvariate(mean, SPREAD)), CAP // self.scale
        sampling = replace(request.sampling, max_tokens=min(wanted, most))
        said = await self.policy.complete(replace(request, sampling=sampling), watch)
        good = chance.random() < 0.5
        if role == "verifier":
            text = "Verdict: correct" if good else "The sum is wrong.\n\nVerdict: incorrect"
        else:
            text = f"The sum is \\boxed{{{int(self.gold) + (not good)}}}."
        return replace(said, text=text, finish="length" if wanted > most else "stop")

    async def aclose(self) -> None:
        await self.policy.aclose()


@dataclass(frozen=True)
class Way:
    """One of the ways with its weights."""

    name: str
    load: Load
    weights: Any
    words: Any
    folder: Path
    budget: int

    def measured(self) -> dict[str, Any]:
        """A run of it, and what came out."""
        made, gate = stages(self.name, self.load), Draining()
        template = Template(self.words)
        engine = Counting(self.weights, template)
        sampling = Segmented(engine, gate, made.segment or None) if made.limits else engine
        live = LocalPolicy("random", template, sampling, ADAPTERS, versioned=True)
        with asyncio.Runner() as runner, Clock(engine) as clock:
            agentic, piped = Agentic(self.rollouts(live), made, search=False), made.limits is not None
            collector = Collector(runner, agentic.collect, engine.pause)
            if made.limits is not None:
                collector = PipelinedCollector(runner, agentic, made.limits, gate, self.folder, pause=engine.pause)
            course = Course(clock)

            def record_update(step: int) -> None:
                engine.record_update(step)
                gate.open()

            trainer = RoleTrainer(
                self.weights,
                self.words,
                self.updates("sampler" if piped else "trainer"),
                course.collecting(collector),
                course.crediting(lambda groups: drop_mastered(RECIPE.credit(groups))),
                self.folder,
                on_update=course.updating(record_update),
            )
            trainer.add_callback(Ends(self.load.seconds))
            try:
                trainer.run()
            finally:
                if isinstance(collector, PipelinedCollector):
                    collector.close()
                with engine.pause():  # its thread has ended, and what it held is there for the next way
                    pass
        return self._told(course, engine, gate)

    def rollouts(self, live: LocalPolicy) -> Rollouts:
        problems = sums()
        answers = {one.question: one.references[0] for one in problems}

        @asynccontextmanager
        async def opened(run: str, question: str, _: Any, readers: Sequence[Reader]) -> AsyncIterator[RunContext]:
            ending = Ending(live, run, answers[question], self.load.scale)
            record = Rollout(run, question, "marsrl", began=1_800_000_000.0)
            yield RunContext({"*": RoleConfig(ending, dialect=DIALECTS["tags"])}, record, Events(*readers))

        return Rollouts(
            opened,
            MarsRL(search=False),
            problems,
            ByWords(equal),
            config=RolloutConfig(
                questions=self.load.questions, attempts=self.load.attempts, concurrency=self.load.places
            ),
            tell=lambda told: print(f"  {told}", flush=True),
        )

    def updates(self, old: Any) -> Configuration:
        train = TrainConfig(steps=self.load.steps, lr=1e-5, budget=self.budget, save_every=1000, old=old)
        return Configuration(model=ModelConfig(adapters=ADAPTERS), train=train)

    def _told(self, course: Course, engine: Counting, gate: Draining) -> dict[str, Any]:
        metrics = [one for one in records.read(self.folder / records.METRICS) if "update_seconds" in one]
        steady = metrics[1:] or metrics

        def median(name: str) -> float:
            return statistics.median(one.get(name, 0.0) for one in steady)

        def most(name: str) -> float:
            return max(one.get(name, 0.0) for one in metrics)

        tokens, updates, seconds = course.steady
        return {
            "name": self.name,
            "load": vars(self.load),
            "updates": len(metrics),
            "seconds": course.ended[-1],
            "trained_tokens": sum(course.tokens),
            "trained_tokens_per_second": tokens / seconds,
            "trained_tokens_per_second_from_the_start": sum(course.tokens) / course.ended[-1],
            "updates_per_minute": 60 * updates / seconds,
            "tokens_an_update": tokens / updates,
            "rows_an_update": statistics.mean(course.rows[1:] or course.rows),
            "rollout_seconds": median("rollout_seconds"),
            "update_seconds": median("update_seconds"),
            "update_tokens_per_second": median("update_tokens_per_second"),
            "decoding_in_rollouts": course.clock.share("rollouts"),
            "decoding_in_updates": course.clock.share("update"),
            "steps_in_updates": course.decoded,
            "tokens_a_step": engine.sampled / max(1, engine.steps),
            "sampled_tokens": engine.sampled,
            "engine_calls": engine.calls,
            "waiting_for_the_last": gate.seconds / course.ended[-1],
            "staleness": sum(course.ages) / max(1, len(course.ages)),
            "staleness_most": max(course.ages, default=0),
            "staleness_told": most("staleness/most"),
            "staleness_bound": 0 if self.name == "synchronous" else self.load.staleness,
            "sampler_drift": max((value for one in metrics for name, value in one.items()
                                  if name.endswith("/sampler_drift")), default=0.0),
            **{name: most(name) for name in ("rollout_peak_gib", "update_peak_gib", "infra_failed", "dead_groups")},
        }  # fmt: skip


def measured(
    way: str, load: Load, shape: DecoderShape, words: Any, folder: Path, budget: int, rank: int
) -> dict[str, Any]:
    """One way, from fresh weights."""
    return Way(way, load, model(shape, ["default"], rank=rank), words, folder, budget).measured()
