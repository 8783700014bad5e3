"""A training run put together: weights, rollouts of a workflow, credit, the trainer, and exams on the way."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from accelerate import PartialState  # type: ignore[import-untyped]
from accelerate.utils import gather_object  # type: ignore[import-untyped]
from transformers import TrainerCallback

from hira.core.errors import UsageError
from hira.evaluation.rewards.reward import Reward
from hira.policies.local.batching import BatchingEngine
from hira.policies.local.template import Template
from hira.runtime.factory import open_session
from hira.runtime.session import Session
from hira.runtime.settings import Settings
from hira.trainers import records
from hira.trainers.checkpoints import last_checkpoint, step_of
from hira.trainers.credit import Credit
from hira.trainers.exam import Exam
from hira.trainers.exam import told as exam_told
from hira.trainers.gate import Gate
from hira.trainers.grpo import RoleTrainer
from hira.trainers.heartbeat import beating
from hira.trainers.live import LivePolicy
from hira.trainers.pipelined import PipelinedCollector
from hira.trainers.recording import Recording
from hira.trainers.rollouts import Collector, Deadlines, Problem, Rollouts, teams_of
from hira.trainers.served import ServedEngine
from hira.trainers.stages import Stages
from hira.trainers.update import Updates
from hira.workflows.workflow import Workflow

PATIENT = Deadlines()
Told = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Making:
    """How rollouts are made: `attempts` (G) of each of `questions` an update; see `Rollouts`. `vllm` is the address
    of a server that samples them in place of this process, and what it calls the base."""

    questions: int = 8
    attempts: int = 8
    roles: frozenset[str] | None = None
    deadlines: Deadlines = PATIENT
    concurrency: int = 256
    recording: Recording | None = None
    day: float | None = None
    samples: int = 4
    vllm: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Examining:
    """An exam on the `problems` every so many steps, 0 for one before and one after; `attempts` at each question at
    temperature 1, and one at temperature 0. `workflow` is run and `reward` scores it, those
    of the training unless there are others."""

    problems: Sequence[Problem] = ()
    every: int = 0
    attempts: int = 4
    reward: Reward | None = None
    workflow: Workflow | None = None


@dataclass(frozen=True)
class Training:
    """One run. `model` is a PEFT model with the adapters that `updates` names; `settings` say what tools there are.
    `stages` are those of MarsRL, which makes groups of each step's outputs and not of whole rollouts."""

    name: str
    model: Any
    tokenizer: Any
    settings: Settings
    workflow: Workflow
    problems: Sequence[Problem]
    reward: Reward
    credit: Credit
    updates: Updates
    folder: Path
    making: Making = Making()
    examining: Examining = Examining()
    kind: type[RoleTrainer] = RoleTrainer
    stages: Stages | None = None
    tell: Callable[[str], None] = lambda _: None
    stepped: Told = lambda _: None
    _exams: list[dict[str, Any]] = field(default_factory=list)

    def run(self, *, resume: bool = False) -> None:
        """Train to the last step. With `resume`, from the last whole checkpoint as if nothing had happened."""
        if self.stages and self.stages.limits and self.updates.old != "sampler":
            fix = 'set updates.old="sampler": the trainer would take what is some updates old for its own'
            raise UsageError("a pipeline trains on older weights' replies", fix=fix)
        if self.making.vllm and ((self.stages and self.stages.limits) or PartialState().num_processes > 1):
            fix = "leave rollouts.vllm out: the pipeline and several processes sample by themselves"
            raise UsageError("a vLLM server samples for one process that waits for it", fix=fix)
        begun = last_checkpoint(self.folder) if resume else None
        since = step_of(begun) if begun else 0
        if PartialState().is_main_process:
            records.cut(self.folder / records.EXAMS, since or -1)  # an exam before all steps stays
        with asyncio.Runner() as runner, self._opened(runner) as (team, engine, gate):
            self._train(runner, team, engine, gate, since)

    def examine(self, step: int) -> None:
        """One exam outside the run, recorded as that of `step`."""
        with asyncio.Runner() as runner, self._opened(runner) as (team, _, _):
            self._examine(runner, team, step)

    @contextmanager
    def _opened(self, runner: asyncio.Runner) -> Iterator[tuple[Session, BatchingEngine | ServedEngine, Gate]]:
        engine, gate = self._engine(runner), Gate()
        sampling = self.stages.sampling(engine, gate) if self.stages else engine
        live = LivePolicy(self.name, self.tokenizer, sampling, dict(self.updates.adapters))
        team = runner.run(open_session(self.settings, policies={"*": live}, workflow=self.workflow))
        try:
            yield team, engine, gate
        finally:
            runner.run(team.aclose())
            for reward in (self.reward, self.examining.reward):
                if (closing := getattr(reward, "aclose", None)) is not None:
                    runner.run(closing())  # the judge's connections belong to this loop
            runner.run(live.aclose())

    def _engine(self, runner: asyncio.Runner) -> BatchingEngine | ServedEngine:
        template = Template(self.tokenizer, where=f"model {self.name!r}")
        if self.making.vllm is None:
            return BatchingEngine(self.model, template)
        return runner.run(ServedEngine(*self.making.vllm, self.model, template, self.folder).open())

    def _train(
        self, runner: asyncio.Runner, team: Session, engine: BatchingEngine | ServedEngine, gate: Gate, since: int
    ) -> None:
        making = self.making
        own = PartialState()
        share = (own.process_index, own.num_processes)
        rollouts = Rollouts(
            teams_of(team),
            self.workflow,
            self.problems,
            self.reward,
            making.questions,
            making.attempts,
            making.roles,
            self.updates.seed,
            making.deadlines,
            making.concurrency,
            making.recording,
            share=share,
            day=making.day,
            samples=making.samples,
            tell=self.tell,
        )

        collector: Collector | PipelinedCollector = Collector(runner, rollouts)
        if self.stages is not None:
            collector = self.stages.collector(runner, rollouts, engine, gate, self.folder)

        def updated(step: int) -> None:
            engine.updated(step)
            gate.open()
            if step == self.updates.steps or (self.examining.every and step % self.examining.every == 0):
                self._examine(runner, team, step)

        trainer = self.kind(
            self.model,
            self.tokenizer,
            self.updates,
            collector,
            self.credit,
            self.folder,
            updated=updated,
        )
        trainer.beating = partial(beating, making.deadlines.heartbeat, self.tell)
        trainer.add_callback(Telling(self.stepped))
        if since:
            engine.updated(since)
        else:
            self._examine(runner, team, 0)
        try:
            trainer.run(resume=bool(since))
        finally:
            if isinstance(collector, PipelinedCollector):
                collector.close()

    def _examine(self, runner: asyncio.Runner, team: Session, step: int) -> None:
        wanted, own = self.examining, PartialState()
        if not wanted.problems:
            return
        problems = wanted.problems[own.process_index :: own.num_processes]
        told: dict[str, Any] = {"step": step}
        for name, attempts, temperature in (("sampled", wanted.attempts, 1.0), ("greedy", 1, 0.0)):
            exam = Exam(
                teams_of(team),
                wanted.workflow or self.workflow,
                problems,
                wanted.reward or self.reward,
                attempts,
                temperature,
                self.updates.seed,
                self.making.deadlines.call,
                self.making.concurrency,
                self.making.day,
                self.tell,
                self.making.deadlines.heartbeat,
            )
            told |= exam_told([one for part in gather_object([runner.run(exam.scored())]) for one in part], name)
        if own.is_main_process:
            records.append(self.folder / records.EXAMS, [told])
            self.stepped({"exam": True, **told})


class Telling(TrainerCallback):
    """Hands every line of metrics on."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        del args, control
        self.told({"step": state.global_step, **(logs or {})})
