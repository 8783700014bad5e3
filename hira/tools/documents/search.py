"""The two tools made of an index: `search` finds passages, `browse` opens a document that was found."""

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Annotated

from hira.core import tokens
from hira.core.bm25 import BM25
from hira.core.errors import ToolError
from hira.core.tool import Observation, Passage, Tool, tool
from hira.evidence import Source
from hira.tools.documents.index import Hit, Index
from hira.tools.documents.passages import write_pieces
from hira.tools.documents.store import Entry

LONG = 3_000
RELEVANT = 0.25
"""The share of the best passage's score below which a passage is left out; such a one shares only common words."""
_NEAR = 5


def search_documents(index: Index, *, top: int = 10) -> Tool:
    """The tool "search": at most `top` relevant passages of the indexed documents, best first, with their files."""
    from pydantic import Field

    async def search(
        query: Annotated[str, Field(description="a question or its key words")],
    ) -> Observation:
        """Search the local documents for passages."""
        hits = await index.search(query, top)
        hits = [hit for hit in hits if hit.score >= RELEVANT * hits[0].score]
        if not hits:
            count = len(await index.names())
            return Observation(f"nothing found for {query!r} in {count} {'document' if count == 1 else 'documents'}")
        return Observation(passages=tuple(map(_passage, hits)))

    made: Tool = tool(search, pure=True)
    return made


def _passage(hit: Hit) -> Passage:
    """The passage; below its document's title, which is shown with it, only the headings beneath that one."""
    text = hit.piece.full
    heading = hit.piece.heading.removeprefix(hit.title).strip()
    shown = (f"({hit.piece.place})" if hit.piece.place else "", heading, hit.piece.text)
    return Passage(Source(hit.name, hit.title, text, "file"), "\n".join(line for line in shown if line))


def browse_documents(index: Index) -> Tool:
    """The tool "browse": a document of the index, whole, or what of a long one matters for the intent."""
    from pydantic import Field

    async def browse(
        url: Annotated[str, Field(description="its path, as the search shows it")],
        intent: Annotated[str, Field(description="what to look for")] = "",
    ) -> Observation:
        """Open a local document; of a long one, the passages that fit the intent."""
        entry = await index.open(url) or await index.open(await _meant(index, url))
        if entry is None or not entry.pieces:
            raise ToolError(f"{url!r} holds no text" + (f" ({entry.note})" if entry and entry.note else ""))
        return await asyncio.to_thread(show, entry, intent)  # it may be as long as a file

    made: Tool = tool(browse, seconds=300.0, pure=True)
    return made


async def _meant(index: Index, url: str) -> str:
    """The one document that a path means: exactly, but for quotes, case, "./" and folders left out at its front."""
    names = await index.names()
    wanted = url.strip().strip("\"'`<>").removeprefix("file://").removeprefix("./").replace("\\", "/").casefold()
    paths = [name for name in names if name.casefold() == wanted]
    paths = paths or [name for name in names if name.casefold().endswith("/" + wanted)]
    if len(paths) == 1:
        return paths[0]
    by_name = {name.casefold(): name for name in names}
    last = {PurePosixPath(name).name.casefold(): name for name in names}
    near = paths or [by_name[one] for one in get_close_matches(wanted, by_name, _NEAR, 0.5)]
    near += [last[one] for one in get_close_matches(PurePosixPath(wanted).name, last, _NEAR, 0.5)]
    listed = ", ".join(list(dict.fromkeys(near or names))[:_NEAR])
    raise ToolError(
        f"{url!r} is not one of the documents; did you mean: {listed}" if listed else "there are no documents"
    )


def show(entry: Entry, intent: str) -> Observation:
    """A document of at most about 3,000 tokens whole, else its passages that matter for the intent, in their order."""
    texts = [piece.full for piece in entry.pieces]
    order, note = choose_passages(texts, intent)
    source = Source(entry.name, entry.title, "\n\n".join(texts[at] for at in order), "file")
    return Observation(note, (Passage(source, write_pieces(entry.pieces, order)),))


def choose_passages(texts: list[str], intent: str) -> tuple[list[int], str]:
    """Which of the passages are shown, in their order: all, or those that matter for the intent; and a note of it."""
    sizes = [tokens.count(text) for text in texts]
    if sum(sizes) <= LONG:
        return list(range(len(texts))), ""
    near = nearest(texts, intent)
    order = within(sizes, near or range(len(texts)), LONG)
    why = "those nearest to your intent" if near else "its beginning"
    if intent.strip() and not near:
        why += ", as nothing in it matches your intent"
    return order, f"{len(order)} of {len(texts)} passages are shown: {why}; open it with another intent to see others"


def nearest(texts: list[str], intent: str) -> list[int]:
    """Indexes of the texts that share a word with the intent, best first, each with the text after and before it."""
    best = BM25(texts).best(intent, len(texts))
    return list(dict.fromkeys(near for at in best for near in (at, at + 1, at - 1) if 0 <= near < len(texts)))


def within(sizes: list[int], order: Sequence[int], limit: int) -> list[int]:
    """As many of `order`, from its front, as fit into the limit, at least one; sorted."""
    chosen: list[int] = []
    left = limit
    for at in order:
        if sizes[at] > left and chosen:
            break
        chosen.append(at)
        left -= sizes[at]
    return sorted(chosen)
