"""The fingerprint of weights: it sees every change, and costs little more than reading them."""

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


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("place", [0, 5_001])
def test_a_fingerprint_sees_one_changed_weight_and_two_that_changed_places(kind: torch.dtype, place: int) -> None:
    own = fingerprint(Weights(values(kind=kind)))
    changed, exchanged = values(kind=kind), values(kind=kind)
    changed[place] *= 1.5
    exchanged[[place, place + 1]] = exchanged[[place + 1, place]]
    assert fingerprint(Weights(values(kind=kind))) == own
    assert own != fingerprint(Weights(changed))
    assert own != fingerprint(Weights(exchanged))
    assert own != fingerprint(Weights(values(kind=kind)[:-1]))
