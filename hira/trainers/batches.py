"""Rows become micro-batches of one role and of similar length, and tensors for TRL's loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import Any

import torch

from hira.trainers.rows import Weighted

CANARY = 32


@dataclass(frozen=True, slots=True)
class Micro:
    """Rows that go through the model together, all of one role and so of one adapter.

    `rows` may be empty: a micro-batch that only keeps step with other processes.
    """

    role: str
    adapter: str
    rows: tuple[Weighted, ...]

    @property
    def prompt(self) -> int:
        """The number of unscored ids that every row begins with: those of the shortest prompt.

        The rest of a longer prompt is scored with the completion, at weight 0. So nothing is padded on the left, and
        positions are those of the sampler.
        """
        return min((len(one.row.prompt) for one in self.rows), default=1)

    @property
    def width(self) -> int:
        return max((one.row.length for one in self.rows), default=2)

    @property
    def padded(self) -> int:
        """The number of tokens with the padding."""
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
    for role in sorted({one.row.role for one in rows}):
        own = sorted((one for one in rows if one.row.role == role), key=_order)
        ends = _divide([one.row.length for one in own], budget, start, processes)
        adapter = adapter_of(role, adapters)
        made += [Micro(role, adapter, tuple(own[begin:end])) for begin, end in pairwise([0, *ends])]
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


def take_share(micro: Micro, own: int, processes: int) -> tuple[Micro, int]:
    """Return the rows of process `own`, and the number of rows to pad them to, the same for all processes."""
    return replace(micro, rows=micro.rows[own::processes]), ceil(len(micro.rows) / processes)


def _order(one: Weighted) -> tuple[int, int, str, str, str, int]:
    row = one.row
    return (-row.length, -len(row.prompt), row.question, row.rollout, row.conversation, row.part)


def pick_canary(micros: Sequence[Micro]) -> tuple[str, list[int]] | None:
    """Return an adapter and the last ids of a row that it is trained on: its output there must change with the first
    step. None if no micro-batch holds a row."""
    for micro in micros:
        if micro.rows:
            row = micro.rows[0].row
            return micro.adapter, [*row.prompt, *row.completion][-CANARY:]
    return None


def make_tensors(
    micro: Micro, *, rows: int, pad: int, scale: float, items: float, device: Any, old: bool = False
) -> dict[str, Any]:
    """Return the micro-batch as TRL takes it: shapes (B, P) for prompts and (B, T), padded right, for completions.

    `tool_mask` carries the weights: m_it · w_i · `scale`, and `items` is Z · `scale`, so that TRL's sum over the mask
    divided by `num_items_in_batch` is the loss of `hira.trainers.rows.Weighted`. `scale` keeps the mean weight at 1,
    because TRL clamps sums of masks at 1. `completion_mask` marks the scored tokens. With `old`, the sampler's
    log-probabilities are those of the old policy. Rows that train nothing fill the batch up to `rows`.
    """
    begins, length = micro.prompt, micro.width - micro.prompt
    prompt_ids = torch.full((rows, begins), pad, dtype=torch.long)
    completion_ids = torch.full((rows, length), pad, dtype=torch.long)
    completion_mask = torch.zeros_like(completion_ids)
    weights = torch.zeros(rows, length, dtype=torch.float32)
    logprobs = torch.zeros(rows, length, dtype=torch.float32)
    advantages = torch.zeros(rows, dtype=torch.float32)
    completion_mask[len(micro.rows) :, 0] = 1
    for at, one in enumerate(micro.rows):
        row = one.row
        own, skipped = row.length - begins, len(row.prompt) - begins
        ids = torch.tensor((*row.prompt, *row.completion))
        prompt_ids[at], completion_ids[at, :own] = ids[:begins], ids[begins:]
        completion_mask[at, skipped:own] = torch.tensor(row.mask)
        weights[at, skipped:own] = torch.tensor(row.mask, dtype=torch.float32) * (one.weight * scale)
        logprobs[at, skipped:own] = torch.tensor(row.logprobs)
        advantages[at] = one.advantage
    made = {
        "prompt_ids": prompt_ids,
        "prompt_mask": torch.ones_like(prompt_ids),
        "completion_ids": completion_ids,
        "completion_mask": completion_mask,
        "tool_mask": weights,
        "advantages": advantages,
        "sampled": logprobs,
        "num_items_in_batch": torch.tensor(items, dtype=torch.float32),
    }
    if old:
        made["old_per_token_logps"] = logprobs
    return {name: value.to(device, non_blocking=True) for name, value in made.items()}


def score_tokens(model: Any, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-probabilities and entropies in nats, shape (B, T), of the last T ids of rows (B, P + T), where `mask`
    is 1.

    The head reads only the columns in which some row is scored. TRL's fused head does so on a GPU; elsewhere it reads
    every position, which costs a small model more than all of its layers.
    """
    columns = mask.any(dim=0).nonzero().squeeze(1)
    before = ids.size(1) - mask.size(1) - 1
    logits = model(input_ids=ids, use_cache=False, logits_to_keep=before + columns).logits.float()
    each = logits.log_softmax(dim=-1)
    own = each.gather(-1, ids[:, before + 1 + columns].unsqueeze(-1)).squeeze(-1)
    with torch.no_grad():
        entropy = -(each.exp() * each).sum(dim=-1)
    empty = torch.zeros(mask.shape, dtype=own.dtype, device=own.device)
    logps, entropies = (empty.index_copy(1, columns, one.to(own.dtype)) * mask for one in (own, entropy))
    return logps, entropies
