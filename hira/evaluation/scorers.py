"""Scorers by the names that `--metric` takes: by words, by a judge, of reports; and their requirements of a
question."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from hira.agents.model_verifier import ModelVerifier
from hira.agents.run_context import RunContext, RunOptions
from hira.agents.trajectory import Rollout
from hira.core.errors import AccessDenied, EndpointError, UsageError, did_you_mean
from hira.core.events import Events
from hira.core.options import LIMITS
from hira.core.sanitize import clean, without_userinfo
from hira.evaluation.files import Item
from hira.evaluation.record import Score
from hira.evaluation.rewards.answer_judge import JUDGES
from hira.evaluation.rewards.answers import collect_notices
from hira.evaluation.rewards.match import best, contains, equal, exact, extract_answer, f1
from hira.evaluation.rewards.report_judge import Dimension, criteria_of, judge_race, score
from hira.evidence import SourcedClaim
from hira.journal.encoding import read_json
from hira.policies.names import OPENAI_URL, has_own_place, names_of
from hira.runtime.answer import Answer
from hira.runtime.endpoints import find_model
from hira.runtime.factory import configure_roles
from hira.runtime.registry import JUDGE
from hira.runtime.session import budget_of
from hira.runtime.settings import RoleSettings, Settings
from hira.runtime.settings.keys import find_place
from hira.workflows.mams.rubrics import Rubric

Scorer = Callable[[Item, Answer], Awaitable[Score]]
JudgedBy = Callable[[RunContext], Scorer]


def check(metric: str, items: Sequence[Item], data: str) -> None:
    """Raise `UsageError` for the first question that lacks the reference of the metric. A metric that is unknown here,
    such as one of your own, needs none."""
    needed = NEEDED.get(metric)
    if needed is None:
        return
    for item in items:
        try:
            needed(item)
        except UsageError as error:
            columns = ", ".join(map(str, item.meta)) or "none"
            raise UsageError(error.what, where=f"in {data}; its other columns: {columns}", fix=error.fix) from None


def require_answer(item: Item) -> None:
    """Raise `UsageError` unless the question has a known answer or is marked as unanswerable."""
    if not (item.answerable or item.unanswerable):
        fix = 'name its column: --column answer=NAME; if the answer is unknown, write "answer": []'
        raise UsageError(f"question {item.id!r} has no reference answer", fix=fix)


def require_short_answer(item: Item) -> None:
    """Raise `UsageError` unless an answer can equal a known answer as a whole."""
    require_answer(item)
    if item.every:
        what = f"question {item.id!r} needs several answers at once, so no answer can equal one of them"
        raise UsageError(what, fix="--metric match")


def require_rubric(item: Item) -> Rubric:
    try:
        return Rubric.of(_read_column(item.meta.get("rubric")))
    except ValueError as error:
        raise _lacking("rubric", item, str(error)) from None


def require_race(item: Item) -> tuple[tuple[Dimension, ...], str]:
    """Return the criteria and the report to compare with. Raises `UsageError` if one is missing."""
    try:
        dimensions = criteria_of(_read_column(item.meta.get("criteria")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _lacking("criteria", item, str(error)) from None
    reference = item.meta.get("reference")
    if not isinstance(reference, str) or not reference.strip():
        raise _lacking("reference", item, "it is empty")
    return dimensions, reference


NEEDED: Mapping[str, Callable[[Item], object]] = {
    "match": require_answer,
    **dict.fromkeys(JUDGES, require_answer),
    "em": require_short_answer,
    "numeric": require_short_answer,
    "rubric": require_rubric,
    "race": require_race,
}


def _read_column(value: Any) -> Any:
    """Return the value of a column with JSON, as text or already read. Raises `ValueError` if it is missing."""
    if value is None:
        raise ValueError("the column is missing")
    return read_json(value) if isinstance(value, str) else value


def _lacking(name: str, item: Item, why: str) -> UsageError:
    fixes = {
        "rubric": "give each question a rubric: hira rubric QUERY --json writes one",
        "reference": "give each question a report to compare with",
        "criteria": "give each question criteria in the benchmark's shape",
    }
    return UsageError(f"question {item.id!r} has no {name} that can be used: {why}", fix=fixes[name])


def score_abstention(answer: Answer, metric: str) -> Score:
    """Score an unanswerable question, by any metric: a right answer says so, and cites nothing."""
    right = answer.status == "insufficient_evidence" and not answer.citations
    return Score(right, float(right), metric, "nothing can be known", extract_answer(clean(answer.text)))


def score_by_words(
    metric: str, fits: Callable[[str, str], bool], closeness: Callable[[str, str], float] | None = None
) -> Scorer:
    """Return a scorer: an answer is right if it fits a known answer, or every text of `every`; for an unanswerable
    question, if it says so and cites nothing. `value` is the best closeness, or the share of `every`."""

    async def score_answer(item: Item, answer: Answer) -> Score:
        if not item.answerable:
            return score_abstention(answer, metric)
        text = extract_answer(clean(answer.text))
        if item.every:
            held = [fits(text, part) for part in item.every]
            return Score(all(held), sum(held) / len(held), metric, "", text)
        right = any(fits(text, gold) for gold in item.answers)
        return Score(right, best(closeness or fits, text, item.answers), metric, "", text)

    return score_answer


match = score_by_words("match", contains, f1)
"""The answer contains a known one."""
BY_WORDS: Mapping[str, Scorer] = {
    "match": match,
    "em": score_by_words("em", exact, f1),
    "numeric": score_by_words("numeric", equal),
}
"""Scorers that need no model. `em`: EM and F1 of the question answering sets, over the whole answer; `numeric`: the
known number or the same LaTeX."""


async def score_by_race(judging: RunContext, item: Item, answer: Answer) -> Score | None:
    """Score the target's share against the item's `reference`, by its `criteria`."""
    dimensions, reference = require_race(item)
    judgement = await judge_race(judging, item.question, dimensions, answer.text, reference)
    return Score(None, judgement.overall, "race", parts=judgement.dimensions) if judgement else None


def score_by_fact(context: RunContext | None) -> Scorer:
    """Return a scorer of citation accuracy: the share of distinct pairs of claim and source that the source supports,
    by hira's own check or, with a judge, by its reading of the stored source. The note has the number (effective
    citations)."""

    async def score_answer(item: Item, answer: Answer) -> Score:
        own = [citation for citation in answer.citations if not citation.attributed]
        pairs = {(citation.claim, citation.source): citation.verdict for citation in own}
        if not pairs:
            return Score(None, 0.0, "fact", "0 of 0 citations")
        verdicts = [*pairs.values()]
        if context is not None:
            claims = [SourcedClaim(claim, (answer.source(source),)) for claim, source in pairs]
            judge = ModelVerifier(begin_judgement(context, item.question), role="judge")
            verdicts = [judged.verdict for judged in await judge.verify(claims, answer.rollout.question)]
        checked = [verdict for verdict in verdicts if verdict.rank]
        if not checked:
            return Score(None, None, "fact", "the judge failed")
        held = sum(verdict.holds for verdict in checked)
        return Score(None, held / len(checked), "fact", f"{held} of {len(checked)} citations")

    return score_answer


async def score_by_rubric(judging: RunContext, item: Item, answer: Answer) -> Score | None:
    """Score by the item's `rubric`, item by item, normalised to 0 to 1."""
    rubric = require_rubric(item)
    scores = await score(judging, rubric, item.question, answer.text)
    if scores.normalised is None:
        return None
    text = ", ".join(f"{item.title} {rated}" for item, rated in zip(rubric.items, scores.ratings, strict=True))
    return Score(None, scores.normalised, "rubric", text)


async def score_by_judge(name: str, judging: RunContext, item: Item, answer: Answer) -> Score | None:
    if not item.answerable:
        return score_abstention(answer, name)
    if not answer.text:
        return Score(correct=False, value=0.0, metric=name, note="there is no answer")
    judge = JUDGES[item.judge if name == "hira" and item.judge else name]
    verdict = await judge(judging.conversation("judge"), item.question, item.gold, extract_answer(answer.text))
    if verdict is None:
        return None
    note = ": ".join(part for part in (verdict.grade, verdict.reason) if part)
    return Score(verdict.correct, float(verdict.correct), name, note, verdict.extracted)


def judge_alone(metric: str, judge: Callable[[RunContext, Item, Answer], Awaitable[Score | None]]) -> JudgedBy:
    """Return what makes a scorer of a judge that gets a separate run context for each answer. An answer that it does
    not judge is unscored, with the last notice that says why."""

    def make_scorer(context: RunContext) -> Scorer:
        async def score_answer(item: Item, answer: Answer) -> Score:
            judging = begin_judgement(context, item.question)
            notices = collect_notices(judging)
            judged = await judge(judging, item, answer)
            return judged or Score(None, None, metric, notices[-1] if notices else "the judge failed")

        return score_answer

    return make_scorer


def begin_judgement(context: RunContext, question: str) -> RunContext:
    """Return a run context for one judgement, so that no conversation outlives it. Whoever named the judge trusts it:
    it takes no exam. Its events are passed on to those of `context`."""
    record, events = Rollout("", question, "judge"), Events(context.events)
    return RunContext(context.roles, record, budget=context.budget, events=events, options=RunOptions(exam=False))


JUDGED: Mapping[str, JudgedBy] = {
    **{name: judge_alone(name, partial(score_by_judge, name)) for name in JUDGES},
    "race": judge_alone("race", score_by_race),
    "rubric": judge_alone("rubric", score_by_rubric),
    "fact": score_by_fact,
}
"""Scorers that ask a judge; `fact` can do without."""
METRICS = (*BY_WORDS, *JUDGED)
ALSO_CALLED = {"exact": "em", "exact_match": "em", "contains": "match", "f1": "match"}
REFUSED = 401


@asynccontextmanager
async def scorer_of(metric: str, settings: Settings, judge: str | None) -> AsyncIterator[Scorer]:
    """Open the scorer of a metric; `judge` names the judging model, by default the answering one. Raises `UsageError`
    for an unknown metric, for a judge that the metric does not use, and for `offline` as a judge; `EndpointError` for
    an unreachable judge, before there is anything to judge."""
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
        yield score_by_fact(None)
        return
    async with open_judge(settings, judge) as context:
        yield JUDGED[metric](context)


@asynccontextmanager
async def open_judge(settings: Settings, judge: str | None) -> AsyncIterator[RunContext]:
    """Open a run context whose role `judge` is the judging model, at temperature 0. The limits of that role apply to
    all its judgements, its `max_reply_tokens` to each reply; those of a run do not."""
    role_settings = settings.roles.get(JUDGE, RoleSettings())
    name = judge or role_settings.model or settings.model
    changed = role_settings.model_copy(update={"model": name, "temperature": role_settings.temperature or 0.0})
    general: dict[str, Any] = {"model": name, **dict.fromkeys((*LIMITS, "max_reply_tokens"))}
    if role_settings.base_url:  # its own endpoint, with its own key or none
        general |= {"base_url": role_settings.base_url, "api_key": role_settings.api_key}
    settings = await find_model(settings.with_values({**general, "roles": {JUDGE: changed}}, "--judge"))
    roles, policies = configure_roles(settings, {})
    if roles[JUDGE].policy.model == "offline":
        fix = "name a model that does (--judge M; --model M for hira eval judge), or score with --metric match"
        raise UsageError("`offline` cannot judge answers", fix=fix)
    try:
        await _check_reachable(settings)
        yield RunContext(roles, Rollout("", "", "judge"), budget=budget_of(settings))
    finally:
        for policy in policies:
            await policy.aclose()


async def _check_reachable(settings: Settings) -> None:
    """Raise `EndpointError` for a judge whose endpoint does not answer, `AccessDenied` if it refuses the key: otherwise
    that would show only after the answers are paid for. One reachable model of several is enough."""
    from hira.policies.probe import probe  # loads httpx

    role_settings = settings.roles[JUDGE]
    for name in names_of(role_settings.model or settings.model):
        place = find_place(name, JUDGE, role_settings, settings)
        if has_own_place(place.model):
            return
        base_url = place.base_url or OPENAI_URL
        endpoint = await probe(base_url, place.secret)
        if endpoint.status not in (0, REFUSED):
            return
        where = f"at {without_userinfo(base_url)}, model {place.model!r}"
    if endpoint.status == REFUSED:
        fix = "set its key: api_key of [roles.judge] in hira.toml"
        raise AccessDenied("the judge's endpoint refuses the key", where=where, fix=fix)
    raise EndpointError(f"the judge cannot be reached: {endpoint.error}", where=where, fix="check its base URL")
