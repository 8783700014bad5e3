"""Rows become micro-batches: within the budget, of one role, the longest first."""

import random
import subprocess
import sys
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rollouts_made import row

from hira.trainers.group import Key, Weighted
from hira.trainers.packing import Micro, adapter_of, in_step, packed, shared


def weighted(role: str, tokens: int, prompt: int = 2, name: str = "r") -> Weighted:
    one = row(role, tokens, rollout=name)
    one = type(one)(one.question, name, role, role, (1,) * prompt, one.completion, one.mask, one.logprobs)
    return Weighted(one, Key("q", role), 1.0, 1.0, 1.0)


ROWS = st.lists(
    st.tuples(st.sampled_from(["planner", "worker"]), st.integers(1, 50), st.integers(1, 9)), min_size=1, max_size=30
).map(lambda made: [weighted(role, tokens, prompt, str(at)) for at, (role, tokens, prompt) in enumerate(made)])


@given(ROWS, st.integers(1, 200))
def test_every_row_is_in_one_micro_batch_of_its_role_within_the_budget(rows: list[Weighted], budget: int) -> None:
    made = packed(rows, budget, {"planner": "a", "*": "b"})
    assert sorted(one.row.rollout for micro in made for one in micro.rows) == sorted(one.row.rollout for one in rows)
    for micro in made:
        assert {one.row.role for one in micro.rows} == {micro.role}
        assert micro.adapter == ("a" if micro.role == "planner" else "b")
        assert micro.padded <= budget or len(micro.rows) == 1
    assert made[0].padded == max(micro.padded for micro in made)


@given(ROWS, st.integers(1, 200), st.integers(0, 9))
def test_the_order_of_the_rows_does_not_matter(rows: list[Weighted], budget: int, seed: int) -> None:
    other = random.Random(seed).sample(rows, len(rows))
    assert packed(rows, budget, {}) == packed(other, budget, {})


def test_an_adapter_is_switched_as_rarely_as_can_be() -> None:
    rows = [weighted(role, 10, name=f"{role}{at}") for role in ("a", "b", "c") for at in range(4)]
    made = packed(rows, 12, {"a": "one", "b": "two", "c": "one"})
    switches = sum(one.adapter != two.adapter for one, two in pairwise(made))
    assert (len(made), switches) == (12, 1)


@given(ROWS, st.integers(1, 4), st.integers(1, 100))
def test_all_processes_make_as_many_micro_batches_of_as_many_rows(rows: list[Weighted], many: int, budget: int) -> None:
    dealt = [packed(part, budget, {}) for part in shared(rows, many)]
    made = [in_step(dealt, at) for at in range(many)]
    assert len({tuple(rows for _, rows in micros) for micros in made}) == 1
    assert all(len(micro.rows) <= most for micros in made for micro, most in micros)
    assert sum(len(micro.rows) for micros in made for micro, _ in micros) == len(rows)


def test_rows_are_dealt_out_by_their_length() -> None:
    rows = [weighted("planner", tokens, name=str(tokens)) for tokens in (40, 20, 20, 10, 10)]
    held = [sum(one.row.tokens for one in part) for part in shared(rows, 2)]
    assert held == [50, 50]


def test_an_empty_micro_batch_has_a_shape() -> None:
    assert (Micro("", "", ()).prompt, Micro("", "", ()).width) == (1, 2)


def test_a_role_without_an_adapter_of_its_own_has_that_of_all_others() -> None:
    assert adapter_of("worker", {"planner": "p", "*": "rest"}) == "rest"
    assert adapter_of("worker", {}) == "default"


def test_everything_but_the_weights_works_without_torch() -> None:
    parts = "rows group credit packing measures records recording rollouts seeding transcript update plan checkpoints"
    code = (
        f"import sys\nfor part in {parts.split()}: __import__(f'hira.trainers.{{part}}')\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
