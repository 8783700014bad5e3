"""A team for tests: one policy for all roles, in any dialect."""

from typing import Any

from hira.agents.run_context import Continuation, RoleConfig, RunContext
from hira.core.policy import Policy
from hira.policies.dialects import DIALECTS, Dialect
from hira.testing.script import Replies
from hira.testing.scripted import ScriptedPolicy


def team_of(
    policy: Policy | dict[str, Replies] | list[Any],
    *,
    dialect: str | Dialect = "tags",
    chain: bool = False,
    **team: Any,
) -> RunContext:
    """A team in which this policy, or a script of replies, plays every role. `team` are fields of `RunContext`.

    >>> team = team_of({"planner": ["The answer is \\\\boxed{42}."]}, tools=Toolbox())
    """
    played = policy if isinstance(policy, Policy) else ScriptedPolicy(policy)
    continuation: Continuation = "chain" if chain else "turns"
    spoken = DIALECTS[dialect] if isinstance(dialect, str) else dialect
    return RunContext({"*": RoleConfig(played, dialect=spoken, continuation=continuation)}, **team)
