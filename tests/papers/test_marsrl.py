"""MarsRL (2511.11373) step by step: solve, verify, correct; what each role is shown; acceptance and the fallback."""

import io
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from hira.agents.run_context import RoleConfig, RunContext
from hira.cli import main
from hira.cli.shell import Shell
from hira.core.budget import Budget, Limits
from hira.core.concurrency import together
from hira.core.errors import EndpointError
from hira.core.events import Notice
from hira.core.policy import Completion, Request, Sampling
from hira.evidence import Source
from hira.policies.offline import OfflinePolicy
from hira.testing import Endpoint, ScriptedPolicy
from hira.testing.script import make_context
from hira.tools import Observation, Passage, Tool, Toolbox
from hira.tools.documents import Index, search_documents
from hira.workflows import rollout
from hira.workflows.marsrl import MarsRL, best
from hira.workflows.marsrl.steps import MarsProblem, Solution, correct, pose, solve, verify

ASEAN = Path(__file__).parent.parent / "data" / "asean"
QUESTION = "What is the sum of the first ten odd numbers?"
RIGHT, WRONG = "Verdict: correct", "Step 2 is wrong: 9 · 11 is not 100.\n\nVerdict: incorrect"
SOLVED, BETTER, BEST = (rf"By way {way}. \boxed{{{value}}}" for way, value in (("A", 99), ("B", 101), ("C", 100)))


def context(solver: Any, verifier: Any, corrector: Any = (), **more: Any) -> tuple[RunContext, ScriptedPolicy]:
    policy = ScriptedPolicy({"solver": solver, "verifier": verifier, "corrector": corrector})
    return make_context(policy, **more), policy


def names(policy: ScriptedPolicy) -> list[str]:
    return [request.conversation for request in policy.requests]


async def test_the_five_steps_and_then_the_last_two_in_turn() -> None:
    """Section 3.1: t1 Solver, t2 Verifier1, t3 Corrector1, t4 Verifier2, t5 Corrector2, and on."""
    people, policy = context([SOLVED], [WRONG, WRONG, WRONG, RIGHT], [BETTER, BETTER.replace("B", "D"), BEST])
    record = await rollout(MarsRL(), QUESTION, people)
    assert record.answer == "100"
    assert names(policy) == [
        "1/solver",
        "2/verifier1/verifier", "3/corrector1/corrector",
        "4/verifier2/verifier", "5/corrector2/corrector",
        "6/verifier2/verifier", "7/corrector2/corrector",
        "8/verifier2/verifier",
    ]  # fmt: skip
    assert {one.role for one in record.trajectories.values()} == MarsRL().roles
    policy.assert_done()


async def test_the_length_of_replies_is_bounded_for_every_role_where_it_is_set() -> None:
    """Section 4.1: 64k tokens."""
    for reply in (None, 65_536):
        people, policy = context([SOLVED], [WRONG, RIGHT], [BEST])
        await rollout(MarsRL(reply=reply), QUESTION, people)
        assert [request.sampling.max_tokens for request in policy.requests] == [reply] * 4


def test_it_is_evaluated_32_times_at_the_papers_sampling_and_scored_by_the_mean(tmp_path: Path) -> None:
    """Section 4.1: avg@32, temperature 0.6, top-p 0.95, no top-k; `--repeats 32` and two settings."""
    (tmp_path / "aime.jsonl").write_text(json.dumps({"problem": QUESTION, "answer": "100", "id": "0"}) + "\n")
    (tmp_path / "hira.toml").write_text("temperature = 0.6\ntop_p = 0.95\n")
    solutions = itertools.cycle([SOLVED, BEST, SOLVED, BEST])

    def said(request: Request) -> str:
        return RIGHT if request.messages[0].text.startswith("Check") else next(solutions)

    out = io.StringIO()
    with Endpoint({"*": said}) as endpoint:
        words = (
            "--workflow",
            "marsrl",
            "--model",
            "scripted",
            "--base-url",
            endpoint.base_url,
            "--repeats",
            "32",
            "--json",
        )
        shell = Shell(io.StringIO(), out, io.StringIO(), {"HIRA_API_KEY": "k"}, tmp_path, tmp_path)
        assert main(("eval", "aime2025=aime.jsonl", *words), shell) == 0
    (row,) = json.loads(out.getvalue())["rows"]
    assert (row["seeds"], row["asked"], row["accuracy"], row["pass_at_k"]) == (32, 32, 0.5, 1.0)
    bodies = [call.body for call in endpoint.calls]
    assert {(body["temperature"], body["top_p"], body.get("top_k")) for body in bodies} == {(0.6, 0.95, None)}


async def test_what_each_role_is_shown_and_what_not() -> None:
    people, policy = context([SOLVED], [WRONG, "All fine now.\n\nVerdict: correct"], [f"<think>hidden</think>{BEST}"])
    await rollout(MarsRL(), QUESTION, people)
    told = [request.messages for request in policy.requests]
    assert all(len(messages) == 1 for messages in told)
    first, verified, corrected, again = (messages[0].text for messages in told)
    assert all(QUESTION in text for text in (first, verified, corrected, again))
    assert SOLVED in verified
    assert SOLVED in corrected
    assert WRONG in corrected, "the report is handed on whole"
    assert BEST in again
    for hidden in (SOLVED, WRONG, "hidden"):
        assert hidden not in again, "Verifier2 sees the refined solution and not how it came about"
    assert all(request.tools == () for request in policy.requests)


@pytest.mark.parametrize("said", ["It looks fine to me.", "Verdict: not correct", "Verdict: correct or not?"])
async def test_a_verdict_that_cannot_be_read_does_not_accept(said: str) -> None:
    people, policy = context([SOLVED], [said, RIGHT], [BEST])
    record = await rollout(MarsRL(), QUESTION, people)
    assert record.answer == "100"
    assert said in policy.requests[2].messages[0].text


@pytest.mark.parametrize("reply", ["", Completion("", reasoning="Verdict: correct")])
async def test_where_a_verifier_says_nothing_it_is_asked_again_and_nothing_is_corrected(reply: Any) -> None:
    people, policy = context([SOLVED], [reply, RIGHT])
    record = await rollout(MarsRL(), QUESTION, people)
    assert (record.answer, names(policy)) == ("99", ["1/solver", "2/verifier1/verifier", "3/verifier1/verifier"])


async def test_so_many_passes_in_a_row_accept_and_a_failure_begins_them_anew() -> None:
    people, policy = context([SOLVED], [RIGHT, WRONG, RIGHT, RIGHT, RIGHT], [BEST])
    record = await rollout(MarsRL(passes=3), QUESTION, people)
    assert record.answer == "100"
    assert [name.split("/")[1] for name in names(policy)] == [
        "solver", "verifier1", "verifier1", "corrector1", "verifier2", "verifier2", "verifier2",
    ]  # fmt: skip


async def test_if_nothing_is_accepted_the_solution_that_was_judged_correct_most_often_is_the_answer() -> None:
    """Section 2.1. Judged correct: A once, B twice, C once."""
    heard: list[str] = []
    verdicts = [RIGHT, WRONG, RIGHT, RIGHT, WRONG, RIGHT, WRONG]
    people, policy = context([SOLVED], verdicts, [BETTER, BEST])
    people.events.readers.append(lambda event: heard.append(event.text) if isinstance(event, Notice) else None)
    record = await rollout(MarsRL(passes=3, rounds=7), QUESTION, people)
    assert record.answer == "101"
    assert any("no solution was accepted" in text for text in heard)
    policy.assert_done()


def test_of_solutions_judged_alike_the_latest_is_taken() -> None:
    first, second, third = (Solution(text) for text in "abc")
    assert best({first: 1, second: 1, third: 0}) == second
    assert best({first: 0, second: 0}) == second


async def test_there_are_ten_reviews_at_most_and_nothing_is_corrected_that_nobody_reviews() -> None:
    people, policy = context([SOLVED], lambda _: WRONG, lambda request: f"{len(request.messages[0].text)} \\boxed{{1}}")
    await rollout(MarsRL(), QUESTION, people)
    roles = [request.conversation.rpartition("/")[2] for request in policy.requests]
    assert (roles.count("verifier"), roles.count("corrector"), roles[-1]) == (10, 9, "verifier")


async def test_a_solution_that_was_cut_off_is_asked_for_again() -> None:
    cut = Completion("By way A, which is lo", finish="length")
    people, policy = context([cut, cut, SOLVED], [RIGHT])
    assert (await rollout(MarsRL(), QUESTION, people)).answer == "99"
    assert names(policy)[:3] == ["1/solver", "1/solver.2", "1/solver.3"]
    people, policy = context([cut, cut], [WRONG, RIGHT], [SOLVED])
    assert (await rollout(MarsRL(tries=2), QUESTION, people)).answer == "99"


async def test_a_correction_that_was_cut_off_leaves_the_solution_as_it_was() -> None:
    people, policy = context([SOLVED], [WRONG, RIGHT], [Completion("By way B, which", finish="length")])
    record = await rollout(MarsRL(), QUESTION, people)
    assert record.answer == "99"
    assert names(policy)[-1] == "4/verifier1/verifier"


async def test_each_step_can_be_sampled_in_groups_by_itself() -> None:
    """Section 3.3: a group of eight on one input, of any step, without the steps before it in the same run."""
    verdicts = [RIGHT, WRONG] * 4
    people, policy = context([SOLVED] * 8, verdicts, [BEST] * 8)
    problem = MarsProblem(QUESTION)
    solutions = await together([solve(problem, people) for _ in range(8)])
    refined = Solution(BETTER, refined=True)
    reviews = await together([verify(problem, refined, people, 4) for _ in range(8)])
    flagged = next(review for review in reviews if review.correct is False)
    corrections = await together([correct(problem, refined, flagged, people, 5) for _ in range(8)])
    assert [solution.answer for solution in solutions] == ["99"] * 8
    assert [review.correct for review in reviews] == [True, False] * 4
    assert {solution.refined for solution in corrections} == {True}
    groups = {name.partition(".")[0] for name in people.rollout.trajectories}
    assert groups == {"1/solver", "4/verifier2/verifier", "5/corrector2/corrector"}
    asked = {request.messages[0].text for request in policy.requests}
    assert len(asked) == 3, "all of a group were asked the same"
    policy.assert_done()


@pytest.mark.parametrize("found", [True, False])
async def test_what_was_found_for_the_question_is_part_of_the_problem_that_all_roles_see(found: bool) -> None:
    people, policy = context(
        [SOLVED], [WRONG, RIGHT], [r"\boxed{The sum of the first ten odd numbers is a square [s1].}"], tools=_towers()
    )
    record = await rollout(MarsRL(search=found), QUESTION, people)
    shown = ["[s1] Squares (squares.md)\nThe sum of odd numbers" in one.messages[0].text for one in policy.requests]
    assert shown == [found] * 4
    assert (record.status == "answered") is found
    assert set(record.trajectories) == set(names(policy)), "looking it up is nobody's trajectory"


def _towers() -> Toolbox:
    async def find(arguments: Any) -> Observation:
        del arguments
        text = "The sum of odd numbers is a square. The sum of the first ten odd numbers is a square."
        return Observation(passages=(Passage(Source("squares.md", "Squares", text, "file"), text),))

    schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    return Toolbox(search=Tool("search", "Search.", schema, find, pure=True))


async def test_a_search_without_a_hit_leaves_the_problem_as_it_is_and_equal_results_stand_once(tmp_path: Path) -> None:
    nothing = Tool("search", "Search.", _towers().search.parameters, lambda _: _nothing(), pure=True)  # type: ignore[union-attr]
    people, _ = context([], [], tools=Toolbox(search=nothing))
    plain = MarsProblem(QUESTION)
    assert (await pose(QUESTION, people)).documents == plain.documents
    assert (await pose(QUESTION, people, search=False)).documents == plain.documents
    people, _ = context([], [], tools=_towers())
    posed = await pose(QUESTION, people, reply=99)
    assert posed.documents.count("[s1] Squares") == 1
    assert (posed.question, posed.reply) == (QUESTION, 99)


async def _nothing() -> Observation:
    return Observation("0 results")


async def test_an_endpoint_that_dies_leaves_the_best_solution_as_a_clear_partial() -> None:
    people, _ = context([SOLVED], [RIGHT, WRONG, EndpointError("the endpoint is gone")], [BEST])
    record = await rollout(MarsRL(passes=2), QUESTION, people)
    assert (record.status, record.answer) == ("failed", "- 99")
    assert "the endpoint is gone" in record.error


@pytest.mark.parametrize("budget", [Budget(calls=4), Budget(roles={"verifier": Limits(calls=1)})])
async def test_a_spent_budget_ends_it_with_the_latest_solution(budget: Budget) -> None:
    people, policy = context([SOLVED], [WRONG, RIGHT], [BEST], budget=budget)
    record = await rollout(MarsRL(), QUESTION, people)
    assert (record.status, record.answer) == ("partial", "- 100")
    assert len(policy.requests) == 3


async def test_each_role_has_its_own_model_and_sampling() -> None:
    """The paper evaluates its Verifier and Corrector with other Solvers (Table 3)."""
    solver, others = ScriptedPolicy([SOLVED], model="other"), ScriptedPolicy([RIGHT], model="trained")
    configs = {
        "solver": RoleConfig(solver, Sampling(temperature=0.6)),
        "*": RoleConfig(others, Sampling(temperature=0.2)),
    }
    await rollout(MarsRL(), QUESTION, RunContext(configs))
    assert [request.sampling.temperature for request in (*solver.requests, *others.requests)] == [0.6, 0.2]


OFFLINE = [
    ("What is the capital of Myanmar?", r"\boxed{The capital of Myanmar is Yangon [s1].}", "Naypyidaw"),
    ("What is the capital of Myanmar?", r"\boxed{Yangon}", "Naypyidaw"),
]


@pytest.mark.parametrize(("question", "solution", "answer"), OFFLINE)
async def test_offline_finds_the_error_in_somebody_elses_solution(question: str, solution: str, answer: str) -> None:
    index = Index([ASEAN])
    configs = {"solver": RoleConfig(ScriptedPolicy([solution])), "*": RoleConfig(OfflinePolicy())}
    record = await rollout(MarsRL(), question, RunContext(configs, tools=Toolbox(search=search_documents(index))))
    index.close()
    assert answer in record.answer
    assert list(record.trajectories)[1:] == [
        "2/verifier1/verifier", "3/corrector1/corrector", "4/verifier2/verifier",
    ]  # fmt: skip
