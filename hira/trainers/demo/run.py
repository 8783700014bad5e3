"""The demo from nothing to a model that answers: lessons, reinforcement, and what is left to ask with."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hira.settings import PROFILE
from hira.trainers import records
from hira.trainers.checkpoints import last_checkpoint
from hira.trainers.demo.model import model
from hira.trainers.demo.recipe import DAY, DemoRecipe, Sizes, Taught
from hira.trainers.page.writing import written
from hira.trainers.profile import ADAPTERS, save_adapter, write_profiles

ADAPTER = "default"
BEGUN = "demo.json"
SAVE_EVERY = 5
"""Updates between checkpoints."""


@dataclass(frozen=True)
class Demo:
    """One demo in a folder. `tell` gets a line for each stage, `stepped` the figures of each step. A demo that was
    stopped goes on from its last checkpoint; one that has none yet begins again."""

    folder: Path
    recipe: DemoRecipe
    seed: int
    sizes: Sizes
    tell: Callable[[str], None] = lambda _: None
    stepped: Callable[[Mapping[str, Any]], None] = lambda _: None

    @property
    def is_stopped(self) -> bool:
        """Whether the folder holds this very demo, and it has not come to its end."""
        return records.read(self.folder / BEGUN) == [self._described] and not (self.folder / PROFILE).exists()

    def run(self) -> None:
        """All stages. Raises `HiraError` for what cannot go on."""
        import torch

        torch.set_num_threads(1)  # faster than more for so small a model, and the same sums on every machine
        if not self.is_stopped:
            records.append(self.folder / BEGUN, [self._described])
        if saved := last_checkpoint(self.folder):
            self.tell(f"going on from {saved.name}")
        else:
            made = self.recipe.taught(self.folder, self.seed, self.sizes.lessons)
            self.tell(made.told)
            self.learned(made)
        self.reinforced()
        self.left()

    @property
    def _described(self) -> dict[str, Any]:
        return {"recipe": self.recipe.name, "seed": self.seed, **asdict(self.sizes)}

    def learned(self, made: Taught) -> None:
        from hira.trainers.sft import Lessons, Teaching

        own, varied = self.sizes, self.recipe.varied
        records.cut(self.folder / "sft" / records.METRICS, -1)
        base = model(made.tokenizer, self.seed, self.recipe.shape)
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
            varied(made.tokenizer) if varied else None,
            tell=lambda step, loss: stepped({"stage": "sft", "step": step, "of": own.learning, "loss": loss}),
        ).train()
        base.save_pretrained(self.folder / "model")
        made.tokenizer.save_pretrained(self.folder / "model")

    def reinforced(self) -> None:
        from hira.trainers.base import Lora, opened
        from hira.trainers.training import Examining, Making, Training
        from hira.trainers.update import Updates

        own, what = self.sizes, self.recipe
        tokenizer, adapted = opened(str(self.folder / "model"), [ADAPTER], Lora(own.rank, 2 * own.rank), bits=32)
        adapted.double()  # sampling does not hang on which rows happen to share a batch
        self.tell(f"{what.about} with LoRA, {own.updates} updates of {own.questions} x {own.attempts} rollouts")
        Training(
            name="demo",
            model=adapted,
            tokenizer=tokenizer,
            settings=what.settings(self.folder),
            workflow=what.workflow,
            problems=what.problems(self.seed),
            reward=what.reward(),
            credit=what.credit or what.recipe.credit,
            updates=Updates(
                steps=own.updates,
                learning_rate=own.rate,
                warmup=0,
                budget=8192,
                adapters={"*": ADAPTER},
                checkpointing=False,
                seed=self.seed,
                save_every=min(SAVE_EVERY, own.updates),
            ),
            folder=self.folder,
            making=Making(own.questions, own.attempts, what.recipe.roles, day=DAY),
            examining=Examining(
                what.held_out(self.seed)[:: own.thin],
                own.every,
                own.exam,
                what.exam(self.seed) if what.exam else None,
                what.examining,
            ),
            stages=what.stages,
            tell=self.tell,
            stepped=self._stepped,
        ).run(resume=True)
        save_adapter(adapted.float(), tokenizer, ADAPTER, self.folder / ADAPTERS)

    def left(self) -> None:
        """What is needed to ask: the profiles."""
        write_profiles(
            self.folder,
            model=str(self.folder / "model"),
            adapters={"*": ADAPTER},
            settings=self.recipe.settings(self.folder),
            options=self.recipe.options,
            sampling={"temperature": 0.0},
        )

    def _stepped(self, told: Mapping[str, Any]) -> None:
        self.stepped(told)
        written(self.folder)
