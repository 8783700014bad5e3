"""The loss of an update over rows that carry their weights, and the scores that it needs."""

from dataclasses import dataclass
from typing import Any, Literal

import torch

Batch = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scores:
    """Log-probabilities and entropies, in nats, of the completions' tokens; 0 where nothing is scored. Shape (B, T)."""

    logps: torch.Tensor
    entropies: torch.Tensor


def score_tokens(model: Any, ids: torch.Tensor, mask: torch.Tensor) -> Scores:
    """Score the last T ids of rows (B, P + T) where `mask` (B, T) is 1.

    Rows are padded on the right only, so causal attention alone ignores the padding, and no mask keeps flash attention
    out. The head reads only the columns in which some row is scored: reading every position costs a small model more
    than all of its layers.
    """
    columns = mask.any(dim=0).nonzero().squeeze(1)
    before = ids.size(1) - mask.size(1) - 1
    logits = model(input_ids=ids, use_cache=False, logits_to_keep=before + columns).logits.float()
    each = logits.log_softmax(dim=-1)
    scored = each.gather(-1, ids[:, before + 1 + columns].unsqueeze(-1)).squeeze(-1)
    with torch.no_grad():
        entropy = -(each.exp() * each).sum(dim=-1)
    empty = torch.zeros(mask.shape, dtype=scored.dtype, device=scored.device)
    logps, entropies = (empty.index_copy(1, columns, part.to(scored.dtype)) * mask for part in (scored, entropy))
    return Scores(logps, entropies)


def score_tokens_fused(model: Any, ids: torch.Tensor, mask: torch.Tensor) -> Scores:
    """Do the same with the fused head that `trl.trainer.add_fused_lm_head` adds: it never holds all logits."""
    labels = torch.full_like(ids, -100)
    scored = labels[:, -mask.size(1) :]
    scored.copy_(ids[:, -mask.size(1) :].masked_fill(mask == 0, -100))
    output = model(input_ids=ids, labels=labels, fused_lm_head=True)
    return Scores(output.log_probs[:, -mask.size(1) :], output.entropy[:, -mask.size(1) :])


def policy_loss(
    batch: Batch, scores: Scores, *, clip: tuple[float, float], beta: float, ratio: Literal["token", "sequence"]
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return the share of a micro-batch in the loss of `hira.trainers.rows.Weighted`, and its figures: means over the
    trained tokens, by name.

        L = -(1/Z) Σ_i Σ_t m_it w_i · (min(ρ_it A_i, clip(ρ_it, 1-ε_low, 1+ε_high) A_i) - β KL3_it)

    ρ is π/π_old of a token; with `ratio="sequence"` that of its row, exp of the mean of log ρ over the row's trained
    tokens (GSPO, 2507.18071, eq. 7). π_old is `old_logps`, else π itself, detached: the rows are fresh and this is
    their first step. KL3 = exp(δ) - δ - 1 with δ = log π_ref - log π. TRL's loss is the same for `loss_type="dapo"`,
    except that its mean over a sequence is weighted by our weights, too.
    """
    weights = batch["weights"]
    trained = (weights > 0).to(scores.logps.dtype)
    advantages = batch["advantages"].unsqueeze(1)
    change = scores.logps - batch.get("old_logps", scores.logps.detach())
    if ratio == "sequence":
        change = (change * trained).sum(1, keepdim=True) / trained.sum(1, keepdim=True).clamp(min=1)
    rho = change.exp().expand_as(scores.logps)
    low, high = 1 - clip[0], 1 + clip[1]
    gained = torch.minimum(rho * advantages, rho.clamp(low, high) * advantages)
    figures = {
        "entropy": scores.entropies,
        "clip_ratio/low": (rho < low) & (advantages < 0),
        "clip_ratio/high": (rho > high) & (advantages > 0),
        "sampler_drift": (scores.logps - batch["sampled"]).abs(),
    }
    figures["clip_ratio/region"] = figures["clip_ratio/low"] | figures["clip_ratio/high"]
    if beta:
        apart = batch["ref_logps"] - scores.logps
        figures["kl"] = apart.exp() - apart - 1
        gained = gained - beta * figures["kl"]
    loss = -(gained * weights).sum() / batch["items"]
    many = trained.sum().clamp(min=1)
    return loss, {name: (value.detach() * trained).sum() / many for name, value in figures.items()}
