"""Micro-batches as the tensors that TRL's loss reads."""

from typing import Any

import torch

from hira.trainers.packing import Micro


def tensors(
    micro: Micro, *, rows: int, pad: int, scale: float, items: float, device: Any, old: bool = False
) -> dict[str, Any]:
    """The micro-batch as TRL wants it: shapes (B, P) for prompts and (B, T), padded right, for completions.

    `tool_mask` carries the weights: m_it · w_i · `scale`, and `items` is Z · `scale`, so that TRL's sum over the mask
    divided by `num_items_in_batch` is the loss of `hira.trainers.group.Weighted`. `scale` keeps the mean weight at 1,
    because TRL clamps sums of masks at 1. `completion_mask` marks what is scored at all. With `old`, the sampler's
    log-probabilities are those of the old policy. Rows are added that train nothing until there are `rows` of them.
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


def scored(model: Any, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities and entropies in nats, shape (B, T), of the last T ids of rows (B, P + T), where `mask` is 1.

    The head reads the columns alone in which some row is scored. TRL's fused head does so on a GPU; elsewhere it reads
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
