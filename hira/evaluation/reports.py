"""Scores of reports: RACE against a reference, FACT by its citations, and rubrics. They are figures from 0 to 1 and no
yes or no, so `correct` is None."""

from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.agents.verifier import ModelVerifier
from hira.evaluation import needs
from hira.evaluation.item import Item
from hira.evaluation.record import Score
from hira.evaluation.rewards.race import judge_race
from hira.evaluation.rewards.rubric_judge import score
from hira.evaluation.run import Scorer
from hira.evidence import SourcedClaim
from hira.runtime.answer import Answer


def race_of(context: RunContext) -> Scorer:
    """The target's share against the item's `reference`, by its `criteria`."""

    async def scored(item: Item, answer: Answer) -> Score:
        dimensions, reference = needs.race_of(item)
        found = await judge_race(_own(context, item), item.question, dimensions, answer.text, reference)
        if found is None:
            return Score(None, None, "race", "the judge failed")
        told = ", ".join(f"{name} {share:.4f}" for name, share in found.dimensions.items())
        return Score(None, found.overall, "race", told)

    return scored


def fact_of(context: RunContext | None) -> Scorer:
    """Citation accuracy: the share of distinct pairs of claim and source that the source supports, by hira's own check
    or, with a judge, by what it reads in the stored source. The note tells how many (effective citations)."""

    async def scored(_item: Item, answer: Answer) -> Score:
        pairs = {(one.claim, one.source): one for one in answer.citations if not one.attributed}
        if not pairs:
            return Score(None, 0.0, "fact", "0 of 0 citations")
        verdicts = [str(one.verdict) for one in pairs.values()]
        if context is not None:
            claims = [SourcedClaim(claim, (answer.source(source),)) for claim, source in pairs]
            judge = ModelVerifier(_own(context, _item), role="judge", every=True)
            verdicts = [str(one.verdict) for one in await judge.verify(claims, answer.rollout.question)]
        checked = [one for one in verdicts if one != "unchecked"]
        if not checked:
            return Score(None, None, "fact", "the judge failed")
        held = checked.count("supported")
        return Score(None, held / len(checked), "fact", f"{held} of {len(checked)} citations")

    return scored


def rubric_of(context: RunContext) -> Scorer:
    """The item's `rubric`, item by item, normalised to 0 to 1."""

    async def scored(item: Item, answer: Answer) -> Score:
        rubric = needs.rubric_of(item)
        found = await score(_own(context, item), rubric, item.question, answer.text)
        if found.normalised is None:
            return Score(None, None, "rubric", "the judge failed")
        told = ", ".join(f"{one.title} {rated}" for one, rated in zip(rubric.items, found.ratings, strict=True))
        return Score(None, found.normalised, "rubric", told)

    return scored


def _own(context: RunContext, item: Item) -> RunContext:
    """A run context for one judgement, so that no conversation outlives it."""
    return RunContext(context.cast, Rollout("", item.question, "judge"), budget=context.budget)
