"""Hooks of a program: they see each tool call and each turn, change or refuse it, and leave a record that replays."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from later import needs

from hira import Context, Hira, Hooks, Refusal, ToolUse, tool
from hira.agents.loop import Loop
from hira.agents.run_context import RunContext
from hira.core.errors import EndpointError, HookError, UsageError
from hira.core.events import ToolEnded
from hira.core.hooks import TurnInput
from hira.core.messages import Message, user
from hira.core.policy import Completion
from hira.journal import Journal
from hira.runtime.replay import replay
from hira.runtime.settings import McpSettings, Settings
from hira.testing import Endpoint, ScriptedPolicy, calling
from hira.tools import Observation
from hira.tools.python import refusal

SHELF = Path(__file__).parent / "tools" / "mcp_server.py"


@pytest.fixture
def ships() -> dict[str, int]:
    return {"Husum": 2, "Tönning": 5}


@tool
async def count_ships(ctx: Context[dict[str, int]], harbour: str) -> str:
    """How many ships lie in a harbour."""
    return f"{ctx.deps[harbour]} ships lie in {harbour}, says Ada Brand"


def ask_endpoint(endpoint: Endpoint, hooks: Hooks, **more: Any) -> Hira:
    """A `Hira` whose one role, the reasoner of react, is the endpoint."""
    settings = Settings(model=endpoint.model, base_url=endpoint.base_url, workflow="react", verify="lexical")
    return Hira(settings=settings, tools=[count_ships], hooks=hooks, **more)


def read_by_model(endpoint: Endpoint, request: int) -> str:
    turns = [one.body["messages"] for one in endpoint.requests if one.method == "POST"]
    return "\n".join(str(one["content"]) for one in turns[request])


async def test_hooks_change_arguments_results_prompts_and_replies(ships: dict[str, int]) -> None:
    seen: list[ToolUse[dict[str, int]]] = []

    def spell(call: ToolUse[dict[str, int]]) -> dict[str, Any]:
        seen.append(call)
        return {"harbour": call.arguments["harbour"].replace("oe", "ö")}

    hooks = Hooks(
        before_tool=spell,
        after_tool=lambda _, found: found.change_texts(lambda text: text.replace("Ada Brand", "the harbour master")),
        before_turn=lambda turn: [*turn.messages, user(f"You are the {turn.role}.")],
        after_turn=lambda _, reply: replace(reply, text=reply.text.replace("Five", "About five")),
    )
    with Endpoint([calling("count_ships", harbour="Toenning"), r"\boxed{Five ships.}"]) as endpoint:
        async with ask_endpoint(endpoint, hooks, deps=ships) as hira:
            answer = await hira.ask("How many ships are in Tönning?")
        prompts = [read_by_model(endpoint, at) for at in (0, 1)]
    (call,) = seen
    assert (call.name, call.role, call.context.deps) == ("count_ships", "reasoner", ships)
    assert call.context.question == "How many ships are in Tönning?"
    assert "5 ships lie in Tönning, says the harbour master" in prompts[1]
    assert [prompt.count("You are the reasoner.") for prompt in prompts] == [1, 1], "a change holds for one turn"
    assert answer.text == "About five ships."
    assert [one.location for one in answer.sources] == ['tool:count_ships({"harbour": "Tönning"})']
    assert "Ada Brand" not in str(answer.sources)


async def test_the_model_reads_why_a_hook_refused_a_call_a_result_or_a_reply(ships: dict[str, int]) -> None:
    async def guard(call: ToolUse) -> Refusal | None:
        return Refusal("Husum is closed today") if call.arguments["harbour"] == "Husum" else None

    hooks = Hooks(
        before_tool=guard,
        after_tool=lambda _, found: Refusal("it names a person") if "Ada" in found.text else None,
        after_turn=lambda _, reply: Refusal("it shouts") if reply.text.isupper() else None,
    )
    calls = [calling("count_ships", harbour=name) for name in ("Husum", "Tönning")]
    with Endpoint([*calls, "TWO SHIPS!", r"\boxed{I cannot say.}"]) as endpoint:
        async with ask_endpoint(endpoint, hooks, deps=ships) as hira:
            answer = await hira.ask("How many ships?")
        _, refused, withheld, shouted = (read_by_model(endpoint, at) for at in range(4))
    assert "The call of count_ships was refused: Husum is closed today" in refused
    assert "The result of count_ships was withheld: it names a person" in withheld
    assert shouted.endswith("TWO SHIPS!\nThis reply was refused: it shouts\n\nWrite it again without that.")
    assert (answer.text, answer.sources, answer.rollout.usage.calls) == ("I cannot say.", (), 4)


@pytest.mark.parametrize(
    ("hooks", "asked", "says"),
    [
        (Hooks(after_turn=lambda *_: Refusal("never")), 3, "after_turn refused the reply: 3 replies in a row"),
        (
            Hooks(before_turn=lambda _: Refusal("no prompts on Sundays")),
            0,
            "before_turn refused the prompt: no prompts",
        ),
    ],
    ids=["every reply", "the prompt"],
)
async def test_a_turn_that_is_refused_for_good_fails(hooks: Hooks, asked: int, says: str) -> None:
    with Endpoint(["Two ships."] * 3) as endpoint:
        async with ask_endpoint(endpoint, hooks, deps={}) as hira:
            with pytest.raises(EndpointError, match=says):
                await hira.ask("How many ships?")
        assert sum(one.method == "POST" for one in endpoint.requests) == asked


@pytest.mark.parametrize("in_place", [False, True], ids=["returned", "changed in place"])
async def test_arguments_that_a_hook_changes_may_contain_no_secret(in_place: bool) -> None:
    key = "sk-harbour-0123456789"

    def leak(call: ToolUse) -> dict[str, Any] | None:
        if not in_place:
            return {"harbour": key}
        call.arguments["harbour"] = key  # type: ignore[index]
        return None

    with Endpoint([calling("count_ships", harbour="Husum"), r"\boxed{I cannot say.}"]) as endpoint:
        async with ask_endpoint(endpoint, Hooks(before_tool=leak), deps={key: 7}, api_key=key) as hira:
            answer = await hira.ask("How many ships?")
        assert "contains a secret of this machine" in read_by_model(endpoint, 1)
    assert not answer.sources


def fail(*_: object) -> None:
    raise KeyError("harbour")


@pytest.mark.parametrize(
    ("hooks", "says"),
    [
        (Hooks(before_tool=fail), "the hook before_tool failed: KeyError: 'harbour'"),
        (Hooks(after_tool=fail), "the hook after_tool failed"),
        (Hooks(before_turn=fail), "the hook before_turn failed"),
        (Hooks(after_turn=fail), "the hook after_turn failed"),
        (Hooks(before_tool=lambda _: 5), "the hook before_tool returned 5"),  # type: ignore[arg-type,return-value]
        (Hooks(before_turn=lambda _: "no"), "the hook before_turn returned 'no'"),  # type: ignore[arg-type,return-value]
    ],
)
async def test_a_hook_that_fails_ends_the_run_with_an_error_that_names_it(hooks: Hooks, says: str) -> None:
    script = {
        "planner": [calling("subtask", task="Count the ships"), "Two ships."],
        "coordinator": ['{"reason": "", "expert": "code"}'] * 3,
        "code": [calling("count_ships", harbour="Husum"), "Two ships."],
    }
    settings = Settings(verify="lexical", journal=None)
    policies = {"*": ScriptedPolicy(script)}
    async with Hira(settings=settings, policies=policies, tools=[count_ships], hooks=hooks, deps={"Husum": 2}) as hira:
        with pytest.raises(HookError, match=says):
            await hira.ask("How many ships?")


def test_what_is_no_hook_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="`hooks` must be Hooks"):
        Hira("offline", hooks=fail)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the hook after_turn must be a function"):
        Hira("offline", hooks=Hooks(after_turn="now"))  # type: ignore[arg-type]


def leave(_: object = None) -> str:
    """End the run as a program does that is ended."""
    task = asyncio.current_task()
    assert task
    task.cancel()
    raise asyncio.CancelledError


class Harbour:
    """A tool and hooks that keep what they were asked; the call that is written first takes longest in its hook."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.hooked: list[str] = []
        self.tool = tool(self.note, name="note_ship")

    async def note(self, ship: str) -> str:
        """Note a ship in the log."""
        self.made.append(ship)
        return f"{ship} is noted"

    async def before(self, call: ToolUse) -> dict[str, Any] | Refusal:
        self.hooked.append(call.arguments["ship"])
        await asyncio.sleep({"Ada": 0.2, "Bert": 0.1}.get(call.arguments["ship"], 0.0))
        return Refusal("it has sunk") if call.arguments["ship"] == "Cora" else {"ship": call.arguments["ship"].upper()}

    def after(self, _: ToolUse, seen: Observation) -> str:
        return f"{seen.text}!"

    def turn(self, turn: TurnInput) -> list[Message]:
        self.hooked.append(f"{turn.role} reads")
        return [replace(one, text=one.text.replace("ships", "vessels")) for one in turn.messages]

    def reply(self, _: TurnInput, reply: Completion) -> Completion:
        self.hooked.append("reply")
        return replace(reply, text=reply.text.replace("Done", "All done"))

    @property
    def hooks(self) -> Hooks:
        return Hooks(before_tool=self.before, after_tool=self.after, before_turn=self.turn, after_turn=self.reply)

    def hira(self, journal: Path, *script: Any) -> tuple[Hira, ScriptedPolicy]:
        policy = ScriptedPolicy(list(script))
        settings = Settings(verify="lexical", journal=journal)
        return Hira(
            settings=settings, workflow=Clerk(), policies={"*": policy}, tools=[self.tool], hooks=self.hooks
        ), policy


class Clerk:
    """A workflow whose one role may make several calls in a turn."""

    name = "clerk"

    async def run(self, question: str, context: RunContext) -> str:
        conversation = context.conversation("clerk")
        conversation.say(user(question))
        return (await Loop(conversation, context.tools.extra, several=3, final=True).run()).answer


def three_calls() -> Completion:
    calls = [calling("note_ship", ship=name).calls[0] for name in ("Ada", "Bert", "Cora")]
    return Completion("", calls=tuple(calls))


async def test_a_run_with_hooks_is_resumed_without_calling_them_again_and_replays(tmp_path: Path) -> None:
    journal, first, second = tmp_path / "journal.sqlite", Harbour(), Harbour()
    hira, _ = first.hira(journal, three_calls(), leave)
    async with hira:
        run = hira.stream("Note the ships.")
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(run.finish())
    assert sorted(first.made) == ["ADA", "BERT"]
    async with replace(hira, hooks=Hooks(before_tool=first.before)) as other:
        with pytest.raises(UsageError, match="hook before_turn"):
            await other.resume(run.id)
    hira, policy = second.hira(journal, r"\boxed{Done.}")
    async with hira:
        answer = await (await hira.resume(run.id)).finish()
    assert answer.text == "All done."
    assert (second.made, second.hooked) == ([], ["reply"])
    (request,) = policy.requests
    read = "\n".join(one.text for one in request.messages)
    assert "Note the vessels." in read
    assert [f"{name} is noted!" in read for name in ("ADA", "BERT")] == [True, True]
    assert "refused: it has sunk" in read
    opened = Journal(journal)
    again = await replay(opened, run.id, Clerk())
    opened.close()
    assert (again.ends, again.answer.text) == ("", "All done.")


async def test_what_other_runs_brought_is_not_taken_past_a_hook_nor_what_it_changed_by_them(tmp_path: Path) -> None:
    made: list[str] = []

    @tool
    def depth(lake: str) -> str:
        """The depth of a lake."""
        made.append(lake)
        return f"{lake} is 251 metres deep"

    async def read(hooks: Hooks) -> str:
        policy = ScriptedPolicy([calling("depth", lake="Bodensee"), r"\boxed{251 metres.}"])
        journal = tmp_path / "journal.sqlite"
        settings = Settings(workflow="react", verify="lexical", journal=journal, cache_responses=True)
        async with Hira(settings=settings, policies={"*": policy}, tools=[depth], hooks=hooks) as hira:
            run = hira.stream("How deep?")
            text = [event.text async for event in run if isinstance(event, ToolEnded)]
        return text[0]

    assert "251 metres" in await read(Hooks())
    assert "not today" in await read(Hooks(before_tool=lambda _: Refusal("not today")))
    assert len(made) == 1
    masked = Hooks(after_tool=lambda _, seen: seen.change_texts(lambda text: text.replace("251", "many")))
    assert "many metres" in await read(masked)
    before = len(made)
    assert "251 metres" in await read(Hooks())
    assert len(made) == before  # taken from the first run


async def test_a_call_whose_hook_failed_is_not_made_again_but_its_result_goes_through_the_corrected_hook(
    tmp_path: Path,
) -> None:
    made: list[str] = []

    @tool
    def note(ship: str) -> str:
        """Note a ship in the log."""
        made.append(ship)
        return f"{ship} is noted by Ada Brand"

    def hira(after: Any, *script: Any) -> tuple[Hira, ScriptedPolicy]:
        policy = ScriptedPolicy(list(script))
        settings = Settings(workflow="react", verify="lexical", journal=tmp_path / "journal.sqlite")
        return Hira(settings=settings, policies={"*": policy}, tools=[note], hooks=Hooks(after_tool=after)), policy

    first, _ = hira(fail, calling("note", ship="Cora"))
    async with first:
        run = first.stream("Note it.")
        with pytest.raises(HookError):
            await run.finish()
    second, policy = hira(lambda _, seen: seen.change_texts(lambda text: text.replace("Ada", "B.")), r"\boxed{Done.}")
    async with second:
        await (await second.resume(run.id)).finish()
    assert made == ["Cora"]
    assert "Cora is noted by B. Brand" in policy.requests[0].messages[-1].text


@pytest.mark.skipif(bool(refusal()), reason="nothing would hold Python code back here")
async def test_hooks_see_programs_and_a_resumed_run_repeats_the_changed_ones(tmp_path: Path) -> None:
    def double(call: ToolUse) -> dict[str, Any]:
        return {"code": call.arguments["code"].replace("x = 3", "x = 6")}

    def hira(*script: Any) -> Hira:
        settings = Settings(workflow="codeact", verify="lexical", journal=tmp_path / "journal.sqlite")
        return Hira(settings=settings, policies={"*": ScriptedPolicy(list(script))}, hooks=Hooks(before_tool=double))

    async with hira(calling("python", code="x = 3"), leave) as first:
        run = first.stream("What is x?")
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(run.finish())
    replies = [calling("python", code="print(x * 7)"), lambda request: f"\\boxed{{{request.messages[-1].text}}}"]
    async with hira(*replies) as second:
        answer = await (await second.resume(run.id)).finish()
    assert "42" in answer.text


async def test_hooks_see_a_pure_call_of_each_role_though_its_result_would_be_shared() -> None:
    seen: list[str] = []

    @tool(pure=True)
    def depth(lake: str) -> str:
        """The depth of a lake."""
        return f"{lake} is 251 metres deep"

    def guard(call: ToolUse) -> Refusal | None:
        seen.append(call.context.question)
        return Refusal("asked before") if len(seen) > 1 else None

    task = [calling("depth", lake="Bodensee"), "251 metres."]
    script = {
        "planner": [calling("subtask", task="One?"), calling("subtask", task="Two?"), "251 metres."],
        "coordinator": ['{"reason": "", "expert": "code"}', '{"conclusion": "251 metres"}'] * 2,
        "code": [*task, *task],
    }
    policy = ScriptedPolicy(script)
    settings = Settings(verify="lexical", journal=None)
    hooks = Hooks(before_tool=guard)
    async with Hira(settings=settings, policies={"*": policy}, tools=[depth], hooks=hooks) as hira:
        await hira.ask("How deep?")
    assert seen == ["How deep?"] * 2
    told = [one.messages[-1].text for one in policy.requests if one.conversation == "2/code"]
    assert "refused: asked before" in told[-1]


@needs("mcp")
async def test_hooks_see_the_tools_of_mcp_servers() -> None:
    def elsewhere(call: ToolUse) -> dict[str, Any] | None:
        return {"path": "mill.txt"} if call.name == "shelf_read_note" else None

    server = McpSettings(command=sys.executable, args=(str(SHELF),))
    with Endpoint([calling("shelf_read_note", path="bridge.txt"), r"\boxed{1742}"]) as endpoint:
        settings = Settings(model=endpoint.model, base_url=endpoint.base_url, workflow="react", mcp={"shelf": server})
        async with Hira(settings=settings, hooks=Hooks(before_tool=elsewhere)) as hira:
            await hira.ask("When was the mill built?")
        assert "mill.txt: The mill" in read_by_model(endpoint, 1)
