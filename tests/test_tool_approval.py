"""A person approves single calls of tools: before they are made, once, on record, in a program and over HTTP."""

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from hira import Hira, Refusal, ToolUse, tool
from hira.core.budget import Budget
from hira.core.errors import HookError, UsageError
from hira.core.events import ApprovalAwaited, CallApproved, CallRefused, Event
from hira.core.messages import ToolCall
from hira.core.policy import Completion, Request
from hira.journal import Journal
from hira.runtime.replay import replay
from hira.runtime.settings import Settings, load
from hira.testing import ScriptedPolicy, calling
from hira.testing.script import make_context
from hira.tools import Toolbox
from hira.workflows import WORKFLOWS, rollout


class Shop:
    """Orders things, and a person who decides on what is ordered."""

    def __init__(self, *decisions: Any) -> None:
        self.decisions, self.asked, self.ordered = list(decisions), [], []
        self.tool = tool(self.order, needs_approval=True)
        self.crashes = False

    async def order(self, thing: str, number: int = 1) -> str:
        """Order something."""
        if self.crashes:
            leave()
        self.ordered.append(f"{number} {thing}")
        return f"{number} {thing} ordered"

    async def approve(self, use: ToolUse) -> ToolUse | Refusal:
        self.asked.append(dict(use.arguments))
        decide = self.decisions.pop(0)
        return decide(use) if callable(decide) else decide or use

    def hira(self, script: list[Any], journal: Path | None = None) -> tuple[Hira, ScriptedPolicy]:
        policy = ScriptedPolicy(script)
        settings = Settings(workflow="react", verify="lexical", journal=journal)
        policies = {"*": policy}
        return Hira(settings=settings, policies=policies, tools=[self.tool], approve_tool=self.approve), policy


def leave(_: object = None) -> str:
    """End the run as a program does that is ended."""
    task = asyncio.current_task()
    assert task
    task.cancel()
    raise asyncio.CancelledError


async def test_a_function_that_approves_and_fails_is_named_with_its_cause() -> None:
    def fail(_: object) -> None:
        raise KeyError("no such person")

    hira, _ = Shop(fail).hira([calling("order", thing="tea")])
    async with hira:
        with pytest.raises(HookError, match=r"approve_tool, asked about a call of 'order', failed: KeyError: 'no such"):
            await hira.ask("Order tea.")


async def begin(hira: Hira) -> str:
    """Begin a run that ends as the program does, and return its id."""
    async with hira:
        run = hira.stream("Order what we need.")
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(run.finish())
    return run.id


async def test_a_call_is_made_as_the_person_lets_it_and_the_model_reads_the_reason_of_a_refusal() -> None:
    shop = Shop(None, Refusal("too expensive"), lambda use: replace(use, arguments={"thing": "boat", "number": 2}))
    calls = [calling("order", thing=name) for name in ("rope", "yacht", "boat")]
    hira, policy = shop.hira([*calls, r"\boxed{Done.}"])
    async with hira:
        heard: list[Event] = [event async for event in hira.stream("Order what we need.")]
    assert shop.ordered == ["1 rope", "2 boat"]
    assert [one["thing"] for one in shop.asked] == ["rope", "yacht", "boat"]
    assert "The call of order was refused: too expensive" in policy.requests[2].messages[-1].text
    told = [type(one).__name__ for one in heard if isinstance(one, ApprovalAwaited | CallApproved | CallRefused)]
    assert told == [
        "ApprovalAwaited",
        "CallApproved",
        "ApprovalAwaited",
        "CallRefused",
        "ApprovalAwaited",
        "CallApproved",
    ]
    assert [one.changed for one in heard if isinstance(one, CallApproved)] == [False, True]


async def test_a_resumed_run_asks_nobody_again_and_replays(tmp_path: Path) -> None:
    journal, first, second = tmp_path / "journal.sqlite", Shop(None, Refusal("no")), Shop(None)
    hira, _ = first.hira([calling("order", thing="rope"), calling("order", thing="yacht"), leave], journal)
    run = await begin(hira)
    hira, _ = second.hira([calling("order", thing="rope"), r"\boxed{Done.}"], journal)
    async with hira:
        await (await hira.resume(run)).finish()
    assert (first.ordered, second.ordered) == (["1 rope"], ["1 rope"])
    assert second.asked == [{"thing": "rope"}]  # the same call is another one
    opened = Journal(journal)
    assert (await replay(opened, run)).same
    opened.close()


async def test_the_record_shows_what_was_asked_also_where_the_person_changes_it_in_place(tmp_path: Path) -> None:
    path, sent = tmp_path / "journal.sqlite", list[str]()

    @tool(needs_approval=True)
    def send(to: list[str]) -> str:
        """Send a letter."""
        sent.extend(to)
        return "sent"

    def approve(use: ToolUse) -> ToolUse:
        use.arguments["to"].append("Berta")
        return use

    settings, policies = (
        Settings(workflow="react", journal=path),
        {"*": ScriptedPolicy([calling("send", to=["Ada"]), "Done."])},
    )
    async with Hira(settings=settings, policies=policies, tools=[send], approve_tool=approve) as hira:
        await hira.ask("Send it?")
    query = "select request from calls where name = 'person'"
    with closing(sqlite3.connect(path)) as journal:
        ((request,),) = journal.execute(query)
    assert (sent, json.loads(request)["arguments"]) == (["Ada", "Berta"], {"to": ["Ada"]})


async def test_arguments_nested_too_deeply_are_an_error_that_the_model_reads(tmp_path: Path) -> None:
    def reply(request: Request) -> Any:
        nested = ToolCall("1", "order", '{"thing":' + "[" * 600 + "]" * 600 + "}")
        return "Done." if len(request.messages) > 3 else Completion("", calls=(nested,), finish="calls")

    policy = ScriptedPolicy(reply)
    settings = Settings(workflow="react", journal=tmp_path / "journal.sqlite")
    async with Hira(settings=settings, policies={"*": policy}, tools=[tool(Shop().order)]) as hira:
        assert (await hira.ask("Order it?")).text == "Done."
    assert "wrong arguments for order" in policy.requests[-1].messages[-1].text


@pytest.mark.parametrize("of_folder", [False, True], ids=["own journal", "journal of the folder"])
async def test_what_was_approved_before_a_crash_is_asked_about_again_only_where_the_folder_names_the_journal(
    tmp_path: Path, of_folder: bool
) -> None:
    journal, first, second = tmp_path / "journal.sqlite", Shop(None), Shop(Refusal("I never said so"))
    first.crashes = True
    hira, _ = first.hira([calling("order", thing="rope")], journal)
    run = await begin(hira)
    hira, policy = second.hira([r"\boxed{Done.}"], journal)
    if of_folder:
        (tmp_path / "hira.toml").write_text('journal = "journal.sqlite"\nworkflow = "react"\n', encoding="utf-8")
        hira.settings = load({"verify": "lexical"}, {}, tmp_path, tmp_path / "home")
    async with hira:
        await (await hira.resume(run)).finish()
    assert (second.ordered, second.asked) == (([], [{"thing": "rope"}]) if of_folder else (["1 rope"], []))
    assert ("I never said so" in policy.requests[0].messages[-1].text) is of_folder


async def test_the_time_a_person_takes_counts_in_no_budget() -> None:
    async def slow(use: ToolUse) -> ToolUse:
        await asyncio.sleep(1.2)
        return use

    shop = Shop()
    policy = ScriptedPolicy([calling("order", thing="rope"), r"\boxed{Done.}"])
    tools, budget = Toolbox(extra=(shop.tool,)), Budget(seconds=1.0)
    context = make_context(policy, tools=tools, budget=budget, approve_tool=slow, dialect="native")
    record = await rollout(WORKFLOWS["react"](), "Order a rope.", context)
    assert (record.failure, shop.ordered) == (None, ["1 rope"])


async def test_a_tool_that_needs_approval_is_refused_where_no_one_can_be_asked() -> None:
    settings = Settings(model="offline", workflow="react")
    with pytest.raises(UsageError, match="approve calls of 'order', and no one can be asked"):
        async with Hira(settings=settings, tools=[Shop().tool]):
            pass


async def test_a_secret_in_the_reason_of_a_refusal_is_neither_sent_nor_recorded(tmp_path: Path) -> None:
    hira, policy = Shop().hira([calling("order", thing="rope"), r"\boxed{Done.}"])
    hira.approve_tool = lambda _: Refusal("the shop says: key sk-of-the-shop is over its limit")  # it may be sync
    journal = tmp_path / "journal.sqlite"
    hira.settings = Settings(workflow="react", verify="lexical", journal=journal, api_key=SecretStr("sk-of-the-shop"))
    async with hira:
        run = (await hira.ask("Order a rope.")).rollout.run
    assert "is over its limit" in policy.requests[1].messages[-1].text
    opened = Journal(journal)
    assert "sk-of-the-shop" not in policy.requests[1].messages[-1].text + str([opened.calls(run), opened.events(run)])
    opened.close()


async def test_a_decision_that_is_none_ends_the_run() -> None:
    hira, _ = Shop(True).hira([calling("order", thing="rope"), "never"])
    async with hira:
        with pytest.raises(UsageError, match="returned True"):
            await hira.ask("Order a rope.")
