"""Rollouts and groups made by hand, for the tests of rows and credit."""

from collections.abc import Mapping, Sequence

from hira.agents.trajectory import Rollout, Trajectory, Turn
from hira.core.policy import Completion, Request, Tokens
from hira.trainers.rows import Attempt, Group, Row, Status


def turn(
    prompt: Sequence[int], sampled: Sequence[int], logprobs: Sequence[float] | None = None, model: str = ""
) -> Turn:
    spoken = tuple(-0.5 for _ in sampled) if logprobs is None else tuple(logprobs)
    return Turn(Request(()), Completion("", model=model, tokens=Tokens(tuple(prompt), tuple(sampled), spoken)))


def rollout(**conversations: list[Turn]) -> Rollout:
    """A rollout whose conversations are named as their roles, `_` standing for `/` in front of the role."""
    record = Rollout("r1", "who?", "made")
    for name, turns in conversations.items():
        path = name.replace("_", "/")
        record.trajectories[path] = Trajectory(path, path.rpartition("/")[2], turns)
    return record


def row(role: str, tokens: int, *, rollout: str = "r", conversation: str = "", tool: int = 0, prompt: int = 1) -> Row:
    """A row of so many sampled tokens after a prompt of one id, with `tool` tokens of the environment behind them."""
    mask = (1,) * tokens + (0,) * tool
    ids = tuple(range(2, 2 + len(mask)))
    return Row("q", rollout, role, conversation or role, (prompt,), ids, mask, tuple(-0.5 * one for one in mask))


def attempt(
    number: int, reward: float | None, *rows: Row, status: Status = "ok", rewards: Mapping[str, float] | None = None
) -> Attempt:
    return Attempt(number, rows, reward, status, rewards or {})


def group(*attempts: Attempt, problem: str = "q") -> Group:
    return Group(problem, attempts)
