"""Finding the sentence that answers a question in passages that were read, or finding that there is none.

A sentence is scored by the share of the question's words that it and its neighbours hold (rare words weigh more, BM25's
weight), and by whether it holds something of the kind that is asked for: a number, a date, a name, a place. It answers
only if what stands around it covers enough of the question, every name and number of the question included.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hira.policies.offline import blocks, several
from hira.policies.offline.disagreement import Stated, differ
from hira.policies.offline.kinds import fits, kind
from hira.policies.offline.passages import Passage
from hira.policies.offline.query import ENOUGH, bare_row, best, query, subject
from hira.policies.offline.sentences import ROW, Sentence, quoted, sentences
from hira.policies.offline.several import MORE, asks_several, complete
from hira.policies.offline.table import operation
from hira.policies.offline.wording import exact, folded, holds, numbers

FARTHEST = 0.2
"""How near every name of the question has to be."""
NEARLY = 0.7
"""The share of the best sentence's score that one needs which speaks against it."""
MOST = 2
"""Sentences that are told beside the best one."""
DIFFER = "The sources differ."
HARD = frozenset({"date", "number", "hours", "interval", "duration", "age", "money", "person"})
"""The kinds of answer without which a sentence answers nothing."""
_ROW_SHOWN = re.compile(r"[^\s:,.][^:,.]*: [^:]+(?:, [^:,.]+: [^:]+)+\. \[s\d+\]")


@dataclass(frozen=True, slots=True)
class Found:
    """The sentence that answers, the share of the question that it covers, and those of other sources `against` it.

    Where several things are asked for, `further` answer beside it, and there may be `more`. `headed` if what is asked
    for stands in the heading above the sentence.
    """

    sentence: Sentence
    coverage: float
    against: tuple[Sentence, ...] = ()
    further: tuple[Sentence, ...] = ()
    more: bool = False
    headed: bool = False

    @property
    def text(self) -> str:
        """The sentence with its id, as an answer cites it, and those that say otherwise."""
        told = [quoted(one) for one in (self.sentence, *self.against, *self.further)]
        if self.headed:
            told[0] = f"{self.sentence.section}: {told[0]}"
        return " ".join([*dict.fromkeys(told), *([DIFFER] if self.against else []), *([MORE] if self.more else [])])


def is_row(text: str) -> bool:
    """Whether an answer shows a row of a table."""
    return bool(_ROW_SHOWN.match(text))


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
        if told is not None or (bare_row(one) and operation(question)):
            return bool(told)
        return coverage >= enough and about(one) and asked.tells(one)

    def about(one: Sentence) -> bool:
        named = all(asked.near(name, one) >= FARTHEST for name in asked.names)
        text = f"{one.passage.title}\n{one.paragraph}"
        if one.asked and not all(asked.near(word, one) for word in asked.rest):
            return False
        told = any(holds(word, one.own) for word in asked.rest)
        if asked.kind != "person" and asked.names and asked.rest and not told:
            own = subject(one)  # what its neighbours say they may say of another
            named = named and not (own and own.isdisjoint(asked.names))
        return named and figures <= numbers(text) and all(form.search(folded(text).lower()) for form in literal)

    def parts(one: Sentence) -> list[tuple[str, str]]:
        """What was shown of the document that a row stands in; a note stands alone."""
        there = [other for other in read if other.location == one.passage.location] if one.passage.location else []
        return [(part.title, part.text) for part in there or [one.passage]]

    ranked = [entry for entry in best(asked, candidates) if answers(entry[2], entry[1])]
    fitting = [
        entry
        for entry in ranked
        if entry[2] in rows or fits(asked.kind, entry[2].text, question) or asked.headed(entry[2])
    ]
    if not ranked or (asked.kind in HARD and not fitting):
        return None
    score, coverage, top = (fitting or ranked)[0]
    others = [one for points, _, one in fitting or ranked if points >= NEARLY * score]
    if asks_several(question):
        beside = [one for _, _, one in fitting or ranked if one in rows] if top in rows else filter(asked.says, others)
        further = [one for one in beside if one is not top][: several.MOST - 1]
        return Found(top, coverage, further=tuple(further), more=bool(further) or not complete(top.text))
    return Found(top, coverage, _against(question, top, others if fitting else []), headed=asked.headed(top))


def _against(question: str, top: Sentence, others: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The sentences of other sources that state another value, each value once."""
    found = [top]
    for one in others:
        apart = one.passage.id != top.passage.id and (one.passage.location or "?") != top.passage.location
        rows = kind(question) != "money" and ROW in f"{one.text}{top.text}"
        if apart and not rows and all(differ(question, _stated(known), _stated(one)) for known in found):
            found.append(one)
    return tuple(found[1 : 1 + MOST])


def _stated(one: Sentence) -> Stated:
    return Stated(one.text, one.own, one.earlier | one.title)


def ranked(question: str, read: Sequence[Passage]) -> list[Sentence]:
    """All sentences, those that fit the question best first."""
    candidates = sentences(read)
    return [one for _, _, one in best(query(question, candidates), candidates)]
