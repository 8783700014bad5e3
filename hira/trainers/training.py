"""A training run: rollouts, credit, updates and exams on one model."""

import asyncio
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState  # type: ignore[import-untyped]
from accelerate.utils import gather_object  # type: ignore[import-untyped]

from hira.core.errors import UsageError
from hira.evaluation.rewards.answers import Reward, RolloutScore, close_reward
from hira.policies.local import LocalPolicy
from hira.policies.local.batching import BatchingEngine
from hira.policies.local.template import Template
from hira.runtime.factory import open_session
from hira.runtime.session import Session
from hira.trainers import records
from hira.trainers.agentic import Agentic
from hira.trainers.assembly import TrainingPlan, credit_of, reward_of
from hira.trainers.configuration import Configuration
from hira.trainers.engines import ServedEngine
from hira.trainers.grpo import RoleTrainer
from hira.trainers.metrics import summarise_exam
from hira.trainers.models import open_model
from hira.trainers.pipeline import PipelinedCollector, Segmented
from hira.trainers.profile import ADAPTERS, BEST, save_adapters
from hira.trainers.records import last_checkpoint, print_progress, step_of
from hira.trainers.rewards import open_reward
from hira.trainers.rollouts import Collector, Problem, Rollouts
from hira.trainers.schedule import Gate, ScheduleLimits
from hira.workflows.workflow import Workflow

Tell = Callable[[str], None]
OnStep = Callable[[Mapping[str, Any]], None]
AnyEngine = BatchingEngine | ServedEngine


@dataclass(frozen=True, kw_only=True)
class Training:
    plan: TrainingPlan
    model: Any
    """A PEFT model with the adapters of the configuration."""
    tokenizer: Any
    reward: Reward
    """The reward of `reward_of`, or your own."""
    exam_workflow: Workflow | None = None
    """The workflow of exams on the held-out problems, by default that of the training."""
    exam_reward: Reward | None = None
    """The reward of exams, by default that of the training."""
    tell: Tell = lambda _: None
    on_step: OnStep = lambda _: None

    @property
    def configuration(self) -> Configuration:
        return self.plan.configuration

    @property
    def folder(self) -> Path:
        return self.plan.folder

    @property
    def limits(self) -> ScheduleLimits | None:
        """The limits of the agentic pipeline; None if an update waits for all its rollouts."""
        part = self.configuration.marsrl
        if not (self.plan.recipe.staged and part.staleness):
            return None
        return ScheduleLimits(part.problems, part.groups, part.staleness, 2 * part.groups)

    def run(self, *, resume: bool = False) -> None:
        """Train to the last step. With `resume`, from the last whole checkpoint as if the run had never stopped."""
        if self.configuration.rollouts.vllm and (self.limits or PartialState().num_processes > 1):
            fix = "leave rollouts.vllm out: the pipeline and several processes sample by themselves"
            raise UsageError("a vLLM server samples for one process that waits for it", fix=fix)
        begun = last_checkpoint(self.folder) if resume else None
        since = step_of(begun) if begun else 0
        if PartialState().is_main_process:
            records.cut(self.folder / records.EXAMS, since or -1)  # keep an exam before all steps
        with asyncio.Runner() as runner, self.open(runner) as (context, engine, gate):
            self._train(runner, context, engine, gate, since)

    def examine(self, step: int) -> None:
        """Take one exam outside the run, recorded as that of `step`."""
        with asyncio.Runner() as runner, self.open(runner) as (context, _, _):
            self._examine(runner, context, step)

    def rollouts(self, context: Session, share: tuple[int, int] = (0, 1)) -> Rollouts:
        return Rollouts(
            context.open_context,
            self.plan.workflow,
            self.plan.problems,
            self.reward,
            config=self.configuration.rollouts,
            roles=self.plan.recipe.roles,
            seed=self.configuration.seed,
            share=share,
            day=self.plan.began,
            tell=self.tell,
        )

    @contextmanager
    def open(self, runner: asyncio.Runner) -> Iterator[tuple[Session, AnyEngine, Gate]]:
        """Open a session in which the model plays all roles, its engine, and the gate of the pipeline."""
        model = self.configuration.model
        template = Template(self.tokenizer, where=f"model {model.name!r}")
        config, gate = self.configuration.rollouts, Gate()
        engine: AnyEngine
        if config.vllm:
            served = ServedEngine(config.vllm, config.vllm_model or model.name, self.model, template, self.folder)
            engine = runner.run(served.open())
        else:
            engine = BatchingEngine(self.model, template)
        sampling = Segmented(engine, gate, self.configuration.marsrl.segment or None) if self.limits else engine
        live = LocalPolicy(model.name, template, sampling, model.adapters, versioned=True)
        context = runner.run(open_session(self.plan.settings, policies={"*": live}, workflow=self.plan.workflow))
        untrained = LocalPolicy(model.name, template, sampling, versioned=True)
        try:
            for reward in (self.reward, self.exam_reward):
                runner.run(open_reward(reward, context, untrained))
            yield context, engine, gate
        finally:
            runner.run(context.aclose())
            for reward in (self.reward, self.exam_reward):
                runner.run(close_reward(reward))
            runner.run(live.aclose())

    def _train(self, runner: asyncio.Runner, context: Session, engine: AnyEngine, gate: Gate, since: int) -> None:
        process, every, configuration = PartialState(), self.configuration.exam.every, self.configuration
        if self.limits:
            configuration = compare_with_sampler(configuration)
        rollouts = self.rollouts(context, (process.process_index, process.num_processes))
        collector = Collector(runner, rollouts.collect, engine.pause)
        if self.plan.recipe.staged:
            search = bool(configuration.workflow.get("search", True))
            agentic = Agentic(rollouts, configuration.marsrl, search)
            collector = Collector(runner, agentic.collect, engine.pause)
            if self.limits:
                collector = PipelinedCollector(runner, agentic, self.limits, gate, self.folder, pause=engine.pause)

        def finish_update(step: int) -> None:
            engine.record_update(step)
            gate.open()
            if step == self.configuration.train.steps or (every and step % every == 0):
                self._examine(runner, context, step)
                trainer.over = self.finish_exam(step)

        weights, credit = (self.model, self.tokenizer), credit_of(self.plan)
        trainer = RoleTrainer(*weights, configuration, collector, credit, self.folder, on_update=finish_update)
        trainer.record.on_step = self.on_step
        trainer.show_progress = partial(print_progress, rollouts.config.heartbeat_seconds, self.tell)
        if since:
            engine.record_update(since)
        else:
            self._examine(runner, context, 0)
        try:
            trainer.run(resume=bool(since))
        finally:
            if isinstance(collector, PipelinedCollector):
                collector.close()

    def _examine(self, runner: asyncio.Runner, context: Session, step: int) -> None:
        if not self.plan.held_out:
            return
        process, record = PartialState(), dict[str, Any](step=step)
        workflow, reward = self.exam_workflow or self.plan.workflow, self.exam_reward or self.reward
        exam = replace(self.rollouts(context), workflow=workflow, reward=reward)
        sets: dict[str, list[Problem]] = {}
        for problem in self.plan.held_out:
            sets.setdefault(problem.set, []).append(problem)
        for name, attempts, temperature in (("sampled", self.configuration.exam.attempts, 1.0), ("greedy", 1, 0.0)):
            by_set: dict[str, list[RolloutScore]] = {}
            for label, problems in sets.items():
                own = problems[process.process_index :: process.num_processes]
                sample = replace(exam, problems=own, temperature=temperature)
                scores = gather_object([runner.run(sample.examine(attempts))])
                by_set[label] = [score for part in scores for score in part]
            record |= summarise_exam(by_set, name)
        if process.is_main_process:
            records.append_records(self.folder / records.EXAMS, [record])
            self.on_step({"exam": True, **record})

    def finish_exam(self, step: int) -> bool:
        """Save the adapters of a new best exam; return whether the last exams brought no improvement. Exams before the
        first step or without a scored answer do not count."""
        taken = records.read(self.folder / records.EXAMS)
        exams = [exam for exam in taken if exam["step"] > 0 and exam["sampled"] is not None]
        best = max(exams, key=lambda exam: exam["sampled"], default=None)  # of equals the first
        if best is None:
            return False
        exam = self.configuration.exam
        if exam.best and best["step"] == step and PartialState().is_main_process:
            save_adapters(self.plan, self.model, self.tokenizer, BEST)
        return 0 < exam.patience < len(exams) - exams.index(best)


def compare_with_sampler(configuration: Configuration) -> Configuration:
    """Take the sampler's log-probabilities for the old policy's: rows of a pipeline may be older than the weights, and
    with the trainer's own their ratio would always be 1."""
    return configuration.model_copy(update={"train": configuration.train.model_copy(update={"old": "sampler"})})


def open_weights(plan: TrainingPlan) -> tuple[Any, Any]:
    torch.manual_seed(plan.configuration.seed)  # new adapters begin at random
    tokenizer, model = open_model(plan.configuration.model)
    tokenizer.model_max_length = min(plan.configuration.rollouts.window, tokenizer.model_max_length)
    return tokenizer, model


def run_grpo(
    plan: TrainingPlan,
    *,
    resume: bool,
    on_start: Callable[[], None] = lambda: None,
    tell: Tell = lambda _: None,
    on_step: OnStep = lambda _: None,
) -> None:
    """Train to the last step and save the adapters. With `resume`, as if the run had never stopped. `on_start` is
    called when everything is open and nothing has been written yet."""
    # must come first: on a CPU it finds other processes only with `cpu`
    process = PartialState(cpu=not torch.cuda.is_available())
    tokenizer, model = open_weights(plan)
    reward = reward_of(plan)
    training = Training(plan=plan, model=model, tokenizer=tokenizer, reward=reward, tell=tell, on_step=on_step)
    on_start()
    training.run(resume=resume)
    if process.is_main_process:
        if plan.configuration.exam.best and (plan.folder / BEST).is_dir():
            shutil.copytree(plan.folder / BEST, plan.folder / ADAPTERS, dirs_exist_ok=True)
        else:
            save_adapters(plan, model, tokenizer)
    process.wait_for_everyone()
