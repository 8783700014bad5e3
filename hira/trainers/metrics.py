"""The report of a step on its rollouts: figures for metrics.jsonl, and sample rollouts."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hira.agents.trajectory import Rollout, Trajectory
from hira.evaluation.rewards.answers import RolloutScore
from hira.trainers.rows import Attempt, Credited, Group, Row


@dataclass(slots=True)
class Means:
    """Weighted means by name, updated value by value."""

    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    weights: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, name: str, value: float | None, weight: float = 1.0) -> None:
        """Add a value. One that is None or not finite, or without a weight, is left out."""
        if value is not None and weight > 0 and math.isfinite(value):
            self.sums[name] += value * weight
            self.weights[name] += weight

    @property
    def values(self) -> dict[str, float]:
        return {name: self.sums[name] / weight for name, weight in self.weights.items()}


def measure_update(groups: Sequence[Group], credited: Credited) -> dict[str, float]:
    """Measure rewards, advantages, lengths, turns and exclusions: over all, and by role as `ROLE/NAME`."""
    means = Means()
    attempts = [attempt for group in groups for attempt in group.attempts]
    for attempt in attempts:
        means.add("infra_failed", float(attempt.status == "infra_failed"))
        means.add("agent_failed", float(attempt.status == "agent_failed"))
        means.add("unscored", float(attempt.reward is None))
        if attempt.counts:
            means.add("reward", attempt.reward)
        for row in attempt.rows:
            _of_row(means, row)
            if attempt.counts:
                means.add(f"{row.role}/reward", attempt.reward_of(row.conversation))
    for one in credited.rows:
        means.add(f"{one.row.role}/advantage", one.advantage)
        means.add(f"{one.row.role}/advantage_size", abs(one.advantage))
    groups_ = len(credited.sizes)
    record = {
        **means.values,
        "rows": len(credited.rows),
        "tokens": sum(one.row.tokens for one in credited.rows),
        "normaliser": credited.normaliser,
        "dead_groups": credited.dead / groups_ if groups_ else 0.0,
        "singletons": credited.singletons,
        "excluded": credited.excluded,
        **credited.figures,
    }
    return (
        record
        | {f"group_size/{size}": many for size, many in sorted(Counter(credited.sizes).items())}
        | _shares(credited)
    )


def _of_row(means: Means, row: Row) -> None:
    means.add(f"{row.role}/length", row.tokens)
    means.add(f"{row.role}/row_length", row.length)
    means.add(f"{row.role}/turns", row.turns)
    means.add(f"{row.role}/tokens_per_turn", row.tokens / row.turns)
    means.add(f"{row.role}/broken", float(row.part > 0))
    means.add(f"{row.role}/overlong", float(row.overlong))


def _shares(credited: Credited) -> dict[str, float]:
    """Return each role's share of the loss's absolute weight: a role whose share falls towards 0 is hardly trained."""
    held: Counter[str] = Counter()
    for one in credited.rows:
        held[one.row.role] += abs(one.advantage) * one.weight * one.row.tokens  # type: ignore[assignment]
    total = sum(held.values())
    return {f"{role}/share": share / total for role, share in held.items()} if total else {}


LONGEST = 20_000


def make_transcript(
    record: Rollout | None, attempt: Attempt, score: RolloutScore, references: Sequence[str], error: str = ""
) -> dict[str, Any]:
    """Return question, answer, reward and messages. Long texts are cut in the middle."""
    return {
        "rollout": record.run if record else "",
        "attempt": attempt.number,
        "question": record.question if record else "",
        "references": list(references),
        "answer": record.answer if record else "",
        "status": attempt.status,
        "reward": attempt.reward,
        "parts": dict(score.parts),
        "why": score.why,
        "error": error,
        "conversations": [_describe(trajectory) for trajectory in record.trajectories.values()] if record else [],
    }


def _describe(trajectory: Trajectory) -> dict[str, Any]:
    lines: list[dict[str, str]] = []
    if trajectory.turns:
        last = trajectory.turns[-1]
        lines = [{"role": one.role, "text": _cut(str(one.text))} for one in last.request.messages]
        lines.append({"role": "assistant", "text": _cut(last.completion.text), "finish": last.completion.finish})
    sampled = [len(turn.completion.tokens.sampled) for turn in trajectory.turns if turn.completion.tokens]
    return {
        "conversation": trajectory.conversation,
        "role": trajectory.role,
        "turns": len(trajectory.turns),
        "tokens": sum(sampled),
        "messages": lines,
    }


def _cut(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n… {len(text) - LONGEST} characters …\n{text[-half:]}"
