"""The check without a model: how well the words of one text support one claim.

A dot product over the features of a comparison. The weights in `lexical_weights.json` are fitted by
`benchmarks/fit_evidence.py` on public data; the file names the command.
"""

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TypedDict

from hira.evidence.citations import Judgement
from hira.evidence.passages import NEGATIONS, Passages, Token, read_tokens

TOP = 5
"""The number of sentences that are examined closely."""
COMMON = 5_000
"""A word in more sentences than this does not select a sentence on its own."""
MOST = 400
"""The number of tokens that are read of a claim."""
SHORT = 6
"""A claim with at most this number of content words states one fact, which one sentence must support."""


@dataclass(frozen=True, slots=True)
class Window:
    """One sentence with its support: the sentence that its pronoun refers to, its heading, the context."""

    at: int
    own: frozenset[str]
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class ClaimComparison:
    """A claim compared with the sentences nearest to it, best first.

    `contradicted`: the best sentence states the claim, its first word too, except for a number, a name or a "not".
    """

    features: dict[str, float]
    windows: list[Window]
    contradicted: bool


def read_claim(text: str) -> list[Token]:
    """Return the tokens of a claim, up to `MOST`."""
    return read_tokens(text)[:MOST]


def compare(claim: Sequence[Token], passages: Passages, context: frozenset[str]) -> ClaimComparison | None:
    """Return the features of one claim, or None if the source has no word of it.

    The nearer the claim is to the best sentence otherwise, the more a differing word counts: a long claim may state
    facts of several sentences, a short one may not.
    """
    content = [token for token in claim if token.content]
    weights = weigh(content, passages)
    windows = find_windows(weights, passages, context)
    if not windows:
        return None
    best, sentence = windows[0], [token for token in passages.tokens(windows[0].at) if token.content]
    union = frozenset().union(*(window.keys for window in windows))
    moved = {key for key in weights if key in passages.postings and key not in best.keys}
    missing = weights.keys() - union
    coverage, elsewhere = share(weights, best.keys), share(weights, moved)
    size = sum(
        {token.key: 0.5 if token.text[0] > "\u0e00" else 1.0 for token in content}.values()
    )  # pairs of characters
    short = min(1.0, SHORT / size) ** 2
    near = max(coverage**4, (coverage / (1 - elsewhere)) ** 2 * short if coverage else 0.0)
    replaced = find_replaced(content, sentence, best.own)
    negated = count_negations(claim) % 2 != count_negations(passages.tokens(best.at)) % 2

    def has(kind: str, keys: Collection[str]) -> float:
        return float(any(token.kind == kind and token.key in keys for token in content))

    conflicts = {
        "number_absent": has("number", missing) * max(near, coverage**2, short**3),
        "name_absent": has("name", missing) * max(near, coverage**2, short**3),
        "number_moved": has("number", moved) * near,
        "name_moved": has("name", moved) * near,
        "sibling": has_sibling(content, sentence, moved, passages) * near,
        "number_replaced": ("number" in replaced) * near,
        "name_replaced": ("name" in replaced) * near,
        "word_replaced": ("word" in replaced and not has("number", best.keys)) * short,
        "polarity": negated * max(near, coverage * short),
    }
    adjacent = {pair for at in (window.at for window in windows) for pair in pair_keys(passages.tokens(at))}
    claimed = pair_keys(content)
    ordered = [token.key for token in content]
    quoted = sum(pair in adjacent for pair in claimed) / len(claimed) if claimed else 0.0
    names = {token.key for token in content if token.kind == "name"}
    features = {
        "pairs": short * measure_pairs(ordered, windows[:1], reach=3)
        + (1 - short) * measure_pairs(ordered, windows, reach=3),
        "quote": quoted * (1 - max(*conflicts.values(), near * bool(moved))),
        "split": (1 - measure_pairs(sorted(weights.keys() & union)[:30], windows, reach=30)) * short,
        "short": short,
        "names_missing": min(3, len(names & missing)) / 3,
        "number_missing": has("number", missing),
        **conflicts,
    }
    lacking = [token for token in content if token.key not in best.keys]
    otherwise = (
        bool(lacking) and {token.kind for token in lacking} <= replaced - {"word"} and content[0].key in best.keys
    )
    return ClaimComparison(features, windows, otherwise or (negated and coverage >= 0.75))


def weigh(content: Sequence[Token], passages: Passages) -> dict[str, float]:
    """Return the weight of each key of a claim: rare ones weigh more."""
    size = len(passages.sentences) + 5
    return {token.key: math.log(1 + size / (1 + len(passages.postings.get(token.key, ())))) for token in content}


def share(weights: dict[str, float], held: Collection[str]) -> float:
    """Return the share of a claim's weight in the keys that are held."""
    total = sum(weights.values())
    return sum(weight for key, weight in weights.items() if key in held) / total if total else 0.0


def find_windows(weights: dict[str, float], passages: Passages, context: frozenset[str]) -> list[Window]:
    """Return the sentences that hold most of the claim, best first. Words of its support count a little less."""
    listed = [(weight, passages.postings[key]) for key, weight in weights.items() if key in passages.postings]
    rare = [(weight, at) for weight, at in listed if len(at) <= COMMON] or [(one, at[:COMMON]) for one, at in listed]
    found: Counter[int] = Counter()
    for weight, sentences in rare:
        for at in sentences:
            found[at] += weight  # type: ignore[assignment]
    windows = [_open_window(at, passages, context) for at, _ in found.most_common(3 * TOP)]
    windows.sort(key=lambda one: (-share(weights, one.own) - 0.9 * share(weights, one.keys - one.own), one.at))
    return windows[:TOP]


def _open_window(at: int, passages: Passages, context: frozenset[str]) -> Window:
    own = passages.keys(at)
    leaning = set(context)
    if passages.headings[at] >= 0:
        leaning |= passages.keys(passages.headings[at])
    if (antecedent := passages.antecedents[at]) >= 0:
        leaning |= passages.keys(antecedent)
    return Window(at, own, own | leaning)


def measure_pairs(keys: Sequence[str], windows: Sequence[Window], *, reach: int) -> float:
    """Return the share of the claim's pairs of close words that occur together in one window."""
    pairs = [(one, keys[at]) for i, one in enumerate(keys) for at in range(i + 1, min(i + 1 + reach, len(keys)))]
    together = sum(any(one in window.keys and two in window.keys for window in windows) for one, two in pairs)
    return together / len(pairs) if pairs else float(any(key in window.keys for key in keys for window in windows))


def pair_keys(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    """Return the pairs of neighbouring content words."""
    return list(pairwise(token.key for token in tokens if token.content))


def find_replaced(claim: Sequence[Token], sentence: Sequence[Token], own: Collection[str]) -> set[str]:
    """Return the kinds of token that the sentence replaces by another of that kind, between the same neighbours.

    A plain word before a number or a name that both have is wording ("was founded in 1801"), not replaced.
    """
    places: dict[str, list[int]] = {}
    for at, token in enumerate(sentence):
        places.setdefault(token.key, []).append(at)
    keys = {token.key for token in claim}
    found: set[str] = set()
    for at, token in enumerate(claim):
        if token.key in own or (token.kind == "word" and _is_borne_out(claim[at + 1 :], own)):
            continue
        before = next((places[one.key] for one in reversed(claim[max(0, at - 3) : at]) if one.key in places), None)
        after = next((places[one.key] for one in claim[at + 1 : at + 4] if one.key in places), None)
        for start, end in _gaps(before, after, len(sentence)):
            found |= {token.kind for other in sentence[start:end] if other.kind == token.kind and other.key not in keys}
    return found


def _is_borne_out(rest: Sequence[Token], own: Collection[str]) -> bool:
    """Return whether a number or a name after a word shows that the sentence says the same in other words."""
    return any(token.kind != "word" and token.key in own for token in rest)


def _gaps(before: list[int] | None, after: list[int] | None, size: int) -> Iterator[tuple[int, int]]:
    """Yield stretches of at most three tokens that follow `before` and end at `after`."""
    if before is not None and after is not None:
        for left in before[:5]:
            right = next((place for place in after if place > left), size)
            if right - left <= 4:
                yield left + 1, right
    elif before is not None:
        yield from ((left + 1, min(size, left + 4)) for left in before[:5])
    elif after is not None:
        yield from ((max(0, right - 3), right) for right in after[:5])


def has_sibling(claim: Sequence[Token], sentence: Sequence[Token], moved: set[str], passages: Passages) -> bool:
    """Return whether the claim is about "the mill of Lom", the sentence about "the bridge of Lom", and another sentence
    about that mill."""
    keys = {token.key for token in claim}
    beside: dict[str, set[str]] = {}
    for one, two in pairwise(sentence):
        beside.setdefault(one.key, set()).add(two.key)
        beside.setdefault(two.key, set()).add(one.key)
    for one, two in pairwise(claim):
        for head, mate in ((one.key, two.key), (two.key, one.key)):
            if head in moved and beside.get(mate, set()) - keys:
                phrase = {(head, mate), (mate, head)}
                if any(phrase & set(pair_keys(passages.tokens(at))) for at in passages.postings[head][:TOP]):
                    return True
    return False


def count_negations(tokens: Sequence[Token]) -> int:
    """Count the negations of a text."""
    written = [token.text.lower() for token in tokens]
    return sum(not NEGATIONS.isdisjoint({word, word[0]}) or word.endswith(("n't", "n’t")) for word in written)


BY = "lexical"
"""The name of this check in judgements."""
BARE = 3
"""A claim of at most this number of words is an answer that makes sense only together with the question."""


class LexicalWeights(TypedDict):
    command: str
    bias: float
    threshold: float
    weights: dict[str, float]


@cache
def load_weights() -> LexicalWeights:
    found: LexicalWeights = json.loads((files("hira.evidence") / "lexical_weights.json").read_text(encoding="utf-8"))
    return found


def score_claim(claim: str, passages: Passages, *, question: str = "", context: str = "") -> Judgement:
    """Compare one claim with one text. The quote is the sentence nearest to the claim.

    Args:
        claim: One statement, without citation marks. If it has 400 words or more, it is `unchecked`.
        passages: The text, as `Passages`.
        question: The question. A bare answer ("Jakarta") is read together with it; the words of the question are no
            evidence.
        context: Words that count with every sentence of the text without being evidence themselves: the title, or the
            call that produced a tool's result.
    """
    tokens = read_claim(claim)
    content = {token.key for token in tokens if token.content}
    if not content or not passages.sentences or len(tokens) == MOST:
        return Judgement("unchecked", by=BY)
    bare = len(content) <= BARE and bool(question)
    if bare:
        tokens += [token for token in read_claim(question) if token.key not in content]
    beside = frozenset(token.key for token in read_tokens(context) if token.content)
    compared = compare(tokens, passages, beside)
    if compared is None:
        return Judgement("unsupported" if comparable(claim, passages) else "unchecked", by=BY)
    fitted = load_weights()
    logit = fitted["bias"] + sum(fitted["weights"][name] * value for name, value in compared.features.items())
    score, best = 1 / (1 + math.exp(-logit)), compared.windows[0]
    quote = passages.sentences[best.at]
    if bare and not content <= best.own:
        return Judgement("unsupported", min(score, fitted["threshold"] / 2), quote, by=BY)
    if score >= fitted["threshold"]:
        return Judgement("supported", score, quote, by=BY)
    return Judgement("contradicted" if compared.contradicted else "unsupported", score, quote, by=BY)


def comparable(claim: str, passages: Passages) -> bool:
    """Return whether claim and text share a script."""
    letters = {script(char) for char in claim if char.isalpha()}
    there = {script(char) for sentence in passages.sentences[:50] for char in sentence if char.isalpha()}
    return not letters or not there or bool(letters & there)


def script(char: str) -> int:
    """Return a rough block of Unicode: Latin with its accents is one, Han and kana are one, others by 256 letters."""
    point = ord(char)
    if point < 0x250 or 0x1E00 <= point < 0x2000:
        return 0
    return 1 if 0x3000 <= point < 0xA000 else point >> 8
