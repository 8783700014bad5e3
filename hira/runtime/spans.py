"""A recorded run as spans: run → subtask → turn or tool, with the attributes of the GenAI semantic conventions.

Prompts and replies are included only on request, as the conventions demand: they may be private.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from hira.core.messages import Message, assistant, user
from hira.core.policy import Finish, Usage, fields_of
from hira.policies.names import LITELLM, OFFLINE
from hira.runtime.trace.reading import Reading, ReadSubtask, ReadTool, ReadTurn

Value = str | int | float | bool | Sequence[str]
Attributes = dict[str, Value]
RUN = "run"
_FINISHES: Mapping[Finish, str] = {
    "stop": "stop", "length": "length", "calls": "tool_calls", "filtered": "content_filter",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time, in seconds since the epoch. `parent` is the id of what it was done for; `error` says
    how it failed; `remote` marks a call of a model."""

    id: str
    parent: str
    name: str
    began: float
    ended: float
    attributes: Attributes = field(default_factory=dict)
    error: str = ""
    remote: bool = False


def spans_of(reading: Reading, *, content: bool = False) -> list[Span]:
    """The run's spans, its own first. `content` adds questions, prompts, replies, arguments and results."""
    inner = [
        *(_turn(turn, reading, content=content) for turn in reading.turns),
        *(
            _tool(f"tool {number}", tool, reading.subtask_of(tool), content=content)
            for number, tool in enumerate(reading.tools)
            if tool.began
        ),
    ]
    subtasks = [
        made
        for subtask in reading.subtasks
        if (made := _subtask(subtask, [s for s in inner if s.parent == subtask.id], content))
    ]
    offered = {subtask.id for subtask in subtasks}
    inner = [span if span.parent in offered else replace(span, parent=RUN) for span in inner]
    return [_run(reading, [*subtasks, *inner], content=content), *subtasks, *inner]


def run_attributes(run: str, workflow: str) -> Attributes:
    return {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": workflow,
        "gen_ai.conversation.id": run,
    }


def subtask_attributes(expert: str, subtask: str) -> Attributes:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": expert, "hira.subtask": subtask}


def turn_attributes(role: str, conversation: str, model: str) -> Attributes:
    way, _, rest = model.partition("/")
    provider = "hira" if model == OFFLINE else rest.partition("/")[0] if f"{way}/" == LITELLM else "openai"
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.agent.name": role,
        "hira.conversation": conversation,
    }


def tool_attributes(name: str, conversation: str) -> Attributes:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "hira.conversation": conversation,
    }


def usage_attributes(usage: Usage) -> Attributes:
    record: Attributes = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
    }
    if usage.cached_tokens:
        record["gen_ai.usage.cache_read.input_tokens"] = usage.cached_tokens
    if usage.cost is not None:
        record["hira.cost"] = usage.cost
    return record


def _run(reading: Reading, inner: Sequence[Span], *, content: bool) -> Span:
    entry = reading.entry
    ended = max([entry.ended or entry.began, *(span.ended for span in inner)])
    record = run_attributes(entry.id, entry.workflow) | usage_attributes(reading.usage) | {"hira.status": entry.state}
    if content:
        record |= _exchange(entry.question, entry.answer)
    error = (entry.error or entry.state) if entry.state in ("failed", "interrupted") else ""
    return Span(RUN, "", f"invoke_workflow {entry.workflow}", entry.began, ended, record, error)


def _subtask(subtask: ReadSubtask, inner: Sequence[Span], content: bool) -> Span | None:  # noqa: FBT001
    """None for a subtask in which nothing was done."""
    if not inner:
        return None
    attributes = subtask_attributes(subtask.expert, subtask.id)
    if content:
        attributes |= _exchange(subtask.text, subtask.conclusion)
    began, ended = min(span.began for span in inner), max(span.ended for span in inner)
    error = (subtask.conclusion or "failed") if subtask.ok is False else ""
    return Span(subtask.id, RUN, f"invoke_agent {subtask.expert}".strip(), began, ended, attributes, error)


def _turn(turn: ReadTurn, reading: Reading, *, content: bool) -> Span:
    attributes = turn_attributes(turn.role, turn.conversation, turn.model)
    for name in ("temperature", "top_p", "top_k", "max_tokens", "seed"):
        if (value := getattr(turn.request.sampling, name)) is not None:
            attributes[f"gen_ai.request.{name}"] = value
    if turn.request.stop:
        attributes["gen_ai.request.stop_sequences"] = list(turn.request.stop)
    attributes["gen_ai.conversation.id"] = reading.entry.id
    if host := urlsplit(str(reading.entry.settings.get("base_url", ""))).hostname:
        attributes["server.address"] = host
    if content:
        attributes["gen_ai.input.messages"] = _json([_message(message) for message in turn.request.messages])
    if reply := turn.completion:
        attributes |= usage_attributes(reply.usage)
        attributes |= {
            "gen_ai.response.model": reply.model,
            "gen_ai.response.finish_reasons": [_FINISHES[reply.finish]],
        }
        if content:
            said = _message(assistant(reply.text, reply.calls), reply.reasoning)
            attributes["gen_ai.output.messages"] = _json([{**said, "finish_reason": _FINISHES[reply.finish]}])
    key, parent, end = f"turn {turn.conversation} {turn.position}", reading.subtask_of(turn), turn.began + turn.seconds
    return Span(key, parent, f"chat {turn.model}", turn.began, end, attributes, turn.failure, remote=True)


def _tool(key: str, tool: ReadTool, parent: str, *, content: bool) -> Span:
    attributes = tool_attributes(tool.name, tool.conversation)
    if content:
        attributes["gen_ai.tool.call.arguments"] = _json(dict(tool.arguments))
        attributes["gen_ai.tool.call.result"] = tool.text
    error = (tool.text or "failed") if tool.ok is False else ""
    return Span(key, parent, f"execute_tool {tool.name}", tool.began, tool.began + tool.seconds, attributes, error)


def _message(message: Message, thought: str = "") -> dict[str, Any]:
    """A message in the form of the conventions."""
    if message.role == "tool":
        part = {"type": "tool_call_response", "id": message.call_id, "response": message.text}
        return {"role": "tool", "parts": [part]}
    parts = [{"type": "reasoning", "content": thought}] if thought else []
    parts += [{"type": "text", "content": message.text}] if message.text else []
    parts += [{"type": part.kind} for part in message.media]
    parts += [{"type": "tool_call", **fields_of(call)} for call in message.calls]
    return {"role": message.role, "parts": parts}


def _exchange(question: str, answer: str) -> Attributes:
    return {
        "gen_ai.input.messages": _json([_message(user(question))]),
        "gen_ai.output.messages": _json([{**_message(assistant(answer)), "finish_reason": "stop"}]),
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
