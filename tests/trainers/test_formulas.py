"""Credit, masking and picks on random batches against the formulas written out a second time, token by token.

What a token's log-probability is multiplied by in the loss at a ratio of 1 is w · A / Z: that is what both sides tell,
by (question, rollout, conversation, part).
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rollouts_made import attempt, group, row

from hira.trainers.agentic import Strategy, picks
from hira.trainers.credit import grpo
from hira.trainers.credit.grpo import FLOOR
from hira.trainers.rows import Attempt, Credited, Group, Row

Name = tuple[str, str, str, int]
Told = dict[Name, float]
REWARDS = st.sampled_from([0.0, 0.1, 0.5, 0.95, 1.0])


@st.composite
def trees(draw: st.DrawFn, at: int, problem: str) -> Attempt:
    """A rollout of a planner that may have delegated, of any status; some conversations are in two parts."""
    rows: list[Row] = []
    names = [("planner", "0"), *[("worker", f"{one}/worker") for one in range(draw(st.integers(0, 4)))]]
    for role, name in names if draw(st.integers(0, 9)) else []:
        for part in range(draw(st.sampled_from([1, 1, 1, 2]))):
            made = row(
                role,
                draw(st.integers(1, 9)),
                rollout=f"{problem}-{at}",
                conversation=name,
                tool=draw(st.integers(0, 3)),
                prompt=draw(st.integers(1, 2)) if role == "worker" else 1,
            )
            rows.append(replace(made, question=problem, part=part))
    status = draw(st.sampled_from(["ok", "ok", "ok", "agent_failed", "infra_failed"]))
    reward = 0.0 if status == "agent_failed" else draw(st.one_of(REWARDS, REWARDS, REWARDS, st.none()))
    return attempt(at, reward, *rows, status=status)


@st.composite
def batches(draw: st.DrawFn) -> list[Group]:
    problems = [f"q{at}" for at in range(draw(st.integers(1, 4)))]
    return [group(*(draw(trees(at, name)) for at in range(draw(st.integers(1, 6)))), problem=name) for name in problems]


def ours(credited: Credited) -> Told:
    return {_name(one.row): one.weight * one.advantage / credited.normaliser for one in credited.rows if one.advantage}


def alike(one: Told, other: Told) -> bool:
    other = {name: value for name, value in other.items() if value}
    return one.keys() == other.keys() and all(
        math.isclose(value, other[name], rel_tol=1e-9, abs_tol=1e-15) for name, value in one.items()
    )


def _name(one: Row) -> Name:
    return (one.question, one.rollout, one.conversation, one.part)


def _there(made: Group) -> list[Attempt]:
    """What is neither broken by the infrastructure nor unscored, and has said anything."""
    return [one for one in made.attempts if one.status != "infra_failed" and one.reward is not None and one.rows]


def _z(rewards: Iterable[float | None], by: float | None = None) -> list[float] | None:
    values = [float(one) for one in rewards if one is not None]
    if len(values) < 2 or statistics.pstdev(values) < FLOOR:
        return None
    return [(one - statistics.fmean(values)) / (by or statistics.pstdev(values)) for one in values]


@settings(max_examples=30)
@given(batches(), st.sampled_from(["grpo", "dapo", "dr_grpo"]), st.sampled_from(["group", "batch", "none"]))
def test_grpo_compares_conversations_of_one_role_that_began_alike(made: list[Group], norm: str, scale: str) -> None:
    members: dict[tuple[str, str, tuple[int, ...]], list[tuple[float, list[Row]]]] = defaultdict(list)
    for one in made:
        for tree in _there(one):
            parts: dict[str, list[Row]] = defaultdict(list)
            for each in tree.rows:
                parts[each.conversation].append(each)
            for rows in parts.values():
                members[one.problem, rows[0].role, rows[0].prompt].append((float(tree.reward or 0.0), rows))
    every = [reward for compared in members.values() for reward, _ in compared]
    spread = max(statistics.pstdev(every), FLOOR) if every else 1.0
    by = {"group": None, "batch": spread, "none": 1.0}[scale]
    gains: list[tuple[list[Row], float]] = []
    for compared in members.values():
        if gained := _z((reward for reward, _ in compared), by):
            gains += zip((rows for _, rows in compared), gained, strict=True)
    tokens = sum(sum(one.mask) for rows, _ in gains for one in rows)
    expected: Told = {}
    for rows, advantage in gains:
        own = sum(sum(one.mask) for one in rows)
        share = {"grpo": 1 / (len(gains) * own), "dapo": 1 / tokens, "dr_grpo": 1 / (len(gains) * 7)}[norm]
        expected |= {_name(one): advantage * share for one in rows}
    assert alike(ours(grpo(made, norm=norm, scale=scale, longest=7)), expected)  # type: ignore[arg-type]


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from([0.0, 1.0]), max_size=12), st.integers(1, 4), st.sampled_from([0.0, 1.0]), st.integers()
)
def test_picks_are_as_many_of_each_kind_as_the_strategy_says(
    rewards: list[float], most: int, first: float, seed: int
) -> None:
    def counted(strategy: Strategy) -> tuple[int, int]:
        taken = picks(rewards, strategy, first=first, seed=seed, most=most)
        assert len(set(taken)) == len(taken) == min(most, len(rewards))
        kinds = [rewards[at] for at in taken]
        return kinds.count(first), kinds.count(1 - first)

    wanted, other = rewards.count(first), rewards.count(1 - first)
    assert counted("adaptive") == (min(most, wanted), min(max(0, most - wanted), other))
    possible = [(one, len(picked) - one) for picked in [rewards[:most]] for one in range(len(picked) + 1)]
    possible = [(one, two) for one, two in possible if one <= wanted and two <= other]
    least = min(abs(one - two) for one, two in possible)
    assert counted("balanced") in [(one, two) for one, two in possible if abs(one - two) == least]
    assert counted("random") in possible


@pytest.mark.parametrize("strategy", ["random", "balanced", "adaptive"])
def test_each_of_equal_outputs_is_drawn_under_some_seed(strategy: Strategy) -> None:
    drawn = {tuple(picks([1.0] * 4, strategy, first=1.0, seed=seed, most=1)) for seed in range(60)}
    assert drawn == {(0,), (1,), (2,), (3,)}
