"""The check without a model: how far the words of one claim are borne out by one text.

A dot product over the features of `features.py`. The weights in `lexical_weights.json` are fitted by
`benchmarks/fit_evidence.py` on public data; the file names the command.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypedDict

from hira.evidence.features import NAMES, compute_features, read_claim
from hira.evidence.passages import Passages, Token, read_tokens
from hira.evidence.verdict import Verdict

__all__ = ["Passages", "Score", "score_claim"]

BARE = 3
"""A claim of so few words of its own is an answer that only says something together with the question."""


@dataclass(frozen=True, slots=True)
class Score:
    """What the words say. `score` is the probability of support, `quote` the sentence nearest to the claim."""

    verdict: Verdict
    score: float
    quote: str


class Weights(TypedDict):
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
        claim: one statement, without citation marks.
        passages: the text, as `Passages`.
        question: what was asked. A bare answer ("Jakarta") is read together with it; the words of the question
            are no evidence.
        context: words that count with every sentence of the text without being evidence themselves: the title, or the
            call that produced a tool's result.
    """
    tokens = read_claim(claim)
    content = [token for token in tokens if token.content]
    if not content or not passages.sentences:
        return Score("unchecked", 0.0, "")
    bare = len(content) <= BARE and bool(question)
    if bare:
        asked = [token for token in read_claim(question) if token.key not in {one.key for one in content}]
        tokens = [*tokens, *asked]
    beside = frozenset(token.key for token in read_tokens(context) if token.content)
    features, windows = compute_features(tokens, passages, beside)
    if not windows:
        return Score("unsupported" if comparable(content, passages) else "unchecked", 0.0, "")
    fitted = load_weights()
    logit = fitted["bias"] + sum(fitted["weights"][name] * value for name, value in zip(NAMES, features, strict=True))
    score = 1 / (1 + math.exp(-logit))
    quote = passages.sentences[windows[0].at]
    if bare and not {token.key for token in content} <= windows[0].own:
        return Score("unsupported", min(score, fitted["threshold"] / 2), quote)
    if score >= fitted["threshold"]:
        return Score("supported", score, quote)
    known = dict(zip(NAMES, features, strict=True))
    conflict = known["number_replaced"] or known["name_replaced"] or known["polarity"]
    against = conflict and known["own"] >= 0.75 and not known["first_missing"] and not known["word_moved"]
    return Score("contradicted" if against else "unsupported", score, quote)


def comparable(content: Sequence[Token], passages: Passages) -> bool:
    """Whether claim and text are written in one script."""
    letters = {script(char) for token in content for char in token.text if char.isalpha()}
    there = {script(char) for sentence in passages.sentences[:50] for char in sentence if char.isalpha()}
    return not letters or bool(letters & there)


def script(char: str) -> int:
    """A rough block of Unicode: Latin with its accents is one, Han and kana are one, others by 256 letters."""
    point = ord(char)
    if point < 0x250 or 0x1E00 <= point < 0x2000:
        return 0
    return 1 if 0x3000 <= point < 0xA000 else point >> 8
