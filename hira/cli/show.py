"""A recorded run: `hira show` prints it, `hira verify` checks its claims again, `hira trace` exports it."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hira.agents.model_verifier import ModelVerifier
from hira.cli import NO_EVIDENCE, OK
from hira.cli.export import PAGES, check_output_path, write_file
from hira.cli.output import describe_origin, format_source
from hira.cli.progress import format_duration, format_usage
from hira.cli.running import open_roles
from hira.cli.runs import as_json, day, open_journal
from hira.cli.shell import Shell, brief, format_json
from hira.core.errors import UsageError
from hira.core.sanitize import without_userinfo
from hira.evidence import Citation, find_lacking, is_accepted, is_refusal, verify_answer
from hira.evidence import verify as verify_lexically
from hira.runtime.answer_json import citations_as_json
from hira.runtime.endpoints import find_model
from hira.runtime.settings import OFF, Settings
from hira.runtime.spans import spans_of
from hira.runtime.trace import Reading, ReadSubtask, ReadTurn, read
from hira.runtime.trace.page import page

WIDTH = 110


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """The options of `show`, `verify` and `trace`. An option that a command lacks has its default."""

    run: str
    """The recorded run."""
    journal: str = ""
    json: bool = False
    output: str | None = None
    otel: str | None = None
    """The collector that `trace` sends spans to, empty for the configured one."""
    content: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


def _read(options: RecordOptions, shell: Shell) -> Reading:
    with open_journal(options.journal, shell) as journal:
        return read(journal, options.run)


def show(options: RecordOptions, shell: Shell) -> int:
    reading = _read(options, shell)
    shell.say(format_json(_as_json(reading)) if options.json else "\n".join(_lines(reading)))
    return OK


def _lines(reading: Reading) -> Iterator[str]:
    entry = reading.entry
    yield brief(entry.question, WIDTH)
    models = ", ".join(dict.fromkeys(turn.model for turn in reading.turns))
    yield " · ".join(part for part in (entry.id, day(entry.began), entry.workflow, models) if part)
    ended = f" · {format_duration(entry.ended - entry.began)}" if entry.ended else ""
    yield f"{entry.state.replace('_', ' ')} · {format_usage(reading.usage)}{ended}"
    yield ""
    yield from _conversation(reading, "")
    for number, subtask in enumerate(reading.subtasks, 1):
        yield from _subtask(reading, subtask, last=number == len(reading.subtasks))
    for notice in reading.rollout.notices:
        yield f"note: {brief(notice, WIDTH)}"
    if entry.error:
        yield f"ended by: {brief(entry.error, WIDTH)}"
    if entry.answer:
        yield from ("", reading.answer.flagged)
    if reading.rollout.citations:
        yield ""
    if reading.rollout.lacking:
        yield f"no supported claim mentions: {', '.join(reading.rollout.lacking)}"
    for citation in reading.rollout.citations:
        yield from _format_citation(reading, citation)


def _format_citation(reading: Reading, citation: Citation) -> Iterator[str]:
    source = reading.rollout.sources.read[citation.source]
    how = f", {describe_origin(citation.verdict)}" if citation.attributed else ""
    yield f"{citation.verdict:<12}  {format_source(source, [citation])} ({citation.by}{how})"
    yield f"              {brief(citation.claim, WIDTH)}"
    if missing := citation.explain():
        yield f"              {missing}"
    if citation.quote:
        yield f"              “{brief(citation.quote, WIDTH)}”"


def _subtask(reading: Reading, subtask: ReadSubtask, *, last: bool) -> Iterator[str]:
    stem, under = ("└─ ", "   ") if last else ("├─ ", "│  ")
    yield f"{stem}{subtask.id}. {brief(subtask.text, WIDTH)}"
    expert, recalled = subtask.expert or "not assigned", subtask.recalled
    parts = [expert, format_duration(reading.span(subtask.id)), format_usage(reading.usage_of(subtask.id))]
    parts += [f"{recalled} from memory"] if recalled else []
    yield f"{under}├─ {' · '.join(parts)}" + (f" · {brief(subtask.reason, 60)}" if subtask.reason else "")
    for line in _conversation(reading, subtask.id):
        yield f"{under}│  {line}"
    outcome = "not done yet" if subtask.ok is None else subtask.conclusion
    yield f"{under}└─ {'' if subtask.ok is not False else 'failed: '}{brief(outcome, WIDTH)}"


def _conversation(reading: Reading, subtask: str) -> Iterator[str]:
    """The turns and tool calls of a subtask, in order of time; of the planner, if the name is empty."""
    subtask_steps = [step for step in reading.steps if reading.subtask_of(step) == subtask]
    for step in sorted(subtask_steps, key=lambda step: step.began or float("inf")):
        if isinstance(step, ReadTurn):
            outcome = f"failed: {step.failure}" if step.failure else f"{step.usage.tokens:,} tokens"
            yield f"{step.role} · {outcome} · {format_duration(step.seconds)}"
        else:
            called = ", ".join(map(str, step.arguments.values()))
            outcome = "" if step.ok else " · failed" if step.ok is False else " · not finished"
            yield f"  {step.name} {brief(called, 80)} · {format_duration(step.seconds)}{outcome}"


def _as_json(reading: Reading) -> dict[str, object]:
    """The answer's JSON with the subtasks in full, the calls, and what ended the run."""
    answer = reading.answer.json()
    subtasks = []
    for subtask in reading.subtasks:
        usage, seconds = reading.usage_of(subtask.id), round(reading.span(subtask.id), 3)
        subtasks.append({**asdict(subtask), "seconds": seconds, "tokens": usage.tokens, "cost": usage.cost})
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
    return {**answer, **about, "subtasks": subtasks, "turns": calls, "tools": tools, "error": reading.entry.error}


def verify(options: RecordOptions, shell: Shell) -> int:
    reading = _read(options, shell)
    record = reading.rollout
    citations: Sequence[Citation] = record.citations
    if options.settings.get("verify") == "lexical":
        citations = verify_lexically(record.answer, record.sources, record.question)
    elif options.settings.keys() & {"verify", "model", "base_url", "roles"}:
        settings = shell.load_settings(options.settings)
        citations, reasons = asyncio.run(verify_by_model(reading, settings, shell))
        for reason in reasons:
            shell.remark(f"not fully checked: {reason}")
    if options.json:
        rows = citations_as_json(citations, record.sources)
        shell.say_json({"run_id": reading.entry.id, "question": reading.entry.question, "citations": rows})
    elif not citations:
        shell.remark("the answer has no claims to check" if reading.entry.answer else "the run has no answer")
    for citation in () if options.json else citations:
        shell.say("\n".join(_format_citation(reading, citation)))
    lacking = find_lacking(citations, record.question) if citations is not record.citations else record.lacking
    if lacking and not options.json:
        shell.say(f"no supported claim mentions: {', '.join(lacking)}")
    accepted = is_accepted(citations) and not is_refusal(record.answer) and not lacking
    return OK if accepted else NO_EVIDENCE


async def verify_by_model(reading: Reading, settings: Settings, shell: Shell) -> tuple[list[Citation], list[str]]:
    """The citations as a model judges every claim, and the reasons why some are unchecked. Prints notices."""
    record = reading.rollout
    async with open_roles(await find_model(settings), shell.remark) as context:
        return await verify_answer(record.answer, record.sources, record.question, ModelVerifier(context))


def trace(options: RecordOptions, shell: Shell) -> int:
    reading = _read(options, shell)
    if options.output is None and options.otel is None:
        raise UsageError("no output is named", fix="name the page with -o FILE, or a collector with --otel")
    if options.output is not None:
        path = check_output_path(options.output, shell.folder, PAGES)
        write_file(path, page(reading))
        shell.remark(str(path))
    if options.otel is not None:
        endpoint = options.otel or shell.load_settings().otel
        if endpoint in ("", OFF):
            fix = "hira trace RUN --otel URL, or set OTEL_EXPORTER_OTLP_ENDPOINT"
            raise UsageError("no collector is named", fix=fix)
        try:
            from hira.runtime.telemetry import export, sender  # it needs an extra

            exporter = sender(endpoint)
        except ImportError:
            raise UsageError("spans cannot be exported", fix="pip install 'hira[otel]'") from None
        spans = spans_of(reading, content=options.content)
        export(reading.entry.id, spans, exporter, endpoint)
        shell.remark(f"{len(spans)} spans of run {reading.entry.id} sent to {without_userinfo(endpoint)}")
    return OK
