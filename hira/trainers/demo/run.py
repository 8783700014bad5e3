"""The demo from nothing to a model that answers: a world, lessons, reinforcement, and what is left to ask with."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hira.rewards.accuracy import ByWords
from hira.rewards.match import exact
from hira.rewards.matpo import WithFormat
from hira.trainers.credit import Credit, matpo
from hira.trainers.demo import world
from hira.trainers.demo.lessons import Taught, played, settings_of, taught
from hira.trainers.demo.model import model, renamed
from hira.trainers.demo.teacher import CARELESS, Faults
from hira.trainers.page.writing import written
from hira.trainers.profile import ADAPTERS, save_adapter, write_profiles
from hira.trainers.rollouts import Problem
from hira.workflows.matpo import MATPO

DAY = 1_767_225_600.0  # 2026-01-01: rollouts of every day have the same prompts
ADAPTER = "default"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is done. `lessons` are rollouts of the teacher a question, `learning` steps of supervised training on
    rows, `updates` steps of reinforcement with `questions` x `attempts` rollouts each."""

    lessons: int = 3
    learning: int = 180
    batch: int = 32
    learning_rate: float = 5e-3
    matrices: float = 0.02
    updates: int = 40
    questions: int = 8
    attempts: int = 8
    rate: float = 1.5e-3
    rank: int = 8
    exam: int = 4
    every: int = 0
    faults: Faults = CARELESS


MINIATURE = Sizes(lessons=1, learning=12, updates=2, questions=4, attempts=4, exam=1)
"""Enough to go all the way through, too little to learn anything."""


@dataclass(frozen=True)
class Demo:
    """One demo in a folder. `tell` gets a line for each stage, `stepped` the figures of each step."""

    folder: Path
    seed: int = 0
    sizes: Sizes = Sizes()
    credit: Credit = matpo
    tell: Callable[[str], None] = lambda _: None
    stepped: Callable[[Mapping[str, Any]], None] = lambda _: None

    @property
    def documents(self) -> Path:
        return self.folder / "documents"

    @property
    def workflow(self) -> MATPO:
        """The paper's workflow with its recap and summaries, and room for the two subtasks that a question takes."""
        return MATPO(max_subtasks=4, worker_calls=3)

    def run(self) -> None:
        """All stages. Raises `HiraError` for what cannot go on."""
        import torch

        torch.set_num_threads(1)  # faster than more for so small a model, and the same sums on every machine
        made = self.begun()
        self.learned(made)
        self.reinforced()
        self.left()

    @property
    def held_out(self) -> list[Problem]:
        return world.made(self.seed).problems(held_out=True)

    def begun(self) -> Taught:
        here = world.made(self.seed)
        here.write(self.documents)
        problems = here.problems(held_out=False)
        rollouts = asyncio.run(
            played(self.documents, self.workflow, problems, self.sizes.lessons, self.seed, self.sizes.faults, DAY)
        )
        made = taught(rollouts, problems)
        self.tell(
            f"{len(rollouts)} rollouts of a careless teacher over {len(here.documents())} documents, "
            f"{100 * made.right:.0f} % of them right: {len(made.rows)} conversations, {len(made.tokenizer)} tokens"
        )
        return made

    def learned(self, made: Taught) -> None:
        from hira.trainers.sft import Lessons, Teaching

        own = self.sizes
        base = model(made.tokenizer, self.seed)
        self.tell(f"supervised training of {base.num_parameters():,} parameters, {own.learning} steps")
        lessons = Lessons(
            steps=own.learning,
            batch=own.batch,
            learning_rate=own.learning_rate,
            matrices=own.matrices,
            seed=self.seed,
            save_every=0,
        )
        stepped = self.stepped
        Teaching(
            base,
            made.tokenizer,
            made.rows,
            lessons,
            self.folder / "sft",
            renamed(made.tokenizer),
            tell=lambda step, loss: stepped({"stage": "sft", "step": step, "of": own.learning, "loss": loss}),
        ).train()
        base.save_pretrained(self.folder / "model")
        made.tokenizer.save_pretrained(self.folder / "model")

    def reinforced(self) -> None:
        from hira.trainers.base import Lora, opened
        from hira.trainers.training import Examining, Making, Training
        from hira.trainers.update import Updates

        own, here = self.sizes, world.made(self.seed)
        tokenizer, adapted = opened(str(self.folder / "model"), [ADAPTER], Lora(own.rank, 2 * own.rank), bits=32)
        adapted.double()  # sampling does not hang on which rows happen to share a batch
        self.tell(f"MATPO GRPO with LoRA, {own.updates} updates of {own.questions} x {own.attempts} rollouts")
        Training(
            name="demo",
            model=adapted,
            tokenizer=tokenizer,
            settings=settings_of(self.documents),
            workflow=self.workflow,
            problems=here.problems(held_out=False),
            reward=WithFormat(ByWords(exact)),
            credit=self.credit,
            updates=Updates(
                steps=own.updates,
                learning_rate=own.rate,
                warmup=0,
                budget=8192,
                adapters={"*": ADAPTER},
                checkpointing=False,
                seed=self.seed,
                save_every=own.updates,
                keep=1,
            ),
            folder=self.folder,
            making=Making(own.questions, own.attempts, day=DAY),
            examining=Examining(here.problems(held_out=True), own.every, own.exam),
            tell=self.tell,
            stepped=self._stepped,
        ).run()
        save_adapter(adapted.float(), tokenizer, ADAPTER, self.folder / ADAPTERS)

    def left(self) -> None:
        """What is needed to ask: the profiles."""
        options = {"max_subtasks": self.workflow.max_subtasks, "worker_calls": self.workflow.worker_calls}
        write_profiles(
            self.folder,
            model=str(self.folder / "model"),
            adapters={"*": ADAPTER},
            settings=settings_of(self.documents),
            options=options,
            sampling={"temperature": 0.0},
        )

    def _stepped(self, told: Mapping[str, Any]) -> None:
        self.stepped(told)
        written(self.folder)
