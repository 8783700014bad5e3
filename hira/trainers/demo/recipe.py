"""A demo: its recipe, the rollouts of its teacher, and its run, from demonstrations by way of reinforcement to profiles
for asking."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
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
from hira.runtime.settings import Settings
from hira.trainers import records
from hira.trainers.assembly import TrainingPlan, write_configuration
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
from hira.trainers.metrics import ACCURACY, summarise_scores
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
    demonstrations=1, learning=16, batch=8, learning_rate=1e-3, updates=10, questions=4, rate=3e-4, rank=16, exam=1
)
PRETRAINED_MINIATURE = replace(
    PRETRAINED, learning=1, batch=2, updates=1, questions=1, attempts=2, rate=1.5e-3, rank=4, thin=12
)
Reply = Callable[[Request], Completion]


@dataclass(frozen=True, slots=True)
class Command:
    """Arguments of `hira` that ask the trained model, without `--profile`, and a line to print after its answer."""

    command: tuple[str, ...]
    known: str = ""


@dataclass(frozen=True, slots=True)
class DemoRecipe:
    """One demo. Callables take the run's seed unless stated otherwise.

    `settings(folder)` are those of the runs, and `write(folder, seed)` writes the files that they need.
    `teacher(seed, chance, problem)` plays all roles of one demonstration, with random numbers for its faults; `lessons`
    is the number of problems that it demonstrates, None for all. A tiny model begins at random, with the `tokenizer`
    that is learned from them; without one, a pretrained model learns them as an adapter. `adapters` has that of each
    role. `varied` makes another demonstration from one, and `dealt` repeats the demonstrations of a role.

    `recipe` names the trained roles and their credit, `credit` has its options. `problems(seed, held_out=…)` are for
    training or for exams. `reward` also scores exams, unless there is an `exam`; exams run `examining` in place of
    `workflow`, and `examined` describes their accuracy. `commands` ask the trained model at the end, by default some
    held-out questions. `curves` names metrics of updates to draw, `figures` parts of exam scores to print,
    `sampled/PART` and `greedy/PART`; of several it prints the mean. `note` follows them.
    """

    name: str
    about: str
    recipe: Recipe
    workflow: BuiltIn
    settings: Callable[[Path], Settings]
    problems: Callable[..., Sequence[Problem]]
    teacher: Callable[[int, random.Random, Problem], Reply]
    reward: Reward
    write: Callable[[Path, int], None] = lambda _, __: None
    lessons: int | None = None
    commands: Callable[[int], Sequence[Command]] | None = None
    tokenizer: Callable[[Sequence[Rollout]], Any] | None = None
    adapters: Mapping[str, str] = field(default_factory=lambda: {"*": "default"})
    dealt: Mapping[str, int] = field(default_factory=dict)
    exam: Callable[[int], Reward] | None = None
    examining: Workflow | None = None
    varied: "Callable[[Any], Changed] | None" = None
    credit: Mapping[str, str] = field(default_factory=dict)
    stages: StageConfig = field(default=StageConfig())
    shape: TinyShape = SHAPE
    sizes: DemoSizes = DemoSizes()
    small: DemoSizes = MINIATURE
    examined: str = "held-out questions right"
    curves: Mapping[str, str] = field(default_factory=lambda: {"right answers in training": "reward/accuracy"})
    figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the workflow that are not its defaults, which the profile keeps."""
        workflow: Any = self.workflow
        defaults = {option.name: option.default for option in fields(workflow)}
        return {name: value for name in defaults if (value := getattr(workflow, name)) != defaults[name]}


AT_ONCE = 16


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
    return chance.random() < often


def record_demonstrations(recipe: DemoRecipe, folder: Path, seed: int, times: int) -> list[Rollout]:
    """Write the files of the demo, and return the teacher's rollouts: `times` for each of its problems."""
    recipe.write(folder, seed)
    problems = recipe.problems(seed, held_out=False)[: recipe.lessons]

    async def play_all() -> list[Rollout]:
        session = await open_session(recipe.settings(folder), policies={"*": OfflinePolicy()}, workflow=recipe.workflow)
        gate = asyncio.Semaphore(AT_ONCE)

        async def play(problem: Problem, number: int) -> Rollout:
            chance = random.Random(seed_of(seed, "teacher", problem.id, number))  # noqa: S311 - repeatable
            policy = Teacher(recipe.teacher(seed, chance, problem))
            async with gate, session.open_context(f"{problem.id}-{number}", problem.question, (), ()) as opened:
                opened.rollout.began = DAY
                opened.roles = {role: replace(config, policy=policy) for role, config in opened.roles.items()}
                return await rollout(recipe.workflow, problem.question, opened)

        try:
            return await together([play(problem, number) for problem in problems for number in range(times)])
        finally:
            await session.aclose()

    return asyncio.run(play_all())


LESSONS = "lessons"
"""The folder of a pretrained model's adapters before reinforcement, within that of the run."""
ROLLOUTS_AT_ONCE = 256
PRETRAINED_WINDOW = 8192
"""The tokens that SmolLM2 takes."""
SAVE_EVERY = 5
"""Updates between checkpoints."""
ASKED = 3
"""The number of held-out questions to ask at the end."""


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
    def limits(self) -> str:
        """Limits of the model, for its users; empty for a pretrained one."""
        if not self.recipe.tokenizer:
            return ""
        window = self.plan.configuration.rollouts.window
        reads = "It reads other text letter by letter, even hira's remarks about its mistakes"
        return f"The model knows only questions like the demo's own, and takes {window:,} tokens. {reads}."

    @property
    def commands(self) -> Sequence[Command]:
        if self.recipe.commands:
            return self.recipe.commands(self.seed)
        held_out = self.recipe.problems(self.seed, held_out=True)
        chosen = held_out[:: max(1, len(held_out) // ASKED)][:ASKED]
        return [Command(("ask", problem.question), f"known answer: {problem.references[0]}") for problem in chosen]

    def run(self) -> None:
        """Run all stages. Raises `HiraError` if the demo cannot continue."""
        import torch

        recipe, sizes = self.recipe, self.sizes
        if recipe.tokenizer:
            torch.set_num_threads(1)  # faster for a model this small, with the same sums on every machine
        write_configuration(self.plan)
        rows: Sequence[Row] = ()
        if saved := last_checkpoint(self.folder):
            self.tell(f"resuming from {saved.name}")
        elif recipe.tokenizer:
            self._train_tiny(recipe.tokenizer)
        else:
            from transformers import AutoTokenizer

            from hira.trainers.models import write_base

            if not (self.place / "config.json").is_file():
                parameters = write_base(self.base, self.place)
                self.tell(f"{parameters / 1e6:,.0f} million pretrained parameters from {self.base}")
            rollouts, summary = self._record()
            self.tell(summary)
            rows = self._render(AutoTokenizer.from_pretrained(self.place), rollouts)
        from hira.trainers.sft import teach_adapters
        from hira.trainers.training import Training, open_weights

        tokenizer, adapted = open_weights(self.plan)
        if recipe.tokenizer:
            adapted.double()  # sampling does not depend on the other rows of a batch
        training = Training(
            plan=self.plan,
            model=adapted,
            tokenizer=tokenizer,
            reward=recipe.reward,
            exam_workflow=recipe.examining,
            exam_reward=recipe.exam(self.seed) if recipe.exam else None,
            tell=self.tell,
            on_step=self.on_step,
        )
        if rows:
            training.examine(-1)
            teach_adapters(self.plan, adapted, tokenizer, rows, resume=False, tell=self.tell, on_step=self._show_lesson)
            save_adapters(self.plan, adapted, tokenizer, LESSONS)
        self.tell(f"{recipe.about} with LoRA, {sizes.updates} updates of {sizes.questions} x {sizes.attempts} rollouts")
        training.run(resume=True)
        save_adapters(self.plan, adapted.float(), tokenizer)
        sampling = {"temperature": 0.0, "verify": "lexical"}  # such a model cannot check claims
        write_profiles(self.plan, sampling, self.limits)

    @property
    def place(self) -> Path:
        path = Path(self.base).expanduser()
        if self.base == TINY:
            return self.folder / "model"
        return path.resolve() if path.is_dir() else self.folder / f"model-{path.stem}"

    def _record(self) -> tuple[Sequence[Rollout], str]:
        times = self.sizes.demonstrations
        rollouts = record_demonstrations(self.recipe, self.folder, self.seed, times)
        asked = [problem for problem in self.plan.problems[: self.recipe.lessons] for _ in range(times)]
        pairs = zip(rollouts, asked, strict=True)
        scores = together([self.recipe.reward(record, problem.references) for record, problem in pairs])
        right = summarise_scores(asyncio.run(scores), ACCURACY)[ACCURACY] or 0.0
        return rollouts, f"{len(rollouts)} rollouts of a careless teacher, {100 * right:.0f} % of them right"

    def _render(self, tokenizer: Any, rollouts: Sequence[Rollout]) -> list[Row]:
        template = Template(tokenizer)
        rows = [row for record in rollouts for row in demonstrations_of(record, template)]
        return [row for row in rows for _ in range(self.recipe.dealt.get(row.role, 1))]

    def _train_tiny(self, learn_tokenizer: Callable[[Sequence[Rollout]], Any]) -> None:
        from hira.trainers.sft import DemonstrationOrder, SftTrainer
        from hira.trainers.weights import Muon

        recipe, sizes = self.recipe, self.sizes
        rollouts, summary = self._record()
        tokenizer = learn_tokenizer(rollouts)
        rows = self._render(tokenizer, rollouts)
        self.tell(f"{summary}: {len(rows)} conversations, {len(tokenizer)} tokens")
        base = make_model(tokenizer, self.seed, recipe.shape)
        records.cut(self.folder / "sft" / records.METRICS, -1)
        self.tell(f"supervised training of {base.num_parameters():,} parameters, {sizes.learning} steps")
        varied = recipe.varied(tokenizer) if recipe.varied else None
        SftTrainer(
            base,
            tokenizer,
            DemonstrationOrder(rows, self.plan.configuration, varied),
            self.plan.configuration,
            self.folder / "sft",
            optimizer=Muon(base, rate=sizes.learning_rate),
            on_step=self._show_lesson,
        ).train()
        base.save_pretrained(self.place)
        tokenizer.save_pretrained(self.place)

    def _show_lesson(self, figures: Mapping[str, Any]) -> None:
        self.on_step({"stage": "sft", "of": self.sizes.learning, **figures})

    @cached_property
    def plan(self) -> TrainingPlan:
        what, sizes = self.recipe, self.sizes
        configuration = Configuration(
            recipe=what.recipe.name,
            out=self.folder,
            seed=self.seed,
            model=ModelConfig(
                name=str(self.place), adapters=what.adapters, rank=sizes.rank, alpha=2 * sizes.rank, bits=32
            ),
            rollouts=RolloutConfig(
                questions=sizes.questions,
                attempts=sizes.attempts,
                refill=sizes.refill,
                concurrency=ROLLOUTS_AT_ONCE,
                window=what.shape.window if what.tokenizer else PRETRAINED_WINDOW,
            ),
            marsrl=what.stages,
            credit=what.credit,
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
                warmup=10 if what.tokenizer else sizes.learning // 4,
                save_every=0,
            ),
            exam=ExamConfig(attempts=sizes.exam),
            workflow=what.options,
        )
        return TrainingPlan(
            configuration=configuration,
            recipe=what.recipe,
            settings=what.settings(self.folder),
            workflow=what.workflow,
            problems=tuple(what.problems(self.seed, held_out=False)),
            held_out=tuple(what.problems(self.seed, held_out=True)[:: sizes.thin]),
            folder=self.folder,
            began=DAY,
        )
