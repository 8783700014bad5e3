"""Comparison of an answer with the known one without a model: exact match, F1, containment, equal numbers, equal LaTeX.

The normalisation is that of the question answering sets (lower case, no punctuation, no articles), with full-width
forms folded, numbers without thousands separators, and each Chinese, Japanese or Korean character as a word.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from hira.evidence import CITED
from hira.policies.dialects.answer import find_final_answer

_SEPARATOR = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_TOKEN = re.compile(
    r"[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]"
    r"|(?:(?<!\w)-)?\d+(?:\.\d+)?|[^\W\d_\u2e80-\ud7af\uf900-\ufaff]+"
)
_POSSESSIVE = re.compile(r"(?<=\w)['’](?=s\b)")
_ARTICLES = frozenset({"a", "an", "the"})
_FRACTION = re.compile(r"\\[dt]?frac\s*(?:\{([^{}]*)\}\s*\{([^{}]*)\}|(\d)\s*(\d))")
_ROOT = re.compile(r"\\sqrt\s*\{?\s*([^{}\s]+)\s*\}?")
_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
_SPACING = re.compile(r"\\(?:left|right|displaystyle|[,;:!]|quad|qquad)(?![A-Za-z])|[$~]|\\ ")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
_LAST = re.compile(rf"(?<![\w.]){_NUMBER.pattern}(?:\s*/\s*{_NUMBER.pattern})?\s*%?")
TOLERANCE = 1e-6


def extract_answer(text: str) -> str:
    """Return the answer for scoring: the final one (`\\boxed{…}` first), without citations."""
    return CITED.sub("", find_final_answer(text)).strip()


def tokens(text: str) -> list[str]:
    """Return the words that count, in order. A text of articles alone keeps them."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).replace("−", "-").lower())
    plain = unicodedata.normalize("NFC", "".join(sign for sign in folded if not unicodedata.combining(sign)))
    words = _TOKEN.findall(_SEPARATOR.sub("", _POSSESSIVE.sub("", plain)))
    return [word for word in words if word not in _ARTICLES] or words


def exact(answer: str, gold: str) -> bool:
    return tokens(answer) == tokens(gold)


def f1(answer: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall over words, repeated words included."""
    mine, known = tokens(answer), tokens(gold)
    if not mine or not known:
        return float(mine == known)
    return 2 * sum((Counter(mine) & Counter(known)).values()) / (len(mine) + len(known))


def contains(answer: str, gold: str) -> bool:
    """Return whether the answer contains the words of the known answer as a sequence."""
    mine, known = tokens(answer), tokens(gold)
    return bool(known) and any(mine[index : index + len(known)] == known for index in range(len(mine) - len(known) + 1))


def best(metric: Callable[[str, str], float], answer: str, golds: Sequence[str]) -> float:
    """Return the best value over alternative answers, 0 without any."""
    return max((float(metric(answer, gold)) for gold in golds), default=0.0)


def equal(answer: str, gold: str) -> bool:
    """Return whether both are the same number or the same LaTeX: `0.5`, `1/2`, `\\frac{1}{2}` and `50%` are one value.

    If the known answer is a number, a sentence counts by its last number.
    """
    mine, known = value(answer), value(gold)
    if known is not None and mine is None:
        written = _LAST.findall(_plain(answer))
        mine = value(written[-1]) if written else None
    if mine is not None and known is not None:
        return math.isclose(mine, known, rel_tol=TOLERANCE, abs_tol=1e-12)
    return _compact(answer) == _compact(gold) != ""


def value(text: str) -> float | None:
    """Return the number that a text represents, or None: decimals, fractions, percent, roots, π, powers of ten."""
    plain = _plain(text).replace(" ", "").rstrip(".")
    if not plain:
        return None
    if plain.endswith("%"):
        share = value(plain[:-1])
        return None if share is None else share / 100
    sign = -1.0 if plain.startswith("-") else 1.0
    product = sign
    for factor in re.split(r"\\cdot|\\times|[*×·]", plain.lstrip("+-")):
        number = _factor(factor)
        if number is None:
            return None
        product *= number
    return product if math.isfinite(product) else None


def _factor(text: str) -> float | None:
    """Parse a number, a fraction, a power, a root or π; a number may directly precede a root or π."""
    if not text:
        return None
    if match := re.fullmatch(r"\(?(.+?)\)?/\(?(.+?)\)?", text):
        above, below = _product(match[1]), _product(match[2])
        return None if above is None or not below else above / below
    if match := re.fullmatch(rf"({_NUMBER.pattern})\^\{{?({_NUMBER.pattern})\}}?", text):
        return _power(float(match[1]), float(match[2]))
    return _product(text)


def _power(base: float, power: float) -> float | None:
    """Return the power; None if it is not a real number, or too large."""
    if not base or (base < 0 and not power.is_integer()):
        return None
    try:
        return math.pow(base, power)
    except OverflowError:
        return None


def _product(text: str) -> float | None:
    if _NUMBER.fullmatch(text):
        return float(text)
    match = re.fullmatch(rf"({_NUMBER.pattern})?(?:root\(([^()]+)\)|(pi))", text)
    if match is None:
        return None
    front = float(match[1]) if match[1] else 1.0
    if match[3]:
        return front * math.pi
    inner = _product(match[2])
    return None if inner is None or inner < 0 else front * math.sqrt(inner)


def _plain(text: str) -> str:
    """Return LaTeX of numbers as one line of plain characters."""
    text = unicodedata.normalize("NFKC", _SPACING.sub(" ", text.strip())).replace("−", "-").replace("\\%", "%")
    text = _WRAPPED.sub(r"\1", text.replace("{,}", ","))
    text = _FRACTION.sub(lambda m: f"({m[1] or m[3]})/({m[2] or m[4]})", text)
    text = _ROOT.sub(r"root(\1)", text).replace("√", "root").replace("\\pi", "pi").replace("π", "pi")
    text = re.sub(r"root(\d+(?:\.\d+)?)", r"root(\1)", text)
    return _SEPARATOR.sub("", text).replace("^{\\circ}", "").replace("^\\circ", "").replace("°", "").strip()


def _compact(text: str) -> str:
    """Remove the parts of LaTeX that do not change its meaning."""
    text = _WRAPPED.sub(r"\1", _SPACING.sub("", text.strip()))
    text = re.sub(r"\\[dt]frac", r"\\frac", text)
    return re.sub(r"[\s{}]", "", text).rstrip(".").lower()
