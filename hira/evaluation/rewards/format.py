"""How many of a rollout's tool calls succeeded (MATPO, "Reward Function")."""

from collections.abc import Callable
from statistics import mean

from hira.agents.trajectory import Rollout, Trajectory

Share = Callable[[Trajectory], float]


def valid(trajectory: Trajectory, *, without: float = 0.0) -> float:
    """The share of a conversation's calls that succeeded: they could be read, were let through, and their tool did not
    fail. `without` is the share of a conversation that made none.

    A role that never calls has shown nothing of its format, so that this is 0 unless it is asked for otherwise: 1 would
    pay for not working.
    """
    written = trajectory.calls + trajectory.unreadable
    return (trajectory.calls - trajectory.failed) / written if written else without


def form(rollout: Rollout, *, planner: str = "planner", direct: float = 0.0) -> tuple[float, float]:
    """Shares of valid calls: the planner's, and the mean over all other conversations, the workers'.

    `direct` is the share of a planner without any call; without workers theirs is 0. A single agent, which has no
    planner, counts as both (MATPO, single-agent GRPO).
    """
    if not any(one.role == planner for one in rollout.trajectories.values()):
        alone = mean([valid(one) for one in rollout.trajectories.values() if one.turns] or [0.0])
        return alone, alone
    own = [valid(one, without=direct) for one in rollout.trajectories.values() if one.role == planner]
    workers = [valid(one) for one in rollout.trajectories.values() if one.role != planner and one.turns]
    return (mean(own) if own else 0.0, mean(workers) if workers else 0.0)
