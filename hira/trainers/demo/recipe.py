"""A demo: its recipe, the rollouts of its teacher, and its run, from demonstrations by way of reinforcement to profiles
for asking."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.agents.trajectory import Rollout
from hira.core.concurrency import together
from hira.core.policy import Completion, Request, Watch, cut_at_stop
from hira.evaluation.rewards.answers import Reward
from hira.policies.local.template import Template
from hira.policies.offline import OfflinePolicy
from hira.runtime.factory import open_session
from hira.runtime.settings import PROFILE, Settings
from hira.trainers import records
from hira.trainers.assembly import TrainingPlan, credit_of, read_configuration, write_configuration
from hira.trainers.calls import seed_of
from hira.trainers.configuration import (
    Configuration,
    ExamConfig,
    ModelConfig,
    RolloutConfig,
    SftConfig,
    StageConfig,
    TrainConfig,
)
from hira.trainers.demo.tiny import SHAPE, TinyShape, make_model
from hira.trainers.demonstrations import demonstrations_of
from hira.trainers.profile import save_adapters, write_profiles
from hira.trainers.recipes import Recipe
from hira.trainers.records import last_checkpoint
from hira.trainers.rollouts import Problem
from hira.trainers.rows import Row
from hira.workflows import BuiltIn
from hira.workflows.workflow import Workflow, rollout

if TYPE_CHECKING:
    from hira.trainers.sft import Changed


TINY = "tiny"
"""The base with random weights."""
DAY = 1_767_225_600.0  # 2026-01-01: the prompts are the same on every day


@dataclass(frozen=True, slots=True)
class DemoSizes:
    """The sizes of a demo: `demonstrations` of the teacher for each question, `learning` supervised steps, `updates` of
    `questions` x `attempts` rollouts, which replace groups without signal by other questions up to `refill` times, in
    micro-batches of `budget` tokens. An exam asks every `thin`-th held-out question `exam` times."""

    demonstrations: int = 3
    learning: int = 180
    batch: int = 32
    learning_rate: float = 5e-3
    updates: int = 40
    questions: int = 8
    attempts: int = 8
    refill: int = 0
    budget: int = 8192
    rate: float = 1.5e-3
    rank: int = 8
    exam: int = 4
    thin: int = 1


MINIATURE = DemoSizes(demonstrations=1, learning=12, updates=2, questions=4, attempts=4, exam=1)
"""Runs every stage and teaches next to nothing."""
PRETRAINED = DemoSizes(
    demonstrations=1,
    learning=16,
    batch=8,
    learning_rate=1e-3,
    updates=10,
    questions=4,
    attempts=8,
    rate=3e-4,
    rank=16,
    exam=1,
)
PRETRAINED_MINIATURE = replace(
    PRETRAINED, learning=1, batch=2, updates=1, questions=1, attempts=2, rate=1.5e-3, rank=4, thin=12
)


@dataclass(frozen=True, slots=True)
class Demonstrations:
    """The teacher's rollouts for the cold start, and a line about them."""

    rollouts: Sequence[Rollout]
    summary: str


@dataclass(frozen=True, slots=True)
class Command:
    """Arguments of `hira` that ask the trained model, without `--profile`, and a line to print after its answer."""

    command: tuple[str, ...]
    known: str = ""


@dataclass(frozen=True, slots=True)
class DemoRecipe:
    """One demo. Callables take the run's seed unless stated otherwise.

    `settings(folder)` are those of the runs. `teach(folder, seed, times)` writes the files that the runs need and plays
    the teacher's rollouts, `times` for each question. A `pretrained` model learns them as an adapter; a tiny one begins
    at random, with the `tokenizer` that is learned from them. `adapters` has that of each role. `varied` makes another
    demonstration from one, and `dealt` repeats the demonstrations of a role.

    `recipe` names the trained roles and their credit, `credit` has its options. `problems` are for training, `held_out`
    for exams. `reward` also scores exams, unless there is an `exam`; exams run `examining` in place of `workflow`, and
    `examined` describes their accuracy. `workflow` runs with `options` unlike its defaults, which the profile keeps.
    `commands` ask the trained model at the end. `curves` names metrics of updates to draw, `figures` parts of exam
    scores to print, `sampled/PART` and `greedy/PART`; of several it prints the mean. `note` follows them.
    """

    name: str
    about: str
    recipe: Recipe
    workflow: BuiltIn
    settings: Callable[[Path], Settings]
    teach: Callable[[Path, int, int], Demonstrations]
    problems: Callable[[int], Sequence[Problem]]
    held_out: Callable[[int], Sequence[Problem]]
    reward: Callable[[], Reward]
    commands: Callable[[int], Sequence[Command]]
    tokenizer: Callable[[Sequence[Rollout]], Any] | None = None
    pretrained: bool = False
    adapters: Mapping[str, str] = field(default_factory=lambda: {"*": "default"})
    dealt: Mapping[str, int] = field(default_factory=dict)
    exam: Callable[[int], Reward] | None = None
    examining: Workflow | None = None
    varied: "Callable[[Any], Changed] | None" = None
    options: Mapping[str, bool | int] = field(default_factory=dict)
    credit: Mapping[str, str] = field(default_factory=dict)
    stages: StageConfig = field(default=StageConfig())
    shape: TinyShape = SHAPE
    sizes: DemoSizes = DemoSizes()
    small: DemoSizes = MINIATURE
    examined: str = "held-out questions right"
    curves: Mapping[str, str] = field(default_factory=lambda: {"right answers in training": "reward/accuracy"})
    figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""


AT_ONCE = 16
Reply = Callable[[Request], Completion]
Teaches = Callable[[random.Random, Problem], Reply]
"""Returns the teacher of one rollout, given the random numbers for its faults and the problem."""


@dataclass(frozen=True, slots=True)
class Teacher:
    """The policy of all roles of a demonstration."""

    reply: Reply
    model: str = "teacher"

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        del watch
        return cut_at_stop(replace(self.reply(request), model=self.model), request.stop)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


def errs(chance: random.Random, often: float) -> bool:
    """Draw whether a careless teacher errs this time."""
    return chance.random() < often


async def record_demonstrations(
    settings: Settings, workflow: Workflow, problems: Sequence[Problem], times: int, seed: int, teacher: Teaches
) -> list[Rollout]:
    """Return the teacher's rollouts: `times` per problem."""
    context = await open_session(settings, policies={"*": OfflinePolicy()}, workflow=workflow)
    gate = asyncio.Semaphore(AT_ONCE)

    async def play(problem: Problem, number: int) -> Rollout:
        chance = random.Random(seed_of(seed, "teacher", problem.id, number))  # noqa: S311 - demonstrations of that seed
        policy = Teacher(teacher(chance, problem))
        async with gate, context.open_context(f"{problem.id}-{number}", problem.question, (), ()) as opened:
            opened.rollout.began = DAY
            opened.roles = {role: replace(config, policy=policy) for role, config in opened.roles.items()}
            return await rollout(workflow, problem.question, opened)

    try:
        return await together([play(problem, number) for problem in problems for number in range(times)])
    finally:
        await context.aclose()


LESSONS = "lessons"
"""The folder of a pretrained model's adapters before reinforcement, within that of the run."""
ROLLOUTS_AT_ONCE = 256
PRETRAINED_WINDOW = 8192
"""The tokens that SmolLM2 takes."""
SAVE_EVERY = 5
"""Updates between checkpoints."""


@dataclass(frozen=True)
class Demo:
    """One demo in a folder. `base` is `tiny`, a model with random weights, or for a pretrained recipe a GGUF file's
    name or a model's folder. `tell` gets a line for each stage, `on_step` the figures of each step. A stopped demo
    resumes from its last checkpoint; without one it begins again."""

    folder: Path
    recipe: DemoRecipe
    seed: int
    sizes: DemoSizes
    base: str = TINY
    tell: Callable[[str], None] = lambda _: None
    on_step: Callable[[Mapping[str, Any]], None] = lambda _: None

    @property
    def is_stopped(self) -> bool:
        """True if the folder holds this very demo, unfinished."""
        known = read_configuration(self.folder)
        return known == self.plan.configuration and not (self.folder / PROFILE).exists()

    def run(self) -> None:
        """Run all stages. Raises `HiraError` if the demo cannot continue."""
        import torch

        if not self.recipe.pretrained:
            torch.set_num_threads(1)  # faster for a model this small, with the same sums on every machine
        write_configuration(self.plan)
        saved = last_checkpoint(self.folder)
        if saved:
            self.tell(f"resuming from {saved.name}")
            rows: Sequence[Row] = ()
        elif self.recipe.pretrained:
            from transformers import AutoTokenizer

            self._write_base()
            rows = self._render(AutoTokenizer.from_pretrained(self.place))
        else:
            self._train_tiny()
            rows = ()
        from hira.trainers.training import Training, open_weights

        tokenizer, adapted = open_weights(self.plan)
        if not self.recipe.pretrained:
            adapted.double()  # sampling does not depend on the other rows of a batch
        training = Training(
            plan=self.plan,
            model=adapted,
            tokenizer=tokenizer,
            reward=self.recipe.reward(),
            credit=credit_of(self.plan),
            exam_workflow=self.recipe.examining,
            exam_reward=self.recipe.exam(self.seed) if self.recipe.exam else None,
            tell=self.tell,
            on_step=self.on_step,
        )
        if rows:
            training.examine(-1)
            self._teach(adapted, tokenizer, rows)
            save_adapters(self.plan, adapted, tokenizer, LESSONS)
        sizes = self.sizes
        self.tell(
            f"{self.recipe.about} with LoRA, {sizes.updates} updates of {sizes.questions} x {sizes.attempts} rollouts"
        )
        training.run(resume=True)
        save_adapters(self.plan, adapted.float(), tokenizer)
        write_profiles(self.plan, {"temperature": 0.0, "verify": "lexical"})  # such a model cannot check claims

    @property
    def place(self) -> Path:
        """The folder of the base."""
        path = Path(self.base).expanduser()
        if self.base == TINY:
            return self.folder / "model"
        return path.resolve() if path.is_dir() else self.folder / f"model-{path.stem}"

    def _write_base(self) -> None:
        from hira.trainers.models import write_base

        if not (self.place / "config.json").is_file():
            parameters = write_base(self.base, self.place)
            self.tell(f"{parameters / 1e6:,.0f} million pretrained parameters from {self.base}")

    def _render(self, tokenizer: Any, rollouts: Sequence[Rollout] | None = None) -> list[Row]:
        """Return the rows of the demonstrations, from new rollouts unless `rollouts` are given."""
        if rollouts is None:
            taught = self.recipe.teach(self.folder, self.seed, self.sizes.demonstrations)
            self.tell(taught.summary)
            rollouts = taught.rollouts
        template = Template(tokenizer)
        rows = [row for record in rollouts for row in demonstrations_of(record, template)]
        return [row for row in rows for _ in range(self.recipe.dealt.get(row.role, 1))]

    def _train_tiny(self) -> None:
        """Train a model from random weights, with its own tokenizer."""
        assert self.recipe.tokenizer is not None  # noqa: S101 - every other recipe has one
        taught = self.recipe.teach(self.folder, self.seed, self.sizes.demonstrations)
        tokenizer = self.recipe.tokenizer(taught.rollouts)
        rows = self._render(tokenizer, taught.rollouts)
        self.tell(f"{taught.summary}: {len(rows)} conversations, {len(tokenizer)} tokens")
        base = make_model(tokenizer, self.seed, self.recipe.shape)
        self._teach(base, tokenizer, rows)
        base.save_pretrained(self.place)
        tokenizer.save_pretrained(self.place)

    @cached_property
    def plan(self) -> TrainingPlan:
        """The plan of a run of `hira-train` with this recipe and these sizes."""
        what = self.recipe
        return TrainingPlan(
            configuration=self._configure(),
            recipe=what.recipe,
            settings=what.settings(self.folder),
            workflow=what.workflow,
            problems=tuple(what.problems(self.seed)),
            held_out=tuple(what.held_out(self.seed)[:: self.sizes.thin]),
            folder=self.folder,
            began=DAY,
        )

    def _configure(self) -> Configuration:
        sizes = self.sizes
        return Configuration(
            recipe=self.recipe.recipe.name,
            out=self.folder,
            seed=self.seed,
            model=ModelConfig(
                name=str(self.place),
                adapters=self.recipe.adapters,
                rank=sizes.rank,
                alpha=2 * sizes.rank,
                bits=32,
            ),
            rollouts=RolloutConfig(
                questions=sizes.questions,
                attempts=sizes.attempts,
                refill=sizes.refill,
                concurrency=ROLLOUTS_AT_ONCE,
                window=PRETRAINED_WINDOW if self.recipe.pretrained else self.recipe.shape.window,
            ),
            marsrl=self.recipe.stages,
            credit=self.recipe.credit,
            train=TrainConfig(
                steps=sizes.updates,
                lr=sizes.rate,
                budget=sizes.budget,
                checkpointing=False,
                save_every=min(SAVE_EVERY, sizes.updates),
            ),
            sft=SftConfig(
                steps=sizes.learning,
                batch=sizes.batch,
                lr=sizes.learning_rate,
                warmup=sizes.learning // 4 if self.recipe.pretrained else 10,
                save_every=0,
            ),
            exam=ExamConfig(attempts=sizes.exam),
            workflow=self.recipe.options,
        )

    def _teach(self, learner: Any, tokenizer: Any, rows: Sequence[Row]) -> None:
        """Teach a pretrained model's adapters their rows, or a tiny model all of them."""
        from hira.trainers.sft import DemonstrationOrder, SftTrainer, teach_adapters
        from hira.trainers.weights import Muon

        sizes, varied = self.sizes, self.recipe.varied

        def on_step(figures: Mapping[str, Any]) -> None:
            self.on_step({"stage": "sft", "of": sizes.learning, **figures})

        if self.recipe.pretrained:
            teach_adapters(self.plan, learner, tokenizer, rows, resume=False, tell=self.tell, on_step=on_step)
            return
        records.cut(self.folder / "sft" / records.METRICS, -1)
        trained = sum(parameter.numel() for parameter in learner.parameters() if parameter.requires_grad)
        self.tell(f"supervised training of {trained:,} parameters, {sizes.learning} steps")
        SftTrainer(
            learner,
            tokenizer,
            DemonstrationOrder(rows, self.plan.configuration, varied(tokenizer) if varied else None),
            self.plan.configuration,
            self.folder / "sft",
            optimizer=Muon(learner, rate=sizes.learning_rate),
            on_step=on_step,
        ).train()
