"""Finding the sentence that answers a question in passages that were read, or finding that there is none.

A sentence is scored by the share of the question's words that it and its neighbours hold (rare words weigh more, BM25's
weight), and by whether it holds something of the kind that is asked for: a number, a date, a name, a place. It answers
only if what stands around it covers enough of the question, every name and number of the question included.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from hira.policies.offline import blocks, plain
from hira.policies.offline.disagreement import Stated, differ
from hira.policies.offline.kinds import PAID, defines, did, fits, holds_office, kind, measured, measures, sized, term
from hira.policies.offline.table import EXTREMES, operation
from hira.policies.offline.wording import category, exact, folded, holds, keywords, names, numbers, words
from hira.relevance import BM25

ENOUGH = 0.6
"""The least share of the question's weight that has to stand in a sentence and around it.

Chosen on 190 questions of our own, 48 of them without an answer: none of these is answered at this value
(benchmarks/results/offline.md).
"""
ENOUGH_REST = 0.55
"""The same without its names: what is asked about them."""
FARTHEST = 0.2
"""How near every name of the question has to be."""
BESIDE = 0.5
"""What a word is worth that stands beside a sentence and not in it."""
NEARLY = 0.7
"""The share of the best sentence's score that one needs which speaks against it."""
MOST = 2
"""Sentences that are told beside the best one."""
DIFFER = "The sources differ."
ROW = " | "
HARD = frozenset({"date", "number", "hours", "interval", "duration", "age", "money", "person"})
"""The kinds of answer without which a sentence answers nothing."""

_HEADER = re.compile(r"^\[(s\d+)\] (.*) \(([^()\n]*)\)$", re.MULTILINE)
_END = re.compile(r"(?<=[.!?])[\"”’)\]]*\s+(?=[\"“(\[]?[A-Z0-9À-Þ])|(?<=[。！？；])")
_ABBREVIATED = re.compile(
    r"(?:\b[A-Z]|\b(?:e\.g|i\.e|al|Dr|Mr|Mrs|Ms|Prof|St|Figs?|Eqs?|No|vs|cf|Sec|ca|approx|Jr|Sr))\.$"
)
_OPEN = re.compile(r"[\w,;(–-]$")
_ITEM = re.compile(r"^\s*(?:[-*•‣#>]|\d{1,3}[.)]\s|\[)")
_HEADING = re.compile(r"^#|›|\|")
_WRAPPED = 60
_BLANK = re.compile(r"\n[ \t]*\n+")
_ENDED = re.compile(r"[.!?:;。！？；][\"”’)\]]*$")
_SUBJECT = re.compile(r"((?:The |A |An )?[A-Z][\w’'-]+(?: [A-Z][\w’'-]+)*)")
_STARTS = frozenset(words("However Both First Then Two Three Today Here Finally Additionally"))
_BACK = re.compile(r"(?:It|He|She|They|This|These|Its|His|Her|Their)\b|[它他她]")
_ASKS = re.compile(r"[?？][\"”’)\]`*]*$")
_ARTICLE = re.compile(r"^\W*(?:what(?: is|[’']s) an? |define\b|what does\b)", re.IGNORECASE)
_ROW_SHOWN = re.compile(r"[^\s:,.][^:,.]*: [^:]+(?:, [^:,.]+: [^:]+)+\. \[s\d+\]")
_EXTREME = re.compile(
    r"\b(?:most|least|first|last|top|record|maximum|minimum|only|than (?:any|all)|\w{2,}est)\b", re.IGNORECASE
)
_PAIR = 2
_NOTE = re.compile(r"^(.*) \(source: (s\d+)[^()]*\)$")
_RULE = re.compile(r"^\|?(?:\s*:?-{2,}:?\s*\|)+\s*(?::?-{2,}:?\s*)?$")
_SAID_CELL = re.compile(r"[.。]$|(?:\S+\s+){5}")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a source as it was shown: `id` is what to cite, `location` where it lies."""

    id: str
    title: str
    location: str
    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence or a row of a table, and the `passage` and `paragraph` it stands in.

    The words that say what it is about, nearest first: its `own` (in `order`), those of the `earlier` sentences of its
    paragraph and of the heading, those of the title, those `around` it in its passage. `beside` are its neighbours'.
    """

    text: str
    raw: str
    before: str
    passage: Passage
    paragraph: str
    order: tuple[str, ...]
    own: frozenset[str]
    beside: frozenset[str]
    earlier: frozenset[str]
    title: frozenset[str]
    around: frozenset[str]


@dataclass(frozen=True, slots=True)
class Found:
    """The sentence that answers, the share of the question that it covers, and those of other sources `against` it."""

    sentence: Sentence
    coverage: float
    against: tuple[Sentence, ...] = ()

    @property
    def text(self) -> str:
        """The sentence with its id, as an answer cites it, and those that say otherwise."""
        told = [quoted(one) for one in (self.sentence, *self.against)]
        return " ".join([*told, DIFFER] if self.against else told)


def quoted(one: Sentence) -> str:
    """The sentence with its id; with the one before it, if it points back there."""
    mark = f" [{one.passage.id}]" if one.passage.id else ""
    lead = f"{one.before}{mark} " if points_back(one.text) and _ENDED.search(one.before) else ""
    return f"{lead}{plain.row(one.text) if ROW in one.text else one.text}{mark}"


def points_back(text: str) -> bool:
    """Whether a sentence begins with a word that stands for something said before it."""
    return bool(_BACK.match(text))


def is_row(text: str) -> bool:
    """Whether an answer shows a row of a table."""
    return bool(_ROW_SHOWN.match(text))


def _bare_row(one: Sentence) -> bool:
    """Whether a sentence is a row of a table in Markdown with more than a name and a value: cells without names."""
    cells = [cell for cell in one.raw.strip("| ").split("|") if cell.strip()]
    return one.raw.startswith("|") and len(cells) > _PAIR and not any(len(cell.split()) > _PAIR + 2 for cell in cells)


def passages(text: str) -> list[Passage]:
    """The passages in a result, each once; empty if it holds none."""
    heads = list(_HEADER.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    found = [
        Passage(head[1], head[2], head[3], text[head.end() : end].strip().removesuffix(f"[/{head[1]}]").strip())
        for head, end in zip(heads, ends, strict=False)
    ]
    return list(dict.fromkeys(found))


def noted(notes: Sequence[str]) -> list[Passage]:
    """The recalled notes that name a source, as passages of it."""
    return [Passage(match[2], "", "", match[1]) for note in notes if (match := _NOTE.match(note))]


def split(text: str) -> list[str]:
    """The sentences of a text; a row of a table, an item and a heading stand alone, broken lines are joined."""
    lines: list[str] = []
    for line in (line.strip() for line in text.splitlines()):
        wrapped = lines and len(lines[-1]) >= _WRAPPED and _OPEN.search(lines[-1]) and not _HEADING.search(lines[-1])
        if wrapped and line and ROW not in line and not _ITEM.match(line):
            lines[-1] = f"{lines[-1]} {line}"
        else:
            lines.append(line)
    found: list[str] = []
    for line in filter(None, lines):
        parts = [line] if ROW in line else [part.strip() for part in _END.split(line) if part and part.strip()]
        for at, part in enumerate(parts):
            if at and _ABBREVIATED.search(found[-1]):
                found[-1] = f"{found[-1]} {part}"
            else:
                found.append(part)
    return found


def sentences(read: Sequence[Passage]) -> list[Sentence]:
    """Every sentence of the passages once, in order."""
    found: dict[tuple[str, str], Sentence] = {}
    for passage in read:
        for one in _sentences(passage):
            found.setdefault((passage.id, one.text), one)
    return list(found.values())


@lru_cache(maxsize=512)
def _sentences(passage: Passage) -> tuple[Sentence, ...]:
    """The sentences of one passage; remembered, since a conversation shows the same passages at every turn."""
    found: list[Sentence] = []
    title, around = frozenset(words(passage.title)), frozenset(words(passage.text))
    heading: frozenset[str] = frozenset()
    for at, paragraph in enumerate(_BLANK.split(plain.prose(passage.text))):
        raws = split(paragraph)
        texts = _with_columns(raws, [plain.sentence(raw) for raw in raws])
        orders = [tuple(words(text)) for text in texts]
        held = [
            frozenset() if _ASKS.search(text) else frozenset(order) for text, order in zip(texts, orders, strict=True)
        ]
        if at == 0 and texts and not _ENDED.search(texts[0]):
            heading = held[0]
        for place, (raw, text, order) in enumerate(zip(raws, texts, orders, strict=True)):
            beside = frozenset().union(heading, *held[max(0, place - 1) : place + 2])
            earlier = frozenset().union(heading, *held[:place])
            before = texts[place - 1] if place else ""
            one = Sentence(text, raw, before, passage, paragraph, order, held[place], beside, earlier, title, around)
            if (held[place] or _ASKS.search(text)) and not _heads(raws, place):
                found.append(one)
    return tuple(found)


def _heads(raws: Sequence[str], at: int) -> bool:
    """Whether a line holds the names of a table's columns, and so answers nothing."""
    return bool(_RULE.match("".join(raws[at + 1 : at + 2]))) and ROW in raws[at]


def _with_columns(raws: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The texts, with each cell of a table in Markdown behind the name of its column, as rows of other files are."""
    told, names = list(texts), list[str]()
    for at, raw in enumerate(raws):
        cells = [plain.sentence(cell.strip()) for cell in raw.strip().strip("|").split("|")]
        if not raw.startswith("|"):
            names = []
        elif _heads(raws, at):
            names = cells
        elif len(cells) == len(names) > _PAIR and not _RULE.match(raw) and not any(map(_SAID_CELL.search, cells)):
            pairs = [f"{name}: {cell}" for name, cell in zip(names, cells, strict=True) if name and cell]
            told[at] = ROW.join(pairs)
    return told


@dataclass(frozen=True, slots=True)
class Query:
    """A question taken apart: what each of its words weighs, which are names, and which have to be covered."""

    text: str
    kind: str
    weights: dict[str, float]
    names: frozenset[str]
    rest: tuple[str, ...]
    measures: frozenset[str]
    category: frozenset[str]
    term: str
    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]

    def coverage(self, one: Sentence, near: Mapping[str, float]) -> float:
        """The share of the question that stands in a sentence and around it: of all of it, and of all but its names.

        `near` says how near each of the question's words stands.
        """
        parts = [self._share(near, self.weights), self._share(near, self.rest) * ENOUGH / ENOUGH_REST]
        if self.measures:
            parts.append(
                1.0
                if measures(self.measures, one.text, one.own) or sized(self.text, one.text)
                else 0.5
                if self.measures & one.beside
                else 0.0
            )
        return min(parts)

    def tells(self, one: Sentence) -> bool:
        """Whether the sentence says anything: no question, no code, and not only what the question says itself."""
        if _ASKS.search(one.text) or plain.is_code(one.raw) or not one.own - self.words:
            return False
        if " › " in one.text or (_bare_row(one) and operation(self.text)):
            return False
        if operation(self.text) in EXTREMES and ROW not in one.raw and not _EXTREME.search(one.text):
            return False
        if self.term and _ARTICLE.search(self.text) and not defines(one.text, self.term):
            return False
        if self.kind == "money" and not any(holds(word, one.own) for word in self.words):
            return False
        return self.kind != "person" or (holds_office(one.text, self.text) and did(self.text, one.own | one.beside))

    def score(self, one: Sentence, near: Mapping[str, float]) -> float:
        back = 0.9 if points_back(one.text) else BESIDE
        inside = {
            word: max(holds(word, one.own), (back if word in self.names else BESIDE) * near[word])
            for word in self.weights
        }
        score = 0.25 * self._share(inside, self.names) + 0.75 * self._share(inside, self.rest)
        score += 0.25 * fits(self.kind, one.text, self.text) if self.kind else 0.0
        score += 0.4 * bool(self.term and defines(one.text, self.term))
        score += 0.2 * measures(self.measures, one.text, one.own) + 0.15 * bool(self.category & one.own)
        score += 0.06 * min(3, len(self.pairs & set(pairwise(one.order))))
        bare = len(one.own) < 3 or one.raw.startswith("#") or one.text.endswith(":")
        return score - 0.2 * bare - 0.1 * (len(one.own) > 60)

    def near(self, word: str, one: Sentence) -> float:
        """How near a word stands to a sentence: in it, beside it; names also in what it goes on from, or around it."""
        if word not in self.names:
            return max(holds(word, one.own), holds(word, one.beside))
        if own := holds(word, one.own):
            return own
        other = 0.4 if subject(one) - self.words else 1.0
        dated = other if self.kind in ("date", "number") else 1.0
        far = (other if self.kind == "person" else dated) * 0.35 * holds(word, one.around)
        return max(dated * 0.8 * holds(word, one.earlier), dated * 0.6 * holds(word, one.title), far)

    def _share(self, held: Mapping[str, float], of: Iterable[str]) -> float:
        total = sum(self.weights[word] for word in of)
        return sum(self.weights[word] * held[word] for word in of) / total if total else 1.0


def subject(one: Sentence) -> set[str]:
    """The stems of the name that a sentence begins with, or the paragraph of one that points back or names nothing."""
    for text in (one.text, one.paragraph):
        begins = _SUBJECT.match(text)
        if begins and not points_back(text) and (own := set(keywords(begins[1])) - _STARTS):
            return own
    return set()


def query(question: str, candidates: Sequence[Sentence]) -> Query:
    """Rare words weigh more (BM25's weight), names and numbers half as much again, the noun of "which …" less."""
    asked, noun = keywords(question), category(question)
    if kind(question) == "money":  # a sum says by itself that it is paid
        asked = [word for word in asked if word not in PAID] or asked
    marked = names(question) & set(asked)
    collection = BM25([folded(one.text) for one in candidates])
    most = max(map(collection.weight, asked), default=1.0)
    lifted = marked | numbers(question)
    weights = {
        word: (1 + collection.weight(word) / most) * (1.5 if word in lifted else 0.5 if word in noun else 1.0)
        for word in asked
    }
    rest = tuple(word for word in asked if word not in marked)
    return Query(
        question,
        kind(question),
        weights,
        frozenset(marked),
        rest,
        measured(question),
        frozenset(noun),
        term(question),
        frozenset(words(question)),
        frozenset(pairwise(words(question))),
    )


def best(asked: Query, candidates: Sequence[Sentence]) -> list[tuple[float, float, Sentence]]:
    """Sentences with (score, coverage), best first, earlier first among equals."""
    if not asked.weights:
        return []
    ranked = []
    for one in candidates:
        near = {word: asked.near(word, one) for word in asked.weights}
        ranked.append((asked.score(one, near), asked.coverage(one, near), one))
    return sorted(ranked, key=lambda entry: -entry[0])


def find(question: str, read: Sequence[Passage], enough: float = ENOUGH) -> Found | None:
    """The sentence that answers the question, None if the passages do not hold the answer.

    Every name of the question has to stand where the sentence goes on from, every number in its paragraph.
    """
    candidates = sentences(read)
    asked, figures = query(question, candidates), numbers(question)
    literal = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)") for name in exact(question)]
    rows: set[Sentence] = set()

    def answers(one: Sentence, coverage: float) -> bool:
        row = blocks.row_of(one.raw, noted=not one.passage.location)
        told = blocks.answers(question, row, parts(one)) if row and asked.tells(one) else None
        if told:
            rows.add(one)
        return told if told is not None else coverage >= enough and about(one) and asked.tells(one)

    def about(one: Sentence) -> bool:
        named = all(asked.near(name, one) >= FARTHEST for name in asked.names)
        text = f"{one.passage.title}\n{one.paragraph}"
        return named and figures <= numbers(text) and all(form.search(folded(text).lower()) for form in literal)

    def parts(one: Sentence) -> list[tuple[str, str]]:
        """What was shown of the document that a row stands in; a note stands alone."""
        there = [other for other in read if other.location == one.passage.location] if one.passage.location else []
        return [(part.title, part.text) for part in there or [one.passage]]

    ranked = [entry for entry in best(asked, candidates) if answers(entry[2], entry[1])]
    fitting = [entry for entry in ranked if entry[2] in rows or fits(asked.kind, entry[2].text, question)]
    if not ranked or (asked.kind in HARD and not fitting):
        return None
    score, coverage, top = (fitting or ranked)[0]
    others = [one for points, _, one in fitting if points >= NEARLY * score]
    return Found(top, coverage, _against(question, top, others))


def _against(question: str, top: Sentence, others: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The sentences of other sources that state another value, each value once."""
    found = [top]
    for one in others:
        apart = one.passage.id != top.passage.id and (one.passage.location or "?") != top.passage.location
        rows = ROW in f"{one.text}{top.text}"
        if apart and not rows and all(differ(question, _stated(known), _stated(one)) for known in found):
            found.append(one)
    return tuple(found[1 : 1 + MOST])


def _stated(one: Sentence) -> Stated:
    return Stated(one.text, one.own, one.earlier | one.title)


def ranked(question: str, read: Sequence[Passage]) -> list[Sentence]:
    """All sentences, those that fit the question best first."""
    candidates = sentences(read)
    return [one for _, _, one in best(query(question, candidates), candidates)]
