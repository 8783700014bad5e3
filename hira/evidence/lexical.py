"""The check without a model: how far the words of one claim are borne out by one text.

A dot product over the features of `features.py`. The weights in `lexical_weights.json` are fitted by
`benchmarks/fit_evidence.py` on public data; the file names the command.
"""

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypedDict

from hira.evidence.features import MOST, compare, read_claim
from hira.evidence.passages import Passages, read_tokens
from hira.evidence.verdict import Verdict

__all__ = ["Passages", "Score", "score_claim"]

BARE = 3
"""A claim of so few words is an answer that says something only together with the question."""


@dataclass(frozen=True, slots=True)
class Score:
    """What the words say. `score` is the probability of support, `quote` the sentence nearest to the claim."""

    verdict: Verdict
    score: float
    quote: str


class Weights(TypedDict):
    command: str
    bias: float
    threshold: float
    weights: dict[str, float]


@cache
def load_weights() -> Weights:
    found: Weights = json.loads((files("hira.evidence") / "lexical_weights.json").read_text(encoding="utf-8"))
    return found


def score_claim(claim: str, passages: Passages, *, question: str = "", context: str = "") -> Score:
    """Hold one claim against one text.

    Args:
        claim: one statement, without citation marks. One of 400 words and more is `unchecked`.
        passages: the text, as `Passages`.
        question: what was asked. A bare answer ("Jakarta") is read together with it; the words of the question
            are no evidence.
        context: words that count with every sentence of the text without being evidence themselves: the title, or the
            call that produced a tool's result.
    """
    tokens = read_claim(claim)
    content = {token.key for token in tokens if token.content}
    if not content or not passages.sentences or len(tokens) == MOST:
        return Score("unchecked", 0.0, "")
    bare = len(content) <= BARE and bool(question)
    if bare:
        tokens += [token for token in read_claim(question) if token.key not in content]
    beside = frozenset(token.key for token in read_tokens(context) if token.content)
    compared = compare(tokens, passages, beside)
    if compared is None:
        return Score("unsupported" if comparable(claim, passages) else "unchecked", 0.0, "")
    fitted = load_weights()
    logit = fitted["bias"] + sum(fitted["weights"][name] * value for name, value in compared.features.items())
    score, best = 1 / (1 + math.exp(-logit)), compared.windows[0]
    quote = passages.sentences[best.at]
    if bare and not content <= best.own:
        return Score("unsupported", min(score, fitted["threshold"] / 2), quote)
    if score >= fitted["threshold"]:
        return Score("supported", score, quote)
    return Score("contradicted" if compared.contradicted else "unsupported", score, quote)


def comparable(claim: str, passages: Passages) -> bool:
    """Whether claim and text are written in one script."""
    letters = {script(char) for char in claim if char.isalpha()}
    there = {script(char) for sentence in passages.sentences[:50] for char in sentence if char.isalpha()}
    return not letters or not there or bool(letters & there)


def script(char: str) -> int:
    """A rough block of Unicode: Latin with its accents is one, Han and kana are one, others by 256 letters."""
    point = ord(char)
    if point < 0x250 or 0x1E00 <= point < 0x2000:
        return 0
    return 1 if 0x3000 <= point < 0xA000 else point >> 8
