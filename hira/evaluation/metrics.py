"""Scores that need no model: what `hira.evaluation.rewards.match` finds, as a score of an answer."""

from hira.core.sanitize import clean
from hira.evaluation.item import Item
from hira.evaluation.record import Score
from hira.evaluation.rewards.match import best, contains, equal, exact, extract_answer, f1
from hira.runtime.answer import Answer


def plain(answer: Answer) -> str:
    """The answer as it is scored: the final one, without citations."""
    return extract_answer(clean(answer.text))


def score_abstention(answer: Answer, metric: str) -> Score:
    """The score where nothing can be known, by any metric: right is who says so, and cites nothing."""
    right = answer.status == "insufficient_evidence" and not answer.citations
    return Score(right, float(right), metric, "nothing can be known", plain(answer))


async def match(item: Item, answer: Answer) -> Score:
    """Right is an answer that holds a known answer, or each of those that all have to be said; where nothing can be
    known, one that says so and cites nothing. `value` is the best F1, or the share of what had to be said."""
    text = plain(answer)
    if not item.answerable:
        return score_abstention(answer, "match")
    if item.every:
        told = [contains(text, one) for one in item.every]
        return Score(all(told), sum(told) / len(told), "match", "", text)
    return Score(any(contains(text, gold) for gold in item.answers), best(f1, text, item.answers), "match", "", text)


async def exact_match(item: Item, answer: Answer) -> Score:
    """EM and F1 of the question answering sets, over the whole answer."""
    if not item.answerable:
        return score_abstention(answer, "em")
    text = plain(answer)
    right = any(exact(text, gold) for gold in item.answers)
    return Score(right, best(f1, text, item.answers), "em", "", text)


async def numeric(item: Item, answer: Answer) -> Score:
    """Whether the final answer is the known number or the same LaTeX."""
    if not item.answerable:
        return score_abstention(answer, "numeric")
    text = plain(answer)
    right = any(equal(text, gold) for gold in item.answers)
    return Score(right, float(right), "numeric", "", text)
