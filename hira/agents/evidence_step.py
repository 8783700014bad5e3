"""The evidence step of a search: a model scores and condenses passages, the best are shown (PaperQA2, 2409.13740)."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile

from hira.agents.packing import first_fit_decreasing
from hira.agents.record import Reply, ask_for_record, fix_count
from hira.agents.role import EVIDENCE
from hira.agents.run_context import Conversation, RunContext
from hira.core.bm25 import words
from hira.core.concurrency import together
from hira.core.errors import DialectError, EndpointError, Stop
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.tokens import clip, count
from hira.evidence import inert
from hira.tools import Observation, Passage

PROMPT = Prompt(__file__, "evidence_step")
WINDOW = 2_000
"""Tokens of the passages in one call."""
FEWEST, MOST = 5, 8
"""Passages that are shown: those with at least half of the best score possible, and the next ones up to the fewest."""
HALF = 5.0
"""Also the score of a passage that the model did not score."""


class PassageNote(Reply):
    number: int
    excerpt: str = ""
    score: float


class PassageNotes(Reply):
    passages: list[PassageNote]


async def choose_evidence(context: RunContext, query: str, observation: Observation) -> Observation:
    """Return the passages of a search that serve the question best, condensed, the best first. Their sources and the
    places in them stay, so that claims are checked against all that was read."""
    passages = observation.passages
    if len(passages) <= FEWEST:
        return observation
    bins = first_fit_decreasing([count(passage.text) for passage in passages], WINDOW)
    talks = [context.conversation(EVIDENCE, name_search(query), temperature=0.0) for _ in bins]
    parts = [{number: passages[number] for number in numbers} for numbers in bins]
    noted = await together([_read(talk, query, part) for talk, part in zip(talks, parts, strict=True)])
    notes = {number: note for some in noted for number, note in some.items()}
    order = sorted(range(len(passages)), key=lambda number: -notes[number].score if number in notes else -HALF)
    good = sum(number not in notes or notes[number].score >= HALF for number in order)
    chosen = order[: max(FEWEST, min(good, MOST))]
    shown = tuple(_condense(passages[number], notes.get(number)) for number in chosen)
    return replace(observation, passages=shown)


def name_search(query: str) -> str:
    """Return how the names of conversations about a search begin. Searches of several roles may begin in any order, so
    numbers would differ from run to run."""
    return f"search-{hashlib.blake2b(query.encode(), digest_size=4).hexdigest()}"


async def _read(conversation: Conversation, query: str, passages: Mapping[int, Passage]) -> dict[int, PassageNote]:
    """Return the model's notes on passages, nothing if it fails."""
    numbers = list(passages)
    shown = [inert(clip(f"{passage.source.title}\n{passage.text}", WINDOW)) for passage in passages.values()]
    texts = [f"Passage {number}: {text}" for number, text in enumerate(shown, 1)]
    question = conversation.context.rollout.question or query
    prompt = PROMPT.fill(
        passages="\n\n".join(texts), question=sanitize(question), query=sanitize(query), count=len(texts)
    )
    try:
        record = await ask_for_record(conversation, user(prompt), fix_count(PassageNotes, "passages", len(texts)))
    except (DialectError, EndpointError, Stop) as error:
        conversation.context.note(f"the evidence step failed, so passages are shown as they were found: {error.what}")
        return {}
    return {numbers[note.number - 1]: note for note in record.passages if 0 < note.number <= len(numbers)}


def _condense(passage: Passage, note: PassageNote | None) -> Passage:
    """Return a passage with the model's excerpt, after the lines that say where it is. An excerpt with words that
    the passage lacks does not count."""
    excerpt = note.excerpt.strip() if note else ""
    if not excerpt or not set(words(excerpt)) <= set(words(passage.text)):
        return passage
    above = takewhile(lambda line: line.startswith("(") and line.endswith(")"), passage.text.splitlines())
    return replace(passage, text="\n".join([*above, excerpt]))
