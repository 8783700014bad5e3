"""Scorers by the names that `--metric` takes."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.core.errors import AccessDenied, EndpointError, UsageError
from hira.core.redaction import without_userinfo
from hira.evaluation.item import Item
from hira.evaluation.metrics import exact_match, match, numeric, score_abstention
from hira.evaluation.record import Score
from hira.evaluation.reports import fact_of, race_of, rubric_of
from hira.evaluation.rewards.answer_judge import JUDGES
from hira.evaluation.rewards.match import extract_answer
from hira.evaluation.run import Scorer
from hira.policies import OPENAI_URL
from hira.policies.fallback import names_of
from hira.policies.names import has_own_place
from hira.runtime.answer import Answer
from hira.runtime.endpoints import find_model
from hira.runtime.factory import cast_of
from hira.runtime.registry import JUDGE
from hira.runtime.session import budget_of
from hira.runtime.settings import RoleSettings, Settings, did_you_mean
from hira.runtime.settings.keys import placed_for

BY_WORDS: Mapping[str, Scorer] = {"match": match, "em": exact_match, "numeric": numeric}
"""Scorers that need no model."""
REPORTS: Mapping[str, Callable[[RunContext], Scorer]] = {"race": race_of, "rubric": rubric_of}
REFUSED = 401
ALSO_CALLED = {"exact": "em", "exact_match": "em", "contains": "match", "f1": "match"}
METRICS = (*BY_WORDS, *JUDGES, *REPORTS, "fact")


@asynccontextmanager
async def scorer_of(metric: str, settings: Settings, judge: str | None) -> AsyncIterator[Scorer]:
    """The scorer of a metric; `judge` names the model that judges, by default the one that answers.

    Raises `UsageError` for a metric that is not known, for a judge where none is asked, and for `offline` as one;
    `EndpointError` for a judge that cannot be asked, before there is anything to judge.
    """
    if metric not in METRICS:
        near = ALSO_CALLED.get(metric, metric)
        raise UsageError(f"unknown metric {metric!r}", fix=did_you_mean(near, METRICS))
    if metric in BY_WORDS:
        if judge:
            what = f"the metric {metric!r} uses no model"
            raise UsageError(what, fix=f"leave out --judge, or choose a judge: {', '.join(JUDGES)}")
        yield BY_WORDS[metric]
        return
    if metric == "fact" and not judge:
        yield fact_of(None)
        return
    async with judging(settings, judge) as context:
        if metric in REPORTS:
            yield REPORTS[metric](context)
        else:
            yield fact_of(context) if metric == "fact" else judged_by(metric, context)


@asynccontextmanager
async def judging(settings: Settings, judge: str | None) -> AsyncIterator[RunContext]:
    """A team whose role `judge` is played by the model that judges. It decides coolly: temperature 0. The limits of a
    run are not its own, which are those of its role and hold for all that it judges."""
    own = settings.roles.get(JUDGE, RoleSettings())
    name = judge or own.model or settings.model
    changed = own.model_copy(update={"model": name, "temperature": own.temperature or 0.0})
    general: dict[str, Any] = {"model": name} if name else {}
    general |= dict.fromkeys(("max_tokens", "max_cost", "max_time", "max_calls"))
    if own.base_url:  # its own place, with its own key or none
        general |= {"base_url": own.base_url, "api_key": own.api_key}
    settings = await find_model(settings.with_values({**general, "roles": {JUDGE: changed}}, "--judge"))
    cast, policies = cast_of(settings, {})
    if cast[JUDGE].policy.model == "offline":
        fix = "name a model that does (--judge M; --model M for hira eval judge), or score with --metric match"
        raise UsageError("`offline` cannot judge answers", fix=fix)
    try:
        await _reached(settings)
        yield RunContext(cast, Rollout("", "", "judge"), budget=budget_of(settings))
    finally:
        for policy in policies:
            await policy.aclose()


async def _reached(settings: Settings) -> None:
    """Raise `EndpointError` for a judge at an endpoint that does not answer, or that refuses the key: it would first be
    asked when the answers are paid for. One of several models is enough."""
    from hira.policies.probe import probe  # loads httpx

    own = settings.roles[JUDGE]
    for name in names_of(own.model or settings.model):
        place = placed_for(name, JUDGE, own, settings)
        if has_own_place(place.model):
            return
        base_url = place.base_url or OPENAI_URL
        found = await probe(base_url, place.secret)
        if found.status not in (0, REFUSED):
            return
        where = f"at {without_userinfo(base_url)}, model {place.model!r}"
    if found.status == REFUSED:
        fix = "set its key: api_key of [roles.judge] in hira.toml"
        raise AccessDenied("the judge's endpoint refuses the key", where=where, fix=fix)
    raise EndpointError(f"the judge cannot be reached: {found.error}", where=where, fix="check its base URL")


def judged_by(name: str, context: RunContext) -> Scorer:
    """A judge as a scorer. Each answer has a team of its own, so that no conversation outlives its judgement."""

    async def judged(item: Item, answer: Answer) -> Score:
        if not item.answerable:
            return score_abstention(answer, name)
        if not answer.text:
            return Score(correct=False, value=0.0, metric=name, note="there is no answer")
        own = RunContext(context.cast, Rollout("", item.question, "judge"), budget=context.budget)
        judge = JUDGES[item.judge if name == "hira" and item.judge else name]
        verdict = await judge(own.conversation("judge"), item.question, item.gold, extract_answer(answer.text))
        if verdict is None:
            return Score(None, None, name, "the judge failed")
        note = ": ".join(part for part in (verdict.grade, verdict.reason) if part)
        return Score(verdict.correct, float(verdict.correct), name, note, verdict.extracted)

    return judged
