"""`hira show`: a recorded run in the terminal."""

import argparse
import json
from collections.abc import Iterator

from hira.cli import OK
from hira.cli.output import format_source
from hira.cli.progress import brief, format_usage
from hira.cli.runs import as_json, day, open_journal, took
from hira.cli.shell import Shell
from hira.runtime.trace import Reading, ReadSubtask, ReadTool, ReadTurn, read
from hira.runtime.trace.reading import belongs

WIDTH = 110


def show(args: argparse.Namespace, shell: Shell) -> int:
    with open_journal(args, shell) as journal:
        reading = read(journal, args.run)
    if args.json:
        shell.say(json.dumps(_as_json(reading), ensure_ascii=False, indent=2, default=str))
    else:
        shell.say("\n".join(_lines(reading)))
    return OK


def _lines(reading: Reading) -> Iterator[str]:
    entry = reading.entry
    yield brief(entry.question, WIDTH)
    models = ", ".join(dict.fromkeys(turn.model for turn in reading.turns))
    yield " · ".join(part for part in (entry.id, day(entry.began), entry.workflow, models) if part)
    ended = f" · {took(entry.ended - entry.began)}" if entry.ended else ""
    yield f"{entry.state.replace('_', ' ')} · {format_usage(reading.usage)}{ended}"
    yield ""
    yield from _conversation(reading, "")
    for at, subtask in enumerate(reading.subtasks, 1):
        yield from _subtask(reading, subtask, last=at == len(reading.subtasks))
    for notice in reading.notices:
        yield f"note: {brief(notice, WIDTH)}"
    if entry.error:
        yield f"ended by: {brief(entry.error, WIDTH)}"
    if entry.answer:
        yield from ("", reading.answer.flagged)
    if reading.rollout.citations:
        yield ""
    for citation in reading.rollout.citations:
        yield f"{citation.verdict:<12}  {format_source(reading.rollout.sources.read[citation.source])} ({citation.by})"
        yield f"              {brief(citation.claim, WIDTH)}"
        if citation.quote:
            yield f"              “{brief(citation.quote, WIDTH)}”"


def _subtask(reading: Reading, subtask: ReadSubtask, *, last: bool) -> Iterator[str]:
    stem, under = ("└─ ", "   ") if last else ("├─ ", "│  ")
    yield f"{stem}{subtask.id}. {brief(subtask.text, WIDTH)}"
    parts = [
        subtask.expert or "not assigned",
        took(reading.span(subtask.id)),
        format_usage(reading.spent_on(subtask.id)),
    ]
    if subtask.recalled:
        parts.append(f"{subtask.recalled} from memory")
    yield f"{under}├─ {' · '.join(parts)}" + (f" · {brief(subtask.reason, 60)}" if subtask.reason else "")
    for line in _conversation(reading, subtask.id):
        yield f"{under}│  {line}"
    outcome = "not done yet" if subtask.ok is None else subtask.conclusion
    yield f"{under}└─ {'' if subtask.ok is not False else 'failed: '}{brief(outcome, WIDTH)}"


def _conversation(reading: Reading, subtask: str) -> Iterator[str]:
    """The turns and tool calls of a subtask, in order of time; of the planner, if the name is empty."""
    known = {one.id for one in reading.subtasks}
    steps: list[ReadTurn | ReadTool] = [*reading.turns, *reading.tools]
    own = [step for step in steps if belongs(step.conversation, known) == subtask]
    for step in sorted(own, key=lambda step: step.began or float("inf")):
        if isinstance(step, ReadTurn):
            outcome = f"failed: {step.failure}" if step.failure else f"{step.usage.tokens:,} tokens"
            yield f"{step.role} · {outcome} · {took(step.seconds)}"
        else:
            called = ", ".join(map(str, step.arguments.values()))
            outcome = "" if step.ok else " · failed" if step.ok is False else " · not finished"
            yield f"  {step.name} {brief(called, 80)} · {took(step.seconds)}{outcome}"


def _as_json(reading: Reading) -> dict[str, object]:
    """The answer's JSON with the subtasks in full, the calls, and what ended the run."""
    answer = reading.answer.json()
    subtasks = [
        {
            "id": one.id,
            "text": one.text,
            "expert": one.expert,
            "reason": one.reason,
            "recalled": one.recalled,
            "conclusion": one.conclusion,
            "ok": one.ok,
            "seconds": round(reading.span(one.id), 3),
            "tokens": reading.spent_on(one.id).tokens,
            "cost": reading.spent_on(one.id).cost,
        }
        for one in reading.subtasks
    ]
    calls = [
        {"conversation": turn.conversation, "model": turn.model, "began": turn.began, "seconds": turn.seconds,
         "tokens": turn.usage.tokens, "cost": turn.usage.cost, "failure": turn.failure}
        for turn in reading.turns
    ]  # fmt: skip
    tools = [
        {"conversation": tool.conversation, "tool": tool.name, "arguments": dict(tool.arguments), "began": tool.began,
         "seconds": tool.seconds, "ok": tool.ok}
        for tool in reading.tools
    ]  # fmt: skip
    about = as_json(reading.entry, reading.usage)
    return {**answer, **about, "subtasks": subtasks, "turns": calls, "tools": tools, "notices": list(reading.notices),
            "error": reading.entry.error}  # fmt: skip
