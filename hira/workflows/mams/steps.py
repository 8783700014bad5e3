"""The steps of MaMs: the Search agent acts, the State agent remembers (eq. 4), the Report agent writes (eq. 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hira.agents.calls import use
from hira.agents.loop import Loop
from hira.agents.record import ask_for_record, repeats_form
from hira.agents.run_context import Conversation, RunContext, format_files
from hira.core.concurrency import together
from hira.core.errors import DialectError, EndpointError
from hira.core.events import Notice
from hira.core.messages import Filled, assistant, user
from hira.core.policy import Completion
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.tokens import clip
from hira.core.tool import join_arguments
from hira.evidence import Source, drop_unknown
from hira.evidence.references import language, without_references
from hira.policies.dialects import Call
from hira.policies.dialects.answer import find_section, only_thought, remove_section, strip_thought
from hira.tools import Tool
from hira.workflows.mams.chunking import Chunk, Key, Read, size
from hira.workflows.mams.state import AgentPlan, Memory, State, Update, find_unsourced, merge

NOTHING = Prompt(__file__, "mams_remarks", "mams_nothing")


def show(text: str) -> Filled:
    """Format a part of the state for a prompt, also an empty one."""
    return sanitize(text) if text.strip() else NOTHING.fill()


def show_memory(entries: Memory) -> Filled:
    return show("\n".join(entry.line for entry in entries))


SEARCH = Prompt(__file__, "mams_search")
BEGIN = Prompt(__file__, "mams_remarks", "mams_begin")
UNREAD = Prompt(__file__, "mams_remarks", "mams_unread")
TOLD = 120
"""Characters of a failure that the plan keeps."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The Search agent's next step: `calls` to perform, or none, which ends it with `text`. `plan` is its plan."""

    plan: AgentPlan
    calls: tuple[Call, ...]
    text: str
    conversation: Conversation


@dataclass(frozen=True, slots=True)
class Observed:
    """O_t: what the calls brought, and a line a call for the plan."""

    read: Mapping[Key, Read]
    done: tuple[str, ...]


async def decide(
    context: RunContext, question: str, state: State, tools: Sequence[Tool], *, turn: int, left: int, several: int
) -> Decision:
    """One turn of the Search agent, in a new conversation: it sees the state and no earlier turn. If it calls nothing
    while the state is empty, it is asked once whether it means that: small models plan and stop."""
    conversation = context.conversation("search", str(turn))
    loop = Loop(conversation, tools, limit=several, several=several)
    prompt = SEARCH.fill(
        today=context.rollout.today,
        question=sanitize(question),
        files=format_files(context.files),
        memory=show_memory(state.memory),
        sources=_sources(context, state),
        plan=show(state.plan.text),
        done="\n".join(state.plan.done) or NOTHING.fill(),  # the tools' replies in them are data
        report=show(state.report),
        call=conversation.explain(tools),
        several=several,
        left=left,
    )
    conversation.say(user(prompt))
    step = await loop.think()
    if not (step.calls or step.forced) and state == State():
        conversation.say(user(BEGIN.fill()))
        step = await loop.think()
    written = find_section(step.text, "plan")
    if written is None and step.calls:
        written = step.text.strip()
    planned = AgentPlan(written or state.plan.text, state.plan.done)
    return Decision(planned, step.calls, remove_section(step.answer, "plan"), conversation)


async def act(context: RunContext, decision: Decision, tools: Sequence[Tool], *, window: int) -> Observed:
    """Make the calls side by side. Of a single text more than the `window` in tokens is cut."""
    named = {tool.name: tool for tool in tools}
    calls = decision.calls
    seen = await together([use(decision.conversation, named[call.name], call.arguments) for call in calls])
    read: dict[Key, Read] = {}
    lines: list[str] = []
    for call, tool_use in zip(calls, seen, strict=True):
        shown = [(context.read(passage.source), passage.text) for passage in tool_use.observation.passages]
        is_extra = tool_use.ok and not shown and call.name in {tool.name for tool in context.tools.extra_for("search")}
        if is_extra and tool_use.observation.text:
            shown = [(Source("", call.name, tool_use.observation.text), tool_use.observation.text)]
        read |= {(source.id, text): (source, clip(text, window)) for source, text in shown}
        ids = dict.fromkeys(source.id for source, _ in shown if source.id)
        text = " ".join(tool_use.text.split())  # says why there is no source
        summary = ", ".join(ids) or (text if len(text) <= TOLD else f"{text[:TOLD]} …")
        lines.append(f"- {call.name}: {join_arguments(call.arguments)} — {summary}")
    return Observed(read, tuple(lines))


def within(read: Mapping[Key, Read], window: int) -> tuple[dict[Key, Read], tuple[str, ...]]:
    """Return the texts that fit into the window, in order and at least one, and a note for the plan on the others."""
    kept: dict[Key, Read] = {}
    left: list[str] = []
    room = window
    for key, (source, text) in read.items():
        room -= size(source, text)
        if kept and room < 0:
            left.append(source.id or source.title)
        else:
            kept[key] = (source, text)
    return kept, (str(UNREAD.fill(sources=", ".join(dict.fromkeys(left)))),) if left else ()


def _sources(context: RunContext, state: State) -> str:
    """The sources of the notes, a line each, so that a page of which an extract was seen can be opened."""
    cited = dict.fromkeys(source for entry in state.memory for source in entry.sources)
    read = [context.rollout.sources.read[source] for source in cited if source in context.rollout.sources]
    lines = [
        f"- {source.id}: {' '.join(source.title.split())} ({source.location})"
        + (", an extract" if source.kind == "hit" else "")
        for source in read
    ]
    return "\n".join(lines) or NOTHING.fill()


STATE = Prompt(__file__, "mams_state")
LOST = Prompt(__file__, "mams_remarks", "mams_lost")
LOST_ONE = Prompt(__file__, "mams_remarks", "mams_lost_one")
LOST_PART = Prompt(__file__, "mams_remarks", "mams_lost_part")
UNSOURCED = Prompt(__file__, "mams_remarks", "mams_unsourced")


async def remember(conversation: Conversation, question: str, chunk: Chunk, state: State) -> State:
    """Return the state with memory and plan updated from the chunk; its report is unchanged. An update that would lose
    an old entry is requested once more, with the loss named; after that the old entries stay, and the rest of the
    update counts. Without a usable update memory stays unchanged, and a notice says so."""
    tell = conversation.context.events
    known = {"memory": show_memory(state.memory), "plan": show(state.plan.text)}
    message = user(STATE.fill(question=sanitize(question), chunk=chunk.text, **known))
    updates: list[Update] = []

    def wrong(update: Update) -> str:
        updates.append(update)
        complaint = _complaint(state.memory, update, chunk)
        if complaint:
            tell(Notice(f"state: {complaint.splitlines()[0]}"))
        return complaint

    try:
        await ask_for_record(conversation, message, Update, wrong=wrong)
    except (DialectError, EndpointError) as error:
        if not updates:
            tell(Notice(f"state: a chunk is missing from the notes: {error.what.splitlines()[0]}"))
            return state
    latest_first = [merge(state.memory, update, chunk.sources) for update in reversed(updates)]
    merged = min(latest_first, key=lambda merged: len(merged.lost))  # of equals the later one
    if merged.lost:
        tell(Notice(f"state: kept {', '.join(merged.lost)}, which the update had dropped"))
    planned = next((update.plan for update in reversed(updates) if update.plan.strip()), state.plan.text)
    return replace(state, memory=merged.memory, plan=replace(state.plan, text=planned))


def _complaint(old: Memory, update: Update, chunk: Chunk) -> str:
    """Describe the faults of an update, entries that it loses and statements without a source; empty without faults."""
    texts = {entry.id: entry.text for entry in old}
    lines = [
        LOST_PART.fill(id=name, missing=sanitize(", ".join(words)), text=sanitize(texts[name]))
        if words
        else LOST_ONE.fill(id=name, text=sanitize(texts[name]))
        for name, words in merge(old, update, chunk.sources).lost.items()
    ]
    parts = [str(LOST.fill(lost=sanitize("\n".join(lines))))] if lines else []
    if bare := find_unsourced(old, update, chunk.sources):
        notes = "\n".join(f"- {text}" for text in bare)
        parts.append(str(UNSOURCED.fill(sources=", ".join(chunk.sources), notes=sanitize(notes))))
    return "\n".join(parts)


REPORT = Prompt(__file__, "mams_report")
AGAIN = Prompt(__file__, "mams_remarks", "mams_report_again")
WAS_CUT = Prompt(__file__, "mams_remarks", "mams_report_cut")
NO_REPORT = Prompt(__file__, "mams_remarks", "mams_report_none")
UNCHANGED = "unchanged"


async def write(conversation: Conversation, question: str, chunk: Chunk, known: Memory, before: str) -> str:
    """Return the report with the chunk worked in. Return `before` unchanged if nothing in the chunk belongs there, or,
    with a notice, if two replies contain no complete report."""
    tell = conversation.context.events
    prompt = REPORT.fill(
        question=sanitize(question),
        language=language(question),
        memory=show_memory(known),
        report=show(before),
        chunk=chunk.text,
    )
    conversation.say(user(prompt))
    longest = ""
    for _ in range(2):
        try:
            completion = await conversation.turn()
        except EndpointError as error:
            tell(Notice(f"report: a chunk is missing from the report: {error.what}"))
            return before
        written, fault = _read(completion, before)
        if not fault:
            return _clean_report(written, conversation)
        longest = max(longest, written, key=len)
        conversation.say(assistant(completion.text), user(AGAIN.fill(error=fault)))
    tell(Notice(f"report: {'the report stays as it was' if before else 'the report is cut'}: {fault}"))
    return before or _clean_report(longest, conversation)


def _read(completion: Completion, before: str) -> tuple[str, Filled | None]:
    """The report in a reply, and what is wrong with it, if anything is."""
    text = "" if only_thought(completion) else strip_thought(completion)
    marked = find_section(text, "report")
    written = text if marked is None else marked
    if repeats_form(written, REPORT.text):
        return "", NO_REPORT.fill()
    if completion.finish == "length":
        return written, WAS_CUT.fill()
    if marked is not None and marked.strip(" .").casefold() == UNCHANGED:
        return before, None
    if not written or (marked is None and before and not text.startswith("#")):
        return "", NO_REPORT.fill()
    return written, None


def _clean_report(written: str, conversation: Conversation) -> str:
    """Without citations of what nobody read and without a list of references of the model's own."""
    return drop_unknown(without_references(written), conversation.context.rollout.sources)[0]
