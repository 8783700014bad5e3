"""The calls of a rollout: model calls are seeded and bounded in time, tool calls are watched."""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from hira.agents.trajectory import Rollout
from hira.core.errors import (
    BadReply,
    ContextOverflow,
    DialectError,
    EndpointError,
    HiraError,
    MediaRefused,
    OutOfBudget,
    ToolDown,
    ToolsRefused,
    Withheld,
)
from hira.core.policy import Completion, Policy, Request, Sampling, Watch
from hira.tools import SINGLE, Observation, OpenPython, Tool, Toolbox
from hira.trainers.rows import Status


def seed_of(*parts: object) -> int:
    """Return a seed that is the same for the same parts, in every process and version of Python."""
    text = "\x1f".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big")


def set_training_sampling(sampling: Sampling, temperature: float = 1.0) -> Sampling:
    """Return the sampling of a role in training: from its own distribution, at temperature 1 and untruncated, because
    the loss assumes it: a top-p of .9 alone biases the ratio by about a tenth."""
    return replace(sampling, temperature=temperature, top_p=1.0, top_k=None)


def own_fault(error: EndpointError) -> bool:
    """Return whether the agent caused the failure itself: a prompt over the window, a refusal, nothing but thought."""
    return isinstance(error, ContextOverflow | Withheld) or (isinstance(error, BadReply) and not error.status)


def status_of(record: Rollout) -> Status:
    """Return the status of a rollout. A prompt over the window, a refusal and an unreadable reply are the agent's own
    failures. An exhausted budget is `ok`: its answer is judged. Everything else is the infrastructure's."""
    failure = record.failure
    if failure is None or isinstance(failure, OutOfBudget):
        return "ok"
    is_agents_fault = isinstance(failure, DialectError) or (isinstance(failure, EndpointError) and own_fault(failure))
    return "agent_failed" if is_agents_fault else "infra_failed"


@dataclass(slots=True)
class OpenCalls:
    """The calls of models and tools in progress, in the order in which they began, each with its name and start time.
    `cut` has, for each run, the call in which it was ended."""

    since: dict[object, tuple[str, float]] = field(default_factory=dict)
    cut: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def call(self, run: str, what: str) -> Iterator[None]:
        self.cut.pop(run, None)  # the run has continued since
        call, began = object(), time.monotonic()
        self.since[call] = f"{run} {what}", began
        try:
            yield
        except asyncio.CancelledError:
            self.cut.setdefault(run, f"{what} for {time.monotonic() - began:.0f} s")
            raise
        finally:
            del self.since[call]

    def describe(self, most: int = 5) -> str:
        now = time.monotonic()
        waiting = list(self.since.values())
        listed = ", ".join(f"{name} for {now - since:.0f} s" for name, since in waiting[:most])
        return listed + (f" and {len(waiting) - most} more" if len(waiting) > most else "")


@dataclass(slots=True)
class SeededPolicy:
    """Gives every call of one rollout at most `seconds`, and a seed that depends on the rollout, the conversation and
    its turn alone. `broken` are failures that are not the agent's, even if the workflow recovered from them; input that
    a model never takes is not among them, because the workflow then asks in another way."""

    policy: Policy
    run: str
    seed: int
    seconds: float
    underway: OpenCalls
    broken: list[HiraError] = field(default_factory=list)
    _turns: Counter[str] = field(default_factory=Counter)

    @property
    def model(self) -> str:
        return self.policy.model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        name = request.conversation
        self._turns[name] += 1
        sampling = replace(request.sampling, seed=seed_of(self.seed, name, self._turns[name]))
        try:
            async with asyncio.timeout(self.seconds):
                with self.underway.call(self.run, name):
                    return await self.policy.complete(replace(request, sampling=sampling), watch)
        except TimeoutError:
            what = f"no reply to {name!r} within {self.seconds:g} seconds"
            self.broken.append(late := EndpointError(what, where=f"model {self.model!r}", retryable=True))
            raise late from None
        except EndpointError as error:
            if not (own_fault(error) or isinstance(error, ToolsRefused | MediaRefused)):
                self.broken.append(error)
            raise

    async def aclose(self) -> None:
        """Do nothing: other rollouts use the policy, and its owner closes it."""


def watch_tools(
    tools: Toolbox, down: list[HiraError], waiting: Callable[[str], AbstractContextManager[None]]
) -> Toolbox:
    """Return the same tools, which add every failure of a service, a server or a sandbox to `down`. Each call runs
    within `waiting`, which gets the tool's name."""

    def watch(tool: Tool) -> Tool:
        async def run(arguments: dict[str, Any]) -> Observation:
            try:
                with waiting(tool.name):
                    return await tool.run(arguments)
            except ToolDown as error:
                down.append(error)
                raise

        return replace(tool, run=run)

    watched_python: OpenPython | None = None
    if (python := tools.python) is not None:

        @asynccontextmanager
        async def open_python(subtask: str) -> AsyncIterator[Tool]:
            async with python(subtask) as session:
                yield watch(session)

        watched_python = open_python
    singles: Any = {name: watch(tool) for name in SINGLE if (tool := getattr(tools, name)) is not None}
    return replace(
        tools,
        **singles,
        extra=tuple(map(watch, tools.extra)),
        scoped={role: tuple(map(watch, scoped)) for role, scoped in tools.scoped.items()},
        python=watched_python,
    )
