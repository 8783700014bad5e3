"""MarsRL: a Verifier and a Corrector improve on a Solver's solution (paper 2511.11373, section 3.1 and Fig. 1).

t₁ the Solver solves, t₂ Verifier1 checks, t₃ Corrector1 refines, t₄ Verifier2 checks, t₅ Corrector2 refines; from there
on the last two take turns, until a solution is accepted. If none is, the one that was judged correct most often is the
answer (section 2.1); with `passes=1` none was ever judged correct, so it is the latest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hira.agents.retrieval import PAGES
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Finding, Subtask
from hira.core.errors import UsageError
from hira.core.events import Notice
from hira.core.policy import Usage
from hira.workflows.bound import Sizes
from hira.workflows.marsrl.steps import Solution, correct, pose, solve, verify


@dataclass(frozen=True)
class MarsRL:
    """Solve, verify and correct, with the limits of the paper.

    A solution is accepted after `passes` reviews in a row without an error (section 3.1: one; the published code asks
    for four). There are at most `rounds` reviews, and `tries` of the Solver if its solution is cut off (published
    code). `reply` bounds the tokens of a reply of any role; unless it is set, the endpoint decides, because not every
    endpoint takes the paper's 64k (section 4.1). With `search`, all roles see search results for the question; the
    paper reasons without documents.
    """

    roles: ClassVar[frozenset[str]] = frozenset({"solver", "verifier", "corrector"})
    takes_tools: ClassVar[frozenset[str]] = frozenset()

    passes: int = 1
    rounds: int = 10
    tries: int = 3
    search: bool = True
    reply: int | None = None
    name: str = "marsrl"

    def __post_init__(self) -> None:
        if min(self.passes, self.rounds, self.tries) < 1:
            what = f"{self.passes} passes, {self.rounds} rounds, {self.tries} tries: these limits leave nothing to do"
            raise UsageError(what, fix="at least one of each")

    async def run(self, question: str, context: RunContext) -> str:
        problem = await pose(question, context, search=self.search, reply=self.reply)
        solution = await solve(problem, context)
        for _ in range(self.tries - 1):  # the first that is not cut off, else the last
            if solution.complete:
                break
            solution = await solve(problem, context)
        judged: dict[Solution, int] = {}
        step, passed = 1, 0
        for left in reversed(range(self.rounds)):
            judged.setdefault(solution, 0)
            kept = best(judged)  # what the run knows if it ends early
            expert = "corrector" if kept.refined else "solver"
            context.rollout.findings[:] = [Finding(Subtask("1", question), expert, kept.text, kept.answer)]
            step += 1
            review = await verify(problem, solution, context, step)
            if review.correct:
                judged[solution] += 1
                passed += 1
                if passed == self.passes:
                    return solution.answer
            else:
                passed = 0
                if review.report and left:
                    step += 1
                    refined = await correct(problem, solution, review, context, step)
                    solution = refined if refined.complete else solution
        kept = best(judged)
        why = "was judged correct most often" if judged[kept] else "came last"
        context.events(Notice(f"no solution was accepted; the one that {why} is the answer"))
        return kept.answer

    def bound(self, sizes: Sizes) -> dict[str, Usage]:
        problem = sizes.prompt + (PAGES + 1) * sizes.result * self.search
        reviews, corrections = self.rounds, max(0, self.rounds - 1)
        return {
            "solver": Usage(self.tries, self.tries * problem, self.tries * sizes.reply),
            "verifier": Usage(reviews, reviews * (problem + sizes.reply), reviews * sizes.reply),
            "corrector": Usage(corrections, corrections * (problem + 2 * sizes.reply), corrections * sizes.reply),
        }


def best(judged: Mapping[Solution, int]) -> Solution:
    """The solution that was judged correct most often; of several the latest, which rests on most reports."""
    return max(reversed(list(judged)), key=judged.__getitem__)
