"""System 1 of MARS: goes through all that searches brought, in bins and in parallel, for System 2's purpose (eq. 2)."""

from collections.abc import Sequence

from hira.agents.loop import check_spoken
from hira.agents.mars.bins import pack_bins
from hira.agents.mars.system2 import Request
from hira.agents.packing import beginning
from hira.agents.retrieval import Retrieved
from hira.agents.run_context import RunContext, together
from hira.agents.trajectory import Finding, Subtask
from hira.core.errors import EndpointError, Stop
from hira.core.events import Notice, SubtaskDone
from hira.core.messages import Filled, assistant, user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.tokens import clip
from hira.evidence import Sources, drop_unknown, find_cited, inert
from hira.policies.dialects.answer import strip_thought

SYSTEM1 = Prompt(__file__, "mars_system1")
DISTILLED = Prompt(__file__, "mars_distilled")
SOURCES = Prompt(__file__, "mars_sources")
UNREAD = Prompt(__file__, "mars_unread")
EMPTY = Prompt(__file__, "mars_empty")
BEGINNINGS = 1_000
"""Tokens of a bin that System 2 is shown where System 1 could not go through it."""


async def distil(
    question: str,
    request: Request,
    found: Retrieved,
    team: RunContext,
    *,
    turn: int,
    window: int,
    reply: int | None = None,
) -> Filled:
    """What serves the purpose in all that was found, as System 2 is given it (eq. 2 and 3).

    Every document stands in exactly one prompt of at most `window` tokens, and all of these are asked at once.
    """
    frame = _prompt(question, request, (), window)
    notes: Sequence[str]
    try:
        bins = await pack_bins(found.documents, frame, window, team, under=str(turn))
    except Stop as stop:  # before they were counted
        notes = [_beginnings(found.documents, stop.what)] if found.documents else []
    else:
        prompts = [_prompt(question, request, documents, window) for documents in bins]
        names = [f"{turn}/{at}" for at in range(1, len(bins) + 1)]
        notes = await together([_read(*one, team, reply) for one in zip(names, prompts, bins, strict=True)])
    text = "\n\n".join([*notes, *found.notes])
    finding = Finding(Subtask(str(turn), request.purpose), "system1", "", text, ok=bool(find_cited(text)))
    team.rollout.findings.append(finding)
    team.events(SubtaskDone(finding.subtask.id, finding.expert, finding.conclusion, finding.ok))
    return DISTILLED.fill(notes=sanitize(text), sources=_sources(text, team.rollout.sources))


def _prompt(question: str, request: Request, documents: Sequence[Filled], window: int) -> Filled:
    """What System 1 is asked about one bin. What stands beside the documents takes half of the window at most."""
    return SYSTEM1.fill(
        documents=Filled("\n\n".join(documents)),
        question=sanitize(clip(question, window // 4)),
        queries=sanitize(clip("\n".join(f"- {query}" for query in request.queries), window // 8)),
        purpose=sanitize(clip(request.purpose, window // 8)),
    )


async def _read(under: str, prompt: Filled, documents: Sequence[Filled], team: RunContext, reply: int | None) -> str:
    """What System 1 writes of one bin (d_j). It cites nothing that does not stand there.

    Where it cannot, System 2 is told why, and how the documents begin.
    """
    conversation = team.conversation("system1", under, reply=reply)
    conversation.say(user(prompt))
    try:
        completion = await conversation.turn()
        check_spoken(completion, conversation)
    except (EndpointError, Stop) as error:
        team.events(Notice(f"{conversation.name}: {error.what}; only the beginnings of its documents are used"))
        return _beginnings(documents, error.what)
    conversation.say(assistant(completion.text))
    read = team.rollout.sources.read
    own = Sources({source: read[source] for source in (str(one.values["id"]) for one in documents)})
    text, _ = drop_unknown(strip_thought(completion), own)
    return text or _beginnings(documents, EMPTY.fill())


def _beginnings(documents: Sequence[Filled], why: str) -> Filled:
    share = BEGINNINGS // len(documents)
    quotes = [f"“{beginning(str(one.values['text']), share).strip()}” [{one.values['id']}]" for one in documents]
    return UNREAD.fill(why=why, beginnings="\n".join(quotes))


def _sources(text: str, sources: Sources) -> Filled:
    """Which sources the notes rest on, as a paragraph of a prompt; empty if there are none."""
    named = [sources.read[one] for one in find_cited(text) if one in sources]
    lines = [f"- [{one.id}] {' '.join(inert(f'{one.title}: {one.location}').split())}" for one in named]
    return SOURCES.fill(sources="\n".join(lines)) if lines else Filled("")
