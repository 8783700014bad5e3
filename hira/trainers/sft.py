"""Supervised training on lessons: the cold start before reinforcement. transformers' Trainer does the optimisation.

The loss is the mean over the tokens that roles wrote; what they were told is read and not learned, unless `heard`
gives it a weight. A batch is as many rows as a budget of tokens holds, so that memory is the same in every step.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset
from transformers import PrinterCallback, Trainer, TrainingArguments

from hira.core.errors import HiraError, UsageError
from hira.trainers import records
from hira.trainers.muon import Muon
from hira.trainers.rows import Row
from hira.trainers.seeding import seed_of

Changed = Callable[[Row, random.Random], Row]
"""Makes another lesson of one, the same for the same random numbers."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """How lessons are learned. `batch` counts rows; `heard` weighs the tokens that a role did not write itself.

    With a `matrices` rate, hidden matrices are trained by Muon at that rate, the rest at `learning_rate`: for a whole
    model that begins at random. `save_every` 0 saves nothing on the way.
    """

    steps: int = 200
    batch: int = 16
    learning_rate: float = 1e-4
    warmup: int = 10
    weight_decay: float = 0.0
    heard: float = 0.0
    max_grad_norm: float = 1.0
    checkpointing: bool = False
    bf16: bool = False
    seed: int = 0
    save_every: int = 100
    keep: int = 1
    report_to: tuple[str, ...] = ()
    matrices: float = 0.0


class Dealt(Dataset[Row]):
    """So many rows, dealt out lap after lap in an order of the seed's. Which row stands at a place, and what `changed`
    made of it, depends on the place alone: a run that is resumed goes on with the same."""

    def __init__(self, rows: Sequence[Row], length: int, seed: int, changed: Changed | None) -> None:
        if not rows:
            raise UsageError("there is no lesson", fix="name conversations: hira runs export -o FILE writes them")
        self.rows = rows
        self.length = length
        self.seed = seed
        self.changed = changed
        self._orders: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, place: int) -> Row:
        lap, at = divmod(place, len(self.rows))
        if lap not in self._orders:
            order = list(range(len(self.rows)))
            random.Random(seed_of(self.seed, "lap", lap)).shuffle(order)  # noqa: S311 - an order that can be repeated
            self._orders = {lap - 1: self._orders.get(lap - 1, []), lap: order}
        row = self.rows[self._orders[lap][at]]
        return self.changed(row, random.Random(seed_of(self.seed, "row", place))) if self.changed else row  # noqa: S311


class Teaching(Trainer):
    """transformers' Trainer with weighted tokens, rows in the order in which they were dealt, and our own record."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        rows: Sequence[Row],
        lessons: Lessons,
        folder: Path,
        changed: Changed | None = None,
        *,
        tell: Callable[[int, float], None] = lambda *_: None,
    ) -> None:
        self.lessons = lessons
        self.folder = folder
        self.tell = tell
        super().__init__(
            model=model,
            args=arguments_of(lessons, folder),
            train_dataset=Dealt(rows, lessons.steps * lessons.batch, lessons.seed, changed),
            data_collator=self._collated,
            processing_class=tokenizer,
        )
        self.remove_callback(PrinterCallback)

    def create_optimizer(self, *args: Any, **kwargs: Any) -> torch.optim.Optimizer:
        own, model = self.lessons, self.model
        if own.matrices and self.optimizer is None and model is not None:
            self.optimizer = Muon(model, matrices=own.matrices, rate=own.learning_rate)
        return super().create_optimizer(*args, **kwargs)

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        del train_dataset
        return torch.utils.data.SequentialSampler(range(len(self.train_dataset)))  # type: ignore[arg-type]

    def _collated(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        width = max(row.length for row in rows)
        ids = torch.zeros((len(rows), width), dtype=torch.long)  # no row sees its padding: any id will do
        weights = torch.zeros((len(rows), width))
        for at, row in enumerate(rows):
            ids[at, : row.length] = torch.tensor((*row.prompt, *row.completion))
            own = torch.tensor((*(0,) * len(row.prompt), *row.mask), dtype=torch.float32)
            weights[at, : row.length] = own + (1 - own) * self.lessons.heard
        return {"input_ids": ids, "weights": weights}

    def compute_loss(
        self,
        model: Any,
        inputs: Any,
        return_outputs: bool = False,  # noqa: FBT001, FBT002 - as the Trainer calls it
        num_items_in_batch: Any = None,
    ) -> Any:
        """Σ w·(-log π) / Σ w over the batch; padding stands on the right, where causal attention does not see it."""
        del num_items_in_batch
        weights = inputs["weights"][:, 1:]
        scored = weights.any(dim=0).nonzero().squeeze(1)
        # the head is most of a small model's work: it reads the columns alone in which some row has a word to learn
        found = model(input_ids=inputs["input_ids"], use_cache=False, logits_to_keep=scored)
        wanted = weights[:, scored] > 0
        losses = cross_entropy(
            found.logits[wanted].float(), inputs["input_ids"][:, 1:][:, scored][wanted], reduction="none"
        )
        loss = (losses * weights[:, scored][wanted]).sum() / weights.sum()
        if not torch.isfinite(loss):
            raise HiraError(
                f"the loss is not a number in step {self.state.global_step + 1}",
                fix="lower the learning rate, then resume: the last checkpoint is from before",
            )
        return (loss, found) if return_outputs else loss

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        super().log(logs, start_time)
        if "loss" in logs:
            records.append(self.folder / records.METRICS, [{"step": self.state.global_step, **logs}])
            self.tell(self.state.global_step, float(logs["loss"]))


def arguments_of(lessons: Lessons, folder: Path) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder),
        max_steps=lessons.steps,
        per_device_train_batch_size=lessons.batch,
        learning_rate=lessons.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=lessons.warmup,
        weight_decay=lessons.weight_decay,
        max_grad_norm=lessons.max_grad_norm,
        adam_beta2=0.98,
        bf16=lessons.bf16,
        activation_checkpointing=lessons.checkpointing,
        use_cpu=not torch.cuda.is_available(),
        logging_steps=max(1, min(10, lessons.steps // 20)),
        logging_nan_inf_filter=False,
        save_strategy="steps" if lessons.save_every else "no",
        save_steps=lessons.save_every or 500,
        save_total_limit=lessons.keep,
        seed=lessons.seed,
        data_seed=lessons.seed,
        report_to=list(lessons.report_to) or "none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
