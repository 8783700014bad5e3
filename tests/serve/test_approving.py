"""Over HTTP and in the page: a run waits for decisions on its subtasks, and takes them."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from browser import Browser, missing
from serving import Served, get, go, post, served, until

from hira import tool
from hira.agents.trajectory import Rejected, Subtask
from hira.runtime.settings import KeySettings, Settings
from hira.server.keys import Client, RejectedRequest
from hira.server.runs import ApprovalQueue
from hira.testing import ScriptedPolicy, calling

QUESTION = "Who was the builder of the tower of Alta? Where did Edda Brand study?"


@pytest.fixture
def server(settings: Settings) -> Iterator[Served]:
    with served(settings) as one:
        yield one


def begun(server: Served, workflow: str = "hira") -> str:
    asked = {"question": QUESTION, "approve": True, "workflow": workflow}
    reply = post(f"{server.url}/api/runs", json=asked)
    assert reply.status_code == 201, reply.text
    return str(reply.json()["id"])


def decide(server: Served, run: str, *decisions: dict[str, Any], **more: Any) -> httpx.Response:
    """Send the decisions, again while the run does not wait for them yet, and return the reply."""
    deadline = time.monotonic() + 20
    while True:
        reply = post(f"{server.url}/api/runs/{run}/approve", json={"decisions": list(decisions)}, **more)
        if reply.status_code != 409 or time.monotonic() > deadline:
            return reply
        time.sleep(0.05)


def ended(server: Served, run: str, **more: Any) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while (told := get(f"{server.url}/api/runs/{run}", **more).json())["status"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return dict(told)


def test_a_run_waits_and_goes_on_with_what_was_decided(server: Served) -> None:
    run = begun(server)
    assert decide(server, run, {"id": "1", "text": "Who was the builder of the tower of Alta?"}).status_code == 200
    assert decide(server, run, {"id": "2"}).status_code == 200
    told = ended(server, run)
    assert "Lund" in told["answer"]["answer"]
    assert told["answer"]["subtasks"][0]["text"] == "Who was the builder of the tower of Alta?"


def test_a_decision_that_cannot_be_taken_is_refused_and_the_run_still_waits(server: Served) -> None:
    run = begun(server)
    assert decide(server, run, {"id": "1", "text": "  "}).status_code == 400, "it waits from here on"
    for body, status, says in (
        (b"{", 400, "write {"),
        (b'{"decisions": [{"id": "1", "text": "  "}]}', 400, "is empty"),
        (b'{"decisions": [{"id": "7"}]}', 409, "subtask '7' does not wait"),
        (b"[" * 200_000, 400, "write {"),
        (b'{"decisions": [{"id": "1", "text": "%s"}]}' % (b"x" * 500_000), 400, "more than 400,000"),
    ):
        sent = {"content": body, "headers": {"content-type": "application/json"}}
        reply = post(f"{server.url}/api/runs/{run}/approve", **sent)
        assert (reply.status_code, says in reply.json()["error"]["message"]) == (status, True), reply.text
    assert get(f"{server.url}/api/runs/{run}").json()["status"] == "running"


@tool(needs_approval=True)
def order(thing: str) -> str:
    """Order something."""
    return f"{thing} is ordered"


def asked_by_page(server: Served) -> str:
    return str(post(f"{server.url}/api/runs", json={"question": "Order a rope.", "workflow": "react"}).json()["id"])


def test_a_call_of_a_tool_waits_for_a_decision_and_is_refused_where_nobody_watches() -> None:
    script = [calling("order", thing="rope"), r"\boxed{It is ordered.}"]
    policy = ScriptedPolicy([*script, *script, calling("order", thing="rope"), r"\boxed{It is not ordered.}"])
    settings = Settings(workflow="react", verify="lexical", tools=(f"{__name__}:order",))
    with served(settings, {"*": policy}) as server:
        assert decide(server, asked_by_page(server), {"id": "call-1", "text": "7"}).status_code == 400
        run = list_runs(server)[0]
        assert decide(server, run, {"id": "call-1", "text": '{"thing": "boat"}'}).status_code == 200
        ended(server, run)
        assert "boat is ordered" in policy.requests[1].messages[-1].text
        run = asked_by_page(server)
        assert decide(server, run, {"id": "call-1", "rejected": "we have one"}).status_code == 200
        ended(server, run)
        assert "refused: we have one" in policy.requests[3].messages[-1].text
        body = {"model": "react", "messages": [{"role": "user", "content": "Order a rope."}]}
        assert post(f"{server.url}/v1/chat/completions", json=body).status_code == 200
        assert "no person can be asked to approve it" in policy.requests[5].messages[-1].text


def list_runs(server: Served) -> list[str]:
    return [str(one["id"]) for one in get(f"{server.url}/api/runs").json()["runs"]]


def test_a_run_that_nobody_approves_and_a_workflow_without_subtasks_are_refused(server: Served) -> None:
    run = post(f"{server.url}/api/runs", json={"question": QUESTION}).json()["id"]
    ended(server, run)
    reply = post(f"{server.url}/api/runs/{run}/approve", json={"decisions": [{"id": "1"}]})
    assert (reply.status_code, "does not ask for approval" in reply.text) == (409, True)
    reply = post(f"{server.url}/api/runs", json={"question": QUESTION, "approve": True, "workflow": "rag"})
    assert (reply.status_code, "has no subtasks to approve" in reply.text) == (400, True)


def test_a_run_that_waits_for_a_person_leaves_its_place_to_another_of_the_key(settings: Settings) -> None:
    keys = {"ada": KeySettings.model_validate({"key": "key-of-ada-1", "concurrency": 1})}
    ada, asked = {"authorization": "Bearer key-of-ada-1"}, {"question": QUESTION, "approve": True}
    with served(settings.with_values({"keys": keys}, "test")) as server:
        runs = [post(f"{server.url}/api/runs", json=asked, headers=ada).json()["id"] for _ in range(2)]
        for number in ("1", "2"):
            for run in runs:
                assert decide(server, run, {"id": number}, headers=ada).status_code == 200
        assert ["Lund" in str(ended(server, run, headers=ada)["answer"]) for run in runs] == [True, True]


async def test_complete_decisions_cannot_be_taken_back_while_the_run_waits_for_a_place() -> None:
    client = Client("ada", KeySettings.model_validate({"key": "key-of-ada-1", "concurrency": 1}), "t")
    queue, begun, over = ApprovalQueue(client), asyncio.Event(), asyncio.Event()

    async def ask() -> object:
        async with client.acquire():
            return await queue.approve([Subtask("1", "delete the old files")])

    async def hold_the_place() -> None:
        async with client.acquire():
            begun.set()
            await over.wait()

    asking, holding = asyncio.create_task(ask()), asyncio.create_task(hold_the_place())
    await begun.wait()
    queue.decide([{"id": "1", "rejected": "never"}])
    while queue.waiting:
        await asyncio.sleep(0)
    with pytest.raises(RejectedRequest, match="does not wait for a decision"):
        queue.decide([{"id": "1"}])
    over.set()
    assert await asking == [Rejected(Subtask("1", "delete the old files"), "never")]
    await holding


def test_a_run_that_was_stopped_while_it_waited_goes_on_waiting_when_it_is_resumed(server: Served) -> None:
    run = begun(server)
    assert decide(server, run, {"id": "1"}).status_code == 200
    post(f"{server.url}/api/runs/{run}/stop", json={})
    assert ended(server, run)["status"] == "interrupted"
    assert post(f"{server.url}/api/runs/{run}/resume", json={}).status_code == 201
    assert decide(server, run, {"id": "2"}).status_code == 200
    assert "Lund" in ended(server, run)["answer"]["answer"]


@pytest.mark.heavy
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_in_the_page_a_subtask_is_changed_in_a_form_and_another_rejected(driven: Browser, server: Served) -> None:
    go(driven, f"{server.url}/")
    driven.run(
        "document.getElementById('approve').click(); document.getElementById('question').value = arguments[0];"
        "document.getElementById('ask').requestSubmit()",
        QUESTION,
    )
    until(driven, "return document.querySelector('.decide textarea')?.value")
    assert driven.run("return document.querySelector('.status').textContent") == "waiting for you"
    assert driven.run("return document.activeElement.tagName") == "TEXTAREA"
    driven.run("location.reload()")
    until(driven, "return document.querySelector('.decide textarea')?.value")
    driven.run(
        "document.querySelector('.decide textarea').value = 'Who was the builder of the tower of Alta?';"
        "document.querySelector('.decide').requestSubmit()"
    )
    until(driven, "return document.querySelectorAll('.subtask').length === 2 && document.querySelector('.decide')")
    assert "Who was the builder" in driven.run("return document.querySelector('.subtask .head p').textContent")
    driven.size(390, 800)
    assert driven.run("return document.documentElement.scrollWidth") <= 390
    rejects = (  # what was rejected is tried otherwise, and waits again
        "const form = document.querySelector('.decide'); if (form && !form.querySelector('.reject').disabled) {"
        "form.querySelector('input').value = 'we know it'; form.querySelector('.reject').click(); }"
        "return document.querySelector('.answer:not([hidden])')?.textContent"
    )
    until(driven, rejects)
    assert "we know it" in driven.run("return document.querySelector('.tree').textContent")
    assert not driven.run("return document.querySelector('.decide')")
