"""`hira rubric`: the rubric for a query, and the scores of a report by it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hira.cli import OK, PARTIAL
from hira.cli.running import open_roles
from hira.cli.shell import Shell
from hira.core.errors import DialectError, EndpointError, HiraError, UsageError
from hira.evaluation.rewards.report_judge import score
from hira.journal.encoding import read_json
from hira.policies.names import OFFLINE
from hira.runtime.endpoints import find_model
from hira.runtime.settings import Settings
from hira.workflows.mams.rubrics import Rubric, Scores, generate


@dataclass(frozen=True, slots=True)
class RubricOptions:
    query: str
    settings: Mapping[str, Any]
    report: str = ""
    """The file of the report to score."""
    rubric: str = ""
    """The file of a rubric that is known."""
    json: bool = False


def rubric(options: RubricOptions, shell: Shell) -> int:
    query = options.query.strip()
    if not query:
        raise UsageError("the query is empty", fix='hira rubric "query"')
    report = shell.read_text(options.report, "--report") if options.report else ""
    known = _parse_rubric(shell.read_text(options.rubric, "--rubric"), options.rubric) if options.rubric else None
    settings = shell.load_settings(options.settings)
    criteria, scores = asyncio.run(_make_rubric(query, report, known, settings, shell))
    if options.json:
        record: dict[str, Any] = {"query": query, "items": criteria.json()}
        if scores:
            record["ratings"] = list(scores.ratings)
            record["score"], record["weighted_mean"] = scores.normalised, scores.weighted_mean  # of eq. 2
        shell.say_json(record)
    else:
        shell.say(_format_rubric(criteria, scores))
    if scores and (failed := scores.ratings.count(None)):
        what = f"{failed} of {len(scores.ratings)} items could not be judged, so the report has no score"
        shell.explain(HiraError(what, fix="ask again, or name another model for the role `judge` (--role judge=MODEL)"))
        return PARTIAL
    return OK


async def _make_rubric(
    query: str, report: str, known: Rubric | None, settings: Settings, shell: Shell
) -> tuple[Rubric, Scores | None]:
    """The rubric, that of the file or a new one, and the scores of the report if there is one."""
    settings = await find_model(settings)
    async with open_roles(settings, shell.remark) as context:
        model, judge = (context.config_of(role).policy.model for role in ("rubric", "judge"))
        if OFFLINE in (model, judge):
            raise UsageError("`offline` writes and judges no rubrics", fix="name a model with --model (hira doctor)")
        try:
            criteria = known or await generate(context.conversation("rubric"), query)
        except DialectError as error:
            fix = "name another model for the role `rubric` (--role rubric=MODEL)"
            where = f"model {model!r}: {error.what}"
            raise EndpointError("the model wrote no valid rubric, asked twice", where=where, fix=fix) from None
        return criteria, await score(context, criteria, query, report) if report else None


def _format_rubric(criteria: Rubric, scores: Scores | None) -> str:
    """The items with their weights, and with scores their ratings and the score."""
    ratings = scores.ratings if scores else (None,) * len(criteria.items)
    lines: list[str] = []
    for item, rating in zip(criteria.items, ratings, strict=True):
        rated = "" if scores is None else "    –" if rating is None else f"{rating:>3}/10"
        lines += [f"{item.weight:+d} {rated}  {item.title}".replace("   ", "  "), f"    {item.description}"]
    if scores:
        figures = (scores.normalised, scores.weighted_mean)
        scored, mean = ("none" if figure is None else f"{figure:.3f}" for figure in figures)
        lines += ["", f"score: {scored} of 1 (by eq. 2 of the paper: {mean})"]
    return "\n".join(lines)


def _parse_rubric(text: str, name: str) -> Rubric:
    """The rubric in a file that `--json` wrote, or in a bare list."""
    try:
        return Rubric.of(read_json(text))
    except ValueError as error:
        what = f"--rubric {name} does not hold a valid rubric: {error}"
        raise UsageError(what, fix="write one with hira rubric --json") from None
