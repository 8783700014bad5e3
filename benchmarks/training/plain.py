"""TRL's own GRPOTrainer, given rows in place of what it would sample: how long its update takes."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from hira.trainers.rows import Weighted


def plain_batch(rows: Sequence[Weighted], pad: int, normaliser: float) -> dict[str, Any]:
    """All rows as TRL pads them: prompts on the left, completions on the right. `whole` is the width of both."""
    prompt = max(len(one.row.prompt) for one in rows)
    completion = max(len(one.row.completion) for one in rows)
    made = {
        "prompt_ids": torch.full((len(rows), prompt), pad),
        "prompt_mask": torch.zeros(len(rows), prompt, dtype=torch.long),
        "completion_ids": torch.full((len(rows), completion), pad),
        "completion_mask": torch.zeros(len(rows), completion, dtype=torch.long),
        "tool_mask": torch.zeros(len(rows), completion),
        "advantages": torch.tensor([one.advantage for one in rows]),
    }
    for at, one in enumerate(rows):
        row = one.row
        made["prompt_ids"][at, prompt - len(row.prompt) :] = torch.tensor(row.prompt)
        made["prompt_mask"][at, prompt - len(row.prompt) :] = 1
        made["completion_ids"][at, : len(row.completion)] = torch.tensor(row.completion)
        made["completion_mask"][at, : len(row.completion)] = 1
        made["tool_mask"][at, : len(row.mask)] = torch.tensor(row.mask, dtype=torch.float32)
    return {**made, "num_items_in_batch": torch.tensor(normaliser), "whole": prompt + completion}


def plain_config(folder: Path, rows: int, at_once: int, steps: int) -> GRPOConfig:
    return GRPOConfig(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=at_once,
        gradient_accumulation_steps=max(1, rows // at_once),
        num_generations=max(2, rows),
        generation_batch_size=None,
        loss_type="dapo",
        beta=0.0,
        bf16=torch.cuda.is_available(),
        use_cpu=not torch.cuda.is_available(),
        activation_checkpointing=True,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
    )


def _none(**_: Any) -> list[float | None]:
    return []


class Plain(GRPOTrainer):
    """As TRL has it; only what it would sample and score is given. `seconds` are those of each update."""

    def __init__(self, model: Any, words: Any, rows: Sequence[Weighted], config: GRPOConfig) -> None:
        self.rows = rows
        self.seconds: list[float] = []
        self._took = 0.0
        asked = Dataset.from_dict({"prompt": ["x"] * 64})
        super().__init__(model=model, reward_funcs=_none, args=config, train_dataset=asked, processing_class=words)

    def _send_telemetry(self) -> None:
        """Nothing is sent anywhere."""

    def _generate_and_score_completions(self, _: Any) -> dict[str, Any]:
        made = plain_batch(self.rows, self._tokenizer.pad_token_id, float(sum(one.row.tokens for one in self.rows)))
        del made["whole"]
        return {name: value.to(self.accelerator.device) for name, value in made.items()}

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any) -> Any:
        self._prepare_inputs(inputs)  # rows are made outside the time that is taken
        began = time.perf_counter()
        loss = super().training_step(model, inputs, num_items_in_batch)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self._took += time.perf_counter() - began
        if self._step % self.args.gradient_accumulation_steps == 0:
            self.seconds.append(self._took)
            self._took = 0.0
        return loss
