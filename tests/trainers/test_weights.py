"""The fingerprint of weights: it sees every change, and costs little more than reading them."""

import time
from collections.abc import Callable

import pytest
import torch
from torch import nn

from hira.trainers.weights import fingerprint


class Weights(nn.Module):
    """Some weights under a name."""

    def __init__(self, values: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(values, requires_grad=False)


def values(many: int = 5_003, kind: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(many, generator=torch.Generator().manual_seed(0)).to(kind)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("place", [0, 1, 2_500, 5_001])
def test_a_fingerprint_sees_one_changed_weight_and_two_that_changed_places(kind: torch.dtype, place: int) -> None:
    own = fingerprint(Weights(values(kind=kind)))
    changed, exchanged = values(kind=kind), values(kind=kind)
    changed[place] *= 1.5
    exchanged[[place, place + 1]] = exchanged[[place + 1, place]]
    assert fingerprint(Weights(values(kind=kind))) == own
    assert own != fingerprint(Weights(changed))
    assert own != fingerprint(Weights(exchanged))
    assert own != fingerprint(Weights(values(kind=kind)[:-1]))


def test_weights_that_are_part_of_a_larger_tensor_have_the_fingerprint_of_a_copy() -> None:
    part = values()[1:]
    assert fingerprint(Weights(part)) == fingerprint(Weights(part.clone()))


def test_a_fingerprint_costs_a_few_times_what_a_sum_of_the_weights_costs() -> None:
    large = Weights(values(1 << 22))
    assert least_seconds(lambda: fingerprint(large)) < 20 * least_seconds(large.weight.sum)


def least_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of the thread, of several times the least."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    seconds = []
    for _ in range(7):
        began = time.thread_time()
        work()
        seconds.append(time.thread_time() - began)
    torch.set_num_threads(threads)
    return min(seconds)
