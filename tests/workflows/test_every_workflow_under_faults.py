"""Every workflow of the registry under faults of its endpoint, at each of its calls: an answer, or a clear ending."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hira import Hira, Settings
from hira.core.errors import (
    AccessDenied,
    BadReply,
    ContextOverflow,
    EndpointError,
    OutOfBudget,
    RateLimited,
    ToolsRefused,
    Withheld,
)
from hira.core.policy import Completion, Request, Watch
from hira.policies.offline import OfflinePolicy
from hira.workflows import WORKFLOWS
from hira.workflows.bound import Sizes

ASEAN = Path(__file__).parent.parent / "data" / "asean"
QUESTION = "What is the capital of Myanmar?"
When = Callable[[int], bool]

FAULTS: dict[str, EndpointError | Callable[[Completion], Completion]] = {
    "gone": EndpointError("the endpoint is gone", status=503),
    "limited": RateLimited("too many requests", status=429),
    "denied": AccessDenied("the key is wrong", status=401),
    "long": ContextOverflow("the prompt is too long", status=400),
    "refused": Withheld("the model refused"),
    "no tools": ToolsRefused("no tool calls here", status=400),
    "broken": BadReply("no completion"),
    "empty": lambda said: replace(said, text="", calls=(), finish="stop"),
    "thought": lambda said: replace(said, text="", reasoning="hm", calls=(), finish="stop"),
    "cut": lambda said: replace(said, text=said.text[: len(said.text) // 2], finish="length"),
    "filtered": lambda said: replace(said, finish="filtered"),
    "nonsense": lambda said: replace(said, text='<use_mcp_tool>{]}```json\n{"name": "x", <|begin_x|>', calls=()),
}


class Faulty:
    """The offline policy, with a fault at some of its calls."""

    model = "faulty"

    def __init__(self) -> None:
        self.inner = OfflinePolicy()
        self.begin("gone", lambda _: False)

    def begin(self, fault: str, when: When) -> None:
        """From now on `fault` happens at the calls whose number `when` accepts, counted from one."""
        self.fault, self.when, self.made = fault, when, 0

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        self.made += 1
        said = await self.inner.complete(request, watch)
        if not self.when(self.made):
            return said
        fault = FAULTS[self.fault]
        if isinstance(fault, EndpointError):
            raise fault
        return fault(said)

    async def aclose(self) -> None:
        pass


@pytest.mark.heavy
@pytest.mark.parametrize("name", WORKFLOWS)
async def test_it_ends_in_an_answer_or_clearly(name: str) -> None:
    """Each fault at one call, another for each fault, and some of them at every call."""
    policy, settings = Faulty(), Settings(docs=(ASEAN,), journal=None)
    async with Hira(settings=settings, policies={"*": policy}, workflow=WORKFLOWS[name]()) as hira:
        await _run(hira, policy)
        calls = policy.made
        for at, fault in enumerate(FAULTS):
            policy.begin(fault, lambda number, hit=at % calls + 1: number == hit)
            await _run(hira, policy)
        for fault in ("gone", "no tools", "empty", "nonsense"):
            policy.begin(fault, lambda _: True)
            await _run(hira, policy)


async def _run(hira: Hira, policy: Faulty) -> None:
    """One run, and a look at its ending."""
    run = hira.stream(QUESTION, files=[ASEAN / "members.md"])
    async with asyncio.timeout(60):
        await run.work()
    record, where = run.answer.rollout, (policy.fault, policy.made)
    assert record.status in {"answered", "unverified", "insufficient_evidence", "partial", "failed"}, where
    assert record.failure is None or isinstance(record.failure, EndpointError | OutOfBudget), (record.error, where)
    for role, bound in hira.workflow.bound(Sizes()).items():
        calls = sum(one.usage.calls for one in record.trajectories.values() if one.role == role)
        assert calls <= bound.calls, (role, where)
    assert record.answer or record.failure, ("neither an answer nor a reason", where)
