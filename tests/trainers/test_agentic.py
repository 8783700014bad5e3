"""Grouped agentic rollouts: who is grouped with whom, what goes on, what each role is paid."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from rollouts_made import Letters, contexts

from hira.agents.trajectory import Rollout
from hira.core.errors import HiraError
from hira.core.policy import Request
from hira.evaluation.rewards.answers import ByWords, RolloutScore, of_verdict
from hira.evaluation.rewards.match import exact
from hira.trainers.agentic import Agentic, AnswerStep, Input, MemberOutput, measure_parts, picks
from hira.trainers.configuration import RolloutConfig, StageConfig
from hira.trainers.credit import marsrl
from hira.trainers.rollouts import Problem, Rollouts
from hira.trainers.rows import Attempt, Group, Row, ScoredRollout
from hira.workflows.marsrl.steps import MarsProblem as Posed
from hira.workflows.marsrl.steps import Review, Solution

Say = Callable[[str, int], str]
RIGHT, WRONG = r"\boxed{4}", r"\boxed{5}"
GOOD, BAD = "Verdict: correct", "It is not.\nVerdict: incorrect"


def agentic(say: Say, *, size: int = 4, questions: int = 1, **settings: Any) -> Agentic:
    """`say` gets the conversation and how many asked in it before."""
    asked: Counter[str] = Counter()

    def reply(request: Request) -> str:
        asked[request.conversation] += 1
        return say(request.conversation, asked[request.conversation] - 1)

    problems = [Problem(f"p{at}", "2 + 2?", ("4",)) for at in range(3)]
    config = RolloutConfig(questions=questions, attempts=size)
    made = Rollouts(contexts(Letters(reply)), None, problems, ByWords(exact), config=config)  # type: ignore[arg-type]
    return Agentic(made, StageConfig(**settings))


def half(conversation: str, number: int) -> str:
    """Every second solution is right, every second verdict flags."""
    return (BAD, GOOD)[number % 2] if "verifier" in conversation else (WRONG, RIGHT)[number % 2]


async def through(made: Agentic) -> list[list[MemberOutput]]:
    return await made.collect_problem(made.rollouts.problems[0], 0)


# --- rewards (section 3.2)


def test_a_verifier_is_paid_for_a_true_verdict_and_for_none_that_cannot_be_read() -> None:
    for accepts, right, reward in (
        (True, True, 1),
        (True, False, 0),
        (False, False, 1),
        (False, True, 0),
        (None, True, 0),
        (None, False, 0),
    ):
        assert of_verdict(accepts=accepts, right=right) == reward


# --- sampling (section 3.4)


def test_adaptive_takes_the_wanted_kind_first_and_breaks_ties_by_the_seed() -> None:
    given = [1, 0, 1, 0, 1, 0]
    assert all(set(picks(given, "adaptive", first=0, seed=seed)) <= {1, 3, 5} for seed in range(30))
    assert all(set(picks(given, "adaptive", first=1, seed=seed)) <= {0, 2, 4} for seed in range(30))
    assert {frozenset(picks(given, "adaptive", first=0, seed=seed)) for seed in range(60)} == {
        frozenset({1, 3}), frozenset({1, 5}), frozenset({3, 5})
    }  # fmt: skip
    assert sorted(picks([1, 0, 1], "adaptive", first=0, seed=3)) in ([0, 1], [1, 2])
    assert picks(given, "adaptive", first=0, seed=9) == picks(given, "adaptive", first=0, seed=9)


def test_random_draws_any_and_balanced_as_many_right_as_wrong() -> None:
    given = [1, 1, 1, 1, 0, 1]
    drawn = [picks(given, "random", first=0, seed=seed) for seed in range(200)]
    assert {place for one in drawn for place in one} == set(range(6))
    assert any(4 not in one for one in drawn), "uniformly, whatever they earned"
    both = [picks(given, "balanced", first=0, seed=seed) for seed in range(50)]
    assert all(4 in one and len(set(one)) == 2 for one in both), "one right and one wrong solution"
    assert {one[0] == 4 for one in both} == {True, False}, "the draw decides which comes first"
    assert all(len(picks(given, "balanced", first=0, seed=seed, most=4)) == 4 for seed in range(9))
    halves = [1, 1, 1, 0, 0, 0]
    for seed in range(50):
        four = picks(halves, "balanced", first=0, seed=seed, most=4)
        assert sum(halves[place] for place in four) == 2
        assert sorted(picks(halves, "balanced", first=0, seed=seed, most=6)) == list(range(6))
    for strategy in ("random", "balanced", "adaptive"):
        assert picks([], strategy, first=0, seed=1) == []  # type: ignore[arg-type]
        assert picks([1], strategy, first=0, seed=1) == [0]  # type: ignore[arg-type]
        assert len(picks(given, strategy, first=1, seed=1)) == 2  # type: ignore[arg-type]


def test_a_share_of_a_half_counts_as_right() -> None:
    assert set(picks([0.5, 0.4, 0.5, 0.1], "adaptive", first=1, seed=5)) == {0, 2}
    assert set(picks([0.5, 0.4, 0.5, 0.1], "adaptive", first=0, seed=5)) == {1, 3}


def test_only_a_whole_solution_with_a_reward_or_a_report_of_errors_goes_on() -> None:
    asked = Input(1, Posed("q"))

    def goes_on(
        solution: Solution | None, review: Review | None, reward: float | None = 0.0, status: Any = "ok"
    ) -> bool:
        attempt = Attempt(0, (), reward, status)
        scored = ScoredRollout(attempt, None, RolloutScore(reward))
        return MemberOutput(asked, scored, solution, review).goes_on

    whole, cut, flag = Solution("s"), Solution("s", complete=False), Review(correct=False, report="")
    assert [goes_on(whole, None), goes_on(None, flag)] == [True, True]
    assert not any(
        (
            goes_on(cut, None), goes_on(None, Review(correct=True, report="")), goes_on(None, Review(None, "")),
            goes_on(whole, None, None), goes_on(None, flag, None),
            goes_on(whole, None, 0.0, "agent_failed"), goes_on(whole, None, 0.0, "infra_failed"),
        )
    )  # fmt: skip


# --- the tree (section 3.3, Fig. 3b)


async def test_five_steps_of_which_each_takes_two_outputs_of_the_one_before() -> None:
    groups = await through(agentic(half))
    assert [group[0].step_input.group for group in groups] == [
        "p0.1.0", "p0.2.0", "p0.2.1", "p0.3.0", "p0.3.1", "p0.4.0", "p0.4.1", "p0.5.0", "p0.5.1",
    ]  # fmt: skip
    assert [group[0].step_input.part for group in groups] == [
        "solver", "verifier1", "verifier1", "corrector1", "corrector1",
        "verifier2", "verifier2", "corrector2", "corrector2",
    ]  # fmt: skip
    assert all(len(group) == 4 for group in groups)
    for output in (output for group in groups for output in group):
        right = output.step_input.right == output.review.correct if output.review else output.solution.text == RIGHT
        assert output.reward == float(right), "paid for its own answer or verdict"


async def test_adaptive_shows_the_verifier_wrong_solutions_and_the_corrector_true_flags() -> None:
    by = {group[0].step_input.group: group for group in await through(agentic(half))}
    assert [by[name][0].step_input.right for name in ("p0.2.0", "p0.2.1")] == [False, False]
    assert [one.reward for one in by["p0.2.0"]] == [1.0, 0.0, 1.0, 0.0]  # flags, and the solution is wrong
    for name in ("p0.3.0", "p0.3.1"):
        asked = by[name][0].step_input
        assert asked.review is not None
        assert asked.review.correct is False
        assert not asked.right


async def test_a_corrector_gets_only_reviews_that_report_errors_and_without_any_the_problem_ends() -> None:
    def mostly_accepting(conversation: str, number: int) -> str:
        return (GOOD, GOOD, GOOD, BAD)[number % 4] if "verifier" in conversation else (WRONG, RIGHT)[number % 2]

    groups = await through(agentic(mostly_accepting, sampling="random"))
    reviews = [group[0].step_input.review for group in groups if group[0].step_input.role == "corrector"]
    assert reviews
    assert all(review is not None and review.correct is False for review in reviews)
    groups = await through(agentic(lambda conversation, _: GOOD if "verifier" in conversation else RIGHT))
    assert {group[0].step_input.step for group in groups} == {1, 2}


async def test_what_was_cut_off_is_not_paid_by_its_words() -> None:
    """The Solver's words hold the right answer, and it is not paid for a solution without an end; nor is it judged."""

    async def judge(rollout: Any, references: tuple[str, ...]) -> RolloutScore:
        return RolloutScore(float(references[0] in rollout.answer))

    rollout = Rollout("r", "2 + 2?", "marsrl", answer="4")
    for complete, paid in ((True, 1.0), (False, 0.0)):
        step = AnswerStep(Input(1, Posed("2 + 2?")), judge, Solution(RIGHT, complete=complete))
        assert (await step.score(rollout, ("4",))).value == paid


async def test_a_review_is_paid_by_its_verdict_and_says_so_if_none_can_be_read() -> None:
    rollout = Rollout("r", "2 + 2?", "marsrl")
    wrong = Input(2, Posed("2 + 2?"), Solution(WRONG), right=False)
    for correct, paid, why in ((False, 1.0, ""), (True, 0.0, ""), (None, 0.0, "no verdict can be read")):
        step = AnswerStep(wrong, ByWords(exact), review=Review(correct, "It is not."))
        assert await step.score(rollout, ("4",)) == RolloutScore(paid, why=why)


async def test_a_corrected_solution_goes_to_the_second_verifier_with_its_own_reward() -> None:
    groups = await through(agentic(half))
    for group in groups:
        asked = group[0].step_input
        if asked.step == 1:
            assert (asked.solution, asked.review, asked.right) == (None, None, False)
            continue
        assert asked.solution is not None
        assert asked.right == (asked.solution.text == RIGHT)
        assert (asked.review is None) == (asked.role == "verifier")
        assert asked.solution.refined == (asked.step >= 4)
        assert asked.references == ("4",)


async def test_an_update_takes_the_groups_of_all_its_problems_with_transcripts_and_figures() -> None:
    made = agentic(half, questions=2)
    collected = await made.collect(0)
    assert len(collected.groups) == 18
    assert made.sampled == 18 * 4
    assert len({group.problem for group in collected.groups}) == 18
    assert all([attempt.number for attempt in group.attempts] == [0, 1, 2, 3] for group in collected.groups)
    assert len(collected.samples) == made.rollouts.config.samples
    assert collected.measures["problems_lost"] == 0
    assert collected.measures["solver/groups"] == 2
    assert collected.measures["verifier1/groups"] == collected.measures["corrector1/groups"] == 4
    again = await agentic(half, questions=2).collect(0)
    assert [group.problem for group in again.groups] == [group.problem for group in collected.groups]


def test_steps_end_with_the_last_that_is_trained() -> None:
    for roles, last in (((), 5), (("solver",), 1), (("verifier",), 4), (("corrector", "solver"), 5)):
        assert agentic(half, roles=roles).last == last


# --- training some roles (section 4.3)


async def test_no_step_is_sampled_after_the_last_that_is_trained() -> None:
    for roles, steps in (({"solver"}, 1), ({"verifier", "corrector"}, 5)):
        made = await agentic(half, roles=tuple(roles)).collect(0)
        assert max(int(group.problem.split(".")[1]) for group in made.groups) == steps
        credited = marsrl(made.groups, roles=roles)
        assert {one.row.role for one in credited.rows} == roles


# --- credit


def member(number: int, reward: float, role: str = "verifier", prompt: int = 1, tokens: int = 2) -> Attempt:
    row = Row("q.2.0", f"r{number}", role, f"2/{role}", (prompt,), (5,) * tokens, (1,) * tokens, (-0.5,) * tokens)
    return Attempt(number, (row,), reward)


def test_credit_by_hand() -> None:
    """Group of rewards 1, 0, 0, 1: μ = ½, σ = ½. Z counts all tokens of groups with a signal."""
    alive = Group("q.2.0", tuple(member(at, float(at in (0, 3)), tokens=at + 1) for at in range(4)))
    dead = Group("q.3.0", tuple(member(at, 1.0, "corrector") for at in range(4)))
    credited = marsrl([alive, dead])
    assert [one.advantage for one in credited.rows] == [1.0, -1.0, -1.0, 1.0]
    assert [one.weight for one in credited.rows] == [1.0] * 4
    assert credited.normaliser == 1 + 2 + 3 + 4
    assert (credited.dead, credited.sizes) == (1, (4, 4))


def test_a_group_of_several_roles_or_inputs_is_refused() -> None:
    for other in ({"role": "solver"}, {"prompt": 9}):
        with pytest.raises(HiraError, match="different inputs"):
            marsrl([Group("q.2.0", (member(0, 1.0), member(1, 0.0, **other)))])


# --- what is told


def test_figures_by_part_worked_by_hand() -> None:
    """Of four solutions three are right. A Verifier flags 2 of 3 wrong ones, and 1 of 4 right ones, of which it leaves
    another without a verdict, so that 2 of 3 flags are true; as solutions come it is right in
    3/4 · (1 - 1/4) + 1/4 · 2/3. A Corrector mends 2 of 3 wrong ones and spoils 1 of 5 right ones."""

    def answered(asked: Input, reward: float, solution: Solution | None, review: Review | None) -> MemberOutput:
        return MemberOutput(asked, ScoredRollout(Attempt(0, (), reward), None, RolloutScore(reward)), solution, review)

    def judged(right: bool, flags: Sequence[bool | None]) -> list[MemberOutput]:
        asked = Input(2, Posed("q"), Solution("s"), right)
        verdicts = [None if one is None else not one for one in flags]
        return [answered(asked, of_verdict(accepts=one, right=right), None, Review(one, "")) for one in verdicts]

    def corrected(right: bool, rewards: Sequence[float]) -> list[MemberOutput]:
        asked = Input(3, Posed("q"), Solution("s"), right, Review(correct=False, report=""))
        return [answered(asked, one, Solution("t"), None) for one in rewards]

    told = measure_parts([
        *(answered(Input(1, Posed("q")), one, Solution("s"), None) for one in (1.0, 1.0, 0.0, 1.0)),
        *judged(right=False, flags=(True, True, False)),
        *judged(right=True, flags=(False, True, None, False)),
        *corrected(right=False, rewards=(1.0, 0.0, 1.0)),
        *corrected(right=True, rewards=(1.0, 0.0, 1.0, 1.0, 1.0)),
    ])  # fmt: skip
    wanted = {
        "solver/reward": 3 / 4,
        "verifier1/reward": 4 / 7,
        "verifier1/recall": 2 / 3,
        "verifier1/false_alarms": 1 / 4,
        "verifier1/precision": 2 / 3,
        "verifier1/unreadable": 1 / 7,
        "verifier1/wrong": 3 / 7,
        "verifier1/natural": 3 / 4 * 3 / 4 + 1 / 4 * 2 / 3,
        "corrector1/fixed": 2 / 3,
        "corrector1/harmed": 1 / 5,
    }
    assert {name: told[name] for name in wanted} == pytest.approx(wanted)
    assert told["verifier1/groups"] == told["corrector1/groups"] == 2
