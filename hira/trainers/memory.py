"""The device's memory: how much was taken at most, and what to do when it is not enough."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from hira.core.errors import HiraError
from hira.trainers.packing import Micro


def peak() -> int:
    """The most bytes that CUDA's allocator had given out since this was asked last; 0 without a GPU."""
    if not torch.cuda.is_available():
        return 0
    torch.cuda.synchronize()
    most = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return most


def in_gib(phase: str, memory: int) -> dict[str, float]:
    return {f"{phase}_peak_gib": memory / 2**30} if memory else {}


@contextmanager
def too_little(micro: Micro, budget: int) -> Iterator[None]:
    """Turn a lack of memory into what to do about it. The largest micro-batch comes first, so that it shows at once."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise HiraError(
            f"a micro-batch of {len(micro.rows)} rows of up to {micro.width:,} tokens does not fit into the memory",
            where=f"role {micro.role!r}, budget {budget:,} tokens",
            fix="lower the budget, the length of replies or the LoRA rank, or set bits = 4; `plan` tells what fits",
        ) from error
