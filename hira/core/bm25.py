"""Lexical relevance without a network: words of a text and BM25 over a small collection.

Good for memory entries and for passages of one page (up to ten thousand texts); folders have an index.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+(?:['’.,][^\W_]+)*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
STOP = frozenset(
    """a about all also an and any are as at be been being but by can could did do does for from had has have how i if
    in into is it its many me more most much my no nor not of on one or our s same shall should so some such than
    that the their them then there these they this those to us was we were what when where which while who whom
    whose why will with would you your""".split()
)
K1, B = 1.5, 0.75


def words(text: str) -> list[str]:
    """Return lower-case content words in order, lightly stemmed; Chinese, Japanese, Korean as pairs of characters."""
    tokens: list[str] = []
    for match in _WORD.finditer(text.lower()):
        word = match[0]
        if not word.isascii() and _CJK.search(word):
            tokens += [word[start : start + 2] for start in range(len(word) - 1)] or [word]
        elif word not in STOP:
            tokens.append(stem(word))
    return tokens


def stem(word: str) -> str:
    """Fold plurals and the commonest verb endings, and nothing else: 'cities' becomes 'city', 'new' stays."""
    word = word.replace("’s", "").replace("'s", "").replace(",", "")
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "es", "s"):
        if len(word) - len(ending) >= 4 and word.endswith(ending) and not word.endswith("ss"):
            return word[: -len(ending)]
    return word.removesuffix("e") if len(word) > 4 else word


class BM25:
    """Okapi BM25 (k1 = 1.5, b = 0.75) over `texts`; `scores` has one number per text, 0 if it shares no word."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.counts = [Counter(words(text)) for text in texts]
        self.lengths = [sum(count.values()) for count in self.counts]
        self.mean = sum(self.lengths) / len(texts) if texts else 0.0
        self.frequency = Counter(word for count in self.counts for word in count)

    def scores(self, query: str) -> list[float]:
        of_texts = {word: self.frequency[word] for word in set(words(query))}
        # the inverse document frequency, always positive
        weights = {word: math.log(1 + (len(self.counts) - n + 0.5) / (n + 0.5)) for word, n in of_texts.items()}
        return [
            sum(
                weight * count[word] * (K1 + 1) / (count[word] + K1 * (1 - B + B * length / self.mean))
                for word, weight in weights.items()
                if word in count
            )
            for count, length in zip(self.counts, self.lengths, strict=True)
        ]

    def best(self, query: str, n: int) -> list[int]:
        """Return the indexes of at most `n` texts that share a word with the query, best first, then earliest first."""
        scores = self.scores(query)
        return sorted((index for index, score in enumerate(scores) if score > 0), key=lambda index: -scores[index])[:n]
