"""`hira-train grpo` behind its command line: the weights are opened, the run is made and left ready to be asked."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hira.core.errors import UsageError
from hira.trainers.assembling import Plan, credit_of, reward_of
from hira.trainers.base import Lora, opened
from hira.trainers.configuration import TrainPart
from hira.trainers.profile import save_adapters
from hira.trainers.recording import Recording
from hira.trainers.rollouts import Deadlines
from hira.trainers.schedule import Limits
from hira.trainers.stages import Stages
from hira.trainers.training import Examining, Making, Training
from hira.trainers.update import Updates

HALF = 16
"""Bits of a base over which nothing is worked out in half precision."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What is trained: a PEFT model with its tokenizer."""

    tokenizer: Any
    model: Any


def loaded(plan: Plan) -> Weights:
    import torch

    torch.manual_seed(plan.configuration.seed)  # new adapters begin at random
    part = plan.configuration.model
    lora = Lora(part.rank, part.alpha, part.targets, part.start)
    tokenizer, model = opened(part.name, list(part.adapters.values()), lora, bits=part.bits)
    window = plan.configuration.rollouts.window
    tokenizer.model_max_length = min(window, tokenizer.model_max_length)
    return Weights(tokenizer, model)


def reinforced(
    plan: Plan,
    *,
    resume: bool = False,
    begun: Callable[[], None] = lambda: None,
    tell: Callable[[str], None] = lambda _: None,
    stepped: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> None:
    """Train to the last step and save the adapters. With `resume`, as if the run had never stopped. `begun` is called
    when all is open and nothing is written yet."""
    import torch
    from accelerate import PartialState  # type: ignore[import-untyped]

    _check_whole()
    own = PartialState(cpu=not torch.cuda.is_available())  # first of all: on a CPU it sees no other process unasked
    weights = loaded(plan)
    training = _training(plan, weights, tell, stepped)
    begun()
    training.run(resume=resume)
    if own.is_main_process:
        save_adapters(plan, weights.model, weights.tokenizer)
    own.wait_for_everyone()


def _check_whole() -> None:
    """Raise where the base is divided among processes: each samples replies of its own lengths, so they would wait for
    each other for ever."""
    if os.environ.get("ACCELERATE_USE_FSDP", "false") == "true" and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            "rollouts cannot be made with a base that is divided among processes (FSDP)",
            fix="use hira-train grpo --processes N --across ddp, with model.bits=4 if the base does not fit on one GPU",
        )


def _training(
    plan: Plan, weights: Weights, tell: Callable[[str], None], stepped: Callable[[Mapping[str, Any]], None]
) -> Training:
    configuration, stages = plan.configuration, stages_of(plan)
    updates = updates_of(configuration.train, configuration.model.adapters, configuration.seed)
    if configuration.model.bits > HALF:
        updates = replace(updates, bf16=False)
    if stages and stages.limits:
        updates = replace(updates, old="sampler")
    return Training(
        name=configuration.model.name,
        model=weights.model,
        tokenizer=weights.tokenizer,
        settings=plan.settings,
        workflow=plan.workflow,
        problems=plan.problems,
        reward=reward_of(plan),
        credit=credit_of(plan),
        updates=updates,
        folder=plan.folder,
        making=making_of(plan),
        stages=stages,
        examining=Examining(plan.held_out, configuration.exam.every, configuration.exam.attempts),
        tell=tell,
        stepped=stepped,
    )


def updates_of(train: TrainPart, adapters: Mapping[str, str], seed: int) -> Updates:
    import torch

    values = train.model_dump()
    values["learning_rate"] = values.pop("lr")
    del values["mask_overlong"]  # that is for the credit
    return Updates(**values, adapters=dict(adapters), bf16=torch.cuda.is_available(), seed=seed)


def stages_of(plan: Plan) -> Stages | None:
    """How a recipe with stages makes its groups; None for the others."""
    if not plan.recipe.staged:
        return None
    part, roles = plan.configuration.marsrl, frozenset[str](plan.configuration.marsrl.roles)
    limits = Limits(part.problems, part.groups, part.staleness, 2 * part.groups) if part.staleness else None
    search = plan.configuration.workflow.get("search", True)
    return Stages(part.picks, part.sampling, roles or None, bool(search), limits, part.segment or None)


def making_of(plan: Plan) -> Making:
    part = plan.configuration.rollouts
    recording = None
    if part.recording != "live":
        recording = Recording(plan.folder / part.recorded, part.recording)
    deadlines = Deadlines(part.call_seconds, part.rollout_seconds, part.reward_seconds, part.group_seconds)
    return Making(
        part.questions,
        part.attempts,
        plan.recipe.roles,
        deadlines,
        part.concurrency,
        recording,
        plan.began,
        part.samples,
        (part.vllm, part.vllm_model or plan.configuration.model.name) if part.vllm else None,
    )
