"""What a request holds for the offline policy, and how its reply is written in the dialect the request expects."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hira.dialects import DIALECTS, Call
from hira.errors import UsageError
from hira.messages import Filled, Message, ToolCall
from hira.policies.offline.following import standing
from hira.policy import Request
from hira.tools.tool import Tool
from hira.untrusted import clean

CONCLUDING = frozenset({"conclude", "matpo_planner_summary", "matpo_worker_summary", "react_report_close"})
NOTICES = CONCLUDING | {"result", "repeated", "unreadable", "empty", "record_again", "mams_begin"}
ASKS = frozenset({"question", "task", "query"})
"""Values that ask something."""


@dataclass(frozen=True, slots=True)
class Act:
    """What a role does next: says `text`, and makes `calls`, each a tool's name and its arguments."""

    text: str
    calls: tuple[tuple[str, Mapping[str, str]], ...] = ()


@dataclass(frozen=True)
class Asked:
    """The request as a role reads it.

    `prompt` and `values` are those of the last message that set a task; `results` everything that came back since,
    in order; `concluding` if no further call can be made.
    """

    prompt: str
    values: Mapping[str, Any]
    text: str
    results: tuple[tuple[Call, str], ...] = ()
    concluding: bool = False
    request: Request = field(default=Request(()))

    def value(self, name: str) -> str:
        """A value as plain text that can form no token, empty if the prompt has none of that name.

        A question that continues a conversation stands alone in it; in what was read, a conversation is only told.
        """
        value = self.values.get(name) or ""
        text = str(value) if isinstance(value, Filled) else clean(str(value))
        return standing(text) if name in ASKS else text

    def number(self, name: str, otherwise: int) -> int:
        """The first whole number in a value."""
        found = re.search(r"\d+", self.value(name))
        return int(found[0]) if found else otherwise

    def listed(self, name: str, inner: str) -> list[str]:
        """The entries of a list that stands in a value's own prompt: attached files, recalled notes."""
        filled = self.values.get(name)
        if not isinstance(filled, Filled):
            return []
        lines = str(filled.values.get(inner, "")).splitlines()
        return [line.removeprefix("- ").strip() for line in lines if line.strip()]

    @property
    def files(self) -> list[str]:
        return self.listed("files", "files")

    @property
    def notes(self) -> list[str]:
        return self.listed("known", "notes")

    @cached_property
    def told(self) -> Mapping[str, Any]:
        """The name of the dialect and the tools, as the last instructions for calling have them; empty without any."""
        return next(filter(None, (_instructed(one.values) for one in reversed(self.request.messages))), {})

    @property
    def tools(self) -> frozenset[str]:
        """The names of the tools that may be called: native ones by their definition, others by the instructions."""
        native = [str(tool["function"]["name"]) for tool in self.request.tools]
        return frozenset(native or [tool.name for tool in self.told.get("callable", ())])

    @cached_property
    def brought(self) -> dict[tuple[str, str], str]:
        """What each call brought, by the tool's name and its arguments; calls that were not made are absent."""
        return {(call.name, key): text for call, text in self.results if (key := spelled(call.arguments))}


def spelled(arguments: Mapping[str, Any]) -> str:
    """The arguments of a call with their white space folded: what tells two calls of one tool apart."""
    return " ".join(" ".join(map(str, arguments.values())).split())


def read(request: Request) -> Asked:
    """Find the task of a request and what came back for it."""
    task, at = Message("user", ""), -1
    for place, message in reversed(list(enumerate(request.messages))):
        if message.role in ("user", "system") and message.prompt not in NOTICES:
            task, at = message, place
            if message.role == "user":
                break
    since = request.messages[at + 1 :]
    results = [pair for message in since if message.prompt == "result" for pair in message.values.get("results", ())]
    return Asked(
        task.prompt,
        task.values,
        str(task.text),
        tuple(results),
        bool(since) and since[-1].prompt in CONCLUDING,
        request,
    )


def _instructed(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values of the instructions for calling among these values, or within one of them; empty if there are none."""
    inner = [value.values for value in values.values() if isinstance(value, Filled)]
    own = next((one for one in inner if "callable" in one), None)
    return own or next(filter(None, map(_instructed, inner)), {})


def write(act: Act, asked: Asked) -> tuple[str, tuple[ToolCall, ...]]:
    """The act as text and native calls, whichever the request takes; a call of what it does not show is only told."""
    shown = {one["function"]["name"]: one["function"].get("parameters", {}) for one in asked.request.tools}
    tools: dict[str, Tool] = {} if shown else {tool.name: tool for tool in asked.told.get("callable", ())}
    shown |= {name: tool.parameters for name, tool in tools.items()}
    calls = [Call(name, _named(arguments, shown[name])) for name, arguments in act.calls if name in shown]
    missing = [f"This request shows no tool named {name}." for name, _ in act.calls if name not in shown]
    if tools:
        if (named := asked.told["dialect"]) not in DIALECTS:
            raise UsageError(
                f"offline writes no calls in the dialect {named!r}", fix=f"use one of {', '.join(DIALECTS)}"
            )
        dialect = DIALECTS[named]
        written = [dialect.write(call, tools[call.name]) for call in calls]
        return "\n".join([act.text, *missing, *written]).strip(), ()
    number = len(asked.request.messages)
    native = [
        ToolCall(f"call_{number}_{at}", call.name, json.dumps(call.arguments, ensure_ascii=False))
        for at, call in enumerate(calls, 1)
    ]
    return "\n".join([act.text, *missing]).strip(), tuple(native)


def _named(arguments: Mapping[str, str], parameters: Mapping[str, Any]) -> dict[str, str]:
    """The arguments as the tool names them: the only one goes to the parameter that it needs, whatever it is called."""
    fields = [*parameters.get("required", ()), *parameters.get("properties", ())]
    if len(arguments) == 1 and fields and not set(arguments) & set(fields):
        return {fields[0]: next(iter(arguments.values()))}
    return dict(arguments)
