"""A whole run of a workflow at an endpoint that misbehaves."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hira.agents.trajectory import Rollout
from hira.policies.openai import OpenAIPolicy
from hira.policies.retrying import Timeout, retrying
from hira.testing import Endpoint
from hira.testing.script import make_context
from hira.workflows import Workflow, rollout

AtAnEndpoint = Callable[..., Awaitable[Rollout]]


async def _run(
    workflow: Workflow, question: str, served: Any, fault: str, where: Callable[[int], bool], **context: Any
) -> Rollout:
    """The run with this fault for requests of these numbers, from 1, and what is `served` for the others."""

    async def at_once(seconds: float) -> None:
        del seconds
        await asyncio.sleep(0)

    with Endpoint(served, faults=lambda number: fault if where(number) else "") as endpoint:
        patience = Timeout(connect=0.3, first_token=0.4, between_tokens=0.2, reply=0.4)
        policy = OpenAIPolicy("scripted", endpoint.base_url, "sk-test", timeout=patience)
        record = await rollout(
            workflow, question, make_context(retrying(policy, sleep=at_once), dialect="native", **context)
        )
        await policy.aclose()
    return record


@pytest.fixture
def at_an_endpoint() -> AtAnEndpoint:
    return _run
