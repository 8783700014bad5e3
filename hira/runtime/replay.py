"""Going through a recorded run again, with nothing but the record: no model, no tool, no network, no documents."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from hira.agents.output_type import find_recorded_output
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.core.errors import ToolError, UsageError
from hira.core.events import Events, Notice, RunStarted
from hira.core.hooks import Hooks
from hira.core.messages import Media
from hira.core.policy import Completion, Policy, Request, Watch
from hira.evidence import Judgement, SourcedClaim
from hira.journal import Journal, NotRecorded
from hira.journal.encoding import validate
from hira.journal.records import Entry, decode_events
from hira.runtime.answer import Answer, answer_of
from hira.runtime.factory import configure_roles, make_run_options
from hira.runtime.registry import dialect_of, make_workflow
from hira.runtime.session import HANDED, HOOK, in_dialects
from hira.runtime.settings import Settings
from hira.runtime.settings.trust import code_of
from hira.runtime.trace.reading import read_earlier
from hira.tools import SINGLE, Observation, Tool, Toolbox
from hira.tools.python.tool import LATER
from hira.workflows import WORKFLOWS, Workflow, rollout


@dataclass(frozen=True, slots=True)
class Replay:
    """`events` are the recorded ones, as `--events` shows them; `answer` is what going through the record came to.

    `ends` says where the record ended early, empty if it led to the end.
    """

    entry: Entry
    events: list[dict[str, Any]]
    answer: Answer
    ends: str = ""

    @property
    def same(self) -> bool:
        """True if today's code reaches the recorded answer through the recorded calls."""
        return not self.ends and self.answer.text == self.entry.answer


@dataclass(frozen=True, slots=True)
class Silent:
    """A policy that has only its name; what it said is in the record."""

    model: str

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        del watch
        raise NotRecorded(f"the record does not contain this turn of {request.conversation!r}")

    async def aclose(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class AbsentVerifier:
    """A verifier that has only its name; what it said is in the record."""

    name: str

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> Sequence[Judgement]:
        del question
        raise NotRecorded(f"the record does not contain the verdicts of {self.name!r} on {len(claims)} claims")


async def _absent_hook(*_given: object) -> None:
    raise NotRecorded("the record does not contain what a hook returned here")


async def replay(journal: Journal, run: str, workflow: Workflow | None = None) -> Replay:
    """Repeat the run from its record. Pass `workflow` if the run used one of your own, or your own experts: a record
    cannot run code.

    Raises `UsageError` for a run that does not exist, and for one that needs `workflow`.
    """
    log = journal.replay(run)
    entry, events = journal.entry(log.run), journal.events(log.run)
    settings = settings_of(entry)
    started = next((event for event in decode_events(events) if isinstance(event, RunStarted)), None)
    policies: dict[str, Policy] = {role: Silent(model) for role, model in started.models.items()} if started else {}
    policies.setdefault("*", Silent(settings.model))
    if workflow is None and (code := find_needed_code(entry)):
        what = f"run {entry.id} used {', '.join(code_of(code))}, which a record cannot load"
        raise UsageError(what, fix="use hira replay, or give the workflow: replay(journal, run, workflow)")
    flow = workflow or make_workflow(settings)
    configs, _ = configure_roles(settings, policies, dialect=dialect_of(flow))
    roles = in_dialects(configs, log.dialects)
    record = Rollout(entry.id, entry.question, entry.workflow, began=entry.began)
    record.sources.reserved.update(log.sources)
    files = tuple(map(Path, entry.files))
    # what the hooks returned is in the record
    names = {name.removeprefix(HOOK) for name in entry.settings.get(HANDED, ()) if name.startswith(HOOK)}
    hooks = Hooks(**dict.fromkeys(names.intersection(Hooks.__dataclass_fields__), _absent_hook))
    verifier = AbsentVerifier(settings.verifier) if settings.verifier else None
    output = find_recorded_output(entry.settings)
    options = replace(make_run_options(settings, settings.verify or "lexical", verifier, hooks), output=output)
    tools = stand_ins(entry.tools)
    context = RunContext(roles, record, Events(), tools=tools, files=files, log=log, options=options)
    record.notices = [event.text for event in decode_events(events) if isinstance(event, Notice) and not event.passing]
    await rollout(flow, entry.question, context, read_earlier(journal, entry))
    ends = record.failure.what if isinstance(record.failure, NotRecorded) else ""
    return Replay(entry, events, answer_of(record, settings.model, output), ends)


def read_settings(entry: Entry) -> Mapping[str, Any]:
    """Return the settings of the run, without those of this machine: cache, journal, memory, reuse of
    replies, telemetry.

    If several workflows share their settings, as on a server, the run says which of them it used.
    """
    kept = {
        name: value
        for name, value in entry.settings.items()
        if name in Settings.model_fields
        and name not in ("cache", "journal", "cache_responses", "cache_responses_hours", "otel", "memory")
    }
    return {**kept, "workflow": entry.workflow} if entry.workflow in WORKFLOWS else kept


def find_needed_code(entry: Entry) -> Mapping[str, Any]:
    """Of the recorded settings those that name code of the user's own which a replay runs."""
    named = {name: value for name, value in read_settings(entry).items() if name in ("workflow", "experts")}
    return named if code_of(named) else {}


def settings_of(entry: Entry) -> Settings:
    return Settings(**read_settings(entry))


class _ToolRecord(TypedDict):
    name: str
    description: str
    parameters: dict[str, Any]
    pure: bool
    stateful: bool


class _ToolboxRecord(TypedDict, total=False):
    search: _ToolRecord
    scholar: _ToolRecord
    browse: _ToolRecord
    files: _ToolRecord
    python: _ToolRecord
    python_later: str
    media: bool
    visible: tuple[str, ...]
    extra: list[_ToolRecord]
    scoped: dict[str, list[_ToolRecord]]


def stand_ins(values: Mapping[str, Any]) -> Toolbox:
    """Return a toolbox that looks like the recorded one. The results of its tools have to come from the record."""
    record: Mapping[str, Any] = validate(_ToolboxRecord, values, "the tools of the run")

    async def refuse_call(_arguments: Mapping[str, Any]) -> Observation:
        raise ToolError("this is a replay, and the record does not contain this call")

    def refuse_media(path: str) -> Media:
        raise ToolError(f"this is a replay, which does not read {path!r}")

    def make(*records: Mapping[str, Any]) -> tuple[Tool, ...]:
        return tuple(Tool(**record, run=refuse_call) for record in records)

    @asynccontextmanager
    async def open_python(subtask: str) -> AsyncIterator[Tool]:
        (python,) = make(record["python"])
        later = record.get("python_later", python.description)  # older records have only one
        yield replace(python, description=later) if LATER.fullmatch(subtask) else python

    return Toolbox(
        **{name: make(record[name])[0] for name in SINGLE if name in record},
        python=open_python if record.get("python") else None,
        media=refuse_media if record.get("media") else None,
        visible=tuple(record.get("visible", ())),
        extra=make(*record.get("extra", ())),
        scoped={role: make(*tools) for role, tools in record.get("scoped", {}).items()},
        unread=[],
    )
