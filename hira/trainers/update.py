"""What an update is: how many rollouts it takes, how they become a step. Plain values, without torch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hira.core.errors import UsageError
from hira.trainers.group import Credited, Group


@dataclass(frozen=True, slots=True)
class Updates:
    """The settings of a training run.

    `budget` is the most tokens of a micro-batch with its padding; `adapters` names the adapter of each role, `*` that
    of all others. `clip_low` and `clip_high` are DAPO's ε; `ratio` is that of
    each token, or of the sequence as in GSPO (the mean of its tokens' logarithms); `beta` weighs the KL term towards
    the base without adapter. `iterations` optimiser steps are made of each set of rollouts, one by default, where the
    ratio of new and old policy is 1 and nothing is clipped. `old` says whose log-probabilities are the old policy's:
    the trainer's own, computed before the step, or those that the sampler gave, which is right where rollouts are
    older than the weights. `report_to` are TRL's reporters (tensorboard, wandb, trackio). LoRA wants a rate of 1e-5
    to 5e-5 with large models, and far more with tiny ones."""

    steps: int = 100
    learning_rate: float = 2e-5
    warmup: int = 0
    schedule: Literal["constant_with_warmup", "linear", "cosine"] = "constant_with_warmup"
    beta: float = 0.0
    clip_low: float = 0.2
    clip_high: float = 0.28
    ratio: Literal["token", "sequence"] = "token"
    iterations: int = 1
    old: Literal["trainer", "sampler"] = "trainer"
    max_grad_norm: float = 1.0
    weight_decay: float = 0.0
    budget: int = 16_384
    adapters: Mapping[str, str] = field(default_factory=lambda: {"*": "default"})
    checkpointing: bool = True
    bf16: bool = False
    seed: int = 0
    save_every: int = 10
    keep: int = 2
    report_to: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.save_every % self.iterations:
            fix = "make save_every a multiple of iterations: a run resumes between sets of rollouts"
            raise UsageError(f"save_every {self.save_every} would save amid {self.iterations} iterations", fix=fix)
        for name in ("steps", "iterations", "budget", "save_every", "keep"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}", fix="it has to be at least 1")


@dataclass(frozen=True, slots=True)
class Collected:
    """What the rollouts of one update brought: `groups` for credit, `measures` to tell, `samples` to be looked at."""

    groups: tuple[Group, ...]
    measures: Mapping[str, float] = field(default_factory=dict)
    samples: tuple[Mapping[str, Any], ...] = ()


Collect = Callable[[int], Collected]
"""Makes the rollouts of the update with that number, counted from 0. The same number brings the same questions and
seeds, so that a run that is resumed goes on as if it had not stopped."""


def samples(collected: Collected, credited: Credited, step: int) -> Iterator[dict[str, Any]]:
    """The samples of an update as records, each with the advantages of its conversations."""
    gained: dict[str, dict[str, float]] = {}
    for one in credited.rows:
        gained.setdefault(one.row.rollout, {})[one.row.conversation] = one.advantage
    for sample in collected.samples:
        yield {"step": step, **sample, "advantages": gained.get(str(sample.get("rollout")), {})}
