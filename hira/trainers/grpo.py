"""The trainer: transformers' Trainer with hira's rollouts, credit, packing and loss.

An update is one optimiser step, however many rows it has; each row carries its weight and the update one normaliser, so
that results do not depend on packing; a micro-batch is of one role, whose adapter is active; the reference is the base
without adapter. No private name of transformers, PEFT, accelerate or TRL is read or overridden.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object  # type: ignore[import-untyped]
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments, default_data_collator

from hira.core.errors import HiraError
from hira.trainers import records
from hira.trainers.batches import CANARY, Micro, make_tensors, merge_equal, pack_rows, take_share
from hira.trainers.configuration import HALF, Configuration
from hira.trainers.credit import Credit
from hira.trainers.loss import Batch, Scores, policy_loss, score_tokens, score_tokens_fused
from hira.trainers.metrics import Means, measure_update
from hira.trainers.records import COMPLETE, last_checkpoint, print_progress, step_of
from hira.trainers.rows import Collect, Credited, Group, samples
from hira.trainers.weights import (
    activate,
    all_trainable,
    average_gradients,
    check_effect,
    check_finite,
    check_sound,
    fingerprint,
    measure_peak,
    too_little,
)

START = {"cpu": 32, "gpu": 4096}
"""The tokens that could be computed in the fixed time of a micro-batch: measured on a CPU with 135 M parameters, for
GPUs estimated from the start of their kernels."""


NEGLIGIBLE = 1e-9
"""An advantage that is a rounding error: equal rows of good and bad rollouts cancel each other out."""


class RoleTrainer(Trainer):
    """Trains the adapters of a PEFT `model`, those of `configuration.model`. `collect` makes the rollouts of an update,
    `credit` their advantages; `on_update` gets the number of steps so far whenever the weights have changed. Metrics
    and sample rollouts go to `folder`, checkpoints below it."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        configuration: Configuration,
        collect: Collect,
        credit: Credit,
        folder: Path,
        *,
        on_update: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.config = config = configuration.train
        self.adapters = configuration.model.adapters
        self._first_adapter = next(iter(self.adapters.values()))
        self.collect = collect
        self.credit = credit
        self.folder = folder
        self.on_update = on_update
        self.record = RecordCallback(folder)
        self.show_progress = partial(print_progress, 30.0, lambda _: None)
        self.over = False
        self._held: list[tuple[Micro, Batch]] | None = None
        self._measures: dict[str, float] = {}
        self._figures: dict[str, torch.Tensor] = {}
        self._canary: tuple[str, list[int]] | None = None  # an adapter, and ids at which each step must change it
        self._effective = False
        self._pad = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        arguments = arguments_of(configuration, folder)
        prepare_weights(model, configuration)
        super().__init__(
            model=model,
            args=arguments,
            train_dataset=[{"place": 0}] * (config.steps * arguments.world_size),  # `collect` chooses the questions
            data_collator=default_data_collator,
            processing_class=tokenizer,
            callbacks=[self.record, _AfterStep(self)],
        )
        self.remove_callback(PrinterCallback)

    @property
    def bare(self) -> Any:
        return self.accelerator.unwrap_model(self.model)

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """Create the optimiser of all adapters: PEFT has frozen the others when it loaded one."""
        all_trainable(self.bare)
        return super().create_optimizer(model)

    def floating_point_ops(self, inputs: Any) -> int:
        """Return 0: the inputs of a step are placeholders."""
        del inputs
        return 0

    # --- rollouts, credit, packing

    def prepare_update(self) -> list[tuple[Micro, Batch]]:
        """Return the micro-batches of this step. A new set of rollouts begins when the last one has had its
        iterations."""
        step = self.state.global_step
        if step % self.config.iterations and self._held is not None:
            return self._held
        began = time.perf_counter()
        measure_peak("before")
        self.bare.eval()
        collected = self.collect(step // self.config.iterations)
        self.bare.train()
        took, memory = time.perf_counter() - began, measure_peak("rollout")
        torch.cuda.empty_cache()  # the update needs the rollouts' memory
        groups: list[Group] = gather_object(list(collected.groups))  # the credit is over those of all processes
        credited = self.credit(groups)
        measures = measure_update(groups, credited)
        self._measures = {**measures, **collected.measures, "rollout_seconds": took, **memory}
        if self.accelerator.is_main_process:  # before the update, so that the samples exist if it fails
            lines = samples(collected, credited, step + 1)
            records.append_records(self.folder / records.ROLLOUTS, lines)
        self._held = self._batches(credited)
        return self._held

    def _batches(self, credited: Credited) -> list[tuple[Micro, Batch]]:
        weighty = [weighted for weighted in credited.rows if weighted.weight]
        if self.config.iterations == 1 and self.config.old == "trainer":
            weighty = merge_equal(weighty)
        rows = [weighted for weighted in weighty if abs(weighted.advantage) > NEGLIGIBLE or self.config.beta]
        process, processes = self.accelerator.process_index, self.accelerator.num_processes
        start = START["cpu" if self.accelerator.device.type == "cpu" else "gpu"]
        whole = pack_rows(rows, self.config.budget, self.adapters, start=start, processes=processes)
        micros = [take_share(micro, process, processes) for micro in whole]
        items, device, old = credited.normaliser / processes, self.accelerator.device, self.config.old == "sampler"
        made = [
            (micro, make_tensors(micro, rows=many, pad=self._pad, items=items, device=device, old=old))
            for micro, many in micros
        ]
        for micro, batch in made:
            with too_little(micro, self.config.budget):
                self._add_fixed(micro, batch)
        if self._canary is None and (trained := [micro for micro, _ in micros if micro.rows]):
            row = trained[0].rows[0].row
            self._canary = trained[0].adapter, [*row.prompt, *row.completion][-CANARY:]
        return made

    def _add_fixed(self, micro: Micro, batch: Batch) -> None:
        """Add log-probabilities that do not change with the weights: the reference's and the old policy's."""
        bare = self.bare
        with torch.no_grad():
            if self.config.beta:
                with bare.disable_adapter():  # the reference policy, at no memory
                    batch["ref_logps"] = self.score(bare, batch).logps
            if self.config.iterations > 1 and self.config.old == "trainer":
                activate(bare, micro.adapter or self._first_adapter)
                batch["old_logps"] = self.score(bare, batch).logps

    def score(self, model: Any, batch: Batch) -> Scores:
        if batch["ids"].device.type == "cpu":
            return score_tokens(model, batch["ids"], batch["scored"])
        with self.accelerator.autocast():
            return score_tokens_fused(model, batch["ids"], batch["scored"])

    # --- the step

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """Run forward and backward through all micro-batches of the update; the Trainer then takes its one step."""
        del inputs, num_items_in_batch
        batches = self.prepare_update()
        began = time.perf_counter()
        model.train()
        means = Means()
        total = torch.zeros((), device=self.accelerator.device)
        done: list[Micro] = []
        with self.show_progress(lambda: f"{len(done)} of {len(batches)} micro-batches of the update done"):
            for micro, batch in batches:
                # gradients are summed here, and shared once at the end
                with self.accelerator.no_sync(model), too_little(micro, self.config.budget):
                    activate(self.bare, micro.adapter or self._first_adapter)
                    with self.compute_loss_context_manager():
                        loss = self.compute_loss(model, batch)
                    self.accelerator.backward(loss)
                total += loss.detach()
                self._measure(micro, means)
                done.append(micro)
        if self.accelerator.num_processes > 1:
            average_gradients(self.bare, self.accelerator.num_processes, self.accelerator.device)
        check_finite(self.bare, total, self.state.global_step + 1, {micro.role for micro, _ in batches})
        took = time.perf_counter() - began
        real = sum(weighted.row.length for micro, _ in batches for weighted in micro.rows)
        padded = sum(batch["ids"].numel() for _, batch in batches)
        self._measures |= {
            **Means.join(gather_object([means])).values,
            "micro_batches": len(batches),
            "largest_micro_batch": max((micro.padded for micro, _ in batches), default=0),
            "padding": 1 - real / padded if padded else 0.0,
            "update_seconds": took,
            "update_tokens_per_second": real / took,
            **measure_peak("update"),
        }
        return total

    def compute_loss(
        self,
        model: Any,
        inputs: Batch,
        return_outputs: bool = False,  # noqa: FBT001, FBT002 - as the Trainer calls it
        num_items_in_batch: Any = None,
    ) -> Any:
        del num_items_in_batch
        scores = self.score(model, inputs)
        clip = (self.config.clip_low, self.config.clip_high)
        loss, self._figures = policy_loss(inputs, scores, clip=clip, beta=self.config.beta, ratio=self.config.ratio)
        return (loss, scores) if return_outputs else loss

    # --- metrics and records

    def _measure(self, micro: Micro, means: Means) -> None:
        """Add the figures of the last micro-batch, for its role and for all."""
        weight = float(sum(weighted.row.tokens for weighted in micro.rows))
        values = torch.stack([value.double() for value in self._figures.values()]).tolist()  # waits once
        for name, value in zip(self._figures, values, strict=True):
            means.add(f"{micro.role}/{name}", value, weight)
            if name != "sampler_drift":
                means.add(name, value, weight)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        super().log({**logs, **{name: float(value) for name, value in self._measures.items()}}, start_time)
        self._measures = {}

    # --- the run

    def run(self, *, resume: bool = False) -> Any:
        """Train to the last step; with `resume` from the last whole checkpoint, as if the run had never stopped."""
        place = last_checkpoint(self.folder) if resume else None
        since = step_of(place) if place else 0
        if self.accelerator.is_main_process:
            for name in (records.METRICS, records.ROLLOUTS):
                records.cut(self.folder / name, since)
        try:
            return self.train(resume_from_checkpoint=str(place) if place else None)
        except OSError as error:
            checkpoint = self.folder / f"checkpoint-{self.state.global_step}"
            if records.is_full(error) or Path(str(error.filename)).is_relative_to(checkpoint):
                raise records.unwritable(error, checkpoint) from error
            raise

    def train(self, *args: Any, **named: Any) -> Any:
        """Train as the Trainer does. Raises `HiraError` if the base has changed, as by a merged adapter, or if the
        processes trained different adapters."""
        base = fingerprint(self.bare)
        done = super().train(*args, **named)
        if fingerprint(self.bare) != base:
            fix = "train adapters only, and never merge them into the base while training"
            raise HiraError("the base's weights have changed since the run began", fix=fix)
        if len(set(gather_object([fingerprint(self.bare, adapters=True)]))) > 1:
            fix = "report it with the output of hira-train doctor RUN"
            raise HiraError("the processes ended with different weights", fix=fix)
        return done

    def check_step(self) -> None:
        """Check the new weights after each step, and let the policy sample with them; after the first step that moved
        them, check that they have any effect."""
        step = self.state.global_step
        if self._canary:
            adapter, ids = self._canary
            check_sound(self.bare, ids, adapter, self.accelerator.device, step)
        self.on_update(step)
        moved = step > min(self.config.warmup, 1)  # the first step of a warm-up has a rate of 0
        rates = [group["lr"] for group in self.optimizer.param_groups] if self.optimizer else []
        if self._canary and not self._effective and moved and any(rate > 0 for rate in rates):
            check_effect(self.bare, ids, adapter, self.accelerator.device)
            self._effective = True
        activate(self.bare, self._first_adapter)  # a checkpoint follows, and is loaded into that adapter first


@dataclass(eq=False)
class RecordCallback(TrainerCallback):
    """Appends a line of `metrics.jsonl` to `folder` for each step, marks each checkpoint as whole by a last file, and
    passes the metrics to `on_step`. The sums at the end are left out: they cover this process alone, so they would
    differ between a resumed run and an uninterrupted one."""

    folder: Path
    on_step: Callable[[dict[str, Any]], None] = lambda _: None

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        del args, control
        plain = {name: value for name, value in (logs or {}).items() if isinstance(value, int | float)}
        record = {"step": state.global_step, **{name: value for name, value in plain.items() if math.isfinite(value)}}
        if state.is_world_process_zero and "train_runtime" not in record:
            records.append_records(self.folder / records.METRICS, [record])
            self.on_step(record)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        del args, control
        if state.is_world_process_zero:
            step = state.global_step
            records.append_records(self.folder / f"checkpoint-{step}" / COMPLETE, [{"step": step}])


@dataclass(eq=False)
class _AfterStep(TrainerCallback):
    trainer: RoleTrainer

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        del args, state
        self.trainer.check_step()
        if self.trainer.over:
            control.should_training_stop = control.should_save = True


def prepare_weights(model: Any, configuration: Configuration) -> None:
    """Make the adapters trainable; over a base in 4 bits they are bf16 (QLoRA, 2305.14314, section 3). On a GPU the
    head never holds the logits of a whole micro-batch."""
    all_trainable(model)
    if configuration.model.bits == 4:
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.to(torch.bfloat16)
    if torch.cuda.is_available():
        from trl.trainer import add_fused_lm_head  # type: ignore[attr-defined]

        add_fused_lm_head(model.get_base_model(), outputs=("log_probs", "entropy"))


def share_arguments(configuration: Configuration, folder: Path) -> dict[str, Any]:
    """Return the Trainer's settings that supervised training and reinforcement share."""
    cuda = torch.cuda.is_available()
    return {
        "output_dir": str(folder),
        "bf16": cuda and configuration.model.bits <= HALF,
        "use_cpu": not cuda,
        "activation_checkpointing": configuration.train.checkpointing,
        "logging_nan_inf_filter": False,
        "seed": configuration.seed,
        "data_seed": configuration.seed,
        "report_to": list(configuration.train.report_to) or "none",
        "disable_tqdm": True,
        "remove_unused_columns": False,
        "train_sampling_strategy": "sequential",
    }


def arguments_of(configuration: Configuration, folder: Path) -> TrainingArguments:
    """Return the Trainer's settings. Its batches are placeholders: `collect` decides."""
    config = configuration.train
    return TrainingArguments(
        **share_arguments(configuration, folder),
        max_steps=config.steps,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=1,
        learning_rate=config.lr,
        lr_scheduler_type=config.schedule,
        warmup_steps=config.warmup,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        logging_steps=1,
        save_strategy="steps",
        save_steps=config.save_every,
        save_total_limit=config.keep,
        dataloader_pin_memory=False,
    )
