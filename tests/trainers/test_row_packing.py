"""Rows become micro-batches: within the budget, of one role, the longest first."""

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollouts_made import attempt, group, row

from hira.trainers.batches import merge_equal, pack_rows, take_share
from hira.trainers.credit import matpo
from hira.trainers.rows import Key, Weighted


def weighted(role: str, tokens: int, prompt: int = 2, name: str = "r") -> Weighted:
    one = row(role, tokens, rollout=name)
    one = type(one)(one.question, name, role, role, (1,) * prompt, one.completion, one.mask, one.logprobs)
    return Weighted(one, Key("q", role), 1.0, 1.0, 1.0)


ROWS = st.lists(
    st.tuples(st.sampled_from(["planner", "worker"]), st.integers(1, 50), st.integers(1, 9)), min_size=1, max_size=30
).map(lambda made: [weighted(role, tokens, prompt, str(at)) for at, (role, tokens, prompt) in enumerate(made)])


@given(ROWS, st.integers(1, 200))
def test_every_row_is_in_one_micro_batch_of_its_role_within_the_budget(rows: list[Weighted], budget: int) -> None:
    made = pack_rows(rows, budget, {"planner": "a", "*": "b"})
    assert sorted(one.row.rollout for micro in made for one in micro.rows) == sorted(one.row.rollout for one in rows)
    for micro in made:
        assert {one.row.role for one in micro.rows} == {micro.role}
        assert micro.adapter == ("a" if micro.role == "planner" else "b")
        assert micro.padded <= budget or len(micro.rows) == 1
    assert made[0].padded == max(micro.padded for micro in made)


SHARES = st.tuples(st.sampled_from(["planner", "worker"]), st.integers(1, 3), st.floats(0.1, 2), st.floats(-3, 3))


@given(st.lists(SHARES, max_size=12))
def test_equal_rows_become_one_with_their_share_of_the_loss(shares: list[tuple[str, int, float, float]]) -> None:
    rows = [
        replace(weighted(role, tokens, name=str(place)), weight=weight, advantage=advantage)
        for place, (role, tokens, weight, advantage) in enumerate(shares)
    ]
    merged = {(one.row.role, one.row.completion): one for one in merge_equal(rows)}
    assert len(merged) == len(merge_equal(rows)) == len({share[:2] for share in shares})
    for (role, completion), one in merged.items():
        same = [other for other in rows if (other.row.role, other.row.completion) == (role, completion)]
        assert one.weight == pytest.approx(sum(other.weight for other in same))
        total = sum(other.weight * other.advantage for other in same)
        assert one.weight * one.advantage == pytest.approx(total, abs=1e-12)


def test_what_all_rollouts_of_a_question_begin_with_stays_as_likely_if_tokens_weigh_the_same() -> None:
    """A rollout that stops after the first report is short and wrong; the first worker's row is the same in both."""
    short = attempt(0, 0.0, row("worker", 4), row("planner", 6))
    long = attempt(1, 1.0, row("worker", 4), row("planner", 20))
    first = {
        norm: merge_equal(matpo([group(short, long)], norm=norm).rows)[0] for norm in ("rollout_mean", "token_mean")
    }
    assert first["token_mean"].advantage == 0
    assert first["rollout_mean"].advantage < -0.4, "less likely with the mean of each rollout, although nobody erred"


@given(ROWS, st.integers(1, 4), st.integers(1, 100))
def test_all_processes_make_as_many_micro_batches_of_as_many_rows(rows: list[Weighted], many: int, budget: int) -> None:
    whole = pack_rows(rows, budget, {}, processes=many)
    made = [[take_share(micro, own, many) for micro in whole] for own in range(many)]
    assert len({tuple((micro.role, rows) for micro, rows in micros) for micros in made}) == 1
    for micros in made:
        for micro, most in micros:
            assert len(micro.rows) <= most
            assert most == 1 or most * micro.width <= budget
    names = [one.row.rollout for micros in made for micro, _ in micros for one in micro.rows]
    assert sorted(names) == sorted(one.row.rollout for one in rows)


def test_everything_but_the_weights_works_without_torch() -> None:
    parts = "rows credit metrics records calls rollouts plan demonstrations profile doctor"
    code = (
        f"import sys\nfor part in {parts.split()}: __import__(f'hira.trainers.{{part}}')\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
