"""Finding the sentence that answers a question, or finding that none does.

It covers every content word of the question and holds a value of the kind that is asked for; there are no synonyms.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from hira.core.bm25 import BM25, words
from hira.core.sources import ASKED, LISTED, LISTING, OUTPUT
from hira.core.tool import LEFT_OUT
from hira.evidence.passages import FENCE, Passages, begins_with_pointer, is_related, split_sentences

_HEADER = re.compile(r"^\[(s\d+)\] (.*) \(([^()\n]*)\)$", re.MULTILINE)
_MARKUP = re.compile(
    r"^[\s>#]*(?:[-*+•]\s+|\d{1,3}[.)]\s+|row \d+: )?|!?\[(?=[^\]]+\]\([^()\s]*\))|(?<=\w)\]\([^()\s]*\)"
    r"|\*\*|__|`+|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)"
)


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A part of a source as it was shown: `id` is what to cite, `location` where the source is."""

    id: str
    title: str
    location: str
    text: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as plain text, with the stems of its content words."""

    text: str
    id: str
    stems: frozenset[str]
    above: frozenset[str]
    """The stems of its title and heading."""
    before: frozenset[str]
    """The stems of the sentence before it to which its pronoun refers."""
    subject: str
    """The first of its stems, empty if it begins with a pronoun."""


def find_passages(text: str) -> list[ShownPassage]:
    """The passages that a prompt or a result shows, each once; of a call only the result."""
    heads = list(_HEADER.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    passages = list[ShownPassage]()
    for head, end in zip(heads, ends, strict=False):
        shown = text[head.end() : end].partition(f"[/{head[1]}]")[0]
        called = head[3].startswith("python:") or ASKED in shown
        parts = (shown.rpartition(OUTPUT)[2] if called else shown).split(LEFT_OUT)
        passages += [ShownPassage(head[1], head[2], head[3], part.strip()) for part in parts]
    return list(dict.fromkeys(passages))


def make_query(question: str) -> str:
    return " ".join([word for word in re.findall(r"[\w][\w’'./-]*", question) if words(word)][:24]) or question


def split_questions(text: str) -> list[str]:
    return list(dict.fromkeys(sentence for sentence in split_sentences(text) if sentence.endswith("?"))) or [text]


@lru_cache(maxsize=2_000)
def read_sentences(passage: ShownPassage) -> tuple[Sentence, ...]:
    """Return the sentences of a passage, without questions, headings, code, rows of tables and announcements."""
    read, sentences = Passages(FENCE.sub("\n", passage.text)), list[Sentence]()
    title = frozenset(words(passage.title))
    for index, (sentence, heading, before) in enumerate(
        zip(read.sentences, read.headings, read.antecedents, strict=True)
    ):
        text = " ".join(_MARKUP.sub("", sentence).replace(" | ", ", ").split())
        stems = words(text)
        heads = index in read.headings or text == passage.title
        if stems and not heads and sentence[0] not in "#|" and not text.endswith(("?", "？", ":", "...", "…")):
            above = title | frozenset(words(read.sentences[heading]) if heading >= 0 else ())
            held = frozenset(words(read.sentences[before]) if before >= 0 else ())
            subject = "" if before >= 0 and begins_with_pointer(sentence) else stems[0]
            sentences.append(Sentence(text, passage.id, frozenset(stems), above, held, subject))
    return tuple(sentences)


NOTHING = "The documents do not hold the answer in the words of this question"
UNSEARCHED = "I could not answer this question, because the run ended before any search was finished"
_LONGEST_REPEATED = 500
"""Characters of a question that a refusal repeats."""
NAME = r"[A-ZÀ-Þ][\w’'.-]*\w(?:\s+(?:(?:of|the|de|von|van)\s+)?[A-ZÀ-Þ][\w’'.-]*\w)*"
_FILLER = "many much per name call kind sort type exactly please tell give happen use"
_NUMBER = (
    r"(?:\d[\d.,]*|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|dozens?|hundreds?|thousands?)\b)"
)
_TIME = (
    r"\b\d{3,4}\b|\b(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|spring|summer|autumn|winter|noon|midnight)\b"
    r"|\b\d+(?:st|nd|rd|th) century\b|\b\d{1,2}:\d\d\b|\b\d{1,2} ?(?:o['’]clock|[ap]\.?m\b|Uhr\b)"
)
_PLACE = rf"\b(?:in|at|on|near|from|to|into|between|across|around)\s+(?:\w+\s+){{0,3}}{NAME}|[~\w.-]*/[\w./-]+"
_CAUSE = r"\b(?:because|since|so that|due to|in order to|as a result|therefore|owing to)\b"
_BE = "is|are|was|were"
_AUXILIARY = "do|does|did|can|could|to|would|should|has|have|had|will|may|must|might"
# What a question asks for, and how such a value looks. The group is a unit ("in which year") or a measure before a verb
# ("how long does … take"), for which a value is enough.
_KINDS = tuple(
    (re.compile(form, re.IGNORECASE), re.compile(value))
    for form, value in (
        (r"\bwho(?:m|se)?\b()", NAME),
        (r"\b(?:when|(?:what|which) (year|month|day|date|century|decade|time))\b", _TIME),
        (r"\bwhere\b()", _PLACE),
        (rf"\bhow (?!(?:{_BE}|{_AUXILIARY})\b)(?:(\w+)(?= (?:{_AUXILIARY})\b)|\w+)", _NUMBER),
        (r"\b(?:what|which) (?:percentage|number|amount|share)\b()", _NUMBER),
        (r"\bwhy\b()", _CAUSE),
    )
)
_DEFINES = re.compile(
    r"\W*+(?!.* (?:with|of|for|in|to|at|by|on|from)$)"
    rf"(?:what|who) (?:{_BE}) (?:an? |the )?([\w.’'-]+(?: [\w.’'-]+){{0,2}})",
    re.IGNORECASE,
)
_DENIES = re.compile(r"\b(?:not|no|never|none|neither|nor|unlike)\b|n[’']t\b", re.IGNORECASE)


def _read_question(question: str) -> tuple[frozenset[str], "re.Pattern[str] | None"]:
    """The stems that an answer has to cover, and the pattern of the value that it has to hold besides."""
    found = next(((match, value) for form, value in _KINDS if (match := form.search(question))), None)
    unit = words(found[0][1] or "") if found else ()
    return frozenset(words(question)).difference(words(_FILLER), unit), found and found[1]


def find_answer(question: str, passages: Sequence[ShownPassage]) -> Sentence | ShownPassage | None:
    """The list of the documents if a search found it, else the sentence that covers the question, denies what it
    denies, and adds a value of the wanted kind, or None."""
    for passage in passages:
        if passage.title == LISTING and passage.text.startswith(LISTED):
            return passage
    required, value = _read_question(question)
    known, denies = frozenset(words(question)), bool(_DENIES.search(question))
    definition = None
    if defined := _DEFINES.fullmatch(question.rstrip("?？ ")):  # by "A is …", "… is A" or "A: …"
        start, named = "" if " " in defined[1] else r"^\W*", rf"(?:an? |the )?\b{re.escape(defined[1])}\b"
        forms = rf"{start}{named}(?: \([^()]*\))? (?:{_BE})\b (?!not\b)|\w (?:{_BE}) {named}|^\W*{named}: \w"
        definition = re.compile(forms, re.IGNORECASE)
    for sentence in rank(question, passages):
        begins = not sentence.subject or is_related(sentence.subject, required)
        held = sentence.stems | (sentence.above | sentence.before if begins else frozenset())
        if denies != bool(_DENIES.search(sentence.text)) or not all(is_related(word, held) for word in required):
            continue
        if definition:
            fits = bool(definition.search(sentence.text))
        elif len(required) < 2 or not any(is_related(word, sentence.stems) for word in required):
            fits = False
        elif value:
            added = (word for match in value.finditer(sentence.text) for word in words(match[0]))
            fits = any(not is_related(word, known) for word in added)
        else:
            fits = not sentence.stems <= required
        if fits:
            return sentence
    return None


def cite(sentence: Sentence | ShownPassage) -> str:
    return f"{sentence.text} [{sentence.id}]" if sentence.id else sentence.text


def refuse(question: str, why: str = NOTHING) -> str:
    return f"{why}: {question[:_LONGEST_REPEATED]}{'…' * (len(question) > _LONGEST_REPEATED)}"


def rank(question: str, passages: Sequence[ShownPassage]) -> list[Sentence]:
    sentences = [sentence for passage in passages for sentence in read_sentences(passage)]
    scores = BM25([sentence.text for sentence in sentences]).scores(question)
    return [sentences[index] for index in sorted(range(len(sentences)), key=lambda index: -scores[index])]


def find_bridge(question: str, passages: Sequence[ShownPassage]) -> tuple[Sentence, str] | None:
    """A sentence that names what the question only describes, and the question with that name in its place: "Where was
    the architect of Varn Mill born?" becomes "Where was Ida Lorn born?". Of the sentences that cover every name of the
    question and more, the one that covers most is taken."""
    required, _ = _read_question(question)
    rewritings: list[tuple[int, Sentence, str]] = []
    names = frozenset(words(" ".join(re.findall(r"(?<=\s)[A-ZÀ-Þ]\S*", question))))
    for sentence in rank(question, passages):
        held = frozenset(word for word in required if is_related(word, sentence.stems | sentence.before))
        others = [name for name in re.findall(NAME, sentence.text) if words(name) and not re.match(_TIME, name)]
        others = [name for name in others if required.isdisjoint(words(name))]
        if names and names < held < required and others:
            rewritten = _replace_description(question, held, required - held, others[-1])
            rewritings += [(len(held), sentence, rewritten)] if rewritten != question else []
    return max(rewritings, key=lambda rewriting: rewriting[0])[1:] if rewritings else None


def _replace_description(question: str, held: frozenset[str], left: frozenset[str], name: str) -> str:
    """Return the question with a name in place of the words that describe it ("the architect of …"). Return it
    unchanged if no function word joins these, if others are between them, or if they name the kind of the answer."""
    matches = re.finditer(r"[^\W_][\w’'.-]*\w", question)
    spans = [(match.start(), match.end(), next(iter(words(match[0])), "")) for match in matches]
    positions = [place for place, (_, _, stem) in enumerate(spans) if stem in held]
    inside = [stem for _, _, stem in spans[positions[0] : positions[-1]]]
    if not set(inside).isdisjoint(left) or not ("" in inside or "'s " in question.replace("’", "'")):
        return question
    front = question[: spans[positions[0]][0]]
    if re.search(r"\b(?:which|what|how many)\s+$", front, re.IGNORECASE):
        return question
    before = re.sub(r"(?:\b(?:the|an?|whose|who|that)\s+)+$", "", front)
    return f"{before}{name}{question[spans[positions[-1]][1] :]}"
