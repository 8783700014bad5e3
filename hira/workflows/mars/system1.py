"""System 1 of MARS: reads all results of searches, in bins and in parallel, for System 2's purpose (eq. 2)."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from hira.agents.calls import PASSAGE
from hira.agents.loop import ask_for_text
from hira.agents.packing import beginning, pack, shorten_in
from hira.agents.retrieval import Retrieved
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Finding, Subtask
from hira.core.concurrency import together
from hira.core.errors import EndpointError, Stop
from hira.core.events import Notice
from hira.core.messages import Filled
from hira.core.policy import counting
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.tokens import Counter, clip, counter
from hira.evidence import Sources, drop_unknown, find_cited, inert
from hira.journal import CallSpec
from hira.journal.encoding import digest_of_tool, digest_text, validate
from hira.policies.dialects.answer import strip_thought
from hira.workflows.mars.system2 import ReadingRequest

SYSTEM1 = Prompt(__file__, "mars_system1")
DISTILLED = Prompt(__file__, "mars_remarks", "mars_distilled")
UNREAD = Prompt(__file__, "mars_remarks", "mars_unread")
BEGINNINGS = 1_000
"""Tokens of a bin that System 2 sees if System 1 could not read it."""
PACKING = "packing"
Bins = list[list[Filled]]


async def pack_bins(documents: Sequence[Filled], frame: str, window: int, context: RunContext, *, under: str) -> Bins:
    """Pack the documents into bins, each of which fits the window together with the `frame` of a prompt.

    A local model counts with its own tokenizer, other models are counted by name. The result is recorded like a call,
    because a replayed or resumed run may count differently: it may have no model to count with, or another vocabulary.
    Raises `Stop` if the run is stopped before or during the count.
    """
    config = context.config_of("system1")
    encoder, name = counting(config.policy), f"{under}/{PACKING}"

    async def make() -> Bins:
        counted = encoder.count if encoder else counter(config.policy.model)
        async with context.stopping.bound() if encoder else nullcontext():  # its tokenizer may have to be read first
            return await asyncio.to_thread(
                lambda: pack(documents, max(1, window - counted(frame)), shorten_document, counted)
            )

    def encode(bins: Bins) -> dict[str, Any]:
        """For each bin the numbers of its documents; one that was cut is alone in its bin and has what is left."""
        places = {id(document): index for index, document in enumerate(documents)}
        ids = {document.values["id"]: index for index, document in enumerate(documents)}

        def describe(document: Filled) -> int | list[Any]:
            place = places.get(id(document))
            return [ids[document.values["id"]], str(document.values["text"])] if place is None else place

        return {"bins": [[describe(document) for document in each] for each in bins]}

    def decode(kept: dict[str, Any]) -> Bins:
        return [
            [documents[entry] if isinstance(entry, int) else _frame(documents[entry[0]], entry[1]) for entry in each]
            for each in validate(list[list[int | tuple[int, str]]], kept["bins"])
        ]

    inputs = {"tokens": config.policy.model, "window": window, "of": [digest_text(frame), *map(digest_text, documents)]}
    spec = CallSpec("tool", name, digest_of_tool(PACKING, inputs), PACKING, lambda: inputs)
    return await context.log.call(spec, make, encode, decode)


def shorten_document(document: Filled, limit: int, counted: Counter) -> Filled:
    """The beginning of a document in its frame, of at most `limit` tokens in all as far as the frame allows it."""
    return shorten_in(partial(_frame, document), str(document.values["text"]), limit, counted)


def _frame(document: Filled, text: str) -> Filled:
    return PASSAGE.fill(**{**document.values, "text": text})


async def distil(
    question: str,
    request: ReadingRequest,
    retrieved: Retrieved,
    context: RunContext,
    *,
    turn: int,
    window: int,
    reply: int | None = None,
) -> Filled:
    """Distil everything found for the purpose of the request, for System 2 (eq. 2 and 3). Every document is in exactly
    one prompt of at most `window` tokens, and all prompts are sent at once."""
    frame = _prompt(question, request, (), window)
    notes: Sequence[str]
    try:
        bins = await pack_bins(retrieved.documents, frame, window, context, under=str(turn))
    except Stop as stop:  # before they were counted
        notes = [_beginnings(retrieved.documents, stop.what)] if retrieved.documents else []
    else:
        prompts = [_prompt(question, request, documents, window) for documents in bins]
        names = [f"{turn}/{index}" for index in range(1, len(bins) + 1)]
        notes = await together(
            [_read(*bin_work, context, reply) for bin_work in zip(names, prompts, bins, strict=True)]
        )
    text = "\n\n".join([*notes, *retrieved.notes])
    finding = Finding(Subtask(str(turn), request.purpose), "system1", "", text, ok=bool(find_cited(text)))
    context.rollout.findings.append(finding)
    context.announce(finding)
    read = context.rollout.sources.read
    cited = [read[source] for source in find_cited(text) if source in read]
    lines = [f"- [{source.id}] {' '.join(inert(f'{source.title}: {source.location}').split())}" for source in cited]
    return DISTILLED.fill(notes=sanitize(text), sources=Filled("\n".join(lines)))


def _prompt(question: str, request: ReadingRequest, documents: Sequence[Filled], window: int) -> Filled:
    """Build the prompt for one bin. Everything except the documents takes at most half of the window."""
    return SYSTEM1.fill(
        documents=Filled("\n\n".join(documents)),
        question=sanitize(clip(question, window // 4)),
        queries=sanitize(clip("\n".join(f"- {query}" for query in request.queries), window // 8)),
        purpose=sanitize(clip(request.purpose, window // 8)),
    )


async def _read(under: str, prompt: Filled, documents: Sequence[Filled], context: RunContext, reply: int | None) -> str:
    """Return System 1's text on one bin (d_j). It cites only sources of the bin. If System 1 fails, System 2 reads why,
    and the beginnings of the documents."""
    conversation = context.conversation("system1", under, reply=reply)
    try:
        completion = await ask_for_text(conversation, prompt)
    except (EndpointError, Stop) as error:
        context.events(Notice(f"system1: {error.what}; only the beginnings of its documents are used"))
        return _beginnings(documents, error.what)
    read = context.rollout.sources.read
    bin_sources = Sources({source: read[source] for source in (str(document.values["id"]) for document in documents)})
    text, _ = drop_unknown(strip_thought(completion), bin_sources)
    return text or _beginnings(documents, "")


def _beginnings(documents: Sequence[Filled], why: str) -> Filled:
    share = BEGINNINGS // len(documents)
    quotes = [
        f"“{beginning(str(document.values['text']), share).strip()}” [{document.values['id']}]"
        for document in documents
    ]
    return UNREAD.fill(why=why, beginnings="\n".join(quotes))
