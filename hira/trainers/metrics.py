"""Figures of updates, of MarsRL's parts and of exams, and sample rollouts."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from hira.agents.trajectory import Trajectory
from hira.evaluation.rewards.answers import RolloutScore
from hira.evaluation.statistics import cohens_d
from hira.trainers.rows import Credited, Group, ScoredRollout


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

    @classmethod
    def join(cls, parts: "Sequence[Means]") -> "Means":
        whole = cls()
        for part in parts:
            for name, weight in part.weights.items():
                whole.sums[name] += part.sums[name]
                whole.weights[name] += weight
        return whole

    @property
    def values(self) -> dict[str, float]:
        return {name: self.sums[name] / weight for name, weight in self.weights.items()}


def measure_update(groups: Sequence[Group], credited: Credited) -> dict[str, float]:
    """Measure rewards, advantages, lengths, turns and exclusions: over all, and by role as `ROLE/NAME`. `length_min`,
    `length` and `length_max` are over the samples of all roles (MARS, Fig. 3g to 3i). A role whose `share` of the loss
    falls towards 0 is hardly trained."""
    means = Means()
    attempts = [attempt for group in groups for attempt in group.attempts]
    lengths = [row.tokens for attempt in attempts for row in attempt.rows]
    for attempt in attempts:
        means.add("infra_failed", float(attempt.status == "infra_failed"))
        means.add("agent_failed", float(attempt.status == "agent_failed"))
        means.add("unscored", float(attempt.reward is None))
        if attempt.counts:
            means.add("reward", attempt.reward)
        for row in attempt.rows:
            means.add(f"{row.role}/length", row.tokens)
            means.add(f"{row.role}/row_length", row.length)
            means.add(f"{row.role}/turns", row.turns)
            means.add(f"{row.role}/tokens_per_turn", row.tokens / row.turns)
            means.add(f"{row.role}/broken", float(row.part > 0))
            means.add(f"{row.role}/overlong", float(row.overlong))
            if attempt.counts:
                means.add(f"{row.role}/reward", attempt.reward_of(row.conversation))
    held: dict[str, float] = defaultdict(float)  # each role's part of the loss's absolute weight
    for weighted in credited.rows:
        role, size = weighted.row.role, abs(weighted.advantage)
        means.add(f"{role}/advantage", weighted.advantage)
        means.add(f"{role}/advantage_size", size)
        held[role] += size * weighted.weight * weighted.row.tokens
    groups_, whole = len(credited.sizes), sum(held.values())
    return {
        **means.values,
        "rows": len(credited.rows),
        "tokens": sum(weighted.row.tokens for weighted in credited.rows),
        **({"length_min": min(lengths), "length": fmean(lengths), "length_max": max(lengths)} if lengths else {}),
        "normaliser": credited.normaliser,
        "dead_groups": credited.dead / groups_ if groups_ else 0.0,
        "singletons": credited.singletons,
        "excluded": sum(not attempt.counts for attempt in attempts),
        **credited.figures,
        **{f"group_size/{size}": many for size, many in sorted(Counter(credited.sizes).items())},
        **({f"{role}/share": part / whole for role, part in held.items()} if whole else {}),
    }


def measure_rollouts(scored: Sequence[ScoredRollout]) -> dict[str, float]:
    """Measure tools, endings, parts of the reward, and rows that broke or were dropped. `tool_calls/TOOL` is the number
    of calls of a rollout, `tools` that of all tools, `tool_share/TOOL` a tool's share of them (MARS, Fig. 3c to 3f)."""
    means = Means()
    used = sorted({tool for rollout in scored for _, tool in rollout.tools})
    for rollout in scored:
        means.add("row_breaks", rollout.breaks)
        means.add("rows_dropped", rollout.dropped)
        for name, value in rollout.score.parts.items():
            means.add(f"reward/{name}", value)
        if rollout.record is not None:
            means.add("answered", float(bool(rollout.record.answer)))
            means.add("conversations", len(rollout.record.trajectories))
            means.add("calls", rollout.record.usage.calls)
            means.add("turns", sum(len(trajectory.turns) for trajectory in rollout.record.trajectories.values()))
            for name in used:
                calls = sum(len(ended) for (_, tool), ended in rollout.tools.items() if tool == name)
                means.add(f"tool_calls/{name}", calls)
            means.add("tools", sum(map(len, rollout.tools.values())))
        for (role, tool), ended in rollout.tools.items():
            for ok in ended:
                means.add(f"{role}/tool_success", float(ok))
                means.add(f"{role}/tool_success/{tool}", float(ok))
                for name in used:
                    means.add(f"tool_share/{name}", float(tool == name))
    return means.values


ACCURACY = "accuracy"


def summarise_scores(scores: Sequence[RolloutScore], name: str) -> dict[str, float | None]:
    """Return the mean accuracy as `NAME`, and the mean of each part as `NAME/PART`, over the scores that have it. The
    accuracy of an answer is the reward's part of that name, else the reward itself.

    If scores have a `margin`, that of a preferred report over another, `NAME/d` is its effect size: the paired Cohen's
    d (rubrics paper, eq. 7), None without spread.
    """
    means = Means()
    for score in scores:
        means.add(name, score.parts.get(ACCURACY, score.value))
        for part, value in score.parts.items():
            means.add(f"{name}/{part}", value)
    margins = [score.parts["margin"] for score in scores if "margin" in score.parts]
    effect = {f"{name}/d": d if math.isfinite(d := cohens_d(margins)) else None} if len(margins) > 1 else {}
    return {name: None, **means.values, **effect}


def summarise_exam(by_set: Mapping[str, Sequence[RolloutScore]], name: str) -> dict[str, float | None]:
    """Return the figures over all sets, and of several sets each the accuracy as `SET/NAME` (MATPO, Fig. 5)."""
    whole = summarise_scores([score for scores in by_set.values() for score in scores], name)
    each = {f"{label}/{name}": summarise_scores(scores, name)[name] for label, scores in by_set.items() if label}
    return whole | each


LONGEST = 20_000


def make_transcript(scored: ScoredRollout, references: Sequence[str]) -> dict[str, Any]:
    """Return question, answer, reward and messages. Long texts are cut in the middle."""
    record, attempt, score = scored.record, scored.attempt, scored.score
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
        "error": scored.error,
        "conversations": [_describe(trajectory) for trajectory in record.trajectories.values()] if record else [],
    }


def _describe(trajectory: Trajectory) -> dict[str, Any]:
    lines: list[dict[str, str]] = []
    if trajectory.turns:
        last = trajectory.turns[-1]
        lines = [{"role": message.role, "text": _cut(str(message.text))} for message in last.request.messages]
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
