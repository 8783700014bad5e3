"""A rollout as one JSON object, for a person who looks at samples of a training run."""

from collections.abc import Sequence
from typing import Any

from hira.agents.trajectory import Rollout, Trajectory
from hira.evaluation.rewards.reward import Score
from hira.trainers.group import Attempt

LONGEST = 20_000


def transcript(
    record: Rollout | None, attempt: Attempt, score: Score, references: Sequence[str], error: str = ""
) -> dict[str, Any]:
    """Question, answer, reward and all that was said. Long texts are cut in the middle."""
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
        "conversations": [_told(trajectory) for trajectory in record.trajectories.values()] if record else [],
    }


def _told(trajectory: Trajectory) -> dict[str, Any]:
    told: list[dict[str, str]] = []
    if trajectory.turns:
        last = trajectory.turns[-1]
        told = [{"role": one.role, "text": _cut(str(one.text))} for one in last.request.messages]
        told.append({"role": "assistant", "text": _cut(last.completion.text), "finish": last.completion.finish})
    sampled = [len(turn.completion.tokens.sampled) for turn in trajectory.turns if turn.completion.tokens]
    return {
        "conversation": trajectory.conversation,
        "role": trajectory.role,
        "turns": len(trajectory.turns),
        "tokens": sum(sampled),
        "messages": told,
    }


def _cut(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n… {len(text) - LONGEST} characters …\n{text[-half:]}"
