"""The check without a model: words confirm copies, and nothing else.

A claim is a copy of a sentence if the sentence, with what it leans on (`sentence`), has every content word of the
claim, in the same order and bound alike (`alignment`); a row of a table has no order (`rows`). A short answer is
compared as the statement that it makes of its question (`questions`).
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from hira.core.patterns import compile_lazily
from hira.evidence.alignment import begins_another, is_copy
from hira.evidence.citations import BY_WORDS, Judgement
from hira.evidence.kinds import find_untold, is_other_role
from hira.evidence.passages import Passages, Word, is_denied, is_related, read_words
from hira.evidence.questions import (
    ASKING_UNSPACED,
    BARE,
    MOST,
    Question,
    asks_yes_no,
    fill_gap,
    list_wanted,
    read_question,
    replace_pronoun,
)
from hira.evidence.sentence import Sentence, find_subject, is_past, read_keys
from hira.evidence.verdicts import Verdict

NEAREST = 12
"""The number of sentences that are compared closely."""
_NO_WORD = Word("", "", "word")
COMMON = 5_000
"""A word in more sentences than this does not select a sentence on its own."""


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
        self,
        claim: Sequence[Word],
        passages: Passages,
        context: frozenset[str],
        record: frozenset[str] | None = None,
        *,
        in_order: bool = False,
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
            copied = score > 1 - 1e-9 and is_copy(claim, sentence, in_order=in_order)
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
        if not passages.sentences[place].rstrip("\"'”’»)*_").endswith(("?", "？", "؟"))  # a question states nothing
    ]

    def rate(sentence: Sentence) -> float:
        around = sentence.around
        return sum(
            weight if key in sentence.keys else 0.9 * weight
            for key, weight in weights.items()
            if key in sentence.keys or key in around
        )

    return sorted(nearest, key=lambda sentence: (-rate(sentence), sentence.place))[:NEAREST]


def read_claim(claim: str, passages: Passages, *, is_computed: bool = False) -> list[Word]:
    """Return the words of a claim, its numbers with the keys that they have in a text."""
    scaled = claim
    if ": " in claim:  # cells of a row
        from hira.evidence.cells import scale_cells

        scaled = scale_cells(claim.split(", "))
    words = read_words(scaled, passages.grouping)
    close = (word.close or after.close for word, after in pairwise([*words, _NO_WORD]) if word.kind == "number")
    if is_computed or any(close):  # a number next to another word may be an amount
        from hira.evidence.amounts import write_amounts

        return write_amounts(words, passages, is_computed=is_computed)
    return words


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
    read = read_claim(claim, passages, is_computed=record is not None)
    words = [word for word in read if record is None or word.text != "="]
    if not words or not passages.sentences or len(words) > MOST:
        return Judgement(Verdict.UNCHECKED, by=BY_WORDS)
    above = frozenset(word.key for word in read_words(context))
    called = None if record is None else read_keys(record)
    asks = read_question(question)
    wanted = asks.wanted
    compared = Comparison(words, passages, above, called)
    if words[0].light and not compared.copied:
        replaced = replace_pronoun(words, wanted)
        compared = Comparison(replaced, passages, above, called)
        words = list(replaced) if compared.copied else words
    wanted_keys = {word.key for word in wanted}
    value = [word for word in words if word.key not in wanted_keys and not word.light]
    in_row = compared.sentence is not None and compared.sentence.is_row and len(value) < len(words)
    ours, theirs = (
        [word.key for word in some] for some in (words, compared.sentence.words if compared.sentence else ())
    )
    whole = ours == theirs
    # without its question, a name or a number alone says nothing, and neither do two characters of Chinese
    states = any(word.kind == "word" and (not word.dense or len(words) > BARE) for word in words)
    full = compared.copied and (in_row or whole or states)
    untold = find_untold(asks, words) if record is None else ()
    bare = len(value or words) <= BARE
    if question and record is None and (bare or not full):  # a longer answer may be a part of a sentence, too
        judged = _check_answer(value or words, words, question, passages, above, copied=full)
        if judged.verdict is Verdict.SUPPORTED or (bare and not full):
            counts = find_untold(asks, [*words, *asks.counted])  # "64 GB" with the memory that it counts
            apart = _find_apart(asks, words, compared.sentence) if full and compared.sentence else ()
            return replace(judged, lacking=judged.lacking or counts or apart)
    if compared.sentence is None:
        from hira.evidence.notation import is_comparable

        verdict = Verdict.UNSUPPORTED if is_comparable(claim, passages.sentences) else Verdict.UNCHECKED
        return Judgement(verdict, by=BY_WORDS, missing=tuple(dict.fromkeys(word.text for word in words)))
    if not compared.copied:
        score = min(compared.score, 0.99)
        return Judgement(Verdict.UNSUPPORTED, score, compared.quote, by=BY_WORDS, missing=compared.missing)
    lacking = find_lacking(asks, words, compared.sentence) or untold or _find_apart(asks, words, compared.sentence)
    if asks.role and asks.role.text not in lacking:
        lacking = (asks.role.text, *lacking) if is_other_role(words, asks) else lacking
    return Judgement(Verdict.SUPPORTED, 1.0, compared.quote, by="quote" if whole else BY_WORDS, lacking=lacking)


def _check_answer(
    answer: Sequence[Word],
    claim: Sequence[Word],
    question: str,
    passages: Passages,
    above: frozenset[str],
    *,
    copied: bool,
) -> Judgement:
    """Put an answer of a few words into the gap of its question ("Ida built the mill" for "who built the mill?"), and
    compare that with the sentence that has most of it. The claim may repeat words of the question, in that order."""
    if ASKING_UNSPACED.search(question):  # the answer belongs where the asking word is
        text = "".join(word.text[-1] if word.dense and word.close else word.text for word in claim)
        stated = ASKING_UNSPACED.sub(lambda _: text, question.rstrip("?？吗嗎呢か "), count=1)
        placed = Comparison(read_words(stated), passages, above)
        if placed.copied:
            return Judgement(Verdict.SUPPORTED, 1.0, placed.quote, by=BY_WORDS)
    asked = read_question(question)
    wanted = asked.wanted
    compared = Comparison([*answer, *wanted], passages, above, in_order=True)
    if compared.sentence is None:
        return Judgement(Verdict.UNSUPPORTED, by=BY_WORDS, missing=tuple(word.text for word in answer))
    sentence = compared.sentence
    value = list(answer)
    if sentence.is_row:  # "which city": the kind of thing that is asked for is the name of a column
        kinds = [word for word in asked.words if word.key in sentence.header and word not in wanted]
        value = [*kinds, answer[0]._replace(close=bool(kinds)), *answer[1:]]
    absent = [word.text for word in answer if word.key not in sentence.keys | sentence.header]
    lacking = find_lacking(asked, [*answer, *sentence.words], sentence, copied=copied)
    missing = tuple(dict.fromkeys([*absent, *(word.text for word in claim if word.text in lacking)]))
    words = [word for word in claim if not word.light]
    words = words if len(words) > len(answer) else []  # the answer alone has no order
    statements = [*fill_gap(value, asked, sentence)]
    if missing or lacking or not any(_is_said(words, statements, sentence, in_order=fast) for fast in (True, False)):
        score = min(compared.score, 0.99)
        return Judgement(Verdict.UNSUPPORTED, score, compared.quote, by=BY_WORDS, missing=missing, lacking=lacking)
    return Judgement(Verdict.SUPPORTED, 1.0, compared.quote, by=BY_WORDS)


def _is_said(
    claim: Sequence[Word], statements: Sequence[Sequence[Word]], sentence: Sentence, *, in_order: bool
) -> bool:
    """Return whether a sentence says one of the statements that have the words of a claim."""
    orders = [claim]
    if not in_order:
        from hira.evidence.orders import list_orders

        orders = [*list_orders(claim)]
    fitting = (statement for statement in statements if any(_is_part(order, statement) for order in orders))
    return any(is_copy(statement, sentence, in_order=in_order) for statement in fitting)


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


def _find_apart(asked: Question, claim: Sequence[Word], sentence: Sentence) -> tuple[str, ...]:
    """Return the words of a question that no clause of a claim has together with what is asked for: "the mill was
    founded by Ida and closed in 1971" does not tell when it was founded."""
    whole = (
        sentence.is_row
        or sentence.record is not None
        or asks_yes_no(asked.text)
        or any("and" in word.link.split() for word in asked.words)
    )
    clauses = [] if whole else list(_split_clauses(claim))
    apart: list[tuple[str, ...]] = []
    for clause in clauses[1:] and clauses:
        keys = sentence.around.union(word.key for word in clause)
        lacking = tuple(word.text for word in asked.wanted if not is_related(word.key, keys))
        apart.append(lacking or find_untold(asked, clause))
    return min(apart, key=len, default=())


def _split_clauses(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Yield the clauses of a statement, each with its verb and its own subject, the first one's, or that of "which"."""
    joins = [place for place, word in enumerate(words) if place and begins_another(word)]
    starts = [0]
    for place, end in pairwise([*joins, len(words)]):
        if _has_verb(words[place:end]) and _has_verb(words[starts[-1] : place]):
            starts.append(place)
    for start, end in pairwise([*starts, len(words)]):
        first, lead = words[start], words[:0]
        before = words[max((place for place in starts if place < start), default=0) : start]
        if start and not _RELATIVE.isdisjoint(first.link.split()):
            lead = words[start - 2 if words[start - 1].close else start - 1 : start]
            if any(word.tense for word in before):  # "Ida was a smith who lived in Vesk"
                lead = [*find_subject(before), *lead]
        elif start and _has_verb([first]):
            lead = find_subject(words)
        yield [*lead, *words[start:end]]


def _has_verb(words: Sequence[Word]) -> bool:
    return any(word.tense or is_past(word.text) for word in words)


_RELATIVE = frozenset(("which", "who", "whom", "whose", "where"))
_ADVERBIAL = compile_lazily(r"(?:since |from |until )?(?:when|where|how|why|wann|wo|wie|warum)\b", re.IGNORECASE)
"""The beginning of a question that asks for no name."""


def _find_unsaid(asked: Question, sentence: Sentence, start: int) -> set[str]:
    """Return the keys that a clause does not speak of, since its subject is another one than what is asked for: those
    of the title, and what is only next to the subject ("the school near the library was sold")."""
    by_name = _ADVERBIAL.match(asked.text) is not None
    other = sentence.find_other_subject({word.key for word in asked.words}, start, by_name=by_name)
    unsaid = set(sentence.topic - sentence.list_topics(other))
    if all(word.kind == "name" for word in other):  # under "The smith", he may be meant by a name
        unsaid &= {word.key for word in asked.wanted if word.kind == "name"}
    clause = sentence.words[start:]
    verb = next((place for place, word in enumerate(clause) if word.tense or is_past(word.text)), 0)
    unsaid -= {word.key for word in clause}
    if other and other[0] in clause[:1]:
        unsaid |= {word.key for word in clause[:verb] if word.link not in ("", "of")}
    return unsaid


def find_lacking(asked: Question, claim: Sequence[Word], sentence: Sentence, *, copied: bool = True) -> tuple[str, ...]:
    """Return the words of a question that a claim does not have, with what its sentence leans on. A claim that holds
    may answer another question; what a tool returned was asked for."""
    if sentence.record is not None:
        return ()
    wanted = list_wanted(asked, sentence)
    wanted_keys = {word.key for word in wanted}
    others = {
        word.key
        for place, word in enumerate(sentence.words)
        if place
        and word.link == "of"
        and word.kind == "name"
        and not is_related(sentence.words[place - 1].key, wanted_keys)
    }
    keys = {word.key for word in claim}
    foreign = sentence.find_foreign(keys | wanted_keys)
    places = [sentence.positions[word.key][0] for word in claim if word.key in sentence.keys]
    if places and max(places) >= sentence.value_start > 0:  # a value has the words of its label
        places.append(0)
    if places and not sentence.is_row:  # what is said between the words of the claim
        keys |= {word.key for word in sentence.words[min(places) : max(places) + 1]}
    keys -= others  # "the son of Otto" does not speak of Otto
    around = sentence.topic | (sentence.around - others)  # a "reporter" is no "report" of a heading
    around -= foreign
    if copied:
        start = min(places) if places and sentence.words[min(places)].marked else 0
        unsaid = _find_unsaid(asked, sentence, start)
        around, keys = around - unsaid, keys - unsaid
    if sentence.is_row:  # a column is spoken of with its cell, unless that is "no"
        holds = asks_yes_no(asked.text) or is_denied(asked.text)
        denied = [cell for cell in sentence.cells if not holds and is_denied(cell.text)]
        keys -= read_keys(" ".join(cell.name for cell in denied))
        spoken = [c for c in sentence.cells if c not in denied and read_keys(c.text) <= keys | wanted_keys]
        around = (around - sentence.header) | read_keys(" ".join(cell.name for cell in spoken)) | sentence.topic
    return tuple(
        dict.fromkeys(word.text for word in wanted if word.key not in around and not is_related(word.key, keys))
    )
