"""Which token comes next: temperature, top-k and top-p for each row of a batch, and one random number a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import torch

_BELOW_ONE = 1 - 2**-40


@dataclass(frozen=True, slots=True)
class Choosing:
    """How the rows of a batch sample, as tensors of shape (B,); made anew when the batch changes."""

    temperature: torch.Tensor
    top_p: torch.Tensor
    top_k: torch.Tensor
    greedy: torch.Tensor
    filtered: bool

    @classmethod
    def of(cls, rows: Sequence[tuple[float, float, int]], vocabulary: int, device: torch.device) -> "Choosing":
        """From (temperature, top-p, top-k) of each row; 0 is greedy, and top-k 0 takes every token."""
        heat, mass, most = zip(*rows, strict=True)
        return cls(
            torch.tensor([one or 1.0 for one in heat], device=device),
            torch.tensor(mass, dtype=torch.float32, device=device),
            torch.tensor([one or vocabulary for one in most], device=device),
            torch.tensor([one == 0 for one in heat], device=device),
            filtered=any(one < 1 for one in mass) or any(0 < one < vocabulary for one in most),
        )


def choose(logits: torch.Tensor, how: Choosing, randoms: Sequence[float]) -> tuple[list[int], list[float]]:
    """A token for each row of `logits` (B, V), and its log-probability at the row's temperature, before any filter.

    A row's token depends on its own logits and random number in [0, 1) alone, not on its neighbours or its place.
    """
    logprobs = torch.log_softmax(logits.float() / how.temperature[:, None], dim=-1)
    weights = logprobs.exp()
    if how.filtered:
        weights = _kept(weights, how)
    drawn = torch.tensor(randoms, dtype=torch.float64).to(logits.device)
    tokens = torch.where(how.greedy, logits.argmax(dim=-1), _drawn(weights, drawn))
    chosen = logprobs.gather(1, tokens[:, None])[:, 0]
    both = torch.stack((tokens.double(), chosen.double())).cpu()  # one transfer, one wait for the device
    return [int(token) for token in both[0].tolist()], both[1].tolist()


def _drawn(weights: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """For each row of `weights` (B, V) the token in which `drawn`, a share of their sum in [0, 1), comes to lie.

    First a stretch of tokens is found, then the token in it: the sums of few are exact enough that a token of weight 0
    is never drawn, which those of a whole vocabulary in single precision are not.
    """
    width = isqrt(weights.shape[-1] - 1) + 1
    stretches = torch.nn.functional.pad(weights, (0, width * width - weights.shape[-1])).reshape(-1, width, width)
    sums = stretches.sum(dim=-1, dtype=torch.float64)
    at, rest = _found(sums, drawn * sums.sum(dim=-1))
    own = stretches.gather(1, at[:, None, None].expand(-1, 1, width))[:, 0].double()
    inside, _ = _found(own, rest)
    return (at * width + inside).clamp_(max=weights.shape[-1] - 1)


def _found(weights: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The index whose share of the sum of weights (B, N) holds the target (B,), and how far into it the target lies."""
    ends = weights.cumsum(dim=-1)
    target = torch.minimum(target, ends[:, -1] * _BELOW_ONE)[:, None]
    # weights that are no numbers must not lead out of the tensor: on a GPU that would be the end of the process
    at = torch.searchsorted(ends, target, right=True).clamp_(max=weights.shape[-1] - 1)
    return at[:, 0], (target - (ends - weights).gather(1, at))[:, 0].clamp_(min=0)


def _kept(weights: torch.Tensor, how: Choosing) -> torch.Tensor:
    """The probabilities with those outside top-k, then outside top-p of what is left, at 0."""
    ordered, order = weights.sort(dim=-1, descending=True)
    rank = torch.arange(weights.shape[-1], device=weights.device)[None]
    ordered = ordered.masked_fill(rank >= how.top_k[:, None], 0.0)
    before = ordered.cumsum(dim=-1) - ordered
    outside = before >= how.top_p[:, None] * ordered.sum(dim=-1, keepdim=True)
    outside[:, 0] = False
    ordered = ordered.masked_fill(outside & (how.top_p < 1)[:, None], 0.0)
    return torch.zeros_like(weights).scatter(1, order, ordered)
