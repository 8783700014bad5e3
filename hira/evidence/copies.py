"""The check without a model: words confirm copies, and nothing else.

A claim is a copy of a sentence if the sentence, with what it leans on, has every content word of the claim, in the same
order, bound by the same light words, and neither a negation nor a condition more or less. A sentence leans on the
heading and the title above it, on the subject of the sentence that its pronoun refers to, and a row of a table on its
header. A copy may leave words out, but none that carries another: no head of a compound, no second part of an "and", no
other value in the same place.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from hira.core.patterns import compile_lazily
from hira.evidence.citations import BY_WORDS, Judgement
from hira.evidence.passages import (
    CONDITIONS,
    DENIALS,
    JOINS,
    Cell,
    Passages,
    Word,
    begins_with_pointer,
    is_related,
    is_row,
    read_words,
    takes_back,
)
from hira.evidence.verdicts import Verdict

NEAREST = 12
"""The number of sentences that are compared closely."""
COMMON = 5_000
"""A word in more sentences than this does not select a sentence on its own."""
LONGEST_VOICE = 40
"""The content words of a claim that is also compared in the other voice."""
REPEATED = 8
"""The number of places of one word in a sentence that are tried."""
MOST = 400
"""The number of content words of a claim; a longer one is not checked."""
ANY_LINK = "*"
"""The link of a word that a question brings: how it is bound, the question does not say."""
BARE = 3
"""A claim of at most this number of content words is an answer that makes sense only together with the question."""
_ASKING = frozenset(
    "what which who whom whose when where why how many much name tell give list me please exactly i we you us my our"
    " your".split()
)


_ASKING_ELSEWHERE = tuple(
    (frozenset(asking.split()), frozenset(helping.split()))
    for asking, helping in (
        ("wer wen wem wessen was wann wo wohin woher warum wieso wie viel viele welche welcher welches welchen welchem",
         "hat haben hatte hatten"),
        ("qui que quoi quand où pourquoi comment combien quel quelle quels quelles", "a ont avait fut t"),
        ("quién quiénes qué cuándo dónde cómo cuánto cuánta cuántos cuántas cuál cuáles", "ha han"),
        ("chi che cosa quando dove perché come quanto quanta quanti quante quale quali", "è ha hanno fu sono"),
        ("quem que quando onde como quanto quanta quantos quantas qual quais", "é foi"),
        ("wie wat wanneer waar waarom hoe hoeveel welke welk", "heeft hebben"),
    )
)  # fmt: skip
"""The asking and the helping words of German, French, Spanish, Italian, Portuguese and Dutch."""
_ASKING_KIND = frozenset(
    "welche welcher welches welchen welchem wie viel viele quel quelle quels quelles qué cuál cuánto cuánta cuántos"
    " cuántas quale quali quanto quanta quanti quante qual quais quantos quantas welke welk hoe hoeveel".split()
)
"""Those of them before the kind of thing that is asked for ("Quel jour", "In welchem Jahr")."""
_COUNTING = frozenset("many much viel viele combien cuántos cuántas quanti quante quantos quantas hoeveel".split())
"""Those before what is counted."""
_ASKING_UNSPACED = compile_lazily(
    "为什么|為什麼|什么|什麼|多少|怎么|怎麼|怎样|怎樣|何时|何時|何地|哪[里裡儿兒些个個]?|谁|誰|几|幾|吗|嗎|呢|何|いつ|どこ|どの|どれ|いくつ|いくら|なぜ"
)
"""The asking words of Chinese and Japanese, which no space sets apart."""


_QUESTION = compile_lazily(
    r"[?？؟]|^\W*(?:who|whom|whose|what|when|where|which|why|how|name|list|give|tell)\b", re.IGNORECASE
)


_AUXILIARY = compile_lazily(
    r"\b(?:is|are|was|were|do|does|did|has|have|had|will|would|can|could|should|must|may|might)\b", re.IGNORECASE
)


_BY = compile_lazily(r"\bby\b", re.IGNORECASE)
_ASKS_OBJECT = compile_lazily(
    r"\W*(?:wen|wem|wessen|(?:a|à|da|de|di|para|por|pour|avec|con)\s+(?:quién|quiénes|qui|quem|chi))\b", re.IGNORECASE
)
"""Questions of other languages that ask for the object: their statement has another order."""
_BINDING = ("by", "accusative", "dative")
"""Links that tell subject and object apart."""
_ALL = frozenset(
    "all every each any no none nothing nobody everyone everything everybody anyone anything daily".split()
)
_EXCEPTING = frozenset("except excluding exception exceptions ausgenommen 除外".split())
_PROVIDED = compile_lazily(r"\b(?:provided|providing|assuming|supposing) that\b", re.IGNORECASE)
_COPULA = compile_lazily(r"\W*(?:who|what|which)\s+(?:is|are|was|were)\b", re.IGNORECASE)
_LABEL = compile_lazily(
    r"(?:[-*+•‣>]\s+|\d{1,3}[.)]\s+)*[*_]{0,2}(?!(?:the|an?|this|that|there|it|he|she|they)\b)([^\W\d_][^:.!?;|]{0,60}):[*_]{0,2}\s(?=\S)",
    re.IGNORECASE,
)
"""A label before a value: "- **Founded:** 2019"."""
_BEFORE_CLAUSE = ("and", "but", "as", "because", "since", "while", "whereas", "although", "though")
"""Links after a comma that begin a clause that is a statement."""
_LABELLED_BY = frozenset(("", "be", "in", "be in", ANY_LINK))
"""The links between a label and its value in a sentence: "was founded in 2019", "the price is 48 euros"."""


@dataclass(frozen=True, slots=True)
class Question:
    """The content words of a question. `wanted` are those that an answer's evidence has to hold: not the asking words,
    and not the kind of thing that is asked for ("which river", "how long")."""

    words: tuple[Word, ...]
    wanted: tuple[Word, ...]
    role: Word | None = None
    """"president" of "who is the president of Orland?": whose bearer is asked for."""
    counted: tuple[Word, ...] = ()
    """"rooms" of "how many rooms does the inn have?"."""


_YEAR = compile_lazily(r"(?:1[5-9]|20)\d\d\Z")


def read_question(text: str) -> Question:
    """Return the words of a question; of a topic, which asks nothing, none is wanted."""
    if not _QUESTION.search(text):
        return Question(tuple(read_words(text)[:MOST]), ())
    words = tuple(read_words(_ASKING_UNSPACED.sub(" ", text))[:MOST])
    lower = [word.text.lower() for word in words]
    before = {"which", "how"}
    if _AUXILIARY.search(text):  # "What repels …?" asks for a thing
        before.add("what")
    kinds = {
        place
        for place, word in enumerate(words)
        if word.kind == "word"
        and (
            (word.link.endswith("which") and not (place == 0 and _COPULA.match(text)))
            or (place and word.close and lower[place - 1] in before)
            or lower[max(place - 1, 0) : place + 1] in (["much", "money"], ["much", "time"])  # units answer them
        )
    }
    asking = set(_ASKING)
    for words_asking, words_helping in _ASKING_ELSEWHERE:
        if not words_asking.isdisjoint(lower[:2]):
            asking |= words_asking | words_helping
            kinds |= {place for place, word in enumerate(words) if word.close and lower[place - 1] in _ASKING_KIND}
    wanted = tuple(
        word for place, word in enumerate(words) if not (word.light or lower[place] in asking or place in kinds)
    )
    return Question(words, wanted, _find_role(wanted) if _COPULA.match(text) else None, _find_counted(words))


def _find_counted(words: Sequence[Word]) -> tuple[Word, ...]:
    """Return the phrase after "how many"."""
    first = next((place + 1 for place, word in enumerate(words) if word.text.lower() in _COUNTING), len(words))
    counted = list(words[first : first + 1])
    if not counted or not (counted[0].close or counted[0].link == "of"):
        return ()
    for word in words[first + 1 :]:
        if not word.close:
            break
        counted.append(word)
    return (counted[0]._replace(link="", close=True), *counted[1:])


def _find_role(wanted: Sequence[Word]) -> Word | None:
    """Return the head of the first phrase, None if that is a name."""
    end = next((place for place, word in enumerate(wanted) if place and not word.close), len(wanted))
    return wanted[end - 1] if wanted and wanted[end - 1].kind == "word" else None


@dataclass(frozen=True)
class Sentence:
    """A sentence of a text with what it leans on.

    `context` are the words of the title and of the file's name; `record` is the call that produced the text, if a tool
    or a program did.
    """

    passages: Passages
    place: int
    context: frozenset[str]
    record: frozenset[str] | None = None

    @property
    def text(self) -> str:
        return self.passages.sentences[self.place]

    @cached_property
    def words(self) -> list[Word]:
        return self.passages.words(self.place)

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(word.key for word in self.words)

    @cached_property
    def topic(self) -> frozenset[str]:
        """The keys of the headings and of the title."""
        headings = self.passages.list_headings(self.place)
        return self.context.union(word.key for place in headings for word in self.passages.words(place))

    @cached_property
    def is_denied(self) -> bool:
        """True if the next sentence takes this one back: "This is a myth."."""
        following = self.passages.sentences[self.place + 1 : self.place + 2]
        return any(begins_with_pointer(other) and takes_back(read_words(other)) for other in following)

    @cached_property
    def conditions(self) -> set[str]:
        """The keys of the conditions in the headings: "Not allowed:"."""
        places = self.passages.list_headings(self.place)
        return {word.key for place in places for word in self.passages.words(place) if is_condition(word)}

    @cached_property
    def antecedent(self) -> list[Word]:
        """The words of the sentence to which the pronoun refers."""
        place = self.passages.antecedents[self.place]
        return self.passages.words(place) if place >= 0 else []

    @cached_property
    def subject(self) -> frozenset[str]:
        """The keys of what its pronoun means."""
        return frozenset(word.key for word in find_subject(self.antecedent))

    @cached_property
    def leads(self) -> frozenset[str]:
        """The keys that may replace the subject of the sentence: of its antecedent, else of what is above it."""
        named = any(word.kind == "name" for word in find_subject(self.antecedent))
        return self.subject if named else self.topic | self.subject

    @cached_property
    def header(self) -> frozenset[str]:
        """The keys of the names of a row's columns, and of the call that produced a result."""
        names = " ".join(cell.name for cell in self.cells) if self.is_row else ""
        return read_keys(names) | (self.record or frozenset())

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells of a row."""
        return self.passages.read_cells(self.place)

    @cached_property
    def value_start(self) -> int:
        """The place of the first word after the label ("Price: 48 euros"), 0 without a label."""
        label = None if self.is_row else _LABEL.match(self.text)
        return len(read_words(label[1])) if label else 0

    @cached_property
    def is_row(self) -> bool:
        return is_row(self.passages.sentences[self.place])

    @property
    def around(self) -> frozenset[str]:
        """All keys that count with the sentence without being in it."""
        return self.topic | self.subject | self.header

    @property
    def positions(self) -> dict[str, list[int]]:
        by_key: dict[str, list[int]] = {}
        for place, word in enumerate(self.words):
            by_key.setdefault(word.key, []).append(place)
        return by_key


def read_keys(text: str) -> frozenset[str]:
    """Return the keys of the content words of a text."""
    return frozenset(word.key for word in read_words(text))


def find_subject(words: Sequence[Word]) -> list[Word]:
    """Return the words of a sentence up to its verb, as far as words without grammar show it."""
    start = 0
    if words and words[0].link in ("in", "after", "before", "by", "for", "with"):  # "In 1912, Anna opened …"
        start = next((place for place, word in enumerate(words) if place and word.marked), len(words))
    subject: list[Word] = []
    for word in words[start:]:
        verb = subject and word.close and subject[-1].kind == "name" and word.kind == "word"
        if subject and (word.marked or word.link not in ("", "of", "in", "for", "near") or verb):
            break
        subject.append(word)
    return subject


def is_condition(word: Word) -> bool:
    """Return whether a statement with this word says something else without it. The month of May is no condition."""
    if word.kind == "number":
        return False
    lower = word.text.lower()
    return lower in CONDITIONS or lower.endswith(("n't", "n’t")) or (word.dense and word.text[0] in CONDITIONS)


def is_copy(claim: Sequence[Word], sentence: Sentence) -> bool:
    """Return whether a sentence says the claim in the claim's words."""
    if sentence.is_denied:
        return False
    ours, theirs = (
        [(word.key, word.link, place > 0 and word.marked and sentence.is_row) for place, word in enumerate(some)]
        for some in (claim, sentence.words)
    )
    if ours == theirs and not sentence.conditions:
        return True
    if _PROVIDED.search(sentence.text) and not any(_PROVIDED.match(f"{word.text} that") for word in claim):
        return False
    if sentence.is_row or sentence.record is not None:
        return _is_copied_record(claim, sentence)
    orders = [*list_orders(claim), *_put_label_first(claim, sentence)]
    return any(_Alignment(words, sentence).exists() for words in orders)


def _put_label_first(claim: Sequence[Word], sentence: Sentence) -> Iterator[list[Word]]:
    """Yield the claim in the order of a labelled value: "Founded: 2019" is "Otto Ltd was founded in 2019". The value
    follows the label in the claim; a figure may also come before it ("has 20 employees")."""
    label, value = sentence.words[: sentence.value_start], sentence.words[sentence.value_start :]
    keys = {word.key for word in label}
    places = [place for place, word in enumerate(claim) if word.key in keys]
    if not label or {claim[place].key for place in places} != keys:
        return
    values = {word.key for word in value} - sentence.topic
    for place, word in enumerate(claim[: places[-1]]):
        unit = word.close and place and claim[place - 1].kind == "number"
        if word.key in values and word.kind != "number" and not unit:
            return
    named = [claim[place] for place in places]
    in_order = [word.key for word in named] == [word.key for word in label]
    if not in_order and any(word.link for word in label):
        return
    rest = [word for word in claim if word.key not in keys]
    yield [*_bind(named if in_order else label, ""), *rest]


def list_orders(claim: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Yield the claim, and the orders of its words that state the same: "the author is Ida" and "Ida is the author",
    "in 1911 it burnt" and "it burnt in 1911"."""
    yield claim
    for place, word in enumerate(claim):
        if place and word.link == "be":
            first = word._replace(link="", marked=False)
            yield [first, *claim[place + 1 :], claim[0]._replace(link="be", close=False), *claim[1:place]]
    dates = [word.kind == "number" for word in claim]
    lead = next((place for place, date in enumerate(dates) if not date), 0)
    tail = len(dates) - next((place for place, date in enumerate(reversed(dates)) if not date), 0)
    if lead:
        yield [*claim[lead:], *claim[:lead]]
    dated = tail < len(claim) and claim[tail].link in ("", "in")
    if dated:
        yield [*claim[tail:], *claim[:tail]]
    whole, date = (claim[:tail], claim[tail:]) if dated else (claim, [])
    yield from ([*order, *date] for order in _list_voices(whole))


def _list_voices(claim: Sequence[Word]) -> Iterator[list[Word]]:
    """Yield "the mill was built by Ida" for "Ida built the mill", whichever word is the verb, and the other way."""
    if len(claim) > LONGEST_VOICE:
        return
    agent = next((place for place, word in enumerate(claim) if word.link == "by"), 0)
    if agent > 1 and claim[agent - 1].link == "be":
        patient, verb = claim[: agent - 1], claim[agent - 1]._replace(link="")
        yield [*_bind(claim[agent:], ""), verb, *_bind(patient, "")]
    for place in range(1, len(claim) - 1):
        if claim[place].kind == "word" and not claim[place].link and not claim[place + 1].link:
            verb = claim[place]._replace(link="be", close=False)
            yield [*_bind(claim[place + 1 :], ""), verb, *_bind(claim[:place], "by")]


def _bind(words: Sequence[Word], link: str) -> list[Word]:
    """Return a phrase that is bound by another link."""
    return [words[0]._replace(link=link, close=False, marked=False), *words[1:]]


def _is_copied_record(claim: Sequence[Word], sentence: Sentence) -> bool:
    """Compare a claim with a row or a tool's result, whose words have no order. A column that the claim names has its
    cell in the claim, and numbers are in the result, not in its call."""
    if sentence.is_row:
        return _fits_row(claim, [_read_cell(cell) for cell in sentence.cells], sentence)
    ours, theirs = ({word.key for word in some if is_condition(word)} for some in (claim, sentence.words))
    if ours != theirs | sentence.conditions:
        return False
    keys = {word.key for word in claim}
    if keys <= sentence.keys and keys.isdisjoint(_OPERATORS):
        return _is_in_order(claim, sentence)
    numbers = {word.key for word in claim if word.kind == "number"}
    computed = not numbers or not numbers.isdisjoint(sentence.keys)
    return computed and keys <= sentence.keys | sentence.around and not keys.isdisjoint(sentence.keys)


def _is_in_order(claim: Sequence[Word], sentence: Sentence) -> bool:
    """Return whether a tool's result has the words of a claim in their order."""
    last = -1
    for word in claim:
        later = [place for place in sentence.positions[word.key] if place > last]
        if not later:
            return False
        last = later[0]
    return True


_OPERATORS = frozenset("+ - − * / = ** < >".split())


_TELLING = frozenset(
    "role job post position title profession occupation function office type kind category status name year colour"
    " color size country region city rolle beruf amt funktion typ art land stadt farbe rôle fonction poste pays ville"
    " couleur cargo puesto país ciudad color 职务 职位 角色 类型 状态 国家 城市".split()
)
"""Names of columns that add nothing to a cell: "Ida is director" needs no "role"."""
_BEARING = frozenset("name holder person member nom nombre titular 姓名 名称".split())
"""Names of columns whose cells may be the subject of a row."""
_VOIDING = DENIALS | frozenset(
    "excluded rejected cancelled canceled withdrawn void invalid negative nein non 否".split()
)
"""Cells of one word without which no other cell of their row is said."""


class _CellKeys(NamedTuple):
    """The keys of a cell: of its column's name, whose light words count, and of its text. A claim names the column by
    one of the words in `mark`. A year is no `figure`. Without the conditions no claim has the cell (`limits`), or even
    another cell of its row (`bars`)."""

    name: frozenset[str]
    text: frozenset[str]
    figure: bool
    mark: frozenset[str]
    limits: frozenset[str]
    bars: frozenset[str]


def _read_cell(cell: Cell) -> _CellKeys:
    words = read_words(cell.text)
    year = len(words) == 1 and len(words[0].text) == len("2026") and words[0].text[:2] in ("18", "19", "20")
    light = frozenset(word for word in cell.name.lower().split() if not read_words(word))
    figure = bool(words) and words[0].kind == "number" and not year
    text = frozenset(word.key for word in words)
    bars = text if cell.text.lower() in _VOIDING else frozenset(word.key for word in words if is_condition(word))
    name = read_words(cell.name)
    content, limits = read_keys(cell.name), frozenset(word.key for word in name if is_condition(word))
    return _CellKeys(content | light, text, figure, content or light, limits, bars)


def _fits_row(claim: Sequence[Word], cells: Sequence[_CellKeys], sentence: Sentence) -> bool:
    """Return whether a row says a claim. The claim has whole cells, and says which row it is about and which columns
    they are in; a column that the claim names comes with its cell, in the same order."""
    places: dict[str, int] = {}
    for place, word in enumerate(claim):
        for key in (word.key, *word.link.split()):
            places.setdefault(key, place)
    keys = {word.key for word in claim}
    held = [cell for cell in cells if cell.text and cell.text <= keys]
    values = frozenset[str]().union(*(cell.text for cell in held))
    names = frozenset[str]().union(*(cell.name for cell in cells))
    if not held or not keys <= values | names | sentence.topic:
        return False
    theirs = sentence.conditions.union(*(cell.limits for cell in held), *(cell.bars for cell in cells))
    if not {word.key for word in claim if is_condition(word)} <= theirs <= keys:
        return False
    if not (_names_columns(held, cells, set(places)) and _picks_row(held, cells, sentence)):
        return False
    named = [cell for cell in cells if cell.name and cell.name <= places.keys() and not cell.name <= values]
    return all(cell in held for cell in named) and _keeps_columns(claim, named, values, places)


def _keeps_columns(
    claim: Sequence[Word], named: Sequence[_CellKeys], values: frozenset[str], places: dict[str, int]
) -> bool:
    """Return whether a claim gives the columns that it names their own cells: directly after the name, as in "the
    manager of the branch Moss", else in the same order."""
    bound = []
    for column, word in pairwise(claim):
        whose = [cell for cell in named if column.key in cell.name]
        inside = [cell for cell in whose if word.key in cell.text]
        # "the manager of Ida" is in another cell than Ida, unless the column is named "manager of"
        turned = any((cell in inside) != ("of" in cell.name) for cell in whose)
        if turned and "of" in word.link.split() and word.kind != "number" and word.key in values:
            return False
        if word.close and whose and not inside and any(word.key in cell.text for cell in named):
            return False
        bound += inside if word.close else []
    loose = [cell for cell in named if cell not in bound]
    by_name = sorted(loose, key=lambda cell: min(places[key] for key in cell.name))
    return by_name == sorted(loose, key=lambda cell: min(places[key] for key in cell.text))


def _names_columns(held: Sequence[_CellKeys], cells: Sequence[_CellKeys], places: set[str]) -> bool:
    """Return whether a claim has a word of each cell's column that no other column's name has as well. Without one
    come the subject of the row, and cells of a column whose name tells nothing."""
    unnamed = [cell for cell in held if cell.name and cell.mark.isdisjoint(places)]
    subjects = [cell for cell in unnamed if not cell.mark <= _TELLING]
    if len(subjects) > 1 or any(cell.figure for cell in unnamed):
        return False
    if subjects and len(unnamed) > 1 and subjects[0] is not cells[0] and not subjects[0].mark <= _BEARING:
        return False
    partly = [cell.mark.intersection(places) for cell in held if cell not in unnamed and not cell.mark <= places]
    return not any(mark and sum(mark <= cell.mark for cell in cells) > 1 for mark in partly)


def _picks_row(held: Sequence[_CellKeys], cells: Sequence[_CellKeys], sentence: Sentence) -> bool:
    """Return whether a claim with these cells of a row is about no other row near it: "the price is 5 euros" is about
    each row of prices."""
    if cells[0] in held or (len(held) > 1 and not all(cell.figure for cell in held)):
        return True
    ours = [cell for cell in sentence.cells if cell.name and _read_cell(cell) in held]
    near = range(max(sentence.place - 2, 0), min(sentence.place + 3, len(sentence.passages.sentences)))
    rows = [dict(sentence.passages.read_cells(place)) for place in near if is_row(sentence.passages.sentences[place])]
    return not any(row.get(cell.name, cell.text) != cell.text for row in rows for cell in ours)


class _Alignment:
    """The ways to find the words of a claim in a sentence, in order."""

    def __init__(self, claim: Sequence[Word], sentence: Sentence) -> None:
        self.claim, self.sentence, self.words = claim, sentence, sentence.words
        label = {word.key for word in self.words[: sentence.value_start]}
        self.value_start = sentence.value_start if label <= {word.key for word in claim} else 0

    def exists(self) -> bool:
        """Step from each word of the claim to the next; a state is the last matched position and whether words of what
        the sentence leans on follow it."""
        states: set[tuple[int, bool]] = {(-1, False)}
        positions = self.sentence.positions
        leans = any(word.key not in positions for word in self.claim)
        least = self.sentence.value_start if leans else 0  # of "Teacher: Ida" under "Otto" no one says that he is one
        for number, word in enumerate(self.claim):
            after = {
                (place, False)
                for before, leaning in states
                for place in positions.get(word.key, ())[:REPEATED]
                if place > before and self._follows(number, before, place, leaning=leaning)
            }
            after |= {(before, True) for before, leaning in states if self._leans(number, before)}
            states = after
            if not states:
                return False
        return any(place >= least and not leaning and self._ends(place) for place, leaning in states)

    def _leans(self, number: int, before: int) -> bool:
        """Return whether a word of the claim may replace what the sentence leans on: its subject, or "of" a
        heading."""
        word = self.claim[number]
        if before < 0:
            return word.key in self.sentence.leads and self._names_subject()
        known = word.key in self.sentence.topic or word.key in self.sentence.subject
        elsewhere = word.key not in self.sentence.keys and number + 1 < len(self.claim)
        return known and elsewhere and word.link in ("", "of", "in", ANY_LINK)

    def _names_subject(self) -> bool:
        """Return whether the claim has the head of what the pronoun means, "weir" of "the weir on the Ebble"."""
        subject = find_subject(self.sentence.antecedent)
        end = next((place for place, word in enumerate(subject) if place and word.link), len(subject))
        heads = [word for word in subject[:end] if word.kind == "name"] or subject[:end][-1:]
        return not heads or any(word.key in {claimed.key for claimed in self.claim} for word in heads)

    def _follows(self, number: int, before: int, place: int, *, leaning: bool) -> bool:
        """Return whether the claim's word may be the one at `place`, if the word before it is the one at `before`."""
        claimed = self.claim[number]
        skipped = self.words[before + 1 : place]
        if before < 0:
            return self._begins(claimed, place, leaning=leaning)
        phrase = self._find_phrase(place, before)
        word = self.words[phrase]
        labelled = 0 < self.value_start <= phrase and word.marked and not word.link
        if labelled:  # the colon may stand for "is" and "in", before a figure for "of": "a total of 20 euros"
            total = claimed.kind == "number" and claimed.link == "of"
            alike = total or claimed.link in _LABELLED_BY
        else:
            alike = _is_bound_alike(claimed, word, apart=bool(skipped))
        if self._loses_part(place, before) or not alike:
            return False
        if labelled or not skipped:
            return not any(other.kind == self.words[place].kind for other in skipped)
        if leaning:
            return False
        if skipped[0].marked and word.marked:
            return True
        return not (
            (skipped[0].close and not (skipped[0].kind == "number" != self.words[before].kind))
            or any(begins_another(other) for other in [*skipped, word])
            or any(other.marked for other in skipped[1:])
            or any(other.kind == self.words[place].kind != "word" and other.link == word.link for other in skipped)
        )

    def _find_phrase(self, place: int, before: int) -> int:
        """Return where the phrase begins that ends with the word at `place`: "the smith" of "the smith Jonas"."""
        while self.words[place].close and not self.words[place].dense and place - 1 > before:
            place -= 1
        return place

    def _begins(self, claimed: Word, place: int, *, leaning: bool) -> bool:
        """Return whether a claim may begin with the word at `place`: where a statement begins, or where the subject is
        a pronoun or missing."""
        skipped = self.words[:place]
        if any(is_condition(other) for other in skipped):
            return False
        if leaning:
            ours = {other.key for other in self.claim}
            return all(other.light or other.kind == "number" or other.key in ours for other in skipped)
        start = next((index for index in range(place, 0, -1) if self.words[index].marked), 0)
        while start < place and (self.words[start].kind == "number" or self.words[start].light):
            start += 1
        phrase = self._find_phrase(place, -1)
        links = (claimed.link, "", *(_BEFORE_CLAUSE if self.words[phrase].marked else ()))
        bound = phrase <= start and (
            self.words[phrase].link in links or (claimed.link == ANY_LINK and self.words[phrase].link != "of")
        )
        return bound and not self._loses_part(place, start - 1)

    def _loses_part(self, place: int, before: int) -> bool:
        """Return whether a word loses the one directly before it: "South Dakota", "a former painter". A name may lose
        what it is introduced by: "the smith Jonas"."""
        word, previous = self.words[place], self.words[place - 1]
        introduced = (
            word.kind == "name" and previous.kind == "word" and self.words[self._find_phrase(place, -1)].determined
        )
        return place - 1 > before and word.close and not (introduced or previous.kind == "number")

    def _ends(self, place: int) -> bool:
        """Return whether a claim may end with the word at `place`: the next one does not belong to it, and no condition
        follows."""
        rest = self.words[place + 1 :]
        inside = bool(rest) and rest[0].close and (not rest[0].dense or rest[0].text[-1] in "的之の")
        if rest and (inside or {"or", "than"} & set(rest[0].link.split())):
            return False
        if rest and (self._qualifies(place, rest[0]) or self._is_excepted(place, rest[0])):
            return False
        clause = next((index for index, word in enumerate(rest) if word.marked or begins_another(word)), len(rest))
        ours = {word.key for word in self.claim if is_condition(word)}
        theirs = {word.key for word in [*self.words[: place + 1], *rest[:clause]] if is_condition(word)}
        return ours == theirs | self.sentence.conditions and not takes_back(rest)

    def _qualifies(self, place: int, word: Word) -> bool:
        """Return whether a word limits the quantity that ends at `place`: "5 percent at most", "30 euros an hour",
        "12 euros for children"."""
        last = self.words[place]
        unit = place > 0 and last.close and self.words[place - 1].kind == "number"
        if unit and _YEAR.match(self.words[place - 1].text):  # "the 2023 summit of ASEAN" counts nothing
            return False
        if word.marked or not (unit or last.kind == "number"):
            return False
        links = set(word.link.split())
        limits = {"per", "of", "for"} if unit else {"per", "of"}
        each = unit and word.determined and not links
        dated = links == {"as", "of"}
        return each or bool(links & limits and not dated) or ("in" in links and word.text in ("most", "least"))

    def _is_excepted(self, place: int, word: Word) -> bool:
        """Return whether the words from `word` on name what "all" does not hold for: "every day but Monday"."""
        later = {other.text.lower() for other in self.words[place + 1 :]}
        if not _EXCEPTING.isdisjoint(later - {other.text.lower() for other in self.claim}):
            return True
        return "but" in word.link.split() and not _ALL.isdisjoint(self.sentence.text.lower().split())


def begins_another(word: Word) -> bool:
    """Return whether a word begins another statement, or another part of a list."""
    return not JOINS.isdisjoint(word.link.split())


def _is_bound_alike(claimed: Word, word: Word, *, apart: bool = False) -> bool:
    """Return whether two words are bound by the same light words, or `apart` from what is left out before them by the
    same last one. A comma before an article may replace "is"."""
    ours, theirs = (term.link.rpartition(" ")[2] if apart else term.link for term in (claimed, word))
    if claimed.link == ANY_LINK:
        return not (apart and theirs == "of")
    return ours == theirs or (ours == "be" and not theirs and word.marked and word.determined)


class Comparison:
    """A claim compared with one text.

    Attributes:
        copied: True if a sentence says it.
        quote: The sentence that says it, or the nearest one; a row with its header.
        score: The share of the claim's words, rare ones weighing more, in that sentence with what it leans on.
        missing: The words of the claim that neither the sentence nor what it leans on has.
        sentence: The sentence that is quoted, None if the text has no word of the claim.
    """

    def __init__(
        self, claim: Sequence[Word], passages: Passages, context: frozenset[str], record: frozenset[str] | None
    ) -> None:
        self.copied, self.quote, self.score = False, "", 0.0
        self.missing: tuple[str, ...] = ()
        self.sentence: Sentence | None = None
        size = len(passages.sentences) + 5
        counts = {word.key: len(passages.postings.get(word.key, ())) for word in claim}
        weights = {key: math.log(1 + size / (1 + count)) for key, count in counts.items()}  # rare words weigh more
        for sentence in find_nearest(weights, passages, context, record):
            held = sentence.keys | sentence.around
            score = sum(weight for key, weight in weights.items() if key in held) / sum(weights.values())
            copied = score > 1 - 1e-9 and is_copy(claim, sentence)
            if self.sentence is None or (copied, score) > (self.copied, self.score):
                self.sentence, self.copied, self.score = sentence, copied, score
                self.quote = passages.quote(sentence.place)
                lacking = [word for word in claim if word.key not in held]
                content = [word for word in lacking if not word.light] or lacking
                self.missing = tuple(dict.fromkeys(word.text for word in content))
            if copied:
                break


def find_nearest(
    weights: dict[str, float], passages: Passages, context: frozenset[str], record: frozenset[str] | None
) -> list[Sentence]:
    """Return the sentences that hold most of the claim, best first; what they lean on counts a little less."""
    listed = [(weight, passages.postings[key]) for key, weight in weights.items() if key in passages.postings]
    rare = [(weight, places) for weight, places in listed if len(places) <= COMMON]
    totals: Counter[int] = Counter()
    for weight, places in rare or [(weight, places[:COMMON]) for weight, places in listed]:
        for place in places:
            totals[place] += weight  # type: ignore[assignment]
    nearest = [
        Sentence(passages, place, context, record)
        for place, _ in totals.most_common(3 * NEAREST)
        if not passages.sentences[place].rstrip("\"'”’»)").endswith(("?", "？", "؟"))  # a question states nothing
    ]

    def rate(sentence: Sentence) -> float:
        around = sentence.around
        return sum(
            weight if key in sentence.keys else 0.9 * weight
            for key, weight in weights.items()
            if key in sentence.keys or key in around
        )

    return sorted(nearest, key=lambda sentence: (-rate(sentence), sentence.place))[:NEAREST]


def check_words(
    claim: str, passages: Passages, *, question: str = "", context: str = "", record: str | None = None
) -> Judgement:
    """Compare one claim with one text, by words alone. The quote is the sentence nearest to the claim.

    Args:
        claim: One statement, without citation marks. If it has more than `MOST` content words, it is `unchecked`.
        passages: The text, as `Passages`.
        question: The question. A bare answer ("Jakarta") is read together with it.
        context: The title and the name of the text: a sentence leans on them.
        record: The call that produced the text, if a tool or a program did: its words count with the result.
    """
    words = read_words(claim)
    if not words or not passages.sentences or len(words) > MOST:
        return Judgement(Verdict.UNCHECKED, by=BY_WORDS)
    above = frozenset(word.key for word in read_words(context))
    called = None if record is None else read_keys(record)
    asks = read_question(question)
    wanted = asks.wanted
    if called is not None:
        words = [word for word in words if word.text != "="]
    compared = Comparison(words, passages, above, called)
    if words[0].light and not compared.copied:
        replaced = _replace_pronoun(words, wanted)
        compared = Comparison(replaced, passages, above, called)
        words = list(replaced) if compared.copied else words
    wanted_keys = {word.key for word in wanted}
    value = [word for word in words if word.key not in wanted_keys and not word.light]
    in_row = compared.sentence is not None and compared.sentence.is_row and len(value) < len(words)
    whole = compared.sentence is not None and _list_keys(words) == _list_keys(compared.sentence.words)
    # without its question, a name or a number alone says nothing, and neither do two characters of Chinese
    states = any(word.kind == "word" and (not word.dense or len(words) > BARE) for word in words)
    full = compared.copied and (in_row or whole or states)
    if question and record is None and len(value or words) <= BARE:
        judged = _check_answer(value or words, words, question, passages, above)
        if judged.verdict is Verdict.SUPPORTED or not full:
            return judged
    if compared.sentence is None:
        verdict = Verdict.UNSUPPORTED if is_comparable(claim, passages) else Verdict.UNCHECKED
        return Judgement(verdict, by=BY_WORDS, missing=tuple(dict.fromkeys(word.text for word in words)))
    if not compared.copied:
        score = min(compared.score, 0.99)
        return Judgement(Verdict.UNSUPPORTED, score, compared.quote, by=BY_WORDS, missing=compared.missing)
    lacking = find_lacking(wanted, words, compared.sentence)
    if asks.role and asks.role.text not in lacking and _names_other_role(words, asks):
        lacking = (asks.role.text, *lacking)
    return Judgement(Verdict.SUPPORTED, 1.0, compared.quote, by="quote" if whole else BY_WORDS, lacking=lacking)


def _list_keys(words: Sequence[Word]) -> list[str]:
    return [word.key for word in words]


def _names_other_role(claim: Sequence[Word], question: Question) -> bool:
    """Return whether a claim has the role that a question asks for as a part of another one only: "the vice president"
    and "the son of the president" are not the president, whereas "its president" is."""
    asked_keys = {word.key for word in question.words}

    def is_narrowed(place: int) -> bool:
        before, role = claim[place - 1], claim[place]
        return (role.close and not before.light and before.key not in asked_keys) or "of" in role.link.split()

    places = [place for place, word in enumerate(claim) if question.role and word.key == question.role.key]
    return bool(places) and all(place and is_narrowed(place) for place in places)


def _replace_pronoun(words: Sequence[Word], wanted: Sequence[Word]) -> Sequence[Word]:
    """Return a claim that begins with a pronoun ("It was built in 1742") with the thing that the question asks about in
    its place."""
    known = {word.key for word in words}
    subject = [word for word in wanted if word.key not in known]
    return [subject[0]._replace(link=""), *subject[1:], *words[1:]] if subject else words


def _check_answer(
    answer: Sequence[Word], claim: Sequence[Word], question: str, passages: Passages, above: frozenset[str]
) -> Judgement:
    """Put an answer of a few words into the gap of its question ("Ida built the mill" for "who built the mill?"), and
    compare that with the sentence that has most of it. The claim may repeat words of the question, in that order."""
    if _ASKING_UNSPACED.search(question):  # the answer belongs where the asking word is
        text = "".join(word.text[-1] if word.dense and word.close else word.text for word in claim)
        stated = _ASKING_UNSPACED.sub(lambda _: text, question.rstrip("?？吗嗎呢か "), count=1)
        placed = Comparison(read_words(stated), passages, above, None)
        if placed.copied:
            return Judgement(Verdict.SUPPORTED, 1.0, placed.quote, by=BY_WORDS)
    wanted = read_question(question).wanted
    compared = Comparison([*answer, *wanted], passages, above, None)
    if compared.sentence is None:
        return Judgement(Verdict.UNSUPPORTED, by=BY_WORDS, missing=tuple(word.text for word in answer))
    sentence = compared.sentence
    value = list(answer)
    if sentence.is_row:  # "which city": the kind of thing that is asked for is the name of a column
        kinds = [word for word in read_question(question).words if word.key in sentence.header and word not in wanted]
        value = [*kinds, answer[0]._replace(close=bool(kinds)), *answer[1:]]
    absent = [word.text for word in answer if word.key not in sentence.keys | sentence.header]
    lacking = find_lacking(wanted, [*answer, *sentence.words], sentence)
    missing = tuple(dict.fromkeys([*absent, *(word.text for word in claim if word.text in lacking)]))
    statements = [order for order in _fill_gap(value, wanted, question, sentence) if _states(claim, answer, order)]
    if missing or lacking or not any(is_copy(order, sentence) for order in statements):
        score = min(compared.score, 0.99)
        return Judgement(Verdict.UNSUPPORTED, score, compared.quote, by=BY_WORDS, missing=missing, lacking=lacking)
    return Judgement(Verdict.SUPPORTED, 1.0, compared.quote, by=BY_WORDS)


def _states(claim: Sequence[Word], answer: Sequence[Word], statement: Sequence[Word]) -> bool:
    """Return whether the words of a claim have the order that they have in a statement, in either voice. A claim with
    no more words than the answer has no order."""
    words = [word for word in claim if not word.light]
    return len(words) <= len(answer) or any(_is_part(order, statement) for order in list_orders(words))


def _is_part(claim: Sequence[Word], statement: Sequence[Word]) -> bool:
    """Return whether a statement has the words of a claim in their order, and "by" before the same ones."""
    rest = iter(statement)
    return all(
        any(
            is_related(word.key, {other.key}) and word.link.endswith("by") == other.link.endswith("by")
            for other in rest
        )
        for word in claim
    )


def _fill_gap(
    answer: Sequence[Word], wanted: Sequence[Word], question: str, sentence: Sentence
) -> Iterator[Sequence[Word]]:
    """Yield the statements that an answer makes of its question. A word of the question is compared in the form that
    the sentence has, with any light word before it; only "by" must be the same, which tells who does it."""
    asks_by = _BY.search(question) is not None and not any(word.link.endswith("by") for word in wanted)
    value = [answer[0]._replace(link="by" if asks_by else ANY_LINK), *answer[1:]]
    keys = sentence.keys | sentence.topic | sentence.subject
    rest = [
        word._replace(
            key=next((key for key in keys if is_related(word.key, {key})), word.key),
            link=word.link if sentence.is_row or word.link.endswith(_BINDING) else ANY_LINK,
        )
        for word in wanted
    ]
    helped = _AUXILIARY.search(question)
    if _ASKS_OBJECT.match(question):
        return
    if counted := read_question(question).counted:
        counts = {word.key for word in counted}
        value += [word for word in counted if word.key not in {other.key for other in answer}]
        others = [word for word, asked in zip(rest, wanted, strict=True) if asked.key not in counts]
        yield from ([*others[:place], *value, *others[place:]] for place in range(len(others) + 1))
        return
    if helped:
        yield [*rest, *value]
    if not helped or _COPULA.match(question):
        yield [*value, *rest]
    if not helped and rest:
        bound = [word._replace(link=asked.link) for word, asked in zip(rest[1:], wanted[1:], strict=True)]
        yield [*_bind(answer, ""), rest[0]._replace(link=""), *bound]


def find_lacking(wanted: Sequence[Word], claim: Sequence[Word], sentence: Sentence) -> tuple[str, ...]:
    """Return the words of a question that a claim does not have, with what its sentence leans on. A claim that holds
    may answer another question; what a tool returned was asked for."""
    if sentence.record is not None:
        return ()
    wanted_keys = {word.key for word in wanted}
    others = {
        word.key
        for place, word in enumerate(sentence.words)
        if place
        and word.link == "of"
        and word.kind == "name"
        and not is_related(sentence.words[place - 1].key, wanted_keys)
    }
    keys = sentence.around | {word.key for word in [*claim, *sentence.antecedent]}
    places = [sentence.positions[word.key][0] for word in claim if word.key in sentence.keys]
    if places and max(places) >= sentence.value_start > 0:  # a value has the words of its label
        places.append(0)
    if places:  # what is said between the words of the claim
        keys |= {word.key for word in sentence.words[min(places) : max(places) + 1]}
    keys = keys - others | sentence.topic  # "the son of Otto" does not speak of Otto
    return tuple(dict.fromkeys(word.text for word in wanted if not is_related(word.key, keys)))


def holds_values(claim: str, quote: str, text: str, context: str) -> bool:
    """Return whether a quotation holds the names and numbers of a claim, with what its sentences lean on."""
    passages = Passages(text)
    above = read_keys(context)
    inside: set[str] = set(above | read_keys(quote))
    groups: list[set[str]] = []
    for place, sentence in enumerate(passages.sentences):
        ours, theirs = (" ".join(word.key for word in read_words(some)) for some in (quote, sentence))
        if not (ours and theirs) or not (ours in theirs or theirs in ours):
            continue
        read = Sentence(passages, place, above)
        if theirs in ours:
            inside |= read.keys | read.around
        else:
            groups.append(
                set(read.around | (read.keys if read.is_row else {word.key for word in find_subject(read.words)}))
            )
    words = read_words(claim)
    named = words[1:2] and words[1].kind == "name" and words[1].close
    named = named or (words[:1] and _is_name(words[0], passages))
    values = {
        word.key
        for place, word in enumerate(words)
        if word.kind == "number" or (word.kind == "name" and (place or named))
    }
    return any(values <= inside | group for group in groups or [set()])


def _is_name(word: Word, passages: Passages) -> bool:
    """Return whether the first word of a claim is a name in the text, where it is always capitalised, also within a
    sentence."""
    inside = [other for place in passages.postings.get(word.key, ()) for other in passages.words(place)[1:]]
    kinds = {other.kind for other in inside if other.key == word.key}
    return word.kind == "name" and kinds == {"name"}


def is_comparable(claim: str, passages: Passages) -> bool:
    """Return whether claim and text share a script."""
    letters = {read_script(char) for char in claim if char.isalpha()}
    there = {read_script(char) for sentence in passages.sentences[:50] for char in sentence if char.isalpha()}
    return not letters or not there or bool(letters & there)


def read_script(char: str) -> int:
    """Return a rough block of Unicode: Latin with its accents is one, Han and kana are one, others by 256 letters."""
    point = ord(char)
    if point < 0x250 or 0x1E00 <= point < 0x2000:
        return 0
    return 1 if 0x3000 <= point < 0xA000 else point >> 8
