"""Gradients between the last micro-batch and the optimiser: shared by all processes, and fit to be used."""

from collections.abc import Collection
from typing import Any

import torch
import torch.distributed as dist

from hira.core.errors import HiraError


def averaged(model: Any, processes: int, device: Any) -> None:
    """The mean of the gradients over processes. An adapter that no process used has none, and stays as it is."""
    trained = [one for one in model.parameters() if one.requires_grad]
    used = torch.tensor([one.grad is not None for one in trained], dtype=torch.int, device=device)
    dist.all_reduce(used, dist.ReduceOp.MAX)
    for one in (one for one, was in zip(trained, used.tolist(), strict=True) if was):
        if one.grad is None:
            one.grad = torch.zeros_like(one)
        dist.all_reduce(one.grad)
        one.grad /= processes


def check_finite(model: Any, loss: torch.Tensor, step: int, roles: Collection[str]) -> None:
    """Stop before a step that would spoil the weights for good. Waits for the device."""
    sums = [one.grad.sum() for one in model.parameters() if one.grad is not None]
    whole = torch.stack([loss, *[one.to(loss) for one in sums]])
    if bool(torch.isfinite(whole).all()):
        return
    what = "the loss is not a number" if not bool(torch.isfinite(loss)) else "a gradient is not a number"
    raise HiraError(
        f"{what}, so step {step} was not made",
        where=f"rows of {', '.join(sorted(roles))}",
        fix="lower the learning rate, then resume: the last checkpoint is from before",
    )
