"""The most that a run can take, from its limits: calls, and tokens for given sizes of replies and results."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from hira.agents import model_verifier, ruling
from hira.agents.distiller import LONGEST
from hira.agents.expert import Expert
from hira.agents.loop import CALLS
from hira.agents.queries import QUERIES
from hira.agents.recovery import REPEATS
from hira.agents.retrieval import PAGES
from hira.core.policy import Usage

ASKED_TWICE = 2
"""Calls for a record, if the first one cannot be read."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of a prompt's own text with the question, of a reply, of a tool's result."""

    prompt: int = 2_000
    reply: int = 2_000
    result: int = 4_000

    def bound_loop(self, calls: int, result: int) -> Usage:
        """Bound a role in the loop with `calls` accepted calls: an unreadable call before each, the repeats it may
        make, a reply that is cut, and the closing turn, which may be cut as well."""
        turns = 2 * calls + REPEATS + 3
        grown = sum(index * self.reply + min(index, calls) * result for index in range(turns))
        return Usage(turns, turns * self.prompt + grown, turns * self.reply)

    def bound_hierarchy(self, subtasks: int, experts: Sequence[Expert]) -> dict[str, Usage]:
        """Bound planner, coordinator and experts by role. Each expert's row is for all subtasks, so the rows of the
        experts are alternatives; a user's own expert counts as one that works in a loop."""
        calls = 3 * ASKED_TWICE  # of the coordinator, for one subtask: it assigns, recalls and distils
        short = 2 * ASKED_TWICE * self.prompt + 2 * self.reply
        distilled = ASKED_TWICE * (self.prompt + LONGEST) + self.reply
        each = {"coordinator": Usage(calls, short + distilled, calls * self.reply)}
        each |= {expert.name: _bound_expert(expert, self) for expert in experts}
        if any(expert.name == "multimodal" for expert in experts):
            each["look"] = Usage(CALLS, CALLS * self.prompt, CALLS * self.reply)
        planner = self.bound_loop(subtasks, self.reply)
        return {"planner": planner} | {role: usage.times(subtasks) for role, usage in each.items()}


def add_bounds(rows: Mapping[str, Usage], alternatives: Collection[str] = ()) -> Usage:
    """Add up the roles; of those that are alternatives, only the one that takes most: by cost if every cost is known,
    otherwise by tokens."""
    rows = dict(rows)
    if "multimodal" in alternatives and "look" in rows:
        rows["multimodal"] += rows.pop("look")
    others = [rows.pop(role) for role in alternatives if role in rows]
    total = sum(rows.values(), Usage())
    if not others:
        return total
    priced = all(usage.cost is not None for usage in others)
    worst = max(others, key=lambda usage: (usage.cost or 0.0) if priced else usage.tokens)
    return total + replace(worst, calls=max(usage.calls for usage in others))


def bound_verifier(sizes: Sizes) -> Usage:
    calls = model_verifier.CALLS * ASKED_TWICE
    prompt = sizes.prompt + model_verifier.BATCH * ruling.EXCERPTS * ruling.EXCERPT // 4
    return Usage(calls, calls * prompt, calls * ruling.REPLY * (model_verifier.BATCH + 1))


def _bound_expert(expert: Expert, sizes: Sizes) -> Usage:
    if expert.name != "simple_search":
        return sizes.bound_loop(CALLS, sizes.result)
    plan = Usage(ASKED_TWICE, ASKED_TWICE * sizes.prompt + sizes.reply, ASKED_TWICE * sizes.reply)
    read = QUERIES * (PAGES + 1) * sizes.result
    return plan + Usage(1, 2 * sizes.prompt + ASKED_TWICE * sizes.reply + read, sizes.reply)
