"""The State agent of MaMs: m_k, p_k = A_state(q, c_k, m_(k-1), p_(k-1)) (MaMs, eq. 4)."""

from dataclasses import replace

from hira.agents.mams.chunking import Chunk
from hira.agents.mams.shown import memory, plan
from hira.agents.mams.state import Memory, Merged, State, Update, find_unsourced, merge
from hira.agents.record import record
from hira.agents.run_context import Conversation
from hira.core.errors import DialectError, EndpointError
from hira.core.events import Notice
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize

STATE = Prompt(__file__, "mams_state")
LOST = Prompt(__file__, "mams_lost")
LOST_ONE = Prompt(__file__, "mams_lost_one")
LOST_PART = Prompt(__file__, "mams_lost_part")
UNSOURCED = Prompt(__file__, "mams_unsourced")


async def remember(conversation: Conversation, question: str, chunk: Chunk, state: State) -> State:
    """The state with what is new in the chunk taken into memory and plan; its report is left alone.

    An update that would lose an old entry is asked for once more, with what would be lost; after that the old entries
    stand, and what else the update says is taken. Without a usable update memory stays as it is, and that is told.
    """
    tell = conversation.team.events
    message = user(
        STATE.fill(question=sanitize(question), memory=memory(state.memory), plan=plan(state.plan), chunk=chunk.text)
    )
    updates: list[Update] = []

    def wrong(update: Update) -> str:
        updates.append(update)
        complaint = _complaint(state.memory, update, chunk)
        if complaint:
            tell(Notice(f"{conversation.name}: {complaint.splitlines()[0]}"))
        return complaint

    try:
        await record(conversation, message, Update, wrong=wrong)
    except (DialectError, EndpointError) as error:
        if not updates:
            tell(Notice(f"{conversation.name}: a chunk is missing from the notes: {error.what.splitlines()[0]}"))
            return state
    merged = _best(state.memory, updates, chunk)
    if merged.lost:
        tell(Notice(f"{conversation.name}: kept {', '.join(merged.lost)}, which the update had dropped"))
    planned = next((update.plan for update in reversed(updates) if update.plan.strip()), state.plan.text)
    return replace(state, memory=merged.memory, plan=replace(state.plan, text=planned))


def _best(old: Memory, updates: list[Update], chunk: Chunk) -> Merged:
    """What the update makes of memory that loses least, the later one among equals."""
    merged = [merge(old, update, chunk.sources) for update in reversed(updates)]
    return min(merged, key=lambda one: len(one.lost))


def _complaint(old: Memory, update: Update, chunk: Chunk) -> str:
    """What the update gets wrong, empty if nothing: entries that it loses, statements of no source."""
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
