"""The demo from nothing to a model that answers: lessons, reinforcement, and what is left to ask with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.agents.trajectory import Rollout
from hira.policies.local.template import Template
from hira.runtime.settings import PROFILE
from hira.trainers import records
from hira.trainers.checkpoints import last_checkpoint
from hira.trainers.demo.model import model
from hira.trainers.demo.recipe import DAY, TINY, DemoRecipe, Sizes
from hira.trainers.lessons import lessons_of
from hira.trainers.profile import ADAPTERS, save_adapter, write_profiles
from hira.trainers.rows import Row

if TYPE_CHECKING:
    from hira.trainers.training import Training

ADAPTER = "default"
BEGUN = "demo.json"
SAVE_EVERY = 5
"""Updates between checkpoints."""


@dataclass(frozen=True)
class Demo:
    """One demo in a folder. `base` is `tiny`, a model made at random, or for a pretrained recipe a GGUF file's name or
    a model's folder. `tell` gets a line for each stage, `stepped` the figures of each step. A demo that was stopped
    goes on from its last checkpoint; one that has none yet begins again."""

    folder: Path
    recipe: DemoRecipe
    seed: int
    sizes: Sizes
    base: str = TINY
    tell: Callable[[str], None] = lambda _: None
    stepped: Callable[[Mapping[str, Any]], None] = lambda _: None

    @property
    def is_stopped(self) -> bool:
        """Whether the folder holds this very demo, and it has not come to its end."""
        return records.read(self.folder / BEGUN) == [self._described] and not (self.folder / PROFILE).exists()

    def run(self) -> None:
        """All stages. Raises `HiraError` for what cannot go on."""
        import torch

        if not self.recipe.pretrained:
            torch.set_num_threads(1)  # faster than more for so small a model, and the same sums on every machine
        if not self.is_stopped:
            records.append(self.folder / BEGUN, [self._described])
        saved = last_checkpoint(self.folder)
        if saved:
            self.tell(f"going on from {saved.name}")
            rows: Sequence[Row] = ()
        elif self.recipe.pretrained:
            self._write_base()
            rows = self._show(self._tokenizer())
        else:
            self._train_tiny()
            rows = ()
        tokenizer, adapted = self._open()
        training = self._training(tokenizer, adapted)
        if rows:
            training.examine(-1)
            self._teach(adapted, tokenizer, rows)
        self.tell(f"{self.recipe.about} with LoRA, {self._about_updates}")
        training.run(resume=True)
        save_adapter(adapted.float(), tokenizer, ADAPTER, self.folder / ADAPTERS)
        self._leave()

    @property
    def place(self) -> Path:
        """The folder of the base."""
        own = Path(self.base).expanduser()
        return own.resolve() if self.base != TINY and own.is_dir() else self.folder / "model"

    @property
    def _described(self) -> dict[str, Any]:
        return {"recipe": self.recipe.name, "seed": self.seed, "base": self.base, **asdict(self.sizes)}

    @property
    def _about_updates(self) -> str:
        return f"{self.sizes.updates} updates of {self.sizes.questions} x {self.sizes.attempts} rollouts"

    def _write_base(self) -> None:
        from hira.trainers.gguf import write_base

        if not (self.place / "config.json").is_file():
            parameters = write_base(self.base, self.place)
            self.tell(f"{parameters / 1e6:,.0f} million pretrained parameters from {self.base}")

    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.place)

    def _show(self, tokenizer: Any, rollouts: Sequence[Rollout] | None = None) -> list[Row]:
        """The rows of the lessons, which are played now unless they are given."""
        if rollouts is None:
            shown = self.recipe.show(self.folder, self.seed, self.sizes.lessons)
            self.tell(shown.told)
            rollouts = shown.rollouts
        template = Template(tokenizer)
        rows = [row for record in rollouts for row in lessons_of(record, template)]
        return [row for row in rows for _ in range(self.recipe.dealt.get(row.role, 1))]

    def _train_tiny(self) -> None:
        """A model from nothing, with a tokenizer of its own."""
        assert self.recipe.tokenizer is not None  # noqa: S101 - every recipe that is not pretrained has one
        shown = self.recipe.show(self.folder, self.seed, self.sizes.lessons)
        tokenizer = self.recipe.tokenizer(shown.rollouts)
        rows = self._show(tokenizer, shown.rollouts)
        self.tell(f"{shown.told}: {len(rows)} conversations, {len(tokenizer)} tokens")
        base = model(tokenizer, self.seed, self.recipe.shape)
        self._teach(base, tokenizer, rows)
        base.save_pretrained(self.place)
        tokenizer.save_pretrained(self.place)

    def _teach(self, learner: Any, tokenizer: Any, rows: Sequence[Row]) -> None:
        from hira.trainers.sft import Lessons, Teaching

        own, varied, stepped = self.sizes, self.recipe.varied, self.stepped
        records.cut(self.folder / "sft" / records.METRICS, -1)
        trained = sum(one.numel() for one in learner.parameters() if one.requires_grad)
        self.tell(f"supervised training of {trained:,} parameters, {own.learning} steps")
        lessons = Lessons(
            steps=own.learning,
            batch=own.batch,
            learning_rate=own.learning_rate,
            warmup=min(10, own.learning // 4),
            matrices=0.0 if self.recipe.pretrained else own.matrices,
            seed=self.seed,
            save_every=0,
        )
        Teaching(
            learner,
            tokenizer,
            rows,
            lessons,
            self.folder / "sft",
            varied(tokenizer) if varied else None,
            tell=lambda step, loss: stepped({"stage": "sft", "step": step, "of": own.learning, "loss": loss}),
        ).train()

    def _open(self) -> tuple[Any, Any]:
        import torch

        from hira.trainers.base import Lora, opened

        torch.manual_seed(self.seed)  # new adapters begin at random
        tokenizer, adapted = opened(str(self.place), [ADAPTER], Lora(self.sizes.rank, 2 * self.sizes.rank), bits=32)
        if not self.recipe.pretrained:
            adapted.double()  # sampling does not hang on which rows happen to share a batch
        return tokenizer, adapted

    def _training(self, tokenizer: Any, adapted: Any) -> "Training":
        from hira.trainers.training import Examining, Making, Training
        from hira.trainers.update import Updates

        own, what = self.sizes, self.recipe
        return Training(
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
            stepped=self.stepped,
        )

    def _leave(self) -> None:
        """What is needed to ask: the profiles."""
        write_profiles(
            self.folder,
            model=str(self.place),
            adapters={"*": ADAPTER},
            settings=self.recipe.settings(self.folder),
            options=self.recipe.options,
            sampling={"temperature": 0.0},
        )
