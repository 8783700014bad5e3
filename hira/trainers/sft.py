"""Supervised training on conversations: the cold start before reinforcement (`hira-train sft`)."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset
from transformers import PrinterCallback, Trainer, TrainingArguments

from hira.core.errors import HiraError, UsageError, count_of
from hira.journal.encoding import validate
from hira.policies.local.template import Template
from hira.trainers import records
from hira.trainers.assembly import TrainingPlan, reward_of
from hira.trainers.batches import adapter_of
from hira.trainers.calls import seed_of
from hira.trainers.configuration import Configuration
from hira.trainers.demonstrations import read_demonstrations
from hira.trainers.grpo import RecordCallback, share_arguments
from hira.trainers.profile import save_adapters
from hira.trainers.records import last_checkpoint, step_of
from hira.trainers.rows import Row
from hira.trainers.training import OnStep, Tell, Training, open_weights
from hira.trainers.weights import LOWER_RATE

Changed = Callable[[Row, random.Random], Row]
"""Makes another demonstration from one, the same for the same random numbers."""
IGNORED = -100
"""The label of a token that is not learned."""


class DemonstrationOrder(Dataset[Row]):
    """The rows of all steps, in passes that the seed shuffles. The row at a position, and the change that `changed`
    makes to it, depend on the position alone: a resumed run continues with the same rows."""

    def __init__(self, rows: Sequence[Row], configuration: Configuration, changed: Changed | None = None) -> None:
        if not rows:
            fix = "give demonstrations of runs that succeeded, such as `hira runs export -o FILE` writes"
            raise UsageError("there is no conversation to learn from", fix=fix)
        self.rows = rows
        self.length = configuration.sft.steps * configuration.sft.batch
        self.seed = configuration.seed
        self.changed = changed
        self._lap: int | None = None
        self._order: list[int] = []

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, place: int) -> Row:
        lap, position = divmod(place, len(self.rows))
        if lap != self._lap:
            self._lap, self._order = lap, list(range(len(self.rows)))
            random.Random(seed_of(self.seed, "lap", lap)).shuffle(self._order)  # noqa: S311 - a repeatable order
        row = self.rows[self._order[position]]
        return self.changed(row, random.Random(seed_of(self.seed, "row", place))) if self.changed else row  # noqa: S311


class SftTrainer(Trainer):
    """transformers' Trainer with weighted tokens, rows in the order of `demonstrations`, and hira's own records."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        demonstrations: DemonstrationOrder,
        configuration: Configuration,
        folder: Path,
        *,
        optimizer: torch.optim.Optimizer | None = None,
        on_step: OnStep = lambda _: None,
    ) -> None:
        """`optimizer` replaces AdamW: a whole model that begins at random learns sooner with `Muon`."""
        super().__init__(
            model=model,
            args=arguments_of(configuration, folder),
            train_dataset=demonstrations,
            data_collator=self._collate,
            processing_class=tokenizer,
            optimizers=(optimizer, None),
            callbacks=[RecordCallback(folder, on_step)],
        )
        self.remove_callback(PrinterCallback)

    def _collate(self, rows: Sequence[Row]) -> dict[str, torch.Tensor]:
        width = max(row.length for row in rows)
        ids = torch.zeros((len(rows), width), dtype=torch.long)  # no row attends to its padding: any id will do
        labels = torch.full((len(rows), width), IGNORED)
        for index, row in enumerate(rows):
            ids[index, : row.length] = torch.tensor((*row.prompt, *row.completion))
            wanted = torch.tensor((*(0,) * len(row.prompt), *row.mask), dtype=torch.bool)
            labels[index, : row.length] = ids[index, : row.length].where(wanted, IGNORED)
        return {"input_ids": ids, "labels": labels}

    def compute_loss(
        self,
        model: Any,
        inputs: Any,
        return_outputs: bool = False,  # noqa: FBT001, FBT002 - as the Trainer calls it
        num_items_in_batch: Any = None,
    ) -> Any:
        """Return the mean of -log π over the labels; padding is on the right, where causal attention does not see
        it."""
        del num_items_in_batch
        labels = inputs["labels"][:, 1:]
        # the head is most of a small model's work: it reads only the columns in which some row learns a token
        scored = (labels != IGNORED).any(dim=0).nonzero().squeeze(1)
        output = model(input_ids=inputs["input_ids"], use_cache=False, logits_to_keep=scored)
        loss = cross_entropy(output.logits.float().flatten(0, 1), labels[:, scored].flatten(), ignore_index=IGNORED)
        if not torch.isfinite(loss):
            raise HiraError(f"the loss is not a number in step {self.state.global_step + 1}", fix=LOWER_RATE)
        return (loss, output) if return_outputs else loss


def arguments_of(configuration: Configuration, folder: Path) -> TrainingArguments:
    config = configuration.sft
    saving: dict[str, Any] = {"save_strategy": "no"}
    if config.save_every:
        saving = {"save_strategy": "steps", "save_steps": config.save_every, "save_total_limit": 1}
    return TrainingArguments(
        **share_arguments(configuration, folder),
        **saving,
        max_steps=config.steps,
        per_device_train_batch_size=config.batch,
        learning_rate=config.lr,
        lr_scheduler_type="linear",
        warmup_steps=config.warmup,
        adam_beta2=0.98,
        logging_steps=max(1, min(10, config.steps // 20)),
        dataloader_pin_memory=torch.cuda.is_available(),
    )


DEMONSTRATIONS = "demonstrations.jsonl"


def run_sft(
    plan: TrainingPlan,
    folder: Path,
    *,
    resume: bool,
    on_start: Callable[[], None] = lambda: None,
    tell: Tell,
    on_step: OnStep,
) -> None:
    """Teach each adapter the conversations of its roles, those of a file or else the model's own best rollouts, and
    save it. File names are relative to `folder`; `on_start` is called before anything is written."""
    if not (plan.configuration.sft.conversations or plan.problems):
        fix = 'write conversations = "FILE" below [sft], or train = "questions.jsonl" below [data]'
        raise UsageError("there is nothing to learn from", fix=fix)
    tokenizer, model = open_weights(plan)
    conversations, kept = plan.configuration.sft.conversations, plan.folder / DEMONSTRATIONS
    if conversations:
        template = Template(tokenizer, where=f"model {plan.configuration.model.name!r}")
        rows, left = read_demonstrations(folder / conversations, template, list(plan.trained), plan.workflow.name)
        for why, many in left.items():
            tell(f"left out: {count_of(many, 'conversation')} {why}")
        rows = drop_long(plan, rows, tell)
        on_start()
    else:
        on_start()
        if resume and kept.is_file():  # a resumed run has the same demonstrations
            rows = [validate(Row, record) for record in records.read(kept)]
        else:
            rows = sample_best(plan, tokenizer, model, tell)
            records.write(kept, map(asdict, rows))
        rows = drop_long(plan, rows, tell)
    teach_adapters(plan, model, tokenizer, rows, resume=resume, tell=tell, on_step=on_step)
    save_adapters(plan, model, tokenizer)


def teach_adapters(
    plan: TrainingPlan, model: Any, tokenizer: Any, rows: Sequence[Row], *, resume: bool, tell: Tell, on_step: OnStep
) -> None:
    configuration = plan.configuration
    adapters = configuration.model.adapters
    for name in dict.fromkeys(adapters.values()):
        adapter_rows = [row for row in rows if adapter_of(row.role, adapters) == name]
        if not adapter_rows:
            tell(f"adapter {name!r} is unchanged: there is no conversation of its roles")
            continue
        tokens = sum(row.tokens for row in adapter_rows)
        tell(f"adapter {name!r}: {count_of(len(adapter_rows), 'conversation')} to learn, {count_of(tokens, 'token')}")
        model.set_adapter(name)  # the others are not trained now
        place = plan.folder / "sft" / name
        done = last_checkpoint(place) if resume else None
        records.cut(place / records.METRICS, step_of(done) if done else -1)
        SftTrainer(
            model,
            tokenizer,
            DemonstrationOrder(adapter_rows, configuration),
            configuration,
            place,
            on_step=lambda figures: on_step({"adapter": name, **figures}),  # noqa: B023 - called in this round alone
        ).train(resume_from_checkpoint=str(done) if done else None)


def drop_long(plan: TrainingPlan, rows: Sequence[Row], tell: Tell) -> list[Row]:
    """Return the rows that fit in the window. Raises `UsageError` without any."""
    window = plan.configuration.rollouts.window
    short = [row for row in rows if row.length <= window]
    if len(short) < len(rows):
        tell(f"left out: {count_of(len(rows) - len(short), 'conversation')} of more than {window:,} tokens")
    if not short:
        roles = ", ".join(plan.trained)
        fix = f"name conversations of the roles {roles}, or raise rollouts.window ({window:,} tokens)"
        raise UsageError("there is no conversation to learn from", fix=fix)
    return short


def sample_best(plan: TrainingPlan, tokenizer: Any, model: Any, tell: Tell) -> list[Row]:
    """Return the rows of the model's own rollouts with enough reward: rejection sampling."""
    config = plan.configuration.sft
    training = Training(plan=plan, model=model, tokenizer=tokenizer, reward=reward_of(plan), tell=tell)
    rows: list[Row] = []
    with asyncio.Runner() as runner, training.open(runner) as (context, _, _):
        rollouts = training.rollouts(context)
        for update in range(config.updates):
            groups = runner.run(rollouts.collect(update)).groups
            counting = [attempt for group in groups for attempt in group.counting]
            kept = [attempt for attempt in counting if (attempt.reward or 0.0) >= config.least]
            every = sum(len(group.attempts) for group in groups)
            tell(f"{len(kept)} of {count_of(every, 'rollout')} earned {config.least:g} or more")
            rows += [row for rollout in kept for row in rollout.rows if not row.overlong]
    if not rows:
        fix = "lower sft.least, or sample more: sft.updates"
        raise HiraError(f"no rollout earned {config.least:g} or more", fix=fix)
    return rows
