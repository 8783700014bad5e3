"""`hira ask --dry-run`: what would be configured and the most that it could take. Nothing is called."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hira.agents.run_context import RoleConfig
from hira.agents.verifier import ROLE
from hira.cli import OK
from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.core.policy import Usage
from hira.core.prices import litellm_table
from hira.core.sanitize import without_userinfo
from hira.policies.names import OFFLINE
from hira.runtime.factory import cast_of
from hira.runtime.registry import check_roles, dialect_of, made_workflow, unused_tools
from hira.runtime.settings import RoleSettings, Settings
from hira.runtime.toolset import check_searches, web_searches
from hira.tools.python import refusal
from hira.tools.python.layers import IMAGE
from hira.workflows import BuiltIn
from hira.workflows.bound import Sizes, bound_verifier, most

SHOWN = ("max_subtasks", "parallel", "max_tokens", "max_cost", "max_time", "max_calls")


@dataclass(frozen=True, slots=True)
class Forecast:
    """The most by role, and in all once the budgets have their say; `cost` is None where a price is unknown."""

    roles: Mapping[str, Usage]
    calls: int
    tokens: int
    cost: float | None


def dry_run(args: argparse.Namespace, settings: Settings, shell: Shell) -> int:
    """Print the forecast and end. Raises `UsageError` for settings with which nothing could be asked."""
    workflow = made_workflow(settings)
    check_roles(settings, workflow, {})
    unused_tools(settings, workflow)
    check_searches(web_searches(settings), settings)
    found = forecast(workflow, settings)
    if args.json:
        told = {"calls": found.calls, "tokens": found.tokens, "cost": found.cost, "model": settings.model}
        shell.say(json.dumps(told, indent=2))
    else:
        shell.say(
            "\n".join(
                [*_configured(settings), "", *_table(found), "", *_how(settings, experts=hasattr(workflow, "experts"))]
            )
        )
    return OK


def forecast(workflow: BuiltIn, settings: Settings) -> Forecast:
    cast, _ = cast_of(
        settings.with_values({"model": settings.model or OFFLINE}, ""), {}, litellm_table(), dialect_of(workflow)
    )
    workflow, alternatives = _staffed(workflow, settings)
    free = not settings.model
    if not hasattr(workflow, "bound"):
        raise UsageError(f"workflow {workflow.name!r} does not state the most that it takes", fix="remove --dry-run")
    bounds = dict(workflow.bound(Sizes()))
    if settings.verify == "model" or not (settings.verify or settings.verifier or settings.model == OFFLINE):
        bounds[ROLE] = bound_verifier(Sizes())
    rows = {
        role: _within(_priced(usage, cast.get(role, cast["*"]), unknown=free), settings.roles.get(role))
        for role, usage in bounds.items()
    }
    total = most(rows, alternatives)
    tokens = min(total.tokens, settings.max_tokens or total.tokens)
    cost = None
    if total.cost is not None and all(usage.cost is not None for usage in rows.values()):
        prices = [part.price for part in cast.values() if part.price]
        dearest = max(max(price.input, price.output) for price in prices) * tokens / 1e6
        cost = min(total.cost, dearest, settings.max_cost or total.cost)
    return Forecast(rows, min(total.calls, settings.max_calls or total.calls), tokens, cost)


def _staffed(workflow: Any, settings: Settings) -> tuple[Any, list[str]]:
    """The workflow with the experts that would be there, and their names."""
    if not hasattr(workflow, "experts"):
        return workflow, []
    tools = {"search", "media"} | (set() if refusal(settings.sandbox, settings.sandbox_image or IMAGE) else {"python"})
    if not settings.docs and not web_searches(settings):
        tools.remove("search")
    if settings.mcp and not tools & {"search", "python"}:
        tools.add("given")
    experts = [one for one in workflow.experts if one.ability not in settings.without and one.needs <= tools]
    if not experts:
        raise UsageError("no expert is available", fix="give documents (--docs) or a search (--search)")
    return replace(workflow, experts=experts), [expert.name for expert in experts]


def _priced(usage: Usage, part: RoleConfig, *, unknown: bool) -> Usage:
    price = None if unknown else part.price
    return replace(usage, cost=price.of(usage) if price else None)


def _within(usage: Usage, own: RoleSettings | None) -> Usage:
    """The usage cut to a role's own limits, its parts in proportion."""
    if own is None:
        return usage
    shares = [(own.max_tokens, usage.tokens), (own.max_calls, usage.calls), (own.max_cost, usage.cost)]
    share = min((limit / used for limit, used in shares if limit is not None and used), default=1.0)
    if share >= 1:
        return usage
    calls = min(usage.calls, own.max_calls or usage.calls)
    cost = None if usage.cost is None else usage.cost * share
    return Usage(calls, int(usage.prompt_tokens * share), int(usage.completion_tokens * share), cost=cost)


def _configured(settings: Settings) -> list[str]:
    rows = [
        (
            "model",
            without_userinfo(settings.model) or "a server on this machine, otherwise `offline`",
            settings.origin("model"),
        )
    ]
    if settings.base_url:
        rows.append(("endpoint", without_userinfo(settings.base_url), settings.origin("base_url")))
    rows += [(f"role {role}", without_userinfo(own.model), "") for role, own in settings.roles.items() if own.model]
    rows.append(("documents", ", ".join(map(str, settings.docs)) or "none", settings.origin("docs")))
    rows.append(("web search", ", ".join(web_searches(settings)) or "off", settings.origin("search")))
    rows.append(("workflow", settings.workflow, settings.origin("workflow")))
    for name in SHOWN:
        if (value := getattr(settings, name)) is not None:
            rows.append((name, f"{value:,}", settings.origin(name)))
    return [
        f"{name:<16}{value}" + ("" if origin in ("", "default") else f"  ({origin})") for name, value, origin in rows
    ]


def _table(found: Forecast) -> list[str]:
    lines = [f"{'at most':<16}{'calls':>8}{'tokens in':>14}{'tokens out':>14}{'US dollars':>14}"]
    for role, usage in found.roles.items():
        told = f"{usage.prompt_tokens:>14,}{usage.completion_tokens:>14,}"
        lines.append(f"{role:<16}{usage.calls:>8,}{told}{_dollars(usage.cost):>14}")
    return [*lines, f"{'a run':<16}{found.calls:>8,}{found.tokens:>14,}{'':>14}{_dollars(found.cost):>14}"]


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:,.2f}"


def _how(settings: Settings, *, experts: bool) -> list[str]:
    sizes = Sizes()
    assumed = f"replies of {sizes.reply:,} and results of {sizes.result:,} tokens"
    staffed = "; the most expensive expert does every subtask" if experts else ""
    lines = [f"A run that uses all its turns, with {assumed}{staffed}. Most runs take far less."]
    if all(getattr(settings, name) is None for name in SHOWN[2:]):
        lines.append("No budget is set: --max-tokens, --max-cost, --max-time and --max-calls set one.")
    lines.append("No calls were made.")
    return lines
