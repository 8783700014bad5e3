"""A run read back from the journal: its rollout as it was, with the times that only the journal knows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

from hira.agents.history import CONTINUES, SENT, SUMMARY, Earlier
from hira.agents.output_type import OutputType, find_recorded_output
from hira.agents.role import OUTPUT
from hira.agents.trajectory import Finding, Rollout, Status, Subtask, Trajectory, Turn
from hira.core.errors import DialectError, HiraError, UsageError
from hira.core.events import (
    AnswerChecked,
    Event,
    Notice,
    Remembered,
    SubtaskApproved,
    SubtaskAssigned,
    SubtaskDone,
    SubtaskIssued,
    ToolEnded,
    ToolStarted,
    TurnStarted,
)
from hira.core.memory import DualMemory, Fact, Resource
from hira.core.messages import Message, read_message
from hira.core.policy import Completion, Request, Usage
from hira.evidence import Citation, Relevance, Sources, claims, find_lacking, verify
from hira.journal import Journal, NoRun, RecordedCall
from hira.journal.encoding import DamagedRecord, digest_of_tool, validate
from hira.journal.records import Entry, PassageRecord, decode_events, is_forced
from hira.policies.dialects.record import read_record
from hira.runtime.answer import Answer, answer_of

LONGEST_CHAT = 1_000
"""Turns of a conversation, the latest ones, that are read for a follow-up question."""


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """One policy call. `kept` is how many messages it shares with the conversation's previous one.

    `completion` is None for a call that failed; `failure` then says how.
    """

    conversation: str
    role: str
    position: int
    model: str
    request: Request
    kept: int
    completion: Completion | None
    failure: str
    began: float
    seconds: float

    @property
    def usage(self) -> Usage:
        return self.completion.usage if self.completion else Usage()


@dataclass(frozen=True, slots=True)
class ReadTool:
    """One call of a tool. `after` is the number of the conversation's turns that came before it.

    `began` is in seconds since the epoch, 0 where the journal has no record of the call itself.
    """

    conversation: str
    name: str
    arguments: Mapping[str, Any]
    after: int
    began: float = 0.0
    seconds: float = 0.0
    ok: bool | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class ReadSubtask:
    """A subtask; `ok` is None while it has not come back."""

    id: str
    text: str
    expert: str = ""
    reason: str = ""
    recalled: int = 0
    conclusion: str = ""
    ok: bool | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One run. `usage` is all that was paid for, used or not; `earlier` are the turns before it in its conversation."""

    entry: Entry
    rollout: Rollout
    turns: Sequence[ReadTurn]
    tools: Sequence[ReadTool]
    subtasks: Sequence[ReadSubtask]
    remembered: Sequence[Remembered]
    usage: Usage
    earlier: Earlier | None = None

    @property
    def answer(self) -> Answer:
        """The answer as it was given."""
        settings = self.entry.settings
        return answer_of(self.rollout, str(settings.get("model", "")), find_recorded_output(settings))

    @property
    def steps(self) -> "list[ReadTurn | ReadTool]":
        return [*self.turns, *self.tools]

    def usage_of(self, subtask: str) -> Usage:
        """Return the usage of a subtask; the empty name means everything outside of subtasks."""
        return sum((turn.usage for turn in self.turns if self.subtask_of(turn) == subtask), Usage())

    def subtask_of(self, step: "ReadTurn | ReadTool") -> str:
        """The subtask that a step served, empty if none: one of the conversation "2/code" served "2"."""
        head, slash, _ = step.conversation.partition("/")
        return head if slash and any(subtask.id == head for subtask in self.subtasks) else ""

    def span(self, subtask: str) -> float:
        """Seconds from a subtask's first call to the end of its last; idle time between sittings is left in."""
        steps = [step for step in self.steps if step.began and self.subtask_of(step) == subtask]
        calls = [(step.began, step.began + step.seconds) for step in steps]
        return max(end for _, end in calls) - min(begin for begin, _ in calls) if calls else 0.0


def read(journal: Journal, run: str) -> Reading:
    """The run as the journal holds it. Raises `UsageError` for one that is not there."""
    entry = journal.entry(run)
    return _read(journal, entry, read_earlier(journal, entry))


def _read(journal: Journal, entry: Entry, earlier: Earlier | None) -> Reading:
    calls = journal.calls(entry.id)
    events = [*decode_events(journal.events(entry.id), lambda line: journal.damage.add(f"run {entry.id}: {line}"))]
    roles = {event.conversation: event.role for event in events if isinstance(event, TurnStarted)}
    turns = turns_of(calls, roles)
    remembered = [event for event in events if isinstance(event, Remembered)]
    subtasks = subtasks_of(events)
    record = Rollout(entry.id, entry.question, entry.workflow, began=entry.began)
    for turn in turns:
        if turn.completion:
            trajectory = record.trajectories.setdefault(turn.conversation, Trajectory(turn.conversation, turn.role))
            trajectory.turns.append(Turn(turn.request, turn.completion))
    if earlier:
        earlier.seed(record)
    fill_memory(record.memory, [entry for entry in remembered if entry.channel != SUMMARY])
    record.summary = next((entry.text for entry in reversed(remembered) if entry.channel == SUMMARY), "")
    record.sources = sources_of(calls, journal.sources(entry.id), record.sources)
    record.findings = [
        Finding(Subtask(subtask.id, subtask.text), subtask.expert, "", subtask.conclusion, ok=subtask.ok)
        for subtask in subtasks
        if subtask.ok is not None
    ]
    record.answer = entry.answer
    _read_checked(events, record)
    record.status = cast("Status", entry.state if entry.state in get_args(Status) else "partial")
    record.failure = HiraError(entry.error) if entry.error else None
    if output := find_recorded_output(entry.settings):
        _read_output(record, output)
    record.notices = [event.text for event in events if isinstance(event, Notice) and not event.passing]
    paid = sum((call.usage for call in calls), Usage())
    usage = entry.usage if entry.ended and entry.usage not in (None, Usage()) else paid
    record.unused = usage - record.usage
    return Reading(entry, record, turns, tools_of(calls, events), subtasks, remembered, usage, earlier)


def read_earlier(journal: Journal, entry: Entry) -> Earlier | None:
    """Return what the earlier turns of the run's conversation left; None for a first question, and if the earlier run
    was deleted. Raises `UsageError` for a record that continues itself."""
    turns = [entry]
    while before := turns[-1].settings.get(CONTINUES):
        try:
            run_entry = journal.entry(before)
        except NoRun:
            break
        if any(run_entry.id == turn.id for turn in turns):
            raise UsageError(f"run {run_entry.id} continues itself", where=f"in {journal.path}", fix="delete the run")
        turns.append(run_entry)
        if len(turns) > LONGEST_CHAT:
            break
    earlier = None
    for turn in reversed(turns[1:]):
        earlier = _with_sent(turn, earlier)
        _check_answered(turn)
        earlier = Earlier.of(_read(journal, turn, earlier).rollout, earlier)
    return _with_sent(entry, earlier)


def _with_sent(turn: Entry, earlier: Earlier | None) -> Earlier | None:
    """The earlier turns, with the messages that came with the question of this one."""
    sent = turn.settings.get(SENT)
    return Earlier.of_messages([(role, text) for role, text in sent], earlier) if sent else earlier


def read_conversation(journal: Journal, run: str, earlier: Earlier | None = None) -> Earlier:
    """Return what the run and the turns before it leave for a follow-up question; `earlier` is what those turns left,
    if it has been read already.

    Raises `UsageError` for a run that does not exist, and for one without an answer.
    """
    entry = journal.entry(run)
    before = earlier or read_earlier(journal, entry)
    _check_answered(entry)
    return Earlier.of(_read(journal, entry, before).rollout, before)


def _check_answered(entry: Entry) -> None:
    if not entry.answer:
        what = f"run {entry.id} has no answer to continue from"
        raise UsageError(what, fix=f"resume it first: hira resume {entry.id}")


def _read_checked(events: Sequence[Event], record: Rollout) -> None:
    """Read the citations as the run's verifier judged them; if it kept none of this answer, as words alone do today."""
    made = {claim.text for claim in claims(record.answer)}
    for event in reversed(events):
        if not isinstance(event, AnswerChecked):
            continue
        try:
            kept: list[Citation] = validate(list[Citation], event.citations)
            answers = validate(Relevance, event.answers) if event.answers else None
        except DamagedRecord:
            continue
        if made == {citation.claim for citation in kept}:
            record.citations = [citation for citation in kept if citation.source in record.sources]
            record.answers, record.lacking = answers, tuple(event.lacking)
            return
    record.citations = verify(record.answer, record.sources, record.question)
    record.lacking = find_lacking(record.citations, record.question)


def turns_of(calls: Sequence[RecordedCall], roles: Mapping[str, str]) -> list[ReadTurn]:
    """Return the policy calls in the order in which they began.

    If a run was resumed and then went another way, two calls have one position; the later one counts. Those that an
    early end forced do not count if the run continued, nor do replies that are kept for their cost alone.
    """
    newest = max((call.began for call in calls if call.replied and call.position and not is_forced(call)), default=0.0)
    placed: dict[tuple[str, int], RecordedCall] = {}
    for call in calls:
        counts = call.position and call.result is not None and not (is_forced(call) and call.began < newest)
        if call.kind == "policy" and counts:
            placed[call.conversation, call.position] = call
    messages: dict[str, tuple[Message, ...]] = {}
    turns = []
    for (conversation, position), call in sorted(placed.items()):
        kept = messages.get(conversation, ())[: call.request["kept"]]
        now = messages[conversation] = (*kept, *map(read_message, call.request["added"]))
        request = Request(now, call.request["sampling"], call.request["stop"], conversation=conversation)
        completion = None if call.failed else validate(Completion, call.result)
        failure = str(call.result["what"]) if call.failed else ""
        role = roles.get(conversation) or conversation.rpartition("/")[2]
        turns.append(ReadTurn(conversation, role, position, call.name, request, len(kept), completion, failure,
                              call.began, call.seconds or 0.0))  # fmt: skip
    return sorted(turns, key=lambda turn: turn.began)


def tools_of(calls: Sequence[RecordedCall], events: Sequence[Event]) -> list[ReadTool]:
    """The calls of tools in the order in which they were asked for, each with what the journal holds of the call."""
    recorded: dict[tuple[str, str], list[RecordedCall]] = {}
    for call in calls:
        if call.kind == "tool":
            recorded.setdefault((call.conversation, call.digest), []).append(call)
    turns: Counter[str] = Counter()
    tools: dict[int, ReadTool] = {}
    waiting: dict[tuple[str, str], list[int]] = {}
    for event in events:
        match event:
            case TurnStarted():
                turns[event.conversation] += 1
            case ToolStarted():
                number = event.call or len(tools) + 1
                digest = digest_of_tool(event.tool, event.arguments)
                if shared := recorded.get(("*", digest)):
                    began, seconds = shared[0].began, shared[0].seconds or 0.0
                elif own := recorded.get((event.conversation, digest)):
                    call = own.pop(0)
                    began, seconds = call.began, call.seconds or 0.0
                else:
                    began, seconds = 0.0, 0.0
                after = turns[event.conversation]
                tools[number] = ReadTool(event.conversation, event.tool, event.arguments, after, began, seconds)
                waiting.setdefault((event.conversation, event.tool), []).append(number)
            case ToolEnded() if numbers := waiting.get((event.conversation, event.tool)):
                number = event.call if event.call in numbers else numbers[0]
                numbers.remove(number)
                tool = tools[number]
                tools[number] = replace(tool, seconds=tool.seconds or event.seconds, ok=event.ok, text=event.text)
    return list(tools.values())


def subtasks_of(events: Sequence[Event]) -> list[ReadSubtask]:
    """The subtasks in the order of issue, as far as they came."""
    subtasks: dict[str, ReadSubtask] = {}
    for event in events:
        match event:
            case SubtaskIssued():
                subtasks[event.subtask] = ReadSubtask(event.subtask, event.text)
            case SubtaskApproved() if subtask := subtasks.get(event.subtask):
                subtasks[event.subtask] = replace(subtask, text=event.text)
            case SubtaskAssigned() if subtask := subtasks.get(event.subtask):
                subtasks[event.subtask] = replace(
                    subtask, expert=event.expert, reason=event.reason, recalled=event.recalled
                )
            case SubtaskDone() if subtask := subtasks.get(event.subtask):
                expert = event.expert or subtask.expert
                subtasks[event.subtask] = replace(subtask, expert=expert, conclusion=event.conclusion, ok=event.ok)
    return list(subtasks.values())


def _read_output(record: Rollout, output: OutputType) -> None:
    """Give the rollout the value that its last reply for it held, if it had one."""
    written = [
        trajectory for trajectory in record.trajectories.values() if trajectory.role == OUTPUT and trajectory.turns
    ]
    try:
        if written:
            value = read_record(written[-1].turns[-1].completion, output.reads)
            if fault := output.find_fault(value):
                raise DialectError(fault)
            record.output, record.has_output = output.unwrap(value), True
    except DialectError as error:
        record.output_error = error.what
    if not record.has_output:
        record.output_error = record.output_error or "the run wrote no value"


def sources_of(calls: Sequence[RecordedCall], ids: Mapping[str, str], sources: Sources) -> Sources:
    """Return the sources of the calls, with the ids by location (`ids`), and the `sources` of earlier turns."""
    sources.reserved.update(ids)
    for call in calls:
        if call.kind == "tool" and isinstance(call.result, dict):
            for passage in validate(list[PassageRecord], call.result.get("passages", ())):
                if passage["source"].location in ids:
                    sources.add(passage["source"])
    in_order = sorted(sources.read.items(), key=lambda item: (len(item[0]), item[0]))
    return Sources(dict(in_order), sources.reserved)


def fill_memory(memory: DualMemory, remembered: Sequence[Remembered]) -> None:
    for memory_entry in remembered:
        if memory_entry.channel == "fact":
            ids = tuple(part for part in memory_entry.origin.split(", ") if part)
            memory.add_fact(Fact(memory_entry.text, ids, memory_entry.subtask))
        else:
            memory.add_resource(Resource(memory_entry.text, memory_entry.origin, memory_entry.subtask))
