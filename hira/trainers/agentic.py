"""Grouped agentic rollouts of MarsRL: the Solver makes a group of solutions; each later role takes some outputs of the
previous role and makes a group for each (2511.11373, section 3.3, Fig. 3b). A Corrector works only on solutions that a
Verifier flagged; without any, the problem ends early."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Literal

from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.core.concurrency import together
from hira.evaluation.rewards.answers import RIGHT, Reward, RolloutScore, of_verdict
from hira.trainers.calls import seed_of
from hira.trainers.configuration import StageConfig
from hira.trainers.metrics import Means, make_transcript, measure_rollouts
from hira.trainers.rollouts import Problem, Rollouts
from hira.trainers.rows import Collected, Group, ScoredRollout
from hira.workflows.marsrl import MarsRL
from hira.workflows.marsrl import steps as marsrl
from hira.workflows.marsrl.steps import Review, Solution

STEPS = ("solver", "verifier", "corrector", "verifier", "corrector")
"""The role at each step. In training a problem has at most five (section 3.1)."""


@dataclass(frozen=True, slots=True)
class Input:
    """The input of all members of one `group`. `right` is whether the solution is right, by its own reward;
    `references` are the right answers."""

    step: int
    problem: marsrl.MarsProblem
    solution: Solution | None = None
    right: bool = False
    review: Review | None = None
    group: str = ""
    references: tuple[str, ...] = ()

    @property
    def role(self) -> str:
        return STEPS[self.step - 1]

    @property
    def part(self) -> str:
        """The name of the role in figures: Verifier1 and Corrector1 work on the Solver's solution, the others on a
        refined one (section 3.1)."""
        return self.role if self.solution is None else f"{self.role}{2 if self.solution.refined else 1}"


@dataclass(frozen=True, slots=True)
class MemberOutput:
    """A member's answer: a solution or a review, and its rollout."""

    step_input: Input
    scored: ScoredRollout
    solution: Solution | None
    review: Review | None

    @property
    def reward(self) -> float | None:
        return self.scored.attempt.reward if self.scored.attempt.counts else None

    @property
    def flagged(self) -> bool:
        """True for a review that reports errors, and not for an unreadable verdict."""
        return self.review is not None and self.review.correct is False

    @property
    def goes_on(self) -> bool:
        """True if the next role may work on it: a whole solution with a reward, or a report of errors."""
        if self.scored.attempt.status != "ok" or self.reward is None:
            return False
        return self.flagged or (self.solution is not None and self.solution.complete)


@dataclass(slots=True)
class PoseStep:
    """The problem with its search results, posed once for all steps."""

    search: bool
    reply: int | None
    made: marsrl.MarsProblem | None = None
    name: str = "marsrl"

    async def run(self, question: str, context: RunContext) -> str:
        self.made = await marsrl.pose(question, context, search=self.search, reply=self.reply)
        return question


@dataclass(slots=True)
class AnswerStep:
    """One step of one role, as a workflow that rollouts can run, with its reward: `accuracy` for a solution, the
    correctness of its verdict for a review (section 3.2)."""

    step_input: Input
    accuracy: Reward
    solution: Solution | None = None
    review: Review | None = None
    name: str = "marsrl"

    async def run(self, question: str, context: RunContext) -> str:
        del question
        problem, solution, step = self.step_input.problem, self.step_input.solution, self.step_input.step
        if solution is None:
            self.solution = await marsrl.solve(problem, context, step)
        elif self.step_input.review is None:
            self.review = await marsrl.verify(problem, solution, context, step)
            return self.review.report
        else:
            self.solution = await marsrl.correct(problem, solution, self.step_input.review, context, step)
        return self.solution.answer

    async def score(self, rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
        if self.review is not None:
            value = of_verdict(accepts=self.review.correct, right=self.step_input.right)
            return RolloutScore(value, why="" if self.review.correct is not None else "no verdict can be read")
        if self.solution is None or not self.solution.complete:
            return RolloutScore(0.0, why="the solution was cut off")
        return await self.accuracy(rollout, references)


async def _unpaid(rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
    del rollout, references
    return RolloutScore(None)


@dataclass(slots=True)
class Agentic:
    """Makes the groups of problems. `rollouts` has the problems, the group size (`attempts`) and the way to make an
    output; its reward is the accuracy of solutions, and only the reply length of its workflow is used.

    `config.picks` outputs of a step enter the next one, chosen by `config.sampling`. Only steps of `config.roles` are
    trained, all if it is empty; nothing is sampled after their last step. `search` shows all roles the search results
    for the question. `lost` are problems that could not be posed since the last update, `sampled` counts outputs.
    """

    rollouts: Rollouts
    config: StageConfig = field(default=StageConfig())
    search: bool = True
    lost: list[ScoredRollout] = field(default_factory=list)
    sampled: int = 0
    gate: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.gate = asyncio.Semaphore(self.rollouts.config.concurrency)

    @property
    def last(self) -> int:
        return max(number for number, role in enumerate(STEPS, 1) if not self.config.roles or role in self.config.roles)

    async def begin(self, problem: Problem, update: int) -> "Stage | None":
        """Return the Solver's step; None if the problem cannot be posed, which `lost` then has."""
        workflow = self.rollouts.workflow
        posing = PoseStep(self.search, workflow.reply if isinstance(workflow, MarsRL) else None)
        scored = await replace(self.rollouts, workflow=posing, reward=_unpaid).play(problem, update, 0)
        if posing.made is None:
            self.lost.append(scored)
            return None
        first = Input(1, posing.made, group=f"{problem.id}.1.0", references=problem.references)
        return Stage(self, update, problem, (first,))

    async def collect_problem(self, problem: Problem, update: int) -> list[list[MemberOutput]]:
        made: list[list[MemberOutput]] = []
        stage = await self.begin(problem, update)
        while stage is not None:
            members, inputs = range(stage.size), range(len(stage.inputs))
            samples = [together([stage.sample(index, number) for number in members]) for index in inputs]
            groups = await together(samples)
            made += groups
            stage = stage.then(groups)
        return made

    async def collect(self, update: int) -> Collected:
        """Collect the groups of an update, all steps of all its problems."""
        with self.report_progress():
            groups = await together([self.collect_problem(problem, update) for problem in self.rollouts.choose(update)])
        return self.collect_groups([output for many in groups for output in many])

    def report_progress(self) -> AbstractContextManager[None]:
        return self.rollouts.report_progress(lambda: f"{self.sampled} outputs sampled")

    def collect_groups(self, groups: Sequence[Sequence[MemberOutput]]) -> Collected:
        """Return the groups as the trainer takes them. Raises `HiraError` if too many outputs failed."""
        outputs = [output for group in groups for output in group]
        scored = [output.scored for output in outputs]
        lost, self.lost = self.lost, []
        self.rollouts.check([*lost, *scored])
        shown = [group[0] for group in groups][: self.rollouts.config.samples]
        lines = tuple(make_transcript(output.scored, output.step_input.references) for output in shown)
        measures = {**measure_rollouts(scored), **measure_parts(outputs), "problems_lost": float(len(lost))}
        made = [(group[0].step_input.group, tuple(output.scored.attempt for output in group)) for group in groups]
        return Collected(tuple(Group(name, attempts) for name, attempts in made), measures, lines)


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of one problem, as `hira.trainers.schedule` works through it."""

    agentic: Agentic
    update: int
    problem: Problem
    inputs: tuple[Input, ...]

    @property
    def size(self) -> int:
        return self.agentic.rollouts.config.attempts

    @property
    def groups(self) -> Sequence[str]:
        return [step_input.group for step_input in self.inputs]

    async def sample(self, group: int, number: int) -> MemberOutput:
        agentic, step_input = self.agentic, self.inputs[group]
        answering = AnswerStep(step_input, agentic.rollouts.reward)
        rollouts = replace(agentic.rollouts, workflow=answering, reward=answering.score)
        async with agentic.gate:
            scored = await rollouts.play(replace(self.problem, id=step_input.group), self.update, number)
        agentic.sampled += 1
        return MemberOutput(step_input, scored, answering.solution, answering.review)

    def then(self, outputs: Sequence[Sequence[MemberOutput]]) -> "Stage | None":
        """Return the next step, with its chosen inputs; None after the last one."""
        agentic, step = self.agentic, self.inputs[0].step + 1
        if step > agentic.last:
            return None
        candidates = [output for group in outputs for output in group if output.goes_on]
        places = picks(
            [candidate.reward or 0.0 for candidate in candidates],
            agentic.config.sampling,
            first=0.0 if STEPS[step - 1] == "verifier" else 1.0,
            seed=seed_of(agentic.rollouts.seed, self.update, self.problem.id, step),
            most=agentic.config.picks,
        )
        chosen = [candidates[place] for place in sorted(places)]
        inputs = tuple(make_input(self.problem, step, index, output) for index, output in enumerate(chosen))
        return replace(self, inputs=inputs) if inputs else None


def make_input(problem: Problem, step: int, index: int, output: MemberOutput) -> Input:
    """Return the input of group `index` of a step from an output of the step before."""
    step_input = output.step_input
    solved, right, review = step_input.solution, step_input.right, output.review
    if output.solution is not None:
        solved, right, review = output.solution, (output.reward or 0.0) >= RIGHT, None
    return Input(step, step_input.problem, solved, right, review, f"{problem.id}.{step}.{index}", problem.references)


Strategy = Literal["random", "balanced", "adaptive"]


def picks(rewards: Sequence[float], strategy: Strategy, *, first: float, seed: int, most: int = 2) -> list[int]:
    """Draw the positions of at most `most` outputs, without replacement; all of them if there are fewer.

        random    uniformly
        balanced  as many of reward 1 as of reward 0 where possible, the rest uniformly
        adaptive  those of the reward `first` before the others: 0 for a Verifier, which should see wrong solutions,
                  1 for a Corrector, which should see real errors

    The choice among equals depends on the seed alone.
    """
    chance = random.Random(seed)  # noqa: S311 - a repeatable draw, not a secret
    order = chance.sample(range(len(rewards)), len(rewards))
    if strategy == "adaptive":
        order.sort(key=lambda index: (rewards[index] >= RIGHT) != (first >= RIGHT))
    elif strategy == "balanced":
        # the two kinds in turns, beginning with the kind of the first, then the rest
        good, bad = ([index for index in order if (rewards[index] >= RIGHT) is kind] for kind in (True, False))
        both = min(len(good), len(bad))
        sides = (good, bad) if order and order[0] in good else (bad, good)
        order = [index for pair in zip(*sides, strict=False) for index in pair] + good[both:] + bad[both:]
    return order[:most]


def measure_parts(outputs: Sequence[MemberOutput]) -> dict[str, float]:
    """Figures as `PART/NAME`.

    reward, length, cut      its own reward, tokens, the share that was cut off at the length limit
    recall, false_alarms     a Verifier's: how many of the wrong and of the right solutions it flags
    precision, unreadable    how many of its flags are true, and how many verdicts cannot be read
    wrong                    how many of its input solutions are wrong
    natural                  its accuracy on solutions as they come, not as they are picked:
                             p · (1 - false_alarms) + (1 - p) · recall, p of those being right
    fixed, harmed            a Corrector's: how often a wrong solution becomes right, and a right one wrong
    """
    means = Means()
    groups: dict[str, set[int]] = defaultdict(set)
    for output in outputs:
        step_input, record = output.step_input, output.scored.record
        part, was_right = step_input.part, step_input.right
        groups[part].add(id(step_input))
        for row in output.scored.attempt.rows:
            means.add(f"{part}/length", row.tokens)
        if turns := [turn for path in record.trajectories.values() for turn in path.turns] if record else []:
            means.add(f"{part}/cut", float(turns[-1].completion.finish == "length"))
        if output.reward is None:
            continue
        means.add(f"{part}/reward", output.reward)
        if step_input.role == "verifier":
            means.add(f"{part}/{'false_alarms' if was_right else 'recall'}", float(output.flagged))
            means.add(f"{part}/wrong", float(not was_right))
            means.add(f"{part}/unreadable", float(output.review is None or output.review.correct is None))
            if output.flagged:
                means.add(f"{part}/precision", float(not was_right))
        elif step_input.role == "corrector":
            right = output.reward >= RIGHT
            means.add(f"{part}/{'harmed' if was_right else 'fixed'}", float(right is not was_right))
    measures = means.values
    for verifier, source in (("verifier1", "solver"), ("verifier2", "corrector1")):
        names = (f"{verifier}/recall", f"{verifier}/false_alarms", f"{source}/reward")
        if all(name in measures for name in names):
            recall, false_alarms, share = (measures[name] for name in names)
            measures[f"{verifier}/natural"] = share * (1 - false_alarms) + (1 - share) * recall
    return measures | {f"{part}/groups": float(len(inputs)) for part, inputs in groups.items()}
