"""The most that a run can take, from its limits alone: calls, and tokens if replies and results have a given size."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from hira.agents import verifier
from hira.agents.distiller import LONGEST
from hira.agents.expert import CALLS, Expert
from hira.agents.experts.simple_search import QUERIES
from hira.agents.loop import REPEATS
from hira.agents.retrieval import PAGES
from hira.core.policy import Usage

ASKED_TWICE = 2


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens: of a prompt's own text with the question, of a reply, of a tool's result."""

    prompt: int = 2_000
    reply: int = 2_000
    result: int = 4_000


def hierarchical(handed: int, experts: Sequence[Expert], sizes: Sizes) -> dict[str, Usage]:
    """At most so much by role, if each of the subtasks `handed` out went to that expert alone: the experts' rows are
    alternatives. A role of one's own is taken for one that works in a loop.
    """
    found = {"planner": bound_loop(handed, sizes.reply, sizes)}
    rows = {"coordinator": _coordinated(sizes), **{expert.name: _worked(expert, sizes) for expert in experts}}
    if any(expert.name == "multimodal" for expert in experts):
        rows["look"] = Usage(CALLS, CALLS * sizes.prompt, CALLS * sizes.reply)
    return found | {role: times(usage, handed) for role, usage in rows.items()}


def most(rows: Mapping[str, Usage], alternatives: Collection[str] = ()) -> Usage:
    """All of it; of the roles that are alternatives, the one that takes most: by cost where every cost is known, else
    by tokens."""
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


def bound_loop(calls: int, result: int, sizes: Sizes) -> Usage:
    """A role in the loop with `calls` accepted calls: before each one that cannot be read, the repeats it may make, a
    reply that is cut, and the closing turn, which may be cut as well."""
    turns = 2 * calls + REPEATS + 3
    grown = sum(at * sizes.reply + min(at, calls) * result for at in range(turns))
    return Usage(turns, turns * sizes.prompt + grown, turns * sizes.reply)


def _worked(expert: Expert, sizes: Sizes) -> Usage:
    if expert.name != "simple_search":
        return bound_loop(CALLS, sizes.result, sizes)
    plan = Usage(ASKED_TWICE, ASKED_TWICE * sizes.prompt + sizes.reply, ASKED_TWICE * sizes.reply)
    read = QUERIES * (PAGES + 1) * sizes.result
    return plan + Usage(1, 2 * sizes.prompt + ASKED_TWICE * sizes.reply + read, sizes.reply)


def _coordinated(sizes: Sizes) -> Usage:
    """Assigning, recalling and distilling for one subtask, each asked for twice if its record cannot be read."""
    short = 2 * ASKED_TWICE * sizes.prompt + 2 * sizes.reply
    distilled = ASKED_TWICE * (sizes.prompt + LONGEST) + sizes.reply
    calls = 3 * ASKED_TWICE
    return Usage(calls, short + distilled, calls * sizes.reply)


def bound_verifier(sizes: Sizes) -> Usage:
    """The model that checks the answer: each call asked for twice if its record cannot be read."""
    calls = verifier.CALLS * ASKED_TWICE
    prompt = sizes.prompt + verifier.BATCH * verifier.EXCERPTS * verifier.EXCERPT // 4
    return Usage(calls, calls * prompt, calls * verifier.REPLY * (verifier.BATCH + 1))


def times(usage: Usage, many: int) -> Usage:
    return sum((usage for _ in range(many)), Usage())
