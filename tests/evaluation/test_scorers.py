"""What the scorers make of an answer."""

from hira.agents.trajectory import Rollout
from hira.evaluation.files import Item
from hira.evaluation.scorers import score_by_fact
from hira.evidence import Citation, Verdict
from hira.runtime.answer import Answer


async def test_fact_is_the_share_of_distinct_citations_that_hold_and_0_without_any() -> None:
    item, score = Item("1", "How high is it?", ("31 m",)), score_by_fact(None)

    def answer(*citations: Citation) -> Answer[str]:
        return Answer("31 m [s1].", "answered", citations, (), Rollout("r", item.question, "hira"), "scripted")

    high, old = Citation("s1", "high", "", Verdict.SUPPORTED), Citation("s1", "old", "", Verdict.CONTRADICTED)
    attributed = Citation("s2", "new", "", Verdict.SUPPORTED, attributed=True)
    assert (await score(item, answer(attributed))).value == 0.0
    assert (await score(item, answer(high, high, old, attributed))).value == 0.5
