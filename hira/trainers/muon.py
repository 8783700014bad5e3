"""Muon: matrices take steps with all directions made equally long (Jordan et al. 2024), other parameters Adam's steps.

A randomly initialised model learns with it in about half of the steps. Adapters are trained with AdamW instead.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

NEWTON = (3.4445, -4.7750, 2.0315)
"""Coefficients of the quintic iteration that drives singular values towards 1."""
ITERATIONS = 3
SECOND = 0.98


class Muon(torch.optim.Optimizer):
    """The optimiser. `matrices` is the rate of the hidden layers' matrices, `rate` that of embeddings, norms and
    biases."""

    def __init__(
        self, model: torch.nn.Module, *, matrices: float = 0.02, rate: float = 5e-3, momentum: float = 0.9
    ) -> None:
        hidden: list[Tensor] = []
        others: list[Tensor] = []
        for name, parameter in model.named_parameters():
            (hidden if parameter.ndim == 2 and "embed" not in name else others).append(parameter)
        groups = [
            {"params": hidden, "lr": matrices, "momentum": momentum, "matrices": True},
            {"params": others, "lr": rate, "momentum": momentum, "matrices": False},
        ]
        super().__init__(groups, {})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        found = closure() if closure else None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    (self._matrix if group["matrices"] else self._adam)(parameter, parameter.grad, group)
        return found

    def _matrix(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["mean"] = torch.zeros_like(parameter)
        state["mean"].lerp_(gradient, 1 - group["momentum"])
        ahead = gradient.lerp(state["mean"], group["momentum"])
        rows, columns = parameter.shape
        parameter.add_(orthogonal(ahead), alpha=-group["lr"] * max(1.0, rows / columns) ** 0.5)

    def _adam(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state |= {"step": 0, "mean": torch.zeros_like(parameter), "square": torch.zeros_like(parameter)}
        state["step"] += 1
        state["mean"].lerp_(gradient, 1 - group["momentum"])
        state["square"].lerp_(gradient.square(), 1 - SECOND)
        mean = state["mean"] / (1 - group["momentum"] ** state["step"])
        square = state["square"] / (1 - SECOND ** state["step"])
        parameter.addcdiv_(mean, square.sqrt_().add_(1e-8), value=-group["lr"])


def orthogonal(matrix: Tensor) -> Tensor:
    """Return the matrix with its singular values near 1, by Newton-Schulz."""
    a, b, c = NEWTON
    wide: Tensor = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        square = wide @ wide.T
        wide = a * wide + (b * square + c * square @ square) @ wide
    return wide.T if matrix.shape[0] > matrix.shape[1] else wide
