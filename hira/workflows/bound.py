"""The most that a run can take, from its limits: calls, and tokens for given sizes of replies and results."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hira.agents import model_verifier, ruling
from hira.agents.distiller import LONGEST
from hira.agents.expert import CODE, SEARCH, Expert
from hira.agents.loop import CALLS
from hira.agents.queries import QUERIES
from hira.agents.recovery import REPEATS
from hira.agents.retrieval import PAGES
from hira.core.policy import Usage

ASKED_TWICE = 2
"""Calls for a record, if the first one cannot be read."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens of a prompt's own text with the question, of a reply, of a tool's result; the most calls of the run."""

    prompt: int = 2_000
    reply: int = 2_000
    result: int = 4_000
    calls: int | None = None

    def bound_loop(self, calls: int, result: int) -> Usage:
        """Bound a role in the loop with `calls` accepted calls: an unreadable call before each, the repeats it may
        make, a reply that is cut, and the closing turn, which may be cut as well."""
        turns = 2 * calls + REPEATS + 3
        turns = min(turns, self.calls or turns)
        grown = sum(index * self.reply + min(index, calls) * result for index in range(turns))
        return Usage(turns, turns * self.prompt + grown, turns * self.reply)

    def bound_plan(self) -> Usage:
        """Bound the calls for the queries of a search."""
        return Usage(ASKED_TWICE, ASKED_TWICE * self.prompt + self.reply, ASKED_TWICE * self.reply)

    def bound_hierarchy(self, subtasks: int, experts: Sequence[Expert]) -> dict[str, Usage]:
        """Bound planner, coordinator and experts by role. Each expert's row is for all subtasks, so the rows of the
        experts are alternatives (`list_alternatives`); a user's own expert counts as one that works in a loop."""
        at_work = (len(roles - {"look"}) for roles in list_alternatives(experts))
        distilled = max(at_work, default=1)  # findings of one subtask
        calls = (2 + distilled) * ASKED_TWICE  # of the coordinator, for one subtask: it assigns, recalls and distils
        short = 2 * ASKED_TWICE * self.prompt + 2 * self.reply
        long = ASKED_TWICE * (self.prompt + LONGEST) + self.reply
        each = {"coordinator": Usage(calls, short + distilled * long, calls * self.reply)}
        read = QUERIES * (PAGES + 1) * self.result
        look_up = self.bound_plan() + Usage(1, 2 * self.prompt + ASKED_TWICE * self.reply + read, self.reply)
        loop = self.bound_loop(CALLS, self.result)
        each |= {expert.name: look_up if expert.name == "simple_search" else loop for expert in experts}
        if any(expert.name == "multimodal" for expert in experts):
            each["look"] = Usage(CALLS, CALLS * self.prompt, CALLS * self.reply)
        planner = self.bound_loop(subtasks, self.reply)
        return {"planner": planner} | {role: usage.times(subtasks) for role, usage in each.items()}


def list_alternatives(experts: Sequence[Expert]) -> list[frozenset[str]]:
    """List the roles that may work for one and the same subtask: an expert with the role that looks for it, and after
    one that computes one that searches."""
    searches = [expert.name for expert in experts if expert.ability == SEARCH]
    alternatives = []
    for expert in experts:
        names = {expert.name, "look"} if expert.name == "multimodal" else {expert.name}
        following = searches if expert.ability == CODE else ()
        alternatives += [frozenset({*names, other}) for other in following] or [frozenset(names)]
    return alternatives


def add_bounds(rows: Mapping[str, Usage], alternatives: Collection[Collection[str]] = ()) -> Usage:
    """Add up the roles; of alternatives, each of which is some roles, only the most calls, the most tokens and the most
    that is known to be paid for one."""
    named = {role for roles in alternatives for role in roles}
    total = sum((usage for role, usage in rows.items() if role not in named), Usage())
    sums = [sum((rows[role] for role in roles if role in rows), Usage()) for roles in alternatives]
    if not sums:
        return total
    most = max(sums, key=lambda usage: usage.tokens)
    costs = [usage.cost for usage in sums if usage.cost is not None]
    return total + replace(most, calls=max(usage.calls for usage in sums), cost=max(costs, default=None))


def count_tokens(rows: Iterable[Usage], calls: int) -> int:
    """Return the tokens of this many calls of the roles, those with the most tokens first. A role's calls count alike:
    those of a loop grow, so that its first ones take less."""
    tokens = 0
    for usage in sorted(rows, key=lambda usage: usage.tokens / max(1, usage.calls), reverse=True):
        made = min(usage.calls, calls)
        tokens += usage.tokens * made // max(1, usage.calls)
        calls -= made
    return tokens


def bound_verifier(sizes: Sizes) -> Usage:
    calls = model_verifier.CALLS * ASKED_TWICE
    prompt = sizes.prompt + model_verifier.BATCH * ruling.EXCERPTS * ruling.EXCERPT // 4
    return Usage(calls, calls * prompt, calls * ruling.REPLY * (model_verifier.BATCH + 1))
