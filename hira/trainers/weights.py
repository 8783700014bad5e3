"""The weights in training: switching of adapters, checks that the base is unchanged, gradients, memory, and Muon.

Adapters are never merged into the base: merging and unmerging drifts in bf16.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist

from hira.core.errors import HiraError
from hira.trainers.batches import Micro

LOWER_RATE = "lower the learning rate, then resume: the last checkpoint is from before"
_ROW = 8192
"""Bytes per row of the table that a tensor is read as."""


def activate(model: Any, adapter: str) -> None:
    """Switch to this adapter. All adapters stay trainable, although PEFT freezes the others whenever it switches."""
    if list(model.active_adapters) != [adapter]:
        model.set_adapter(adapter)
    all_trainable(model)


def all_trainable(model: Any) -> None:
    """Let every parameter of every adapter require a gradient, and nothing else."""
    for name, parameter in model.named_parameters():
        if parameter.requires_grad != in_adapter(name):
            parameter.requires_grad_(in_adapter(name))


def in_adapter(name: str) -> bool:
    return "lora_" in name


@torch.no_grad()
def fingerprint(model: Any, *, adapters: bool = False) -> str:
    """Return a hash of the base's weights, or of all adapters', in about the time that it takes to read them.

    A tensor's bytes are read as a table of 64-bit integers: the sums of its rows and columns, computed on its device,
    are hashed with its name and shape. No change of one weight and no exchange of two leaves all sums unchanged.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, parameter in model.named_parameters():
        if in_adapter(name) != adapters:
            continue
        digest.update(f"{name} {tuple(parameter.shape)} {parameter.dtype}".encode())
        whole = parameter.detach().contiguous().reshape(-1).view(torch.uint8)
        whole = whole.clone() if whole.storage_offset() % 8 else whole  # part of a larger tensor
        table = whole[: whole.numel() // _ROW * _ROW].view(torch.int64).view(-1, _ROW // 8)
        for part in (table.sum(dim=0), table.sum(dim=1), whole[table.numel() * 8 :]):  # the end fills no row
            digest.update(part.cpu().numpy().tobytes())
    return digest.hexdigest()


@torch.no_grad()
def _logits(model: Any, ids: Sequence[int], device: Any, *, base: bool = False) -> torch.Tensor:
    """Return the logits of the active adapter over these ids, or of the base alone."""
    training = model.training
    model.eval()
    with model.disable_adapter() if base else nullcontext():
        logits: torch.Tensor = model(input_ids=torch.tensor([list(ids)], device=device)).logits
    model.train(training)
    return logits


def check_sound(model: Any, ids: Sequence[int], adapter: str, device: Any, step: int) -> None:
    """Raise `HiraError` if the model's logits are no longer numbers: before the step that broke it is saved."""
    activate(model, adapter)
    if not bool(torch.isfinite(_logits(model, ids, device)).all()):
        raise HiraError(f"after step {step}, an output of the adapter {adapter!r} is not a number", fix=LOWER_RATE)


def check_effect(model: Any, ids: Sequence[int], adapter: str, device: Any) -> None:
    """Raise `HiraError` if the adapter changes nothing in the model's output after the first step, when one that learns
    can no longer be neutral."""
    activate(model, adapter)
    if torch.equal(_logits(model, ids, device), _logits(model, ids, device, base=True)):
        what = f"after the first step, the adapter {adapter!r} still has no effect on the model"
        fix = "check that the LoRA target modules are in the model, and that the learning rate is not tiny"
        raise HiraError(what, fix=fix)


def average_gradients(model: Any, processes: int, device: Any) -> None:
    """Average the gradients over processes. An adapter that no process used has none, and does not change."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    used = torch.tensor([parameter.grad is not None for parameter in trained], dtype=torch.int, device=device)
    dist.all_reduce(used, dist.ReduceOp.MAX)
    for parameter in (parameter for parameter, was in zip(trained, used.tolist(), strict=True) if was):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
        parameter.grad /= processes


def check_finite(model: Any, loss: torch.Tensor, step: int, roles: Collection[str]) -> None:
    """Raise `HiraError` before a step that would spoil the weights for good. Waits for the device."""
    sums = [parameter.grad.sum() for parameter in model.parameters() if parameter.grad is not None]
    whole = torch.stack([loss, *[total.to(loss) for total in sums]])
    if bool(torch.isfinite(whole).all()):
        return
    what = "the loss is not a number" if not bool(torch.isfinite(loss)) else "a gradient is not a number"
    where = f"rows of {', '.join(sorted(roles))}"
    raise HiraError(f"{what}, so step {step} was not made", where=where, fix=LOWER_RATE)


def measure_peak(phase: str) -> dict[str, float]:
    """Return the most GiB of CUDA's allocator since the last call as `PHASE_peak_gib`; nothing without a GPU."""
    if not torch.cuda.is_available():
        return {}
    torch.cuda.synchronize()
    most = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return {f"{phase}_peak_gib": most / 2**30}


@contextmanager
def too_little(micro: Micro, budget: int) -> Iterator[None]:
    """Turn a lack of memory into an error with advice. The largest micro-batch comes first, so that it fails at
    once."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise HiraError(
            f"a micro-batch of {len(micro.rows)} rows of up to {micro.width:,} tokens does not fit into the memory",
            where=f"role {micro.role!r}, budget {budget:,} tokens",
            fix="lower the budget, the length of replies or the LoRA rank, or set bits = 4; `plan` shows what fits",
        ) from error


NEWTON = (3.4445, -4.7750, 2.0315)
"""Coefficients of the quintic iteration that drives singular values towards 1."""
ITERATIONS = 3
SECOND = 0.98


class Muon(torch.optim.Optimizer):
    """Muon: matrices take steps with all directions made equally long (Jordan et al. 2024), other parameters Adam's.

    A randomly initialised model learns with it in about half of the steps; adapters are trained with AdamW. `matrices`
    is the rate of the hidden layers' matrices, `rate` that of embeddings, norms and biases. `torch.optim.Muon` takes
    the same steps (its loss agrees to three digits after 60), but iterates in bfloat16, which takes a CPU without such
    units 6 to 18 times as long.
    """

    def __init__(
        self, model: torch.nn.Module, *, matrices: float = 0.02, rate: float = 5e-3, momentum: float = 0.9
    ) -> None:
        hidden: list[torch.Tensor] = []
        others: list[torch.Tensor] = []
        for name, parameter in model.named_parameters():
            (hidden if parameter.ndim == 2 and "embed" not in name else others).append(parameter)
        groups = [
            {"params": hidden, "lr": matrices, "momentum": momentum, "matrices": True},
            {"params": others, "lr": rate, "momentum": momentum, "matrices": False},
        ]
        super().__init__(groups, {})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = closure() if closure else None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    (self._matrix if group["matrices"] else self._adam)(parameter, parameter.grad, group)
        return loss

    def _matrix(self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["mean"] = torch.zeros_like(parameter)
        state["mean"].lerp_(gradient, 1 - group["momentum"])
        ahead = gradient.lerp(state["mean"], group["momentum"])
        rows, columns = parameter.shape
        parameter.add_(orthogonal(ahead), alpha=-group["lr"] * max(1.0, rows / columns) ** 0.5)

    def _adam(self, parameter: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state |= {"step": 0, "mean": torch.zeros_like(parameter), "square": torch.zeros_like(parameter)}
        state["step"] += 1
        state["mean"].lerp_(gradient, 1 - group["momentum"])
        state["square"].lerp_(gradient.square(), 1 - SECOND)
        mean = state["mean"] / (1 - group["momentum"] ** state["step"])
        square = state["square"] / (1 - SECOND ** state["step"])
        parameter.addcdiv_(mean, square.sqrt_().add_(1e-8), value=-group["lr"])


def orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """Return the matrix with its singular values near 1, by Newton-Schulz."""
    a, b, c = NEWTON
    wide: torch.Tensor = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        square = wide @ wide.T
        wide = a * wide + (b * square + c * square @ square) @ wide
    return wide.T if matrix.shape[0] > matrix.shape[1] else wide
