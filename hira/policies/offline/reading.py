"""Finding the sentence that answers a question in passages that were read, or finding that there is none.

A sentence is scored by the share of the question's words that it and its neighbours hold (rare words weigh more, BM25's
weight), and by whether it holds something of the kind that is asked for: a number, a date, a name, a place. It answers
only if what stands around it covers enough of the question, every name and number of the question included.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hira.relevance import BM25, words

ENOUGH = 0.6
"""The least share of the question's weight that has to stand in a sentence, its neighbours and its title."""
BESIDE = 0.5
"""What a word is worth that stands beside a sentence and not in it."""
ROW = " | "

_HEADER = re.compile(r"^\[(s\d+)\] (.*) \(([^()\n]*)\)$", re.MULTILINE)
_END = re.compile(r"(?<=[.!?])[\"”’)\]]*\s+(?=[\"“(\[]?[A-Z0-9À-Þ])|(?<=[。！？；])")
_ABBREVIATED = re.compile(
    r"(?:\b[A-Z]|\b(?:e\.g|i\.e|al|Dr|Mr|Mrs|Ms|Prof|St|Figs?|Eqs?|No|vs|cf|Sec|ca|approx|Jr|Sr))\.$"
)
_OPEN = re.compile(r"[\w,;(–-]$")
_ITEM = re.compile(r"^\s*(?:[-*•‣#>]|\d{1,3}[.)]\s|\[)")
_HEADING = re.compile(r"^#|›|\|")
_WRAPPED = 60

NAME = r"[A-Z][\w’'-]*[\w]|[A-Z]"
_NAMED = re.compile(rf"\b(?:{NAME})\b|\b\w*[a-z][A-Z]\w*\b")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_COUNTED = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million)\b"
)
_DATED = re.compile(
    r"\b(?:1\d{3}|20\d\d)\b|\b\d{1,2}(?:st|nd|rd|th) century\b|\d+ ?年"
    r"|\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
)
_PLACED = re.compile(rf"\b(?:in|at|near|from|on|into|to|of|is)\s+(?:the\s+)?(?:\w+\s+)?(?:{NAME})|[在于位]")
_BECAUSE = re.compile(
    r"\b(?:because|since|due to|so that|in order to|as a result|therefore|hence|to avoid|caus\w+)\b|因"
)

_FIRST = r"^(?:(?!\b(?:wh(?:at|en|ere|y|ich|om?|ose)|how)\b).)*\b"  # no other question word before it
# the form of a question, and what an answer of that form holds
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("date", re.compile(rf"{_FIRST}when\b|\b(?:what|which) (?:year|date|month|century)\b|\bhow old\b|何时|哪一?年|什么时候")),
    (
        "number",
        re.compile(
            r"\bhow (?:many|much|long|far|tall|high|large|big|deep|wide|heavy|fast|often)\b"
            r"|\b(?:what|which) (?:\w+ )?(?:number|percentage|share|fraction|amount|rate|size|height|length|weight)\b"
            r"|\bpopulation\b|多少|几[个人次]|多[高长大远]"
        ),
    ),
    ("person", re.compile(rf"{_FIRST}who(?:m|se)?\b|谁")),
    (
        "place",
        re.compile(
            r"\bwhere\b|\b(?:what|which) (?:city|town|country|place|river|village|state|region)\b|哪里|在哪|何处"
        ),
    ),
    ("cause", re.compile(rf"{_FIRST}why\b|为什么|为何")),
)
_FORM = frozenset(
    words(
        "name many much long far tall high large big deep wide heavy fast often old year date month kind type number"
        " called exactly according please tell give list find get use used using work explain describe mean happen"
        " after before during each every"
    )
)
_CJK_FORM = re.compile(
    r"什么时候|什么|多少|哪一?[年个里座条]|在哪|何时|何处|为什么|为何|谁|是|的|了|吗|呢|有|几[个人次]|多[高长大远]"
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a source as it was shown: `id` is what to cite, `location` where it lies."""

    id: str
    title: str
    location: str
    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence or a row of a table, with what stands next to it (`beside`) and all of its passage (`around`)."""

    text: str
    passage: Passage
    own: frozenset[str]
    beside: frozenset[str]
    around: frozenset[str]


@dataclass(frozen=True, slots=True)
class Found:
    """The sentences that answer, each with the passage it stands in, and the share of the question they cover."""

    sentences: tuple[Sentence, ...]
    coverage: float

    @property
    def text(self) -> str:
        """The sentences with their ids, as an answer cites them."""
        return " ".join(f"{one.text} [{one.passage.id}]" for one in self.sentences)


def passages(text: str) -> list[Passage]:
    """The passages in a result, each once; empty if it holds none."""
    heads = list(_HEADER.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    found = [Passage(head[1], head[2], head[3], text[head.end() : end].strip()) for head, end in zip(heads, ends, strict=False)]
    return list(dict.fromkeys(found))


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
        texts = split(passage.text)
        held = [frozenset(words(text)) for text in texts]
        title = frozenset(words(passage.title))
        around = title.union(*held)
        for at, (text, own) in enumerate(zip(texts, held, strict=True)):
            near = title.union(*held[max(0, at - 1) : at], *held[at + 1 : at + 2])
            found.setdefault((passage.id, text), Sentence(text, passage, own, near - own, around))
    return list(found.values())


def keywords(question: str) -> list[str]:
    """The question's content words, stemmed, without those that only say what kind of answer is wanted."""
    return list(dict.fromkeys(word for word in words(_CJK_FORM.sub(" ", question)) if word not in _FORM))


def names(question: str) -> set[str]:
    """The stems of the names in a question: capitalised words but the first, and words written like iPhone."""
    first = re.match(r"\W*\w+", question)
    rest = question[first.end() :] if first else question
    lead = first[0].strip() if first else ""
    found = set(words(" ".join(match[0] for match in _NAMED.finditer(rest))))
    return found | (set(words(lead)) if lead[1:] != lead[1:].lower() else set())


def numbers(text: str) -> set[str]:
    return {number.replace(",", "").rstrip(".") for number in _NUMBER.findall(text)}


def kind(question: str) -> str:
    """What is asked for: "date", "number", "person", "place", "cause", or "" for anything else."""
    lowered = question.lower()
    return next((name for name, form in _KINDS if form.search(lowered)), "")


def fits(wanted: str, text: str, question: str) -> bool:
    """Whether the text holds something of the wanted kind that the question does not itself hold."""
    if wanted == "date":
        return any(match[0] not in question for match in _DATED.finditer(text))
    if wanted == "number":
        return bool(numbers(text) - numbers(question)) or bool(_COUNTED.search(text.lower()))
    if wanted == "person":
        known = set(words(question))
        return any(not set(words(match[0])) <= known for match in _NAMED.finditer(text) if words(match[0]))
    if wanted == "place":
        return bool(_PLACED.search(text))
    return bool(_BECAUSE.search(text.lower())) if wanted == "cause" else True


def holds(word: str, held: frozenset[str]) -> float:
    """1 if the word is held, 0.8 if one of its family is ("founder" for "founded"), else 0."""
    if word in held:
        return 1.0
    root = word[: max(5, len(word) * 7 // 10)]
    return 0.8 if len(root) >= 5 and any(other.startswith(root) for other in held) else 0.0


def best(question: str, read: Sequence[Passage], given: str = "") -> list[tuple[float, float, Sentence]]:
    """Sentences with (score, coverage), best first. `given` are notes whose words count as known already."""
    candidates = sentences(read)
    asked = keywords(question)
    if not candidates or not asked:
        return []
    weigh = _weights(asked, question, candidates, frozenset(words(given)))
    total = sum(weigh.values()) or 1.0
    marked = names(question)
    rest = [word for word in weigh if word not in marked]
    wanted = kind(question)
    pairs = set(pairwise(words(question)))
    ranked: list[tuple[float, float, Sentence]] = []
    for one in candidates:
        inside = {word: holds(word, one.own) for word in weigh}
        near = {word: max(inside[word], holds(word, one.around if word in marked else one.beside)) for word in weigh}
        coverage = sum(weigh[word] * near[word] for word in weigh) / total
        if rest:
            coverage = min(coverage, sum(weigh[word] * near[word] for word in rest) / sum(weigh[word] for word in rest))
        score = sum(weigh[word] * max(inside[word], BESIDE * near[word]) for word in weigh) / total
        score += 0.25 * fits(wanted, one.text, question) if wanted else 0.0
        score += 0.04 * min(3, len(pairs & set(pairwise(words(one.text)))))
        score -= 0.2 * (len(one.own) < 3 or one.text.startswith("#") or one.text.endswith("?")) + 0.1 * (
            len(one.own) > 60
        )
        ranked.append((score, coverage, one))
    return sorted(ranked, key=lambda entry: -entry[0])


def _weights(asked: list[str], question: str, candidates: list[Sentence], given: frozenset[str]) -> dict[str, float]:
    """What each word of the question weighs: rare ones more, names and numbers half as much again."""
    marked = names(question) | numbers(question)
    collection = BM25([one.text for one in candidates])
    most = max(map(collection.weight, asked))
    return {
        word: (1 + collection.weight(word) / most) * (1.5 if word in marked else 1.0) * (0.3 if word in given else 1.0)
        for word in asked
    }


def find(question: str, read: Sequence[Passage], given: str = "", enough: float = ENOUGH) -> Found | None:
    """One or two sentences that answer the question, None if the passages do not hold the answer."""
    covers = _covering(question, given)
    ranked = [entry for entry in best(question, read, given) if entry[1] >= enough and covers(entry[2])]
    if not ranked:
        return None
    wanted = kind(question)
    fitting = [entry for entry in ranked if fits(wanted, entry[2].text, question)]
    if wanted in ("date", "number") and not fitting:
        return None
    score, coverage, top = (fitting or ranked)[0]
    del score
    return Found((top,), coverage)


def _covering(question: str, given: str) -> Callable[[Sentence], bool]:
    """Whether every name and number of the question stands near a sentence: names in its passage, or in the notes."""
    wanted, figures = names(question), numbers(question)
    known = frozenset(words(given))

    def covers(one: Sentence) -> bool:
        text = f"{one.passage.title} {one.passage.text}"
        return all(holds(name, one.around | known) for name in wanted) and figures <= numbers(f"{text} {given}")

    return covers
