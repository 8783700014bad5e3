"""A document as it is shown: whole, or the passages of a long one that fit an intent."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from hira.core import tokens
from hira.core.bm25 import BM25
from hira.core.errors import ToolError, find_near
from hira.core.tool import Observation, Passage
from hira.evidence import Source
from hira.tools.documents.pieces import join_pieces, write_pieces
from hira.tools.documents.store import IndexedFile

LONG = 3_000
_NEAR = 5


def find_name(names: Sequence[str], url: str) -> str:
    """Return the one document that a path means, apart from quotes, case, "./" and missing leading folders."""
    wanted = url.strip().strip("\"'`<>").removeprefix("file://").removeprefix("./").replace("\\", "/").casefold()
    paths = [name for name in names if name.casefold() == wanted]
    paths = paths or [name for name in names if name.casefold().endswith("/" + wanted)]
    if len(paths) == 1:
        return paths[0]
    last = {PurePosixPath(name).name.casefold(): name for name in names}
    alike = find_near(PurePosixPath(wanted).name, last, most=_NEAR, likeness=0.5)
    near = paths or [last[name] for name in alike] or names
    if not near:
        raise ToolError("there are no documents")
    raise ToolError(f"{url!r} is not one of the documents; did you mean: {', '.join(near[:_NEAR])}")


def show(entry: IndexedFile, intent: str) -> Observation:
    """Return a document of at most about 3,000 tokens whole, else the passages that fit the intent, in order."""
    texts = [piece.full for piece in entry.pieces]
    order, note = choose_passages(texts, intent)
    text, places = join_pieces([entry.pieces[index] for index in order], entry.title)
    source = Source(entry.name, entry.title, text, "file", places=places)
    return Observation(note, (Passage(source, write_pieces(entry.pieces, order)),))


def choose_passages(texts: list[str], intent: str) -> tuple[list[int], str]:
    """Choose the passages to show, in their order: all, or those that fit the intent; and return a note about it."""
    sizes = [tokens.count(text) for text in texts]
    if sum(sizes) <= LONG:
        return list(range(len(texts))), ""
    near = find_nearest(texts, intent)
    order = fit_within(sizes, near or range(len(texts)), LONG)
    why = "those nearest to your intent" if near else "its beginning"
    if intent.strip() and not near:
        why += ", as nothing in it matches your intent"
    return order, f"{len(order)} of {len(texts)} passages are shown: {why}; open it with another intent to see others"


def find_nearest(texts: list[str], intent: str) -> list[int]:
    """Return the indexes of texts that share a word with the intent, best first, each followed by its neighbours."""
    best = BM25(texts).best(intent, len(texts))
    near = (place for index in best for place in (index, index + 1, index - 1))
    return list(dict.fromkeys(place for place in near if 0 <= place < len(texts)))


def fit_within(sizes: list[int], order: Sequence[int], limit: int) -> list[int]:
    """Return as many of `order`, from its beginning, as fit into the limit, at least one; sorted."""
    chosen: list[int] = []
    left = limit
    for index in order:
        if sizes[index] > left and chosen:
            break
        chosen.append(index)
        left -= sizes[index]
    return sorted(chosen)
