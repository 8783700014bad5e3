"""Rows become micro-batches of one role and of similar length, and tensors for the loss."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import Any

import torch

from hira.trainers.loss import Batch
from hira.trainers.rows import Weighted

CANARY = 32
"""The last ids of a row, at which the output of its adapter is checked."""


@dataclass(frozen=True, slots=True)
class Micro:
    """Rows that go through the model together, all of one role and so of one adapter; none if a micro-batch only keeps
    step with other processes."""

    role: str
    adapter: str
    rows: tuple[Weighted, ...]

    @property
    def prompt(self) -> int:
        """The number of unscored ids that every row begins with: those of the shortest prompt. The rest of a longer one
        is scored at weight 0, so that nothing is padded on the left, and positions are those of the sampler."""
        return min((len(weighted.row.prompt) for weighted in self.rows), default=1)

    @property
    def width(self) -> int:
        return max((weighted.row.length for weighted in self.rows), default=2)

    @property
    def padded(self) -> int:
        return len(self.rows) * self.width


def adapter_of(role: str, adapters: Mapping[str, str]) -> str:
    """Return the adapter of a role; `*` names the adapter of all other roles."""
    return adapters.get(role) or adapters.get("*", "default")


def pack_rows(
    rows: Sequence[Weighted], budget: int, adapters: Mapping[str, str], *, start: int = 0, processes: int = 1
) -> list[Micro]:
    """Pack rows into micro-batches for several processes: a process takes its share of each one, at most `budget`
    tokens with their padding, or one longer row alone.

    Rows of a role are divided by length at the least cost, where a micro-batch costs its tokens with their padding,
    plus `start` tokens. The largest comes first, so that memory runs out in the first micro-batch or never; the others
    follow by adapter, to switch it as rarely as possible. The order of the rows does not matter.
    """
    made: list[Micro] = []
    for role in sorted({weighted.row.role for weighted in rows}):
        role_rows = sorted((weighted for weighted in rows if weighted.row.role == role), key=_order)
        ends = _divide([weighted.row.length for weighted in role_rows], budget, start, processes)
        adapter = adapter_of(role, adapters)
        made += [Micro(role, adapter, tuple(role_rows[begin:end])) for begin, end in pairwise([0, *ends])]
    if not made:
        return made
    largest = max(made, key=lambda micro: micro.padded)
    return sorted(made, key=lambda micro: (micro is not largest, micro.adapter != largest.adapter, micro.adapter))


def _divide(lengths: Sequence[int], budget: int, start: int, processes: int) -> list[int]:
    """Return the end of each micro-batch of rows of these falling lengths: the cheapest division, by dynamic
    programming."""
    least, ends = [0] * (len(lengths) + 1), [0] * len(lengths)
    for begin in reversed(range(len(lengths))):
        choices = []
        for end in range(begin + 1, len(lengths) + 1):
            each = ceil((end - begin) / processes)
            if each > 1 and each * lengths[begin] > budget:
                break
            choices.append((each * lengths[begin] + start + least[end], -end))
        least[begin], ends[begin] = min(choices)[0], -min(choices)[1]
    divided = [ends[0]] if ends else []
    while divided and divided[-1] < len(lengths):
        divided.append(ends[divided[-1]])
    return divided


def merge_equal(rows: Sequence[Weighted]) -> list[Weighted]:
    """Return the rows without repetitions: rows of the same tokens become one with their share of the loss.

    For a first step after sampling, where the ratio is 1, the loss has A only as a factor, and Σ w_i A_i = W A' with
    W = Σ w_i and A' = Σ w_i A_i / W.
    """
    equal: dict[Hashable, list[Weighted]] = {}
    for weighted in rows:
        row = weighted.row
        equal.setdefault((row.role, row.prompt, row.completion, row.mask), []).append(weighted)
    merged = []
    for same in equal.values():
        weight = sum(weighted.weight for weighted in same)
        gained = sum(weighted.weight * weighted.advantage for weighted in same)
        merged.append(same[0] if len(same) == 1 else replace(same[0], weight=weight, advantage=gained / weight))
    return merged


def take_share(micro: Micro, process: int, processes: int) -> tuple[Micro, int]:
    """Return the rows of one `process`, and the number of rows to pad them to, the same for all processes."""
    return replace(micro, rows=micro.rows[process::processes]), ceil(len(micro.rows) / processes)


def _order(weighted: Weighted) -> tuple[int, int, str, str, str, int]:
    row = weighted.row
    return (-row.length, -len(row.prompt), row.question, row.rollout, row.conversation, row.part)


def make_tensors(micro: Micro, *, rows: int, pad: int, items: float, device: Any, old: bool = False) -> Batch:
    """Return the micro-batch as tensors: `ids` (B, P + T), padded on the right, and for the last T of them `scored`,
    `weights` m_it · w_i and `sampled`, the sampler's log-probabilities; `advantages` (B,); `items` is Z.

    With `old`, the sampler's log-probabilities are those of the old policy. Rows that train nothing fill the batch up
    to `rows`, so that all processes run the same number of rows.
    """
    begins, length = micro.prompt, micro.width - micro.prompt
    ids = torch.full((rows, micro.width), pad, dtype=torch.long)
    scored = torch.zeros((rows, length), dtype=torch.long)
    weights, logprobs = torch.zeros((2, rows, length), dtype=torch.float32)
    advantages = torch.zeros(rows, dtype=torch.float32)
    scored[len(micro.rows) :, 0] = 1
    for place, weighted in enumerate(micro.rows):
        row = weighted.row
        skipped, end = len(row.prompt) - begins, row.length - begins
        ids[place, : row.length] = torch.tensor((*row.prompt, *row.completion))
        scored[place, skipped:end] = torch.tensor(row.mask)
        weights[place, skipped:end] = torch.tensor(row.mask, dtype=torch.float32) * weighted.weight
        logprobs[place, skipped:end] = torch.tensor(row.logprobs)
        advantages[place] = weighted.advantage
    made = {
        "ids": ids,
        "scored": scored,
        "weights": weights,
        "sampled": logprobs,
        "advantages": advantages,
        "items": torch.tensor(items, dtype=torch.float32),
    }
    if old:
        made["old_logps"] = logprobs
    return {name: value.to(device, non_blocking=True) for name, value in made.items()}
