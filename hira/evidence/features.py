"""How a claim and the passages of a source meet: a few numbers between 0 and 1, which the scorer weighs."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hira.evidence.passages import NEGATIONS, PRONOUNS, Passages, Token, read_tokens

TOP = 5
"""Sentences that are looked at closely."""
COMMON = 5_000
"""A key in more sentences than this finds none by itself."""
MOST = 400
"""Tokens of a claim that are looked at."""
NAMES = (
    "best", "own", "union", "elsewhere", "elsewhere_short", "bigrams", "split_pairs",
    "number_missing", "number_elsewhere", "name_missing", "name_elsewhere",
    "number_replaced", "name_replaced", "word_replaced", "word_moved", "first_missing", "first_moved",
    "polarity", "length", "evidence",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Window:
    """One sentence with what it leans on: the sentence a pronoun points back to, the heading, the context."""

    at: int
    own: frozenset[str]
    carried: frozenset[str]


def read_claim(text: str) -> list[Token]:
    return read_tokens(text)[:MOST]


def weigh(keys: Iterable[str], passages: Passages) -> dict[str, float]:
    """How much a key says: rare ones more."""
    size = len(passages.sentences) + 5
    return {key: math.log(1 + size / (1 + len(passages.postings.get(key, ())))) for key in keys}


def open_window(at: int, passages: Passages, context: frozenset[str]) -> Window:
    own = passages.tokens(at)
    carried = set(context)
    if passages.headings[at] >= 0:
        carried |= {token.key for token in passages.tokens(passages.headings[at]) if token.content}
    if at and any(token.text.lower() in PRONOUNS for token in own[:4]):
        carried |= {token.key for token in passages.tokens(at - 1) if token.content}
    return Window(at, frozenset(token.key for token in own if token.content), frozenset(carried))


def find_windows(weights: dict[str, float], passages: Passages, context: frozenset[str]) -> list[Window]:
    """The sentences that hold most of the claim, best first."""
    found: Counter[int] = Counter()
    listed = [(key, passages.postings[key]) for key in weights if key in passages.postings]
    rare = [entry for entry in listed if len(entry[1]) <= COMMON] or [(key, at[:COMMON]) for key, at in listed]
    for key, sentences in rare:
        for at in sentences:
            found[at] += weights[key]  # type: ignore[assignment]
    windows = [open_window(at, passages, context) for at, _ in found.most_common(3 * TOP)]

    def covered(window: Window) -> float:
        own = sum(weights[key] for key in weights if key in window.own)
        return own + 0.9 * sum(weights[key] for key in weights if key in window.carried and key not in window.own)

    return sorted(windows, key=lambda window: (-covered(window), window.at))[:TOP]


def share(weights: dict[str, float], held: Collection[str]) -> float:
    total = sum(weights.values())
    return sum(weight for key, weight in weights.items() if key in held) / total if total else 0.0


def replaced(claim: Sequence[Token], sentence: Sequence[Token], held: Collection[str]) -> list[tuple[Token, Token]]:
    """Tokens of the claim in whose place the sentence has another: between the same neighbours, at most three words."""
    places: dict[str, int] = {}
    for at, token in enumerate(sentence):
        places.setdefault(token.key, at)
    keys = {token.key for token in claim}
    found: list[tuple[Token, Token]] = []
    for at, token in enumerate(claim):
        if token.key in held:
            continue
        left = next((places[claim[i].key] for i in range(at - 1, max(-1, at - 4), -1) if claim[i].key in places), None)
        right = next(
            (places[claim[i].key] for i in range(at + 1, min(len(claim), at + 4)) if claim[i].key in places), None
        )
        if left is None and right is None:
            continue
        start = left + 1 if left is not None else max(0, (right or 0) - 3)
        end = right if right is not None else min(len(sentence), start + 3)
        gap = [other for other in sentence[start:end] if other.content and other.key not in keys]
        if 0 < len(gap) <= 3:
            same = [other for other in gap if other.kind == token.kind]
            found.append((token, (same or gap)[0]))
    return found


def count_negations(tokens: Sequence[Token]) -> int:
    return sum(token.text.lower() in NEGATIONS or token.text.lower().endswith(("n't", "n’t")) for token in tokens)


def compute_features(
    claim: Sequence[Token], passages: Passages, context: frozenset[str]
) -> tuple[list[float], list[Window]]:
    content = [token for token in claim if token.content]
    weights = weigh(dict.fromkeys(token.key for token in content), passages)
    windows = find_windows(weights, passages, context)
    if not windows:
        return [0.0] * len(NAMES), []
    best = windows[0]
    held = best.own | best.carried
    union = frozenset().union(*(window.own | window.carried for window in windows))
    sentence = passages.tokens(best.at)
    far = {key for key in weights if key in passages.postings and key not in held}
    size = len(weights)
    elsewhere = share(weights, far)

    def any_of(kind: str, test: Collection[str], *, within: bool) -> float:
        return float(any(token.kind == kind and (token.key in test) is within for token in content))

    pairs = [(content[i].key, content[j].key) for i in range(len(content)) for j in (i + 1, i + 2) if j < len(content)]
    known = [(one, other) for one, other in pairs if one in union and other in union]
    together = sum(any({one, other} <= window.own | window.carried for window in windows) for one, other in known)
    runs = {pair for window in windows for pair in adjacent(passages.tokens(window.at))}
    written = adjacent(claim)
    swaps = replaced(content, [token for token in sentence if token.content], held)
    first = next((token for token in content), None)
    features = [
        share(weights, held),
        share(weights, best.own),
        share(weights, union),
        elsewhere,
        elsewhere * min(1.0, 6 / size),
        sum(pair in runs for pair in written) / len(written) if written else 0.0,
        1 - together / len(known) if known else 0.0,
        any_of("number", union, within=False),
        any_of("number", far, within=True),
        any_of("name", union, within=False),
        any_of("name", far, within=True),
        float(any(token.kind == "number" and other.kind == "number" for token, other in swaps)),
        float(any(token.kind == "name" and other.kind == "name" for token, other in swaps)),
        float(any(token.kind == "word" and token.key not in far for token, _ in swaps)),
        float(any(token.key in far for token, _ in swaps)),
        float(first is not None and first.key not in union),
        float(first is not None and first.key in far),
        float((count_negations(claim) > 0) != (count_negations(sentence) > 0)),
        min(1.0, math.log(1 + size) / 5),
        min(1.0, math.log(1 + len(passages.sentences)) / 8),
    ]
    return features, windows


def adjacent(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    return [(one.text.lower(), other.text.lower()) for one, other in pairwise(tokens)]
