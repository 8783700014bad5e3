"""How an answer is held against the known one by its words: exact match, F1, containment.

The normalisation is that of the question answering sets (lower case, no punctuation, no articles), with full-width
forms folded, numbers without thousands separators, and each Chinese, Japanese or Korean character as a word of its own.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from hira.answer import Answer
from hira.dialects.answer import final
from hira.evaluation.item import Item
from hira.evaluation.record import Score
from hira.evidence import CITED
from hira.untrusted import clean

_SEPARATOR = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_TOKEN = re.compile(
    r"[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]"
    r"|-?\d+(?:\.\d+)?|[^\W\d_\u2e80-\ud7af\uf900-\ufaff]+"
)
_ARTICLES = frozenset({"a", "an", "the"})


def tokens(text: str) -> list[str]:
    """The words that count, in order. A text of articles alone keeps them."""
    folded = unicodedata.normalize("NFKC", text).lower()
    plain = "".join(sign for sign in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(sign))
    found = _TOKEN.findall(_SEPARATOR.sub("", _without_possessive(unicodedata.normalize("NFC", plain))))
    return [word for word in found if word not in _ARTICLES] or found


def _without_possessive(text: str) -> str:
    return re.sub(r"(?<=\w)['’](?=s\b)", "", text)


def exact(answer: str, gold: str) -> bool:
    return tokens(answer) == tokens(gold)


def f1(answer: str, gold: str) -> float:
    """The harmonic mean of precision and recall over words, each counted as often as it stands there."""
    said, known = tokens(answer), tokens(gold)
    if not said or not known:
        return float(said == known)
    shared = sum((Counter(said) & Counter(known)).values())
    return 2 * shared / (len(said) + len(known))


def contains(answer: str, gold: str) -> bool:
    """Whether the words of the known answer stand in the answer, one behind the other."""
    said, known = tokens(answer), tokens(gold)
    return bool(known) and any(said[at : at + len(known)] == known for at in range(len(said) - len(known) + 1))


def best(metric: Callable[[str, str], float], answer: str, golds: Sequence[str]) -> float:
    """The best value over answers that are taken one for another, 0 without any."""
    return max((metric(answer, gold) for gold in golds), default=0.0)


def plain(answer: Answer) -> str:
    """The answer as it is scored: the final one, without citations."""
    return CITED.sub("", final(clean(answer.text))).strip()


async def match(item: Item, answer: Answer) -> Score:
    """Right is an answer that holds a known answer, or each of those that all have to be said; where nothing can be
    known, one that says so and cites nothing. `value` is the best F1, or the share of what had to be said."""
    text = plain(answer)
    if not item.answerable:
        right = answer.status == "insufficient_evidence" and not answer.citations
        return Score(right, float(right), "match", "nothing can be known", text)
    if item.every:
        said = [contains(text, one) for one in item.every]
        return Score(all(said), sum(said) / len(said), "match", "", text)
    return Score(any(contains(text, gold) for gold in item.answers), best(f1, text, item.answers), "match", "", text)


async def exact_match(item: Item, answer: Answer) -> Score:
    """EM and F1 of the question answering sets, over the whole answer."""
    text = plain(answer)
    right = any(exact(text, gold) for gold in item.answers)
    return Score(right, best(f1, text, item.answers), "em", "", text)
