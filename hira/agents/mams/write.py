"""The Report agent of MaMs: r_k = A_report(q, c_k, m_(k-1), r_(k-1)) (MaMs, eq. 5)."""

from hira.agents.mams.chunking import Chunk
from hira.agents.mams.shown import memory, report
from hira.agents.mams.state import Memory
from hira.agents.run_context import Conversation
from hira.core.errors import EndpointError
from hira.core.events import Notice
from hira.core.messages import Filled, assistant, user
from hira.core.policy import Completion
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evidence import drop_unknown
from hira.evidence.references import language, without_references
from hira.policies.dialects.answer import only_thought, strip_thought
from hira.policies.dialects.section import section

REPORT = Prompt(__file__, "mams_report")
AGAIN = Prompt(__file__, "mams_report_again")
WAS_CUT = Prompt(__file__, "mams_report_cut")
NO_REPORT = Prompt(__file__, "mams_report_none")
UNCHANGED = "unchanged"


async def write(conversation: Conversation, question: str, chunk: Chunk, known: Memory, before: str) -> str:
    """The report with the chunk worked in; `before` as it is if nothing in the chunk belongs there, or if two replies
    hold no whole report, which is told."""
    tell = conversation.team.events
    prompt = REPORT.fill(
        question=sanitize(question),
        language=language(question),
        memory=memory(known),
        report=report(before),
        chunk=chunk.text,
    )
    conversation.say(user(prompt))
    longest = ""
    for _ in range(2):
        try:
            completion = await conversation.turn()
        except EndpointError as error:
            tell(Notice(f"{conversation.name}: a chunk is missing from the report: {error.what}"))
            return before
        written, fault = _read(completion, before)
        if not fault:
            return _cleaned(written, conversation)
        longest = max(longest, written, key=len)
        conversation.say(assistant(completion.text), user(AGAIN.fill(error=fault)))
    tell(Notice(f"{conversation.name}: {'the report stays as it was' if before else 'the report is cut'}: {fault}"))
    return before or _cleaned(longest, conversation)


def _read(completion: Completion, before: str) -> tuple[str, Filled | None]:
    """The report in a reply, and what is wrong with it, if anything is."""
    text = "" if only_thought(completion) else strip_thought(completion)
    marked = section(text, "report")
    written = text if marked is None else marked
    if completion.finish == "length":
        return written, WAS_CUT.fill()
    if marked is not None and marked.strip(" .").casefold() == UNCHANGED:
        return before, None
    if not written or (marked is None and before and not text.startswith("#")):
        return "", NO_REPORT.fill()
    return written, None


def _cleaned(written: str, conversation: Conversation) -> str:
    """Without citations of what nobody read and without a list of references of the model's own."""
    return drop_unknown(without_references(written), conversation.team.rollout.sources)[0]
