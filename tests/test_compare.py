"""One question to several workflows at once: shared searches and pages, faults that stay with their own workflow."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hira.core.errors import EndpointError, UsageError
from hira.core.policy import Completion, Policy, Request
from hira.evidence.verifiers import count_held
from hira.runtime.compare import Compared, comparison
from hira.runtime.settings import Settings
from hira.testing import FakeWeb, ScriptedPolicy, calling

LIBRARY = Path(__file__).parent / "data" / "library"
QUESTION = "Who was the last keeper of Skerry Point?"


def settings(**more: Any) -> Settings:
    return Settings(model="offline", journal=None, cache=None, workflows={"hira": {"faithful": True}}, **more)


async def compared(
    settings: Settings, names: Sequence[str], *, policy: Policy | None = None, stop: bool = False
) -> list[Compared]:
    policies = {"*": policy} if policy else None
    async with comparison(settings, names, QUESTION, policies=policies) as under_way:
        if stop:
            under_way.stop()
        return [one async for one in under_way.each()]


QUERY = "last keeper of Skerry Point"
PAGE = "<article><p>The last keeper of Skerry Point was Agnes Halloran, who left in 1983. " + "He rowed. " * 60


def reply(request: Request) -> str | Completion:
    """Both workflows search for the same words and read the same page."""
    role, turn = request.conversation.rpartition("/")[2], len(request.messages)
    if role == "planner":
        return calling("subtask", task=QUESTION) if turn == 1 else r"\boxed{Agnes Halloran [s1]}"
    if role == "report":
        call = calling("search", query=QUERY.upper())
        return call if turn == 1 else r"\boxed{The last keeper was Agnes Halloran [s1].}"
    prompt = request.messages[-1].prompt
    if prompt == "assign":
        return '{"reason": "a page states it", "expert": "simple_search"}'
    if prompt == "simple_search_plan":
        return f'{{"queries": ["{QUERY}"]}}'
    if prompt == "simple_search_answer":
        return "The last keeper was Agnes Halloran [s1]."
    return '{"reasoning": "Looked.", "conclusion": "The last keeper was Agnes Halloran [s1]."}'


async def test_workflows_share_searches_and_pages_and_answer_with_their_own_citations_and_costs() -> None:
    def read_page(request: Request) -> str | Completion:
        if request.conversation == "report" and len(request.messages) == 3:
            place = request.messages[-1].values["results"][0][1].split("(", 1)[1].split(")")[0]
            return calling("browse", url=place, intent="the keeper")
        return reply(request)

    with FakeWeb({"/skerry": PAGE}) as web:
        found = settings(search="searxng", searxng_url=web.url, allowed_hosts=(web.host,))
        both = await compared(found, ["hira", "react-report"], policy=ScriptedPolicy(read_page))
        assert len(web.searches) == [visit.path for visit in web.visits].count("/skerry") == 1
        await compared(found, ["hira"], policy=ScriptedPolicy(reply))
        assert len(web.searches) == 2, "another comparison searches again"
    by_name = {one.workflow: one for one in both}
    for name, one in by_name.items():
        assert (one.answer.status, one.answer.rollout.workflow) == ("answered", name)
        held, claims = count_held(one.answer.citations)
        assert held == claims >= 1
        assert one.seconds > 0
    assert by_name["hira"].answer.rollout.usage.calls > by_name["react-report"].answer.rollout.usage.calls


@pytest.mark.parametrize(
    ("failure", "error"),
    [(EndpointError("it is gone"), "it is gone"), (ValueError("a bug"), "a fault in hira: ValueError: a bug")],
)
async def test_a_workflow_that_fails_leaves_the_others_alone(failure: Exception, error: str) -> None:
    def fail(request: Request) -> str | Completion:
        if request.conversation == "planner":
            raise failure
        return reply(request)

    with FakeWeb({"/skerry": PAGE}) as web:
        found = settings(search="searxng", searxng_url=web.url, allowed_hosts=(web.host,))
        both = await compared(found, ["hira", "react-report"], policy=ScriptedPolicy(fail))
    ended = {one.workflow: one.answer for one in both}
    assert ended["hira"].status == "failed"
    assert error in ended["hira"].error
    assert ended["react-report"].status == "answered"


async def test_workflows_run_side_by_side() -> None:
    begun: set[str] = set()
    all_there = asyncio.Event()

    class Waiting:
        model = "waiting"

        async def complete(self, request: Request, watch: Any = None) -> Completion:
            begun.add(request.conversation)
            if begun >= {"planner", "report"}:
                all_there.set()
            await asyncio.wait_for(all_there.wait(), 10)
            return Completion(r"\boxed{done}")

        async def aclose(self) -> None:
            pass

    found = await compared(settings(docs=(LIBRARY,)), ["hira", "react-report"], policy=Waiting())
    assert len(found) == 2


async def test_a_comparison_that_is_stopped_ends_with_what_is_known() -> None:
    found = await compared(settings(docs=(LIBRARY,)), ["hira", "react-report"], stop=True)
    assert {one.answer.status for one in found} == {"interrupted"}


@pytest.mark.parametrize(
    ("names", "more", "told"),
    [
        (["hira", "reakt-report"], {}, "unknown workflow 'reakt-report'"),
        ([], {}, "there is no workflow to compare"),
        (["hira"], {"roles": {"plannr": {"model": "offline"}}}, "unknown role 'plannr'"),
    ],
)
async def test_what_is_wrong_is_told_before_anything_is_asked(names: list[str], more: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        await compared(settings(docs=(LIBRARY,), **more), names)
