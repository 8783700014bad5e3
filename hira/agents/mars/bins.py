"""Bins of documents for System 1 of MARS, counted with its model's tokens (section 2.2.1)."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

from hira.agents.calls import PASSAGE
from hira.agents.packing import beginning, pack
from hira.agents.run_context import RunContext
from hira.core.messages import Filled
from hira.core.policy import counting
from hira.core.tokens import Counter, counter
from hira.journal import Asked
from hira.journal.digest import digest_of_tool

PACKING = "packing"
Bins = list[list[Filled]]


async def pack_bins(documents: Sequence[Filled], frame: str, window: int, team: RunContext, *, under: str) -> Bins:
    """The documents in bins, each of which fills a window of so many tokens together with the `frame` of a prompt.

    A model in this process counts by its own tokenizer, any other is counted by its name. What came of it is recorded
    as calls are, since a run that is replayed or gone on with may count otherwise: it has no model to count with, or
    another vocabulary lies on its machine. Raises `Stop` if the run is stopped while the model counts, or was.
    """
    part, log = team.part("system1"), team.log
    own, name = counting(part.policy), f"{under}/{PACKING}"

    async def make() -> Bins:
        counted = own.count if own else counter(part.policy.model)
        packing = asyncio.to_thread(_packed, documents, frame, window, counted)
        return await (team.unless_stopped(packing) if own else packing)  # its own tokenizer may have to be read first

    if log is None:
        return await make()
    told = {"tokens": part.policy.model, "window": window, "of": [_digest(frame), *map(_digest, documents)]}
    asked = Asked("tool", name, digest_of_tool(PACKING, told), PACKING, lambda: told)
    return await log.call(asked, make, lambda bins: _record(bins, documents), lambda kept: _bins(kept, documents))


def shorten_document(document: Filled, limit: int, counted: Counter) -> Filled:
    """The beginning of a document in its frame, of at most `limit` tokens in all as far as the frame allows it."""
    text = str(document.values["text"])
    aim = limit - counted(_framed(document, ""))
    while aim > 0:
        if counted(short := _framed(document, beginning(text, aim, counted))) <= limit:
            return short
        aim = min(aim - 1, aim * 9 // 10)
    return _framed(document, "")


def _packed(documents: Sequence[Filled], frame: str, window: int, counted: Counter) -> Bins:
    return pack(documents, max(1, window - counted(frame)), shorten_document, counted)


def _framed(document: Filled, text: str) -> Filled:
    return PASSAGE.fill(**{**document.values, "text": text})


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _record(bins: Bins, documents: Sequence[Filled]) -> dict[str, Any]:
    """For each bin the numbers of its documents; one that was cut is alone in its bin and named with what is left."""
    places = {id(document): at for at, document in enumerate(documents)}
    ids = {document.values["id"]: at for at, document in enumerate(documents)}
    kept = [
        [places[id(one)] if id(one) in places else [ids[one.values["id"]], str(one.values["text"])] for one in each]
        for each in bins
    ]
    return {"bins": kept}


def _bins(kept: dict[str, Any], documents: Sequence[Filled]) -> Bins:
    return [
        [documents[one] if isinstance(one, int) else _framed(documents[one[0]], one[1]) for one in each]
        for each in kept["bins"]
    ]
