"""A run as one self-contained web page: the page's own files and the run's data, in one file.

Texts of models and web pages are data: the page contains them as JSON that can form no tag, its script inserts them as
text, and a policy in its head blocks other scripts and all requests.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from hira.core.page import make_standalone_page, read_beside
from hira.core.policy import Usage, fields_of
from hira.evidence import Citation, Source
from hira.journal.encoding import spell_value
from hira.runtime.trace.reading import Reading, ReadTool, ReadTurn

IDLE = 5.0
"""Seconds without any call after which the run was interrupted; the page leaves such gaps out."""


def page(reading: Reading) -> str:
    title = " ".join(reading.entry.question.split())[:80] or reading.entry.id
    body = f"""<noscript>This page shows its run by a program of its own; it needs JavaScript.</noscript>
<div id="page"></div>
<script type="application/json" id="data">{embed_json(data(reading))}</script>"""
    style, script = (read_beside(__file__, name) for name in ("page.css", "page.js"))
    return make_standalone_page(title, body, style=style, script=script, images=True)


def embed_json(value: Any) -> str:
    """Encode the value as JSON for a script element: no part of it ends the element or begins a comment."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=spell_value)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def data(reading: Reading) -> dict[str, Any]:
    """Return the data of the page. Times are seconds since the run began, without the gaps before it was resumed."""
    entry, clock = reading.entry, Clock(reading)
    known = [subtask.id for subtask in reading.subtasks]
    names = dict.fromkeys(step.conversation for step in reading.steps)
    conversations = [_conversation(reading, name, clock) for name in names]
    ends = {name: _end(conversations, name) for name in known}
    return {
        "run": {
            "id": entry.id,
            "question": entry.question,
            "status": entry.state,
            "answer": entry.answer,
            "error": entry.error,
            "workflow": entry.workflow,
            "models": list(dict.fromkeys(turn.model for turn in reading.turns)),
            "versions": entry.versions,
            "began": entry.began,
            "span": clock.span,
            "gaps": clock.gaps,
            **_format_usage(reading.usage),
        },
        "subtasks": [_subtask(reading, index, conversations) for index in range(len(known))],
        "conversations": conversations,
        "memory": [{**asdict(entry), "at": ends.get(entry.subtask, clock.span)} for entry in reading.remembered],
        "citations": [{**asdict(citation), "why": citation.explain()} for citation in reading.rollout.citations],
        "sources": [_source(source, reading.rollout.citations) for source in reading.rollout.sources.read.values()],
        "notices": reading.rollout.notices,
    }


class Clock:
    """Seconds of the run by seconds since the epoch; `gaps` are where it had been interrupted, and for how long."""

    def __init__(self, reading: Reading) -> None:
        turns = [(turn.began, turn.began + turn.seconds) for turn in reading.turns]
        spans = sorted([*turns, *((tool.began, tool.began + tool.seconds) for tool in reading.tools if tool.began)])
        self.gaps: list[dict[str, float]] = []
        self._cuts: list[tuple[float, float]] = []
        self._first = last = spans[0][0] if spans else 0.0
        left_out = 0.0
        for begin, end in spans:
            if begin - last > IDLE:
                left_out += begin - last
                self._cuts.append((begin, left_out))
                self.gaps.append({"at": last - self._first - left_out + begin - last, "seconds": begin - last})
            last = max(last, end)
        self.span = round(last - self._first - left_out, 3)

    def count_seconds(self, moment: float) -> float:
        left_out = next((out for begin, out in reversed(self._cuts) if moment >= begin), 0.0)
        return round(max(0.0, moment - self._first - left_out), 3)


def _format_usage(usage: Usage) -> dict[str, Any]:
    return {
        "calls": usage.calls,
        "prompt": usage.prompt_tokens,
        "completion": usage.completion_tokens,
        "cost": usage.cost,
    }


def _subtask(reading: Reading, index: int, conversations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    subtask = reading.subtasks[index]
    steps = [step for each in conversations if each["subtask"] == subtask.id for step in each["steps"]]
    begin = min((step["at"] for step in steps), default=0.0)
    return {
        **asdict(subtask),
        "at": begin,
        "took": round(_end(conversations, subtask.id) - begin, 3),
        **_format_usage(reading.usage_of(subtask.id)),
    }


def _end(conversations: Sequence[Mapping[str, Any]], subtask: str) -> float:
    steps = (step for each in conversations if each["subtask"] == subtask for step in each["steps"])
    return max((float(step["at"] + step["took"]) for step in steps), default=0.0)


def _conversation(reading: Reading, name: str, clock: Clock) -> dict[str, Any]:
    """A conversation's turns, each followed by the calls of tools that it led to."""
    turns = [turn for turn in reading.turns if turn.conversation == name]
    tools = [tool for tool in reading.tools if tool.conversation == name]
    steps: list[dict[str, Any]] = [_tool(tool, clock, 0.0) for tool in tools if tool.after < 1]
    for number, turn in enumerate(turns, 1):
        steps.append(_turn(turn, turns[number - 2] if number > 1 else None, clock))
        end = steps[-1]["at"] + steps[-1]["took"]
        steps += [_tool(tool, clock, end) for tool in tools if tool.after == number]
    end = steps[-1]["at"] if steps else 0.0
    steps += [_tool(tool, clock, end) for tool in tools if tool.after > len(turns)]
    role = turns[0].role if turns else name.rpartition("/")[2]
    return {"name": name, "role": role, "subtask": reading.subtask_of((turns or tools)[0]), "steps": steps}


def _turn(turn: ReadTurn, before: ReadTurn | None, clock: Clock) -> dict[str, Any]:
    added = turn.request.messages[turn.kept :]
    if before and before.completion and added and added[0].role == "assistant":
        repeats = added[0].text.strip().startswith(before.completion.text.strip())
        added = added[1:] if repeats else added
    reply = fields_of(turn.completion) if turn.completion else {}
    return {
        "kind": "turn",
        "role": turn.role,
        "model": turn.model,
        "at": clock.count_seconds(turn.began),
        "took": round(turn.seconds, 3),
        "kept": turn.kept,
        "added": [
            {name: getattr(message, name) for name in ("role", "text", "calls", "media", "prompt")} for message in added
        ],
        "reply": {name: reply[name] for name in ("text", "reasoning", "calls", "finish", "stop")} if reply else None,
        "failure": turn.failure,
        **_format_usage(turn.usage),
    }


def _tool(tool: ReadTool, clock: Clock, otherwise: float) -> dict[str, Any]:
    return {
        "kind": "tool",
        "name": tool.name,
        "arguments": dict(tool.arguments),
        "at": clock.count_seconds(tool.began) if tool.began else otherwise,
        "took": round(tool.seconds, 3),
        "ok": tool.ok,
        "text": tool.text,
    }


def _source(source: Source, citations: Sequence[Citation]) -> dict[str, Any]:
    return {
        "id": source.id,
        "kind": source.kind,
        "title": source.title,
        "location": source.location,
        "parts": parts(
            source.text,
            [(index, citation.quote) for index, citation in enumerate(citations) if citation.source == source.id],
        ),
    }


def parts(text: str, quotes: Sequence[tuple[int, str]]) -> list[tuple[str, list[int]]]:
    """Split the text into pieces, each with the numbers of the citations that quote it, whatever their spaces."""
    passages = ((number, passage.split()) for number, quote in quotes for passage in quote.split(" … "))
    patterns = ((number, r"\s+".join(map(re.escape, words))) for number, words in passages if words)
    spans = [(*match.span(), number) for number, pattern in patterns if (match := re.search(pattern, text))]
    edges = sorted({0, len(text), *(edge for begin, end, _ in spans for edge in (begin, end))})
    return [
        (text[begin:end], [number for first, last, number in spans if first <= begin and end <= last])
        for begin, end in pairwise(edges)
    ]
