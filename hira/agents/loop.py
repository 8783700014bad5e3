"""The one loop: reason, write a call, get a result, go on. Planner, experts and every workflow run on it.

It ends with an answer in any case. At a limit, at the third repeat of a call, after two calls in a row that cannot be
read, or when the run has to stop, the model is told so once, after the last result, and asked for its answer.
"""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hira.dialects import Call, Parsed
from hira.dialects.answer import final
from hira.errors import Stop, ToolError
from hira.events import Notice, ToolEnded, ToolStarted
from hira.evidence import CITED
from hira.messages import Filled, user
from hira.prompts import Prompt
from hira.team import Conversation
from hira.tools.tool import Observation, Tool

PASSAGE = Prompt(__file__, "passage")
REPEATED = Prompt(__file__, "repeated")
UNREADABLE = Prompt(__file__, "unreadable")
EMPTY = Prompt(__file__, "empty")
CONCLUDE = Prompt(__file__, "conclude")

REPEATS = 3
UNREADABLE_IN_A_ROW = 2


@dataclass(frozen=True, slots=True)
class Step:
    """One accepted turn: `calls` to make, or none and `text` is what the model closes with.

    `forced` says why the model had to close, empty if it did so by itself.
    """

    text: str
    calls: tuple[Call, ...] = ()
    forced: str = ""

    @property
    def answer(self) -> str:
        return final(self.text)


@dataclass(slots=True)
class Loop:
    """A role at work with tools. `limit` counts accepted calls, `several` how many one turn may hold."""

    conversation: Conversation
    tools: Sequence[Tool]
    limit: int = 10
    several: int = 1
    conclude: Prompt = CONCLUDE
    used: int = 0
    repeats: int = 0
    unreadable: int = 0
    transcript: list[str] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    async def run(self) -> Step:
        """Think and act until the model closes."""
        step = await self.think()
        while step.calls:
            results = await asyncio.gather(*(self.perform(call) for call in step.calls))
            self.observe(list(zip(step.calls, results, strict=True)))
            step = await self.think()
        return step

    async def think(self) -> Step:
        """Turns until one is accepted: a new call that can be read, or the end."""
        while True:
            if self.used >= self.limit:
                return await self.close(f"all {self.limit} calls are used")
            if self.repeats >= REPEATS:
                return await self.close("the same call was repeated")
            if self.unreadable >= UNREADABLE_IN_A_ROW:
                return await self.close("your calls could not be read")
            try:
                parsed = await self._turn(self.several)
            except Stop as stop:
                return await self.close(stop.what)
            if parsed.error:
                self.unreadable += 1
                self._tell(parsed, UNREADABLE.fill(error=Filled(parsed.error)))
            elif not parsed.text and not parsed.calls:
                self.unreadable += 1
                self._tell(parsed, EMPTY.fill())
            elif any(self._key(call) in self._seen for call in parsed.calls):
                self.repeats += 1
                self._tell(parsed, REPEATED.fill(left=self.limit - self.used))
            else:
                return self._accept(parsed)

    async def close(self, reason: str) -> Step:
        """Ask for the answer from what is known; the reserve of the budget pays for it."""
        self._notice(f"{self.conversation.name}: {reason}; asking for the answer")
        self.conversation.say(user(self.conclude.fill(reason=reason)))
        completion = await self.conversation.turn(last=True)
        parsed = self.conversation.part.dialect.parse(completion, self.tools, self.several)
        self.conversation.say(parsed.message)
        self.transcript.append(parsed.text)
        return Step(parsed.text, forced=reason)

    def observe(self, results: Sequence[tuple[Call, str]], notice: Filled | None = None) -> None:
        """Bring the results back into the conversation, in the order of the calls."""
        conversation = self.conversation
        self.transcript += [f"[{call.name}] {text}" for call, text in results]
        messages = conversation.part.dialect.results(results, notice)
        if conversation.part.continuation == "chain":
            conversation.carry_on("".join(f"\n\n{message.text}\n\n" for message in messages))
        else:
            conversation.say(*messages)

    async def perform(self, call: Call) -> str:
        """Run one call and render what it saw. A tool that cannot do it says so to the model; nothing is raised."""
        team = self.conversation.team
        called = next(tool for tool in self.tools if tool.name == call.name)
        team.events(ToolStarted(self.conversation.name, call.name, call.arguments))
        began, good = time.monotonic(), True
        try:
            text = self.show(await team.unless_stopped(called.call(call.arguments)))
        except (ToolError, Stop) as error:
            text, good = Filled(f"{call.name} failed: {error}"), False
        team.events(ToolEnded(self.conversation.name, call.name, good, text, round(time.monotonic() - began, 3)))
        return text

    def show(self, observation: Observation) -> Filled:
        """An observation as the model reads it; each passage enters the run's sources and is shown with its id."""
        return show(observation, self.conversation)

    async def _turn(self, several: int) -> Parsed:
        part = self.conversation.part
        completion = await self.conversation.turn(
            stop=part.dialect.stops(self.tools, several), tools=part.dialect.specs(self.tools)
        )
        return part.dialect.parse(completion, self.tools, several)

    def _accept(self, parsed: Parsed) -> Step:
        calls = parsed.calls[: self.limit - self.used]
        self.used += len(calls)
        self.unreadable = 0
        self._seen.update(map(self._key, calls))
        self._keep(parsed)
        self.transcript.append(parsed.text)
        self.transcript += [f"[calls {call.name}] {_spelled(call.arguments)}" for call in calls]
        return Step(parsed.text, calls)

    def _keep(self, parsed: Parsed) -> None:
        if self.conversation.part.continuation == "chain":
            self.conversation.carry_on(parsed.message.text)
        else:
            self.conversation.say(parsed.message)

    def _tell(self, parsed: Parsed, notice: Filled) -> None:
        """Answer a turn that was not accepted; an endpoint wants a result for every native call all the same."""
        self._keep(parsed)
        self._notice(f"{self.conversation.name}: {notice}")
        pairs = [(Call(call.name, {}, call.id), str(notice)) for call in parsed.message.calls]
        self.observe(pairs, None if pairs else notice)

    def _notice(self, text: str) -> None:
        self.conversation.team.events(Notice(text))

    @staticmethod
    def _key(call: Call) -> str:
        return f"{call.name} {_spelled(call.arguments).casefold()}"


def show(observation: Observation, conversation: Conversation) -> Filled:
    shown = [observation.text] if observation.text else []
    for passage in observation.passages:
        source = conversation.team.read(passage.source)
        shown.append(
            PASSAGE.fill(id=source.id, title=source.title, location=source.location, text=CITED.sub("", passage.text))
        )
    return Filled("\n\n".join(shown) or "nothing found")


def _spelled(arguments: Mapping[str, object]) -> str:
    if len(arguments) == 1:
        (value,) = arguments.values()
        if isinstance(value, str):
            return " ".join(value.split())
    return json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True, default=str)


