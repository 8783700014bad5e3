"""Supervised training on lessons: the cold start before reinforcement. transformers' Trainer does the optimisation.

The loss is the mean over the tokens that roles wrote; what they were told is read and not learned. TRL's SFTTrainer
takes whole datasets and, without Triton, scores every position; here a row may be made anew each time it comes, and
only columns with a token to learn are scored.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset
from transformers import PrinterCallback, Trainer, TrainingArguments

from hira.core.errors import HiraError, UsageError
from hira.trainers import records
from hira.trainers.configuration import HALF, Configuration
from hira.trainers.muon import Muon
from hira.trainers.rows import Row
from hira.trainers.seeding import seed_of

Changed = Callable[[Row, random.Random], Row]
"""Makes another lesson of one, the same for the same random numbers."""
IGNORED = -100
"""The label of a token that is not learned."""


class Dealt(Dataset[Row]):
    """The rows of all steps, dealt out lap after lap in an order of the seed's. Which row comes at a place, and what
    `changed` made of it, depends on the place alone: a run that is resumed goes on with the same."""

    def __init__(self, rows: Sequence[Row], configuration: Configuration, changed: Changed | None = None) -> None:
        if not rows:
            raise UsageError("there is no lesson", fix="name conversations: hira runs export -o FILE writes them")
        self.rows = rows
        self.length = configuration.sft.steps * configuration.sft.batch
        self.seed = configuration.seed
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
        lessons: Dealt,
        configuration: Configuration,
        folder: Path,
        *,
        matrices: float = 0.0,
        tell: Callable[[int, float], None] = lambda *_: None,
    ) -> None:
        """With a `matrices` rate, hidden matrices are trained by Muon at that rate, the rest at `sft.lr`: for a whole
        model that begins at random."""
        self.matrices = matrices
        self.folder = folder
        self.tell = tell
        super().__init__(
            model=model,
            args=arguments_of(configuration, folder),
            train_dataset=lessons,
            data_collator=self._collated,
            processing_class=tokenizer,
        )
        self.remove_callback(PrinterCallback)

    def create_optimizer(self, *args: Any, **kwargs: Any) -> torch.optim.Optimizer:
        if self.matrices and self.optimizer is None and self.model is not None:
            self.optimizer = Muon(self.model, matrices=self.matrices, rate=self.args.learning_rate)
        return super().create_optimizer(*args, **kwargs)

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        del train_dataset
        return torch.utils.data.SequentialSampler(range(len(self.train_dataset)))  # type: ignore[arg-type]

    def _collated(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        width = max(row.length for row in rows)
        ids = torch.zeros((len(rows), width), dtype=torch.long)  # no row sees its padding: any id will do
        labels = torch.full((len(rows), width), IGNORED)
        for at, row in enumerate(rows):
            ids[at, : row.length] = torch.tensor((*row.prompt, *row.completion))
            wanted = torch.tensor((*(0,) * len(row.prompt), *row.mask), dtype=torch.bool)
            labels[at, : row.length] = ids[at, : row.length].where(wanted, IGNORED)
        return {"input_ids": ids, "labels": labels}

    def compute_loss(
        self,
        model: Any,
        inputs: Any,
        return_outputs: bool = False,  # noqa: FBT001, FBT002 - as the Trainer calls it
        num_items_in_batch: Any = None,
    ) -> Any:
        """The mean of -log π over the labels; padding stands on the right, where causal attention does not see it."""
        del num_items_in_batch
        labels = inputs["labels"][:, 1:]
        # the head is most of a small model's work: it reads the columns alone in which some row has a word to learn
        scored = (labels != IGNORED).any(dim=0).nonzero().squeeze(1)
        found = model(input_ids=inputs["input_ids"], use_cache=False, logits_to_keep=scored)
        loss = cross_entropy(found.logits.float().flatten(0, 1), labels[:, scored].flatten(), ignore_index=IGNORED)
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


def arguments_of(configuration: Configuration, folder: Path) -> TrainingArguments:
    config = configuration.sft
    return TrainingArguments(
        output_dir=str(folder),
        max_steps=config.steps,
        per_device_train_batch_size=config.batch,
        learning_rate=config.lr,
        lr_scheduler_type="linear",
        warmup_steps=config.warmup,
        adam_beta2=0.98,
        bf16=torch.cuda.is_available() and configuration.model.bits <= HALF,
        activation_checkpointing=configuration.train.checkpointing,
        use_cpu=not torch.cuda.is_available(),
        logging_steps=max(1, min(10, config.steps // 20)),
        logging_nan_inf_filter=False,
        save_strategy="steps" if config.save_every else "no",
        save_steps=config.save_every or 500,
        save_total_limit=1,
        seed=configuration.seed,
        data_seed=configuration.seed,
        report_to=list(configuration.train.report_to) or "none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
