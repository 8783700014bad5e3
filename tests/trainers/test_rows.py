"""Conversations become rows: what was sampled is trained, what the environment added is not."""

import json
import math
from dataclasses import asdict, replace

from hypothesis import given
from hypothesis import strategies as st
from rollouts_made import rollout, turn

from hira.journal.encoding import validate
from hira.trainers.rows import Row, rows_of


def test_turns_that_go_on_from_one_another_are_one_row() -> None:
    record = rollout(planner=[turn([1, 2], [3, 4], [-0.1, -0.2]), turn([1, 2, 3, 4, 9, 9], [5], [-0.3])])
    (row,) = rows_of(record).rows
    assert row.prompt == (1, 2)
    assert row.completion == (3, 4, 9, 9, 5)
    assert row.mask == (1, 1, 0, 0, 1)
    assert row.logprobs == (-0.1, -0.2, 0.0, 0.0, -0.3)
    assert (row.turns, row.tokens, row.length, row.part) == (2, 3, 7, 0)


def test_a_prompt_that_breaks_the_prefix_begins_a_new_row_and_is_counted() -> None:
    cut = rows_of(rollout(planner=[turn([1, 2], [3, 4]), turn([1, 2, 9], [5]), turn([1, 2, 9, 5, 6], [7])]))
    assert [(row.part, row.prompt, row.completion) for row in cut.rows] == [
        (0, (1, 2), (3, 4)),
        (1, (1, 2, 9), (5, 6, 7)),
    ]
    assert cut.breaks == 1


def test_a_row_whose_log_probabilities_do_not_fit_is_dropped_and_counted() -> None:
    for logprobs in ([-0.1], [-0.1, math.nan], [-0.1, 0.5], [-0.1, 0.0011], [-0.1, -math.inf], [-0.1, -0.1, -0.1]):
        sound = {name: [turn([5], [6])] for name in ("t1_worker", "t2_worker")}
        cut = rows_of(rollout(planner=[turn([1], [2, 3], logprobs)], **sound))
        assert [row.role for row in cut.rows] == ["worker", "worker"]
        assert cut.dropped == 1


def test_a_log_probability_may_exceed_0_by_its_rounding() -> None:
    cut = rows_of(rollout(planner=[turn([1], [2, 3], [0.001, 0.0])]))
    assert (len(cut.rows), cut.dropped) == (1, 0)


def test_only_the_roles_that_are_trained_make_rows_and_turns_without_tokens_make_none() -> None:
    record = rollout(planner=[turn([1], [2])], worker=[turn([5], [6])], judge=[turn([5], [])])
    assert [row.role for row in rows_of(record, {"worker", "judge"}).rows] == ["worker"]


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 99), max_size=4), st.lists(st.integers(0, 99), min_size=1, max_size=4)),
        min_size=1,
        max_size=6,
    )
)
def test_a_row_holds_every_sampled_token_once_and_in_order(turns: list[tuple[list[int], list[int]]]) -> None:
    ids: list[int] = [1]
    made = []
    for added, sampled in turns:
        ids += added
        made.append(turn(ids, sampled))
        ids = [*ids, *sampled]
    (row,) = rows_of(rollout(planner=made)).rows
    assert [*row.prompt, *row.completion] == ids
    assert [one for one, own in zip(row.completion, row.mask, strict=True) if own] == [
        one for _, sampled in turns for one in sampled
    ]
    assert len(row.completion) == len(row.mask) == len(row.logprobs)


def test_a_conversation_is_overlong_where_its_last_reply_was_cut_off_and_not_an_earlier_one() -> None:
    ended, cut = turn([1, 2, 3, 9], [5]), turn([1, 2], [3])
    cut = replace(cut, completion=replace(cut.completion, finish="length"))
    assert [row.overlong for row in rows_of(rollout(planner=[cut, ended])).rows] == [False]
    assert [row.overlong for row in rows_of(rollout(planner=[cut])).rows] == [True]
    broken = [turn([7], [8]), cut]
    assert [(row.part, row.overlong) for row in rows_of(rollout(planner=broken)).rows] == [(0, True), (1, True)]


def test_a_row_of_a_demonstration_is_read_as_it_was_recorded() -> None:
    (row,) = rows_of(rollout(planner=[turn([1, 2], [3, 4])])).rows
    assert validate(Row, json.loads(json.dumps(asdict(row)))) == row
