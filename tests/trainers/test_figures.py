"""Every figure that a training run writes, worked out by hand, and the edges of each."""

import math
from dataclasses import replace
from typing import Any

import pytest
from rollouts_made import attempt, group, rollout, row, turn

from hira.agents.trajectory import Trajectory, Turn
from hira.core.messages import user
from hira.core.policy import Completion, Request, Tokens
from hira.evaluation.rewards.answers import RolloutScore
from hira.trainers.agentic import Agentic, Input, MemberOutput, Stage, make_input, measure_parts, picks
from hira.trainers.configuration import RolloutConfig, StageConfig
from hira.trainers.credit import grpo, mars, matpo
from hira.trainers.credit.grpo import FLOOR, advantages, divisor
from hira.trainers.credit.mars import count_draws
from hira.trainers.credit.masking import drop_mastered, drop_overlong, entropy, mark_mastered
from hira.trainers.metrics import LONGEST, Means, make_transcript, measure_rollouts, measure_update, summarise_scores
from hira.trainers.rollouts import Problem, Rollouts
from hira.trainers.rows import Attempt, Credited, Key, Row, ScoredRollout, Weighted
from hira.workflows.marsrl.steps import MarsProblem, Review, Solution


def test_means_leave_out_what_is_unknown_and_what_has_no_weight() -> None:
    means = Means()
    for value, weight in ((1.0, 3.0), (5.0, 1.0), (None, 1.0), (math.inf, 1.0), (math.nan, 1.0), (9.0, 0.0)):
        means.add("a", value, weight)
    means.add("b", 4.0)
    means.add("c", 4.0, 0.0)
    means.add("d", 4.0)
    means.add("d", 8.0, 3.0)
    assert means.values == {"a": 2.0, "b": 4.0, "d": 7.0}
    other = Means()
    other.add("a", 6.0, 4.0)
    assert Means.join([means, other]).values == {"a": 4.0, "b": 4.0, "d": 7.0}


def test_every_figure_of_an_update() -> None:
    """Two rollouts with a planner and a worker, one that the infrastructure broke, one that the agent failed, and one
    that could not be scored."""
    planner, worker = row("planner", 2, tool=1), replace(row("worker", 3), turns=2, part=1, overlong=True)
    groups = [
        group(
            attempt(0, 1.0, planner, worker),
            attempt(1, 0.0, row("planner", 6)),
            attempt(2, 9.0, status="infra_failed"),
            attempt(3, 0.0, row("planner", 4), status="agent_failed"),
            attempt(4, None, row("planner", 5)),
        ),
        group(attempt(0, 1.0, row("planner", 1)), problem="alone"),
    ]
    weighted = [
        Weighted(planner, Key("q", "planner"), 1.0, 2.0, 0.5),
        Weighted(worker, Key("q", "planner"), 1.0, -1.0, 1.0),
    ]
    credited = Credited(tuple(weighted), 7.0, (3, 3, 1, 2), dead=1, singletons=2, figures={"masked": 0.25})
    assert measure_update(groups, credited) == pytest.approx({
        "infra_failed": 1 / 6,
        "agent_failed": 1 / 6,
        "unscored": 1 / 6,
        "reward": (1.0 + 0.0 + 0.0 + 1.0) / 4,
        "planner/reward": (1.0 + 0.0 + 0.0 + 1.0) / 4,
        "worker/reward": 1.0,
        "planner/length": (2 + 6 + 4 + 5 + 1) / 5,
        "worker/length": 3.0,
        "planner/row_length": (4 + 7 + 5 + 6 + 2) / 5,
        "worker/row_length": 4.0,
        "planner/turns": 1.0,
        "worker/turns": 2.0,
        "planner/tokens_per_turn": (2 + 6 + 4 + 5 + 1) / 5,
        "worker/tokens_per_turn": 1.5,
        "planner/broken": 0.0,
        "worker/broken": 1.0,
        "planner/overlong": 0.0,
        "worker/overlong": 1.0,
        "planner/advantage": 2.0,
        "planner/advantage_size": 2.0,
        "worker/advantage": -1.0,
        "worker/advantage_size": 1.0,
        "rows": 2,
        "tokens": 5,
        "length_min": 1,
        "length": (2 + 3 + 6 + 4 + 5 + 1) / 6,
        "length_max": 6,
        "normaliser": 7.0,
        "dead_groups": 1 / 4,
        "singletons": 2,
        "excluded": 2,
        "masked": 0.25,
        "group_size/1": 1,
        "group_size/2": 1,
        "group_size/3": 2,
        "planner/share": 2.0 / 5.0,
        "worker/share": 3.0 / 5.0,
    })  # fmt: skip


def test_an_update_of_nothing_has_no_lengths_and_no_shares() -> None:
    nothing = measure_update([], Credited((), 0.0, ()))
    assert nothing == {
        "rows": 0, "tokens": 0, "normaliser": 0.0, "dead_groups": 0.0, "singletons": 0, "excluded": 0,
    }  # fmt: skip
    unmoved = Credited((Weighted(row("planner", 2), Key("q", "planner"), 1.0, 0.0, 1.0),), 2.0, (2,))
    assert not any(name.endswith("/share") for name in measure_update([], unmoved))


def scored(record: Any = None, parts: dict[str, float] | None = None, tools: Any = None, **more: int) -> Any:
    return ScoredRollout(attempt(0, 1.0), record, RolloutScore(1.0, parts or {}), tools=tools or {}, **more)


def test_every_figure_of_rollouts() -> None:
    answered = rollout(planner=[turn([1], [2]), turn([1], [2])], t1_worker=[turn([1], [2])])
    answered.answer = "Paris"
    silent = rollout(planner=[turn([1], [2])])
    tools = {("planner", "search"): [True, False], ("worker", "search"): [True], ("worker", "browse"): [False]}
    measured = measure_rollouts([
        scored(answered, {"accuracy": 1.0}, tools, breaks=2, dropped=1),
        scored(silent, {"accuracy": 0.0, "format": 0.5}, {("planner", "search"): [True] * 4}),
        scored(None, breaks=1),
    ])  # fmt: skip
    assert measured == pytest.approx({
        "row_breaks": 1.0,
        "rows_dropped": 1 / 3,
        "reward/accuracy": 0.5,
        "reward/format": 0.5,
        "answered": 0.5,
        "conversations": 1.5,
        "calls": (3 + 1) / 2,
        "turns": (3 + 1) / 2,
        "tool_calls/search": (3 + 4) / 2,
        "tool_calls/browse": (1 + 0) / 2,
        "tools": (4 + 4) / 2,
        "tool_share/search": 7 / 8,
        "tool_share/browse": 1 / 8,
        "planner/tool_success": 5 / 6,
        "planner/tool_success/search": 5 / 6,
        "worker/tool_success": 1 / 2,
        "worker/tool_success/search": 1.0,
        "worker/tool_success/browse": 0.0,
    })  # fmt: skip


def test_the_effect_size_needs_two_margins_that_differ() -> None:
    def effect(*margins: float) -> dict[str, float | None]:
        return summarise_scores([RolloutScore(1.0, {"margin": margin}) for margin in margins], "exam")

    assert effect(0.5, 0.25)["exam/d"] == pytest.approx(0.375 / math.sqrt(0.03125))
    assert effect(0.5, 0.5)["exam/d"] is None
    assert "exam/d" not in effect(0.5)
    assert summarise_scores([], "exam") == {"exam": None}
    assert summarise_scores([RolloutScore(0.0), RolloutScore(0.5)], "exam") == {"exam": 0.25}


def test_a_transcript_has_each_part_and_cuts_long_texts_in_the_middle() -> None:
    record = rollout(planner=[turn([1], [2, 3])])
    trajectory = record.trajectories["planner"]
    long = "a" * LONGEST + "b"
    trajectory.turns.append(
        Turn(Request((user("?" * LONGEST),)), Completion(long, finish="length", tokens=Tokens((1,), (4,), (-0.1,))))
    )
    record.trajectories["judge"] = Trajectory("judge", "judge", [])
    unknown = Turn(Request(()), Completion("", tokens=None))
    record.trajectories["expert"] = Trajectory("expert", "expert", [unknown])
    record.answer = "Paris"
    made = make_transcript(replace(scored(record, {"accuracy": 1.0}), error="late"), ("Paris", "paris"))
    assert (made["rollout"], made["attempt"], made["question"], made["answer"]) == ("r1", 0, "who?", "Paris")
    assert (made["references"], made["status"], made["reward"]) == (["Paris", "paris"], "ok", 1.0)
    assert (made["parts"], made["why"], made["error"]) == ({"accuracy": 1.0}, "", "late")
    planner, judge, expert = made["conversations"]
    assert (expert["turns"], expert["tokens"], len(expert["messages"])) == (1, 0, 1), "an endpoint may tell no tokens"
    assert (planner["conversation"], planner["role"], planner["turns"], planner["tokens"]) == (
        "planner",
        "planner",
        2,
        3,
    )
    asked, answered = planner["messages"]
    assert asked == {"role": "user", "text": "?" * LONGEST}
    half = LONGEST // 2
    assert answered["text"] == "a" * half + "\n… 1 characters …\n" + "a" * (half - 1) + "b"
    assert (answered["role"], answered["finish"]) == ("assistant", "length")
    assert judge == {"conversation": "judge", "role": "judge", "turns": 0, "tokens": 0, "messages": []}
    lost = make_transcript(scored(), ())
    assert (lost["rollout"], lost["question"], lost["answer"], lost["conversations"]) == ("", "", "", [])


# --- advantages


def test_advantages_at_their_edges() -> None:
    assert advantages([1.0]) is None
    assert advantages([]) is None
    assert advantages([1.0, 1.0]) is None
    assert advantages([0.0, 2 * FLOOR]) == pytest.approx([-1.0, 1.0]), "a deviation of the floor is a signal"
    assert advantages([0.0, 1.9 * FLOOR]) is None
    assert advantages([1.0, 0.0, 0.0], baseline=[1.0, 0.0]) == pytest.approx([1.0, -1.0, -1.0])
    assert advantages([1.0, 0.0], by=2.0) == [0.25, -0.25]
    assert advantages([1.0, 0.0], floor=0.6) is None
    assert [divisor(scale, [0.0, 1.0]) for scale in ("group", "none", "batch")] == [None, 1.0, 0.5]
    assert (divisor("batch", []), divisor("batch", [1.0, 1.0])) == (1.0, FLOOR)


def test_grpos_norms_by_hand() -> None:
    made = [
        group(attempt(0, 1.0, row("agent", 2)), attempt(1, 0.0, row("agent", 3))),
        group(attempt(0, 1.0, row("agent", 4)), problem="alone"),
        group(attempt(0, 1.0, row("agent", 5)), attempt(1, 1.0, row("agent", 5)), problem="dead"),
        group(attempt(0, None, status="infra_failed"), problem="lost"),
    ]
    for norm, weights, normaliser in (("grpo", [1 / 2, 1 / 3], 2.0), ("dapo", [1.0, 1.0], 5.0)):
        credited = grpo(made, norm=norm)  # type: ignore[arg-type]
        assert [weighted.weight for weighted in credited.rows] == pytest.approx(weights)
        assert (credited.normaliser, credited.dead, credited.singletons) == (normaliser, 1, 1)
        assert credited.sizes == (2, 1, 2)
    assert grpo(made, norm="dr_grpo", scale="none", longest=8).normaliser == 16.0


def test_mars_without_system_1_and_without_system_2() -> None:
    alone = mars([group(attempt(0, 1.0, row("system2", 2)), attempt(1, 0.0, row("system2", 4)))])
    assert [(weighted.advantage, weighted.weight) for weighted in alone.rows] == [(1.0, 0.5), (-1.0, 0.25)]
    assert (alone.normaliser, alone.sizes, alone.dead, alone.singletons) == (2.0, (2,), 0, 0)
    nothing = mars([group(attempt(0, 1.0, row("system1", 2)), attempt(1, 0.0, row("system1", 2)))])
    assert (nothing.rows, nothing.normaliser, nothing.sizes) == ((), 0.0, (0,))
    single = mars([group(attempt(0, 1.0, row("system2", 2)), attempt(1, None, status="infra_failed"))])
    assert (single.singletons, single.dead) == (1, 0)
    dead = mars([group(*(attempt(at, 1.0, row("system2", 2)) for at in range(2)))])
    assert (dead.rows, dead.singletons, dead.dead) == ((), 0, 1)


def test_draws_add_up_to_what_is_wanted_and_take_none_twice_where_there_are_enough() -> None:
    for there, wanted in ((5, 3), (3, 3), (2, 5), (1, 4)):
        drawn = count_draws(there, wanted, "seed")
        assert (len(drawn), sum(drawn)) == (there, wanted)
        assert max(drawn) == 1 if there >= wanted else min(drawn) >= 1
        assert drawn == count_draws(there, wanted, "seed")


# --- masks


def sampled(*logprobs: float, mask: tuple[int, ...] = (), overlong: bool = False) -> Row:
    mask = mask or (1,) * len(logprobs)
    ids = tuple(range(len(logprobs)))
    return Row("q", "r", "agent", "agent", (1,), ids, mask, logprobs, overlong=overlong)


def update(*pairs: tuple[Row, float], weight: float = 1.0, normaliser: float = 8.0) -> Credited:
    weighted = tuple(Weighted(made, Key("q", "agent"), reward, 1.0, weight) for made, reward in pairs)
    return Credited(weighted, normaliser, (len(pairs),), figures={"kept": 1.0})


def test_a_token_is_mastered_from_tau_on_and_the_tools_tokens_never() -> None:
    made = sampled(math.log(0.5), math.log(0.49), 0.0, mask=(1, 1, 0))
    assert mark_mastered(made, 0.5) == (1, 0, 0)
    assert entropy([made]) == pytest.approx(-(math.log(0.5) + math.log(0.49)) / 2)
    assert entropy([]) == 0.0
    assert entropy([sampled(-1.0, mask=(0,))]) == 0.0


def test_mastered_tokens_stay_while_the_entropy_has_reached_its_target() -> None:
    sure, wrong = sampled(0.0, -0.5), sampled(0.0, 0.0)
    masked = drop_mastered(update((sure, 1.0), (wrong, 0.5)), target=0.13)
    assert [weighted.row.mask for weighted in masked.rows] == [(0, 1), (1, 1)], "only what was right in full"
    assert masked.figures == {"kept": 1.0, "masked": 1 / 4, "sampled_entropy": 0.125}
    assert masked.normaliser == 8.0
    reached = drop_mastered(update((sure, 1.0), (wrong, 0.5)), target=0.125)
    assert [weighted.row.mask for weighted in reached.rows] == [(1, 1), (1, 1)]
    assert reached.figures["masked"] == 0.0
    assert drop_mastered(update((sampled(0.0), 1.0))).rows == (), "a row without tokens leaves"
    assert drop_mastered(update()).figures == {"kept": 1.0, "masked": 0.0, "sampled_entropy": 0.0}


def test_overlong_rows_take_their_share_of_the_normaliser_along() -> None:
    left = drop_overlong(update((sampled(-1.0), 1.0), (sampled(-1.0, -1.0, -1.0, overlong=True), 1.0)))
    assert (len(left.rows), left.normaliser, left.figures["overlong"]) == (1, 2.0, 0.75)
    assert drop_overlong(update()).figures == {"kept": 1.0, "overlong": 0.0}
    assert drop_overlong(update()).normaliser == 8.0


# --- MarsRL's steps


def output(step_input: Input, reward: float | None, review: Review | None = None, **more: Any) -> MemberOutput:
    solution = None if review else more.pop("solution", Solution("s"))
    made = ScoredRollout(Attempt(0, (), reward), None, RolloutScore(reward))
    return MemberOutput(step_input, replace(made, **more), solution, review)


FIRST = Input(1, MarsProblem("q"), references=("4",), group="p.1.0")
FLAG, PASS, UNREAD = (Review(correct, "") for correct in (False, True, None))


def test_what_goes_on_to_the_next_step() -> None:
    assert [output(FIRST, 0.5, review).goes_on for review in (FLAG, PASS, UNREAD)] == [True, False, False]
    assert output(FIRST, 0.0).goes_on
    assert not output(FIRST, None).goes_on
    assert not output(FIRST, 1.0, solution=Solution("s", complete=False)).goes_on
    failed = ScoredRollout(Attempt(0, (), 0.0, "agent_failed"), None, RolloutScore(0.0))
    assert not MemberOutput(FIRST, failed, Solution("s"), None).goes_on
    assert not MemberOutput(FIRST, replace(failed, attempt=Attempt(0, (), 0.0)), None, None).goes_on
    lost = ScoredRollout(Attempt(0, (), 1.0, "infra_failed"), None, RolloutScore(1.0))
    assert MemberOutput(FIRST, lost, Solution("s"), None).reward is None


def test_the_input_of_the_next_step_has_the_solution_and_whether_it_is_right() -> None:
    problem = Problem("p", "q", ("4",))
    for reward, right in ((0.49, False), (0.5, True), (None, False)):
        made = make_input(problem, 2, 3, output(FIRST, reward))
        assert (made.step, made.right, made.review, made.group, made.references) == (2, right, None, "p.2.3", ("4",))
        assert (made.role, made.part) == ("verifier", "verifier1")
    reviewed = make_input(problem, 3, 0, output(replace(FIRST, step=2, solution=Solution("s"), right=True), 0.0, FLAG))
    assert (reviewed.right, reviewed.review, reviewed.solution) == (True, FLAG, Solution("s"))
    refined = replace(FIRST, step=4, solution=Solution("t", refined=True))
    assert (FIRST.part, refined.part, reviewed.part) == ("solver", "verifier2", "corrector1")


def test_picks_by_hand() -> None:
    rewards = [1.0, 0.0, 0.5, 0.49]
    for seed in range(8):
        drawn = {
            strategy: picks(rewards, strategy, first=0.0, seed=seed) for strategy in ("random", "balanced", "adaptive")
        }
        assert set(drawn["adaptive"]) == {1, 3}, "wrong solutions for a Verifier"
        assert len({index in (0, 2) for index in drawn["balanced"]}) == 2, "one of each kind"
        assert len(set(drawn["random"])) == 2
        assert set(picks(rewards, "adaptive", first=1.0, seed=seed)) == {0, 2}
        assert set(picks(rewards, "balanced", first=0.0, seed=seed, most=9)) == {0, 1, 2, 3}
    assert picks([], "balanced", first=0.0, seed=0) == []
    assert {picks(rewards, "balanced", first=0.0, seed=seed)[0] in (0, 2) for seed in range(20)} == {True, False}


def test_a_verifier_is_natural_only_where_its_recall_and_its_false_alarms_are_known() -> None:
    right, wrong = (replace(FIRST, step=2, solution=Solution("s"), right=right) for right in (True, False))
    solved = [output(FIRST, 1.0), output(FIRST, 0.0)]
    known = measure_parts([*solved, output(right, 0.0, FLAG), output(right, 1.0, PASS), output(wrong, 1.0, FLAG)])
    assert known["verifier1/natural"] == pytest.approx(0.5 * 0.5 + 0.5 * 1.0)
    assert (known["solver/groups"], known["verifier1/groups"]) == (1.0, 2.0)
    for some in ([*solved, output(right, 0.0, FLAG)], [*solved, output(wrong, 1.0, FLAG)], [output(right, 0.0, FLAG)]):
        assert "verifier1/natural" not in measure_parts(some)
    unpaid = measure_parts([output(wrong, None, FLAG)])
    assert unpaid == {"verifier1/groups": 1.0}


def test_lengths_and_cut_replies_of_a_part() -> None:
    record = rollout(solver=[turn([1], [2])])
    record.trajectories["solver"].turns.append(Turn(Request(()), Completion("", finish="length")))
    made = output(FIRST, 1.0, record=record, attempt=Attempt(0, (row("solver", 4), row("solver", 2)), 1.0))
    other = output(FIRST, 0.0, record=rollout(solver=[turn([1], [2])]))
    figures = measure_parts([made, other])
    assert figures == {"solver/length": 3.0, "solver/cut": 0.5, "solver/reward": 0.5, "solver/groups": 1.0}


@pytest.mark.parametrize(("step", "reward"), [(1, 0.0), (3, 0.0), (2, 1.0), (4, 1.0)])
def test_adaptive_shows_verifiers_wrong_solutions_and_correctors_true_flags(step: int, reward: float) -> None:
    """Two outputs of a step earned 1 and two 0: after steps 1 and 3 comes a Verifier, after the others a Corrector."""

    async def never(*_: Any) -> RolloutScore:
        raise AssertionError

    made = replace(FIRST, step=step, solution=None if step == 1 else Solution("s"))
    solves = step in (1, 3)
    outputs = [
        output(made, float(at % 2), solution=Solution(f"{at % 2}"))
        if solves
        else output(made, float(at % 2), Review(correct=False, report=f"{at % 2}"))
        for at in range(4)
    ]
    rollouts = Rollouts(None, None, [], never, config=RolloutConfig(attempts=2))  # type: ignore[arg-type]
    agentic = Agentic(rollouts, StageConfig(sampling="adaptive"))
    stage = Stage(agentic, 0, Problem("p", "q", ("4",)), (made,)).then([outputs])
    assert stage
    earned = [one.review.report if one.review else one.solution.text for one in stage.inputs if one.solution]
    assert earned == [f"{reward:.0f}"] * 2


def test_the_comparison_of_matpo_is_that_of_the_planners_input() -> None:
    tree = [attempt(at, float(at), row("worker", 2, prompt=7), row("planner", 2, prompt=3)) for at in range(2)]
    keys = {weighted.group for weighted in matpo([group(*tree)]).rows}
    assert keys == {Key("q", "planner", row("planner", 2, prompt=3).input)}
    lost = group(*tree, attempt(2, None, status="infra_failed"), attempt(3, 1.0))
    credited = matpo([lost])
    assert (credited.sizes, credited.normaliser) == ((2,), 2.0), "without rows nothing is compared"
    assert [made.number for made in lost.counting] == [0, 1, 3]
