"""`--dry-run`: the most that a run, or an evaluation, could take within its limits. It calls nothing."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from hira.cli import OK
from hira.cli.options import AskOptions
from hira.cli.shell import Shell
from hira.core.errors import UsageError, count_of
from hira.core.options import LIMITS
from hira.core.policy import VERIFIER, Usage
from hira.core.prices import litellm_table
from hira.policies.names import OFFLINE
from hira.runtime.factory import configure_roles
from hira.runtime.objects import find_unused_tools
from hira.runtime.registry import JUDGE, check_roles, dialect_of, make_workflow
from hira.runtime.services import check_searches
from hira.runtime.settings import RoleSettings, Settings
from hira.workflows import BuiltIn
from hira.workflows.bound import ASKED_TWICE, Sizes, add_bounds, bound_verifier, count_tokens, list_alternatives

if TYPE_CHECKING:  # a question needs no evaluation
    from hira.evaluation.run import EvaluationPlan


USUAL: Mapping[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "auto": ((1, 7), (1_330, 7_819)),
    "rag": ((1, 1), (1_267, 2_726)),
    "hira": ((5, 9), (3_190, 7_131)),
    "react": ((3, 4), (3_582, 6_140)),
}
"""The fewest and most calls, rounded up, and tokens among the medians of benchmarks/results/public.md."""


@dataclass(frozen=True, slots=True)
class Total:
    """The most that a whole run could take; `cost` is in US dollars, None if a price is unknown."""

    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0

    def add(self, other: "Total", times: int = 1) -> "Total":
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost * times
        return Total(self.calls + other.calls * times, self.tokens + other.tokens * times, cost)


def print_bound(options: AskOptions, settings: Settings, shell: Shell) -> int:
    """Print the most that a run could take. Raises `UsageError` for settings that no run could have."""
    workflow = make_workflow(settings)
    check_roles(settings, workflow, {})
    find_unused_tools(settings, workflow)
    if names := settings.web_searches:
        check_searches(names, settings)
    roles, total = compute_bound(workflow, settings)
    if options.json:
        shell.say_json(asdict(total))
        return OK
    shell.say(f"{_describe_usual(workflow.name)} The most that a run could take:\n")
    shell.say(f"{'at most':<16}{'calls':>8}{'tokens in':>14}{'tokens out':>14}{'US dollars':>14}")
    for role, usage in roles.items():
        tokens = f"{usage.prompt_tokens:>14,}{usage.completion_tokens:>14,}"
        shell.say(f"{role:<16}{usage.calls:>8,}{tokens}{_format_cost(usage.cost):>14}")
    both = f"{total.tokens:,} in and out"
    shell.say(f"{'a run':<16}{total.calls:>8,}{both:>28}{_format_cost(total.cost):>14}\n")
    sizes = Sizes()
    experts = "; the most expensive experts do every subtask" if hasattr(workflow, "experts") else ""
    assumed = f"all turns are used, with replies of {sizes.reply:,} and results of {sizes.result:,} tokens"
    shell.say(f"This is the worst case: {assumed}{experts}.")
    if total.cost is None and settings.model:
        known = "pip install 'hira[litellm]' brings a table of prices"
        shell.say(f'The price of a model is unknown: set [prices."MODEL"] in hira.toml; {known}.')
    if settings.evidence or settings.rewrite:
        shell.say("Not included: the calls that `evidence` and `rewrite` add to each search.")
    if all(getattr(settings, name) is None for name in LIMITS):
        shell.say("No budget is set: --max-tokens, --max-cost, --max-time and --max-calls set one.")
    shell.say("No calls were made.")
    return OK


def _describe_usual(workflow: str) -> str:
    if workflow not in USUAL:
        return "Most questions take a few calls and some thousand tokens."
    (fewest, most), (least, highest) = USUAL[workflow]
    calls = count_of(most, "call") if fewest == most else f"{fewest} to {most} calls"
    tokens = f"{round(least, -2):,} to {round(highest, -2):,} tokens"
    return f"Most questions take {calls} and {tokens} (medians of {workflow!r} with small models)."


def print_evaluation_bound(plan: "EvaluationPlan", judge: str | None, shell: Shell, *, as_json: bool) -> int:
    """Print the most that each way of asking all questions could take, and the judge of the answers."""
    from hira.evaluation.scorers import JUDGED

    totals: dict[str, Total] = {}
    for cell in plan.cells:
        settings = cell.settings(plan.settings)
        _, once = compute_bound(make_workflow(settings), settings)
        totals[cell.way] = totals.get(cell.way, Total()).add(once, len(plan.items))
    if plan.metric in JUDGED and (judge or plan.metric != "fact"):
        totals[JUDGE] = _bound_judge(plan, judge)
    whole = reduce(Total.add, totals.values(), Total())
    if as_json:
        shell.say_json({"rows": {name: asdict(total) for name, total in totals.items()}, "all": asdict(whole)})
        return OK
    wide = max(map(len, totals)) + 2
    shell.say(f"{'at most':<{wide}}{'calls':>12}{'tokens':>18}{'US dollars':>14}")
    for name, total in {**totals, "all": whole}.items():
        shell.say(f"{name:<{wide}}{total.calls:>12,}{total.tokens:>18,}{_format_cost(total.cost):>14}")
    sizes = Sizes()
    shell.say(f"\n{len(plan.items):,} questions, each asked {plan.total // len(plan.items)} times in all.")
    shell.say(f"Assumed: all turns used, replies of {sizes.reply:,} and results of {sizes.result:,} tokens.")
    shell.say("No calls were made.")
    return OK


def _bound_judge(plan: "EvaluationPlan", judge: str | None) -> Total:
    """A call for each answer, or for each item of its rubric, made twice if the verdict cannot be read."""
    from hira.evaluation.scorers import require_rubric

    sizes = Sizes()
    items = sum(len(require_rubric(item).items) if plan.metric == "rubric" else 1 for item in plan.items)
    calls = ASKED_TWICE * items * len(plan.cells)
    usage = Usage(calls, calls * (sizes.prompt + sizes.reply), calls * sizes.reply)
    role = plan.settings.roles.get(JUDGE, RoleSettings())
    known = role.model_copy(update={"model": judge or role.model or plan.settings.model or OFFLINE})
    configs, _ = configure_roles(plan.settings.with_values({"roles": {JUDGE: known}}, "--judge"), {}, litellm_table())
    price = configs[JUDGE].price
    return Total(usage.calls, usage.tokens, price.of(usage) if price and known.model != OFFLINE else None)


def compute_bound(workflow: BuiltIn, settings: Settings) -> tuple[Mapping[str, Usage], Total]:
    """Compute the most that each role could take, and a whole run within its budget."""
    if not hasattr(workflow, "bound"):
        raise UsageError(f"workflow {workflow.name!r} has no upper bound", fix="remove --dry-run")
    table, known = litellm_table(), settings.with_values({"model": settings.model or OFFLINE}, "")
    configs, _ = configure_roles(known, {}, table, dialect_of(workflow))
    calls, sizes = settings.max_calls, Sizes(calls=settings.max_calls)
    bounds = dict(workflow.bound(sizes))
    if settings.verify == "model" or not (settings.verify or settings.verifier or settings.model == OFFLINE):
        bounds[VERIFIER] = bound_verifier(sizes)
    roles = {}
    for role, usage in bounds.items():
        price = configs.get(role, configs["*"]).price if settings.model else None
        priced = replace(usage, cost=price.of(usage) if price else None)
        roles[role] = _limit_role(priced, settings.roles.get(role, RoleSettings()), calls)
    most = add_bounds(roles, list_alternatives(getattr(workflow, "experts", ())))
    tokens = min(most.tokens, settings.max_tokens or most.tokens)
    tokens = min(tokens, count_tokens(roles.values(), calls)) if calls else tokens
    cost = None
    if most.cost is not None and all(usage.cost is not None for usage in roles.values()):
        dearest = max(max(config.price.input, config.price.output) for config in configs.values() if config.price)
        cost = min(most.cost, dearest * tokens / 1e6, settings.max_cost or most.cost)
    return roles, Total(min(most.calls, calls or most.calls), tokens, cost)


def _limit_role(usage: Usage, role: RoleSettings, most_calls: int | None) -> Usage:
    """The usage within the role's own limits and these calls, its tokens and costs in proportion."""
    calls = min((most for most in (most_calls, role.max_calls) if most), default=None)
    limits = ((role.max_tokens, usage.tokens), (calls, usage.calls), (role.max_cost, usage.cost))
    share = min((limit / used for limit, used in limits if limit is not None and used), default=1.0)
    if share >= 1:
        return usage
    cost = None if usage.cost is None else usage.cost * share
    prompt, completion = int(usage.prompt_tokens * share), int(usage.completion_tokens * share)
    return Usage(min(usage.calls, calls or usage.calls), prompt, completion, cost=cost)


def _format_cost(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:,.2f}"
