"""`hira-train grpo` behind its command line: the weights are opened, the run is made and left ready to be asked."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hira.core.errors import UsageError
from hira.trainers.assembling import Plan, credit_of, reward_of
from hira.trainers.base import open_model
from hira.trainers.profile import save_adapters

if TYPE_CHECKING:
    from hira.trainers.training import Training

Tell = Callable[[str], None]


def open_weights(plan: Plan) -> tuple[Any, Any]:
    """The tokenizer and the PEFT model of a run."""
    import torch

    torch.manual_seed(plan.configuration.seed)  # new adapters begin at random
    tokenizer, model = open_model(plan.configuration.model)
    tokenizer.model_max_length = min(plan.configuration.rollouts.window, tokenizer.model_max_length)
    return tokenizer, model


def reinforced(
    plan: Plan,
    *,
    resume: bool = False,
    begun: Callable[[], None] = lambda: None,
    tell: Tell = lambda _: None,
    stepped: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> None:
    """Train to the last step and save the adapters. With `resume`, as if the run had never stopped. `begun` is called
    when all is open and nothing is written yet."""
    import torch
    from accelerate import PartialState  # type: ignore[import-untyped]

    _check_whole()
    own = PartialState(cpu=not torch.cuda.is_available())  # first of all: on a CPU it sees no other process unasked
    tokenizer, model = open_weights(plan)
    training = training_of(plan, tokenizer, model, tell=tell, stepped=stepped)
    begun()
    training.run(resume=resume)
    if own.is_main_process:
        save_adapters(plan, model, tokenizer)
    own.wait_for_everyone()


def _check_whole() -> None:
    """Raise where the base is divided among processes: each samples replies of its own lengths, so they would wait for
    each other for ever."""
    if os.environ.get("ACCELERATE_USE_FSDP", "false") == "true" and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(
            "rollouts cannot be made with a base that is divided among processes (FSDP)",
            fix="use hira-train grpo --processes N --across ddp, with model.bits=4 if the base does not fit on one GPU",
        )


def training_of(
    plan: Plan,
    tokenizer: Any,
    model: Any,
    *,
    tell: Tell = lambda _: None,
    stepped: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> "Training":
    """The run of a plan with its weights."""
    from hira.trainers.training import Training

    return Training(
        configuration=plan.configuration,
        model=model,
        tokenizer=tokenizer,
        settings=plan.settings,
        workflow=plan.workflow,
        problems=plan.problems,
        reward=reward_of(plan),
        credit=credit_of(plan),
        folder=plan.folder,
        roles=plan.recipe.roles,
        staged=plan.recipe.staged,
        search=bool(plan.configuration.workflow.get("search", True)),
        held_out=plan.held_out,
        day=plan.began,
        tell=tell,
        stepped=stepped,
    )
