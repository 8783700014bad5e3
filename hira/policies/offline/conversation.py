"""What a request holds for the offline policy, and how its reply is written in the dialect the request expects."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hira.dialects.dialect import Call
from hira.dialects.tags import tag
from hira.messages import Filled, Message, ToolCall
from hira.policy import Request
from hira.untrusted import clean

NOTICES = frozenset({"result", "repeated", "unreadable", "empty", "conclude", "record_again"})
_CALLABLE = ("subtask", "search", "browse", "python", "look", "files")


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
    tools: frozenset[str] = frozenset()
    request: Request = field(default=Request(()))

    def value(self, name: str) -> str:
        """A value as plain text that can form no token, empty if the prompt has none of that name."""
        value = self.values.get(name) or ""
        return str(value) if isinstance(value, Filled) else clean(str(value))

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
        bool(since) and since[-1].prompt == "conclude",
        _tools(request, task),
        request,
    )


def _tools(request: Request, task: Message) -> frozenset[str]:
    """The names of the tools that may be called: native ones by their definition, others by their opening token."""
    if request.tools:
        return frozenset(str(tool["function"]["name"]) for tool in request.tools)
    told = "\n".join([*request.stop, *(value for value in task.values.values() if isinstance(value, Filled))])
    marks = {name: (tag(name).begin, tag(name).end, tag(name).result_begin) for name in _CALLABLE}
    return frozenset(name for name, tokens in marks.items() if any(token in told for token in tokens))


def write(act: Act, asked: Asked) -> tuple[str, tuple[ToolCall, ...]]:
    """The act as text and native calls, whichever the request takes."""
    if asked.request.tools:
        number = len(asked.request.messages)
        calls = tuple(
            ToolCall(f"call_{number}_{at}", name, json.dumps(_named(name, arguments, asked), ensure_ascii=False))
            for at, (name, arguments) in enumerate(act.calls, 1)
        )
        return act.text, calls
    return "\n".join([act.text, *(_written(name, arguments) for name, arguments in act.calls)]).strip(), ()


def _named(name: str, arguments: Mapping[str, str], asked: Asked) -> dict[str, str]:
    """The arguments as the tool names them: the only one goes to the parameter that it needs, whatever it is called."""
    specs = {one["function"]["name"]: one["function"] for one in asked.request.tools}
    parameters = specs.get(name, {}).get("parameters", {})
    fields = [*parameters.get("required", ()), *parameters.get("properties", ())]
    if len(arguments) == 1 and fields and not set(arguments) & set(fields):
        return {fields[0]: next(iter(arguments.values()))}
    return dict(arguments)


def _written(name: str, arguments: Mapping[str, str]) -> str:
    """A call in special tokens: the bare value where it is one line of plain text or a program, else one object."""
    marks, values = tag(name), list(arguments.values())
    bare = len(values) == 1 and values[0] and values[0] == values[0].strip() and not values[0].startswith(("{", "```"))
    body = values[0] if bare else json.dumps(dict(arguments), ensure_ascii=False)
    return f"{marks.begin} {body} {marks.end}"
