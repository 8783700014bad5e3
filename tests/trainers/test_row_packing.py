"""Rows become micro-batches: within the budget, of one role, the longest first."""

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st
from rollouts_made import row

from hira.trainers.batches import pack_rows, take_share
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
