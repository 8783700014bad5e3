"""A request as a role of `offline` reads it, and what the role does next, written in the dialect of the run."""

import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hira.core.messages import Filled, Message, ToolCall
from hira.core.policy import Request
from hira.core.sanitize import clean
from hira.policies.dialects import Call

NOTICES = frozenset(
    "result repeated unreadable empty cut record_again mams_begin conclude matpo_planner_summary matpo_worker_summary"
    " react_report_close".split()
)
"""Prompts that set no task."""
ASKING = ("purpose", "task", "subtask", "question", "query", "topic", "problem")
"""Values that ask something, the first that a prompt has."""

Calls = Sequence[tuple[str, Mapping[str, Any]]]
Program = Generator[Calls, list[str], str]
"""The way of a role through its work: yields calls, is sent their results, and returns the last word."""


@dataclass(frozen=True, slots=True)
class Act:
    """The next step of a role: it says `text` and makes `calls`, each a tool's name and its arguments."""

    text: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(frozen=True)
class OfflineRequest:
    """A request as a role reads it: the last prompt that sets a task, its values, and what calls have brought since."""

    prompt: str
    values: Mapping[str, Any]
    text: str = ""
    results: tuple[tuple[Call, str], ...] = ()
    request: Request = field(default=Request(()))

    @property
    def closing(self) -> bool:
        return self.request.choose == "none"

    def value(self, name: str) -> str:
        """A value as plain text, empty if the prompt has none of that name."""
        value = self.values.get(name) or ""
        return str(value) if isinstance(value, Filled) else clean(str(value))

    def number(self, name: str, otherwise: int) -> int:
        """The first whole number in a value."""
        found = re.search(r"\d+", self.value(name))
        return int(found[0]) if found else otherwise

    def list_entries(self, name: str, inner: str) -> list[str]:
        """The entries of a list in a value that is a prompt itself: attached files, recalled notes."""
        filled = self.values.get(name)
        lines = str(filled.values.get(inner, "")).splitlines() if isinstance(filled, Filled) else []
        return [line.removeprefix("- ").strip() for line in lines if line.strip()]

    @property
    def question(self) -> str:
        """The question, without earlier turns of a conversation and without instructions after it."""
        named = next(filter(None, map(self.value, ASKING)), self.text)
        asked = " ".join(named.partition("\n\n")[0].split())
        return match[0] if (match := re.match(r".*[?？]", asked)) else asked

    @property
    def files(self) -> list[str]:
        return self.list_entries("files", "files")

    @property
    def tools(self) -> dict[str, Mapping[str, Any]]:
        """The parameters of each tool that may be called, by its name."""
        offered = [tool["function"] for tool in self.request.callable_tools or self.request.tools]
        return {one["name"]: one.get("parameters", {}) for one in offered}


def read_request(request: Request) -> OfflineRequest:
    """Find the task of a request and what came back for it."""
    task, at = Message("user", ""), -1
    for place, message in reversed(list(enumerate(request.messages))):
        if message.role in ("user", "system") and message.prompt not in NOTICES:
            task, at = message, place
            if message.role == "user":
                break
    since = request.messages[at + 1 :]
    results = [pair for message in since if message.prompt == "result" for pair in message.values.get("results", ())]
    first = request.messages[0].values if request.messages else {}
    return OfflineRequest(task.prompt, {**first, **task.values}, str(task.text), tuple(results), request)


def write_act(act: Act, asked: OfflineRequest) -> tuple[str, tuple[ToolCall, ...]]:
    """The act as text and native calls, whichever the dialect takes. The text names a tool that is not offered."""
    write, number = asked.request.write_call, len(asked.request.messages)
    lines, calls = [act.text], list[ToolCall]()
    for at, (name, arguments) in enumerate(act.calls, 1):
        if name not in asked.tools:
            lines.append(f"This request offers no tool named {name}.")
        elif write and (written := write(name, arguments)):
            lines.append(written)
        else:
            calls.append(ToolCall(f"call_{number}_{at}", name, json.dumps(dict(arguments), ensure_ascii=False)))
    return "\n".join(lines).strip(), tuple(calls)


def advance(program: Program, asked: OfflineRequest) -> Act:
    """Return the next step of a role: its first calls without a result in the conversation, or its last word."""
    several, left = asked.number("several", 1), asked.number("limit", 10) - len(asked.results)
    known = {(call.name, spell(call.arguments)): text for call, text in asked.results}
    try:
        calls = next(program)
        while True:
            brought = [known.get((name, spell(arguments))) for name, arguments in calls]
            todo = [call for call, text in zip(calls, brought, strict=True) if text is None][
                : max(0, min(several, left))
            ]
            if todo and not asked.closing:
                return Act("I look for what is asked.", tuple(todo))
            calls = program.send([text or "" for text in brought])
    except StopIteration as end:
        return Act(str(end.value))


def spell(arguments: Mapping[str, Any]) -> str:
    """The arguments of a call with folded white space, to tell two calls of one tool apart."""
    return " ".join(" ".join(map(str, arguments.values())).split())
