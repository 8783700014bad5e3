"""`hira-train grpo` behind its command line: the weights are opened, the run is made and left ready to be asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

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
    tell: Callable[[str], None] = lambda _: None,
    stepped: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> None:
    """Train to the last step and save the adapters. With `resume`, as if the run had never stopped."""
    weights = loaded(plan)
    _training(plan, weights, tell, stepped).run(resume=resume)
    save_adapters(plan, weights.model, weights.tokenizer)


def _training(
    plan: Plan, weights: Weights, tell: Callable[[str], None], stepped: Callable[[Mapping[str, Any]], None]
) -> Training:
    configuration, stages = plan.configuration, stages_of(plan)
    updates = updates_of(configuration.train, configuration.model.adapters, configuration.seed)
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
    )
