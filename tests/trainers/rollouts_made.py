"""Rollouts and groups made by hand, and rollouts of a policy that a test scripts."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout, Trajectory, Turn
from hira.core.events import Events, Reader
from hira.core.policy import Completion, Request, Tokens, Watch
from hira.testing import make_context
from hira.trainers.rows import Attempt, Group, Row, Status


def turn(prompt: Sequence[int], sampled: Sequence[int], logprobs: Sequence[float] | None = None) -> Turn:
    spoken = tuple(-0.5 for _ in sampled) if logprobs is None else tuple(logprobs)
    return Turn(Request(()), Completion("", tokens=Tokens(tuple(prompt), tuple(sampled), spoken)))


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


def attempt(number: int, reward: float | None, *rows: Row, status: Status = "ok") -> Attempt:
    return Attempt(number, rows, reward, status)


def group(*attempts: Attempt, problem: str = "q") -> Group:
    return Group(problem, attempts)


class Letters:
    """A policy whose tokens are the letters of what it says; it may fail or hang, and is cut off after `…`."""

    model = "letters"

    def __init__(self, say: Callable[[Request], str | BaseException], *, hang: bool = False) -> None:
        self.say = say
        self.hang = hang
        self.requests: list[Request] = []

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        self.requests.append(request)
        if self.hang:
            await asyncio.Event().wait()
        said = self.say(request)
        if isinstance(said, BaseException):
            raise said
        prompt = tuple(map(ord, "".join(message.text for message in request.messages)))
        tokens = Tokens(prompt, tuple(map(ord, said)), (-0.1,) * len(said))
        return Completion(said, finish="length" if said.endswith("…") else "stop", tokens=tokens)

    async def aclose(self) -> None:
        pass


def contexts(policy: Any, **given: Any) -> Any:
    """Opens run contexts in which the policy plays every role."""

    @asynccontextmanager
    async def opened(run: str, question: str, _: Any, readers: Sequence[Reader]) -> AsyncIterator[RunContext]:
        yield make_context(policy, events=Events(*readers), rollout=Rollout(run, question, "made"), **given)

    return opened
