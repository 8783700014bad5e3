"""The trainer: TRL's GRPOTrainer with hira's rollouts, credit and packing. The only module that imports TRL.

TRL keeps the loss, the optimiser, checkpoints and logging. The differences: an update is one optimiser step, however
many rows it has; each row carries its weight in the mask and the update one normaliser, so that results do not depend
on packing; a micro-batch is of one role, whose adapter is active; the reference is the base without adapter.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from datasets import Dataset  # type: ignore[import-untyped]
from transformers import PrinterCallback, TrainerCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from hira.core.errors import HiraError
from hira.trainers import records
from hira.trainers.batches import Micro, make_tensors, pack_rows, pick_canary, score_tokens, take_share
from hira.trainers.configuration import HALF, Configuration
from hira.trainers.credit import Credit
from hira.trainers.metrics import Means, measure_update
from hira.trainers.records import COMPLETE, last_checkpoint, print_progress, step_of
from hira.trainers.rows import Collect, Collected, Credited, Group, samples
from hira.trainers.weights import (
    activate,
    all_trainable,
    average_gradients,
    base_alone,
    check_effect,
    check_finite,
    check_sound,
    fingerprint,
    in_gib,
    peak,
    too_little,
)

PER_ROW = ("entropy", "kl", "clip_ratio/low_mean", "clip_ratio/high_mean", "clip_ratio/region_mean")
START = {"cpu": 32, "gpu": 4096}
"""The tokens that could be computed in the fixed time of a micro-batch: measured on a CPU with 135 M parameters, for
GPUs estimated from the start of their kernels."""
Batch = dict[str, Any]


def _refuse_scoring(**_: Any) -> list[float | None]:
    """Raise: TRL requires a reward function, but rewards come with the rollouts."""
    raise HiraError("rewards come with the rollouts")


class RoleTrainer(GRPOTrainer):
    """Trains the adapters of `model`, a PEFT model that has those of `configuration.model`.

    `collect` makes the rollouts of an update, `credit` their advantages; `on_update` gets the number of steps so far
    whenever the weights have changed. Metrics and sample rollouts go to `folder`, checkpoints below it.
    """

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
        self.collect = collect
        self.credit = credit
        self.folder = folder
        self.on_update = on_update
        self.record = RecordCallback(folder)
        self.show_progress = partial(print_progress, 30.0, lambda _: None)
        self._held: list[tuple[Micro, Batch]] | None = None
        self._measures: dict[str, float] = {}
        self.over = False
        self._scored: torch.Tensor | None = None
        self._canary: tuple[str, list[int]] | None = None
        self._effective = False
        self._base = ""
        arguments = arguments_of(configuration, folder)
        # One placeholder prompt per step and process: `collect` chooses the questions.
        asked = [{"prompt": str(at)} for at in range(config.steps * arguments.world_size)]
        super().__init__(
            model=model,
            reward_funcs=_refuse_scoring,
            args=arguments,
            train_dataset=Dataset.from_list(asked),
            processing_class=tokenizer,
            callbacks=[self.record, _AfterStep(self)],
        )
        self.beta = arguments.beta = config.beta  # after TRL looked for an adapter of a fixed name to copy
        self.remove_callback(PrinterCallback)
        all_trainable(self._bare)

    @property
    def _bare(self) -> Any:
        return self.accelerator.unwrap_model(self.model)

    def _send_telemetry(self) -> None:
        """Send nothing anywhere."""

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """Write none: TRL's describes its own method and an unnamed base."""

    # --- rollouts, credit, packing

    def _prepare_inputs(self, _: Any) -> Any:
        """Return the micro-batches of this step. A new set of rollouts begins when the last one has had its
        iterations."""
        step = self.state.global_step
        if step % self.config.iterations and self._held is not None:
            return self._held
        began = time.perf_counter()
        peak()
        self._bare.eval()
        collected = self.collect(step // self.config.iterations)
        self._bare.train()
        took, memory = time.perf_counter() - began, peak()
        torch.cuda.empty_cache()  # the update needs the rollouts' memory
        groups = self._everybodys(collected.groups)
        credited = self.credit(groups)
        self._measures = {
            **measure_update(groups, credited),
            **collected.measures,
            "rollout_seconds": took,
            **in_gib("rollout", memory),
        }
        self._record(collected, credited)
        self._held = self._batches(credited)
        return self._held

    def _everybodys(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups of all processes: each process computes the credit over all of them."""
        if self.accelerator.num_processes == 1:
            return list(groups)
        parts: list[Any] = [None] * self.accelerator.num_processes
        dist.all_gather_object(parts, list(groups))
        return [group for part in parts for group in part]

    def _batches(self, credited: Credited) -> list[tuple[Micro, Batch]]:
        rows = [one for one in credited.rows if one.weight and (one.advantage or self.beta)]
        own, processes = self.accelerator.process_index, self.accelerator.num_processes
        start = START["cpu" if self.accelerator.device.type == "cpu" else "gpu"]
        whole = pack_rows(rows, self.config.budget, self.adapters, start=start, processes=processes)
        micros = [take_share(micro, own, processes) for micro in whole]
        weight = sum(one.weight * one.row.tokens for one in rows)
        scale = sum(one.row.tokens for one in rows) / weight if weight else 1.0
        made: list[tuple[Micro, Batch]] = []
        for micro, many in micros:
            batch = make_tensors(
                micro,
                rows=many,
                pad=self._tokenizer.pad_token_id,
                scale=scale,
                items=max(credited.normaliser * scale, 1.0),
                device=self.accelerator.device,
                old=self.config.old == "sampler",
            )
            made.append((micro, batch))
        for micro, batch in made:
            with too_little(micro, self.config.budget):
                self._add_fixed(micro, batch)
        self._canary = self._canary or pick_canary([micro for micro, _ in micros])
        return made

    def _add_fixed(self, micro: Micro, batch: Batch) -> None:
        """Add log-probabilities that do not change with the weights: the reference's and the old policy's."""
        bare = self._bare
        with torch.no_grad():
            if self.beta:
                with base_alone(bare):
                    batch["ref_per_token_logps"] = self._logps(bare, batch)
            if self.config.iterations > 1 and self.config.old == "trainer":
                activate(bare, micro.adapter or self._first_adapter)
                batch["old_per_token_logps"] = self._logps(bare, batch)

    def _logps(self, model: Any, batch: Batch) -> torch.Tensor:
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        seen = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        logps, _, _ = self._get_per_token_logps_and_entropies(model, ids, seen, batch["completion_ids"].size(1))
        return logps  # type: ignore[no-any-return]

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *args: Any, **kwargs: Any
    ) -> Any:
        """Replace TRL's method, for rows padded on the right only: causal attention alone ignores the padding, so no
        mask keeps flash attention out; `attention_mask` marks the scored tokens."""
        if kwargs.get("compute_aux_loss"):
            return super()._get_per_token_logps_and_entropies(
                model, input_ids, torch.ones_like(attention_mask), logits_to_keep, *args, **kwargs
            )
        if input_ids.device.type == "cpu":
            logps, entropies = score_tokens(model, input_ids, attention_mask[:, -logits_to_keep:])
            self._scored = logps.detach()
            return logps, entropies, None
        labels = input_ids.masked_fill(attention_mask == 0, -100)
        labels[:, :-logits_to_keep] = -100
        with self.accelerator.autocast():
            found = model(input_ids=input_ids, labels=labels, fused_lm_head=True)
        logps = found.log_probs[:, -logits_to_keep:]
        self._scored = logps.detach()
        return logps, found.entropy[:, -logits_to_keep:], None

    @property
    def _first_adapter(self) -> str:
        return next(iter(self.adapters.values()))

    # --- the step

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """Run forward and backward through all micro-batches of the update; the Trainer then takes its one step."""
        del num_items_in_batch
        batches = self._prepare_inputs(inputs)
        began = time.perf_counter()
        model.train()
        means = Means()
        total = torch.zeros((), device=self.accelerator.device)
        done: list[Micro] = []
        with self.show_progress(lambda: f"{len(done)} of {len(batches)} micro-batches of the update done"):
            for micro, batch in batches:
                with self._alone(model, last=len(done) == len(batches) - 1), too_little(micro, self.config.budget):
                    activate(self._bare, micro.adapter or self._first_adapter)
                    with self.compute_loss_context_manager():
                        loss = self.compute_loss(model, batch)
                    self.accelerator.backward(loss)
                total += loss.detach()
                self._measure(micro, batch, means)
                done.append(micro)
        if self.accelerator.num_processes > 1:
            average_gradients(self._bare, self.accelerator.num_processes, self.accelerator.device)
        check_finite(self._bare, total, self.state.global_step + 1, {micro.role for micro, _ in batches})
        self._tell(means, batches, time.perf_counter() - began)
        return total

    def _alone(self, model: Any, *, last: bool) -> Any:
        """Sum gradients on each process and share them once at the end."""
        self.accelerator.gradient_state._set_sync_gradients(last)  # noqa: SLF001 - as the Trainer itself does
        if self.accelerator.num_processes == 1:
            return nullcontext()
        return self.accelerator.no_sync(model)

    # --- metrics and records

    def _measure(self, micro: Micro, batch: Batch, means: Means) -> None:
        """Add TRL's measurements of its last micro-batch, by role, and the distance between sampler and trainer."""
        found = self._metrics["train"]
        weight = float(sum(one.row.tokens for one in micro.rows))
        for name in PER_ROW:
            if found[name] and micro.rows:
                means.add(f"{micro.role}/{name.removesuffix('_mean')}", found[name][-1], weight)
                means.add(name.removesuffix("_mean"), found[name][-1], weight)
        if self._scored is not None and micro.rows:
            own = (batch["tool_mask"] > 0).float()
            apart = float(((self._scored - batch["sampled"]).abs() * own).sum() / own.sum().clamp(min=1))
            means.add(f"{micro.role}/sampler_drift", apart, weight)

    def _tell(self, means: Means, batches: Sequence[tuple[Micro, Batch]], took: float) -> None:
        real = sum(one.row.length for micro, _ in batches for one in micro.rows)
        padded = sum(len(batch["prompt_ids"]) * micro.width for micro, batch in batches)
        self._measures |= {
            **means.values,
            "micro_batches": len(batches),
            "largest_micro_batch": max((micro.padded for micro, _ in batches), default=0),
            "padding": 1 - real / padded if padded else 0.0,
            "update_seconds": took,
            "update_tokens_per_second": real / took,
        }
        self._measures |= in_gib("update", peak())
        self._metrics["train"].clear()
        for name, value in self._measures.items():
            self._metrics["train"][name].append(float(value))

    def _record(self, collected: Collected, credited: Credited) -> None:
        """Record sample rollouts with their credit before the update, so that they exist if it fails."""
        if self.accelerator.is_main_process:
            lines = samples(collected, credited, self.state.global_step + 1)
            records.append(self.folder / records.ROLLOUTS, lines)

    # --- the run

    def run(self, *, resume: bool = False) -> Any:
        """Train to the last step; with `resume` from the last whole checkpoint, as if the run had never stopped."""
        place = last_checkpoint(self.folder) if resume else None
        since = step_of(place) if place else 0
        if self.accelerator.is_main_process:
            for name in (records.METRICS, records.ROLLOUTS):
                records.cut(self.folder / name, since)
        return self.train(resume_from_checkpoint=str(place) if place else None)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        all_trainable(self._bare)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """Write TRL's checkpoint."""
        place = self.folder / f"checkpoint-{self.state.global_step}"
        activate(self._bare, self._first_adapter)
        try:
            super()._save_checkpoint(model, trial)  # type: ignore[no-untyped-call]
        except OSError as error:
            raise records.unwritable(error, place) from error

    def remember_base(self) -> None:
        self._base = fingerprint(self._bare)

    def check_step(self) -> None:
        """Check the new weights after each step, and let the policy sample with them; after the first step that moved
        them, check that they have any effect."""
        step = self.state.global_step
        if self._canary:
            adapter, ids = self._canary
            check_sound(self._bare, ids, adapter, self.accelerator.device, step)
        self.on_update(step)
        moved = step > min(self.config.warmup, 1)  # the first step of a warm-up has a rate of 0
        if self._canary and not self._effective and moved and self._get_learning_rate() > 0:
            check_effect(self._bare, ids, adapter, self.accelerator.device)
            self._effective = True

    def check_end(self) -> None:
        """Raise `HiraError` if the base has changed: an adapter was merged, or more than adapters was trained."""
        if fingerprint(self._bare) != self._base:
            raise HiraError(
                "the base's weights are not what they were when the run began",
                fix="train adapters only, and never merge them into the base while training",
            )
        if self.accelerator.num_processes > 1:
            self._check_alike()

    def _check_alike(self) -> None:
        """Raise `HiraError` if the processes trained different adapters."""
        found: list[Any] = [None] * self.accelerator.num_processes
        dist.all_gather_object(found, fingerprint(self._bare, adapters=True))
        if len(set(found)) > 1:
            raise HiraError(
                "the processes ended with different weights", fix="report it with the output of hira-train doctor RUN"
            )


class RecordCallback(TrainerCallback):
    """Appends a line of `metrics.jsonl` to `folder` for each step, marks each checkpoint as whole by a last file, and
    passes the metrics to `on_step`.

    The sums at the end are left out: they cover this process alone, so they would differ between a resumed run and an
    uninterrupted one.
    """

    def __init__(self, folder: Path, on_step: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
        self.folder = folder
        self.on_step = on_step

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        del args, control
        plain = {name: value for name, value in (logs or {}).items() if isinstance(value, int | float)}
        record = {"step": state.global_step, **{name: one for name, one in plain.items() if math.isfinite(one)}}
        if state.is_world_process_zero and "train_runtime" not in record:
            records.append(self.folder / records.METRICS, [record])
            self.on_step(record)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        del args, control
        if state.is_world_process_zero:
            step = state.global_step
            records.append(self.folder / f"checkpoint-{step}" / COMPLETE, [{"step": step}])


class _AfterStep(TrainerCallback):
    """Passes the Trainer's callbacks to `trainer`."""

    def __init__(self, trainer: RoleTrainer) -> None:
        self.trainer = trainer

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.trainer.remember_base()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        del args, state
        self.trainer.check_step()
        if self.trainer.over:
            control.should_training_stop = control.should_save = True

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self.trainer.check_end()


def arguments_of(configuration: Configuration, folder: Path) -> GRPOConfig:
    """Return TRL's settings. Its numbers of prompts and generations are placeholders: `collect` decides."""
    config = configuration.train
    return GRPOConfig(
        output_dir=str(folder),
        max_steps=config.steps,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=1,
        steps_per_generation=1,
        num_generations=2,
        loss_type="dapo",
        importance_sampling_level=config.ratio,
        scale_rewards="none",
        beta=0.0,
        epsilon=config.clip_low,
        epsilon_high=config.clip_high,
        use_bias_correction_kl=False,
        temperature=1.0,
        learning_rate=config.lr,
        lr_scheduler_type=config.schedule,
        warmup_steps=config.warmup,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        bf16=torch.cuda.is_available() and configuration.model.bits <= HALF,
        use_cpu=not torch.cuda.is_available(),
        activation_checkpointing=config.checkpointing,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="steps",
        save_steps=config.save_every,
        save_total_limit=config.keep,
        seed=configuration.seed,
        data_seed=configuration.seed,
        report_to=list(config.report_to) or "none",
        disable_tqdm=True,
        remove_unused_columns=False,
        log_completions=False,
    )
