"""Near-duplicates: questions that differ only in phrasing or in what is superficial (MARS, appendix B, step 2)."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from hira.core.errors import UsageError
from hira.evaluation.item import Item
from hira.trainers.curation.decision import Decision

_WORDS = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Alike:
    """From which similarity on two questions are one: the Jaccard index of their shingles, runs of `shingle` letters.

    `permutations` is the size of a MinHash; it only finds the pairs, which are then compared exactly. Questions that
    differ in a number are different ones, unless `numbers` is False.
    """

    threshold: float = 0.7
    shingle: int = 4
    permutations: int = 128
    numbers: bool = True
    seed: int = 1


def plain(question: str) -> str:
    """The words of a question alone: without case, punctuation, accents and marks."""
    folded = unicodedata.normalize("NFKD", question).casefold()
    return " ".join(_WORDS.findall("".join(sign for sign in folded if not unicodedata.combining(sign))))


def shingles(question: str, size: int) -> frozenset[str]:
    """All runs of `size` letters of the plain question; of half as many where a letter is a syllable or a word."""
    text = plain(question)
    size = max(1, size // 2) if _CJK.search(text) else size
    return frozenset(text[at : at + size] for at in range(max(1, len(text) - size + 1)))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """|A ∩ B| / |A ∪ B|; 1 for two empty sets."""
    return len(one & other) / len(one | other) if one or other else 1.0


def duplicates(items: Sequence[Item], alike: Alike = Alike()) -> list[Decision]:
    """One decision for each item, in their order. Of those that are alike, the first is kept.

    An item is compared with those that are kept, not with those that were removed, so that a chain of small changes
    does not swallow what is different.
    """
    if find_spec("datasketch") is None:
        raise UsageError("datasketch is not installed", fix="pip install 'hira[curate]'")
    from datasketch import MinHash, MinHashLSH  # type: ignore[import-untyped]

    # a lower threshold for candidates: an LSH misses pairs close to its own
    index = MinHashLSH(threshold=max(0.1, 0.75 * alike.threshold), num_perm=alike.permutations)
    kept: dict[str, frozenset[str]] = {}
    numbers: dict[str, list[str]] = {}
    found = []
    for item in items:
        own = shingles(item.question, alike.shingle)
        figures = sorted(re.findall(r"\d+", item.question))
        hashed = MinHash(num_perm=alike.permutations, seed=alike.seed)
        hashed.update_batch([one.encode() for one in sorted(own)])
        near = [
            (jaccard(own, kept[other]), other)
            for other in sorted(index.query(hashed))
            if not alike.numbers or numbers[other] == figures
        ]
        close = max(near, default=(0.0, ""), key=lambda one: one[0])
        if close[0] >= alike.threshold:
            told = {"of": close[1], "similarity": round(close[0], 4)}
            found.append(Decision("duplicates", item.id, kept=False, why=f"nearly the same as {close[1]}", told=told))
            continue
        index.insert(item.id, hashed)
        kept[item.id], numbers[item.id] = own, figures
        found.append(Decision("duplicates", item.id, kept=True))
    return found
