"""Rollouts for training: workflow x question x G, concurrently, each as it would run for a user.

A failed rollout is data with a status. The agent's own failures have reward 0; infrastructure failures leave the mean,
the deviation and the loss.
"""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import pstdev
from typing import Any

from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.core.concurrency import together
from hira.core.errors import AccessDenied, HiraError, UsageError
from hira.core.events import Event, Reader, ToolEnded, TurnEnded
from hira.evaluation.rewards.answers import Reward, RolloutScore
from hira.trainers.calls import OpenCalls, SeededPolicy, seed_of, set_training_sampling, status_of, watch_tools
from hira.trainers.configuration import RolloutConfig
from hira.trainers.credit.grpo import FLOOR
from hira.trainers.metrics import make_transcript, measure_rollouts
from hira.trainers.records import print_progress
from hira.trainers.rewards import check_score
from hira.trainers.rows import Attempt, Collected, Group, ScoredRollout, rows_of
from hira.workflows.workflow import Workflow, rollout


@dataclass(frozen=True, slots=True)
class Problem:
    """A question to train on, with its right answers; `set` names the set of an exam, if there are several."""

    id: str
    question: str
    references: tuple[str, ...]
    files: tuple[Path, ...] = ()
    set: str = ""


OpenContext = Callable[[str, str, Sequence[Path], Sequence[Reader]], AbstractAsyncContextManager[RunContext]]
"""Opens the run context of one run, given its name, its question, files and readers of its events, like that of a user:
`Session.open_context`."""


@dataclass(slots=True)
class Rollouts:
    context: OpenContext
    workflow: Workflow
    problems: Sequence[Problem]
    reward: Reward
    _: KW_ONLY
    config: RolloutConfig = field(default=RolloutConfig())
    roles: Collection[str] | None = None
    """The trained roles, None for all with tokens."""
    seed: int = 0
    trust: float = 0.5
    """The share of rollouts that the infrastructure may break before the run ends."""
    share: tuple[int, int] = (0, 1)
    """This process's number, and the number of processes."""
    day: float | None = None
    """Today's date for rollouts, in seconds since the epoch, so that prompts do not change from day to day."""
    tell: Callable[[str], None] = lambda _: None
    temperature: float = 1.0
    """Training needs 1; exams also ask greedily."""
    underway: OpenCalls = field(default_factory=OpenCalls)

    def choose(self, update: int) -> list[Problem]:
        process, processes = self.share
        return choose_problems(self.problems, update, self.config.questions, self.seed)[process::processes]

    async def collect(self, update: int) -> Collected:
        """Collect the groups of an update. Raises `HiraError` if too many rollouts failed."""
        problems = self.choose(update)
        gate = asyncio.Semaphore(self.config.concurrency)
        done: list[ScoredRollout] = []
        groups: list[list[ScoredRollout]] = []
        wanted = len(problems)
        for again in range(1 + self.config.refill):
            if again:  # others replace problems without a signal: the same ones in a resumed run
                known = {problem.id for problem in problems}
                others = [problem for problem in self.problems if problem.id not in known]
                chance = random.Random(seed_of(self.seed, "refill", update, again, self.share[0]))  # noqa: S311 - repeatable
                missing = wanted - sum(map(_has_signal, groups))
                problems += chance.sample(others, min(missing, len(others)))
            new = problems[len(groups) :]
            of = len(problems) * self.config.attempts
            with self.report_progress(lambda: f"{len(done)} of {of} rollouts done"):  # noqa: B023 - called within this turn only
                groups += await together([self._group(problem, update, gate, done) for problem in new])
            if sum(map(_has_signal, groups)) >= wanted:
                break
        scored = [rollout for group in groups for rollout in group]
        self.check(scored)
        pairs = list(zip(problems, groups, strict=True))
        made = tuple(Group(problem.id, tuple(rollout.attempt for rollout in group)) for problem, group in pairs)
        lines = [make_transcript(rollout, problem.references) for problem, group in pairs for rollout in group]
        measures = measure_rollouts(scored) | ({"refilled": float(len(groups) - wanted)} if self.config.refill else {})
        return Collected(made, measures, tuple(lines[: self.config.samples]))

    async def _group(
        self, problem: Problem, update: int, gate: asyncio.Semaphore, done: list[ScoredRollout]
    ) -> list[ScoredRollout]:

        async def attempt(number: int) -> ScoredRollout:
            async with gate:
                scored = await self.play(problem, update, number)
            done.append(scored)
            return scored

        return await self._rank(await together([attempt(number) for number in range(self.config.attempts)]))

    async def _rank(self, group: list[ScoredRollout]) -> list[ScoredRollout]:
        """Return the group with the scores of a reward that compares its rollouts (`score_group`)."""
        rank = getattr(self.reward, "score_group", None)
        answered = [place for place, rollout in enumerate(group) if rollout.attempt.status == "ok"]
        if rank is None or not answered:
            return group
        try:
            async with asyncio.timeout(self.config.reward_seconds):
                scores = await rank([group[place].record for place in answered])
        except TimeoutError:
            why = f"no ranking within {self.config.reward_seconds:g} seconds"
            scores = [RolloutScore(None, why=why) for _ in answered]
        for place, score in zip(answered, scores, strict=True):
            attempt = replace(group[place].attempt, reward=score.value)
            group[place] = replace(group[place], attempt=attempt, score=score)
        return group

    async def examine(self, attempts: int = 1) -> list[RolloutScore]:
        """Ask every problem `attempts` times, with the same seeds in each exam, and score the answers. Infrastructure
        failures are left out. If no prompt fits the model's window, it has answered nothing: there are no scores."""
        gate = asyncio.Semaphore(self.config.concurrency)
        tries = [(problem, index) for problem in self.problems for index in range(attempts)]
        done: list[ScoredRollout] = []

        async def ask(problem: Problem, index: int) -> None:
            async with gate:
                done.append(await self.play(problem, 0, index, exam=True))

        of = f"of {len(tries)} answers of the exam at temperature {self.temperature:g}"
        with self.report_progress(lambda: f"{len(done)} {of}"):
            await together([ask(problem, index) for problem, index in tries])
        if silent := _find_silence(done):
            self.tell(f"the exam has no result: {'; '.join(filter(None, (silent.what, silent.where, silent.fix)))}")
            return []
        return [rollout.score for rollout in done if rollout.attempt.status != "infra_failed"]

    async def play(self, problem: Problem, update: int, number: int, *, exam: bool = False) -> ScoredRollout:
        """Return one rollout with its reward; an `exam` has separate seeds. Raises only errors that every other rollout
        would meet too: `UsageError`, `AccessDenied`, a faulty reward function."""
        run = f"{'exam' if exam else ''}{update}-{problem.id}-{number}"
        seed = seed_of(self.seed, *(["exam"] if exam else []), update, problem.id, number)
        outcomes = Outcomes()
        record: Rollout | None = None
        trouble: list[HiraError] = []
        try:
            async with (
                asyncio.timeout(self.config.rollout_seconds),
                self.context(run, problem.question, problem.files, (outcomes,)) as context,
            ):
                self._prepare(context, run, seed, trouble)
                record = context.rollout
                await rollout(self.workflow, problem.question, context)
        except TimeoutError:
            why = f"not done within {self.config.rollout_seconds:g} seconds"
            call = self.underway.cut.pop(run, "")
            return _make_lost(number, f"{why}; it waited for {call}" if call else why, record)
        except (UsageError, AccessDenied):
            raise
        except HiraError as error:
            return _make_lost(number, str(error), record)
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001 - a workflow's fault in one rollout is data
            return _make_lost(number, f"a fault in the workflow: {type(error).__name__}: {error}", record)
        if isinstance(record.failure, UsageError | AccessDenied):
            raise record.failure
        status = "infra_failed" if trouble else status_of(record)
        lost = RolloutScore(None if status == "infra_failed" else 0.0)
        score = await self._score(record, problem) if status == "ok" else lost
        cut = rows_of(record, self.roles, problem.id)
        attempt = Attempt(number, cut.rows, score.value, status, score.conversations)
        why = str(trouble[0]) if trouble else record.error
        return ScoredRollout(attempt, record, score, why, outcomes.tools, cut.breaks, cut.dropped)

    def _prepare(self, context: RunContext, run: str, seed: int, trouble: list[HiraError]) -> None:
        """Prepare the run context for training: seeds, deadlines, watched tools. `trouble` gets the infrastructure
        failures, even if the workflow continues: a planner gets a worker's failure as a finding, and a model the
        failure of its search; neither deserves a penalty."""
        roles = {}
        for role, config in context.roles.items():
            own, seconds = seed_of(seed, role), self.config.call_seconds
            policy = SeededPolicy(config.policy, run, own, seconds, self.underway, trouble)
            sampling = set_training_sampling(config.sampling, self.temperature)
            roles[role] = replace(config, policy=policy, sampling=sampling)
        context.roles = roles
        if self.day is not None:
            context.rollout.began = self.day
        context.tools = watch_tools(context.tools, trouble, partial(self.underway.call, run))

    async def _score(self, record: Rollout, problem: Problem) -> RolloutScore:
        """Return the reward, without a value if a judge is down or late. Raises `HiraError` for a fault in the reward
        function."""
        where = f"question {problem.id!r}, answer {record.answer[:200]!r}"
        try:
            async with asyncio.timeout(self.config.reward_seconds):
                score = await self.reward(record, problem.references)
        except TimeoutError as late:
            waited = getattr(late.__cause__, "__notes__", ())
            why = "; ".join((f"no reward within {self.config.reward_seconds:g} seconds", *waited))
            return RolloutScore(None, why=why)
        except HiraError as error:
            return RolloutScore(None, why=str(error))
        except Exception as error:
            fix = "correct the reward function, then resume with --resume; return no value where a judge fails"
            raise HiraError(f"the reward raised {type(error).__name__}: {error}", where=where, fix=fix) from error
        return check_score(score, where)

    def check(self, scored: Sequence[ScoredRollout]) -> None:
        """Raise `HiraError` if more rollouts broke or stayed unscored than `trust` allows, or if all ended before any
        reply."""
        lost = [rollout for rollout in scored if rollout.attempt.status == "infra_failed"]
        if len(lost) > self.trust * len(scored):
            fix = "correct that, then resume with --resume"
            raise _make_error(lost, scored, "failed for reasons outside the model", fix)
        counted = [rollout for rollout in scored if rollout.attempt.status != "infra_failed"]
        unscored = [rollout for rollout in counted if rollout.attempt.reward is None]
        if len(unscored) > self.trust * len(scored):
            fix = "correct the judge (reward.judge, reward.judge_url), then resume with --resume"
            raise _make_error(unscored, scored, "were left without a reward", fix)
        if silent := _find_silence(scored):
            raise silent

    def report_progress(self, done: Callable[[], str]) -> AbstractContextManager[None]:
        def say() -> str:
            waiting = self.underway.describe()
            return done() + (f"; waiting: {waiting}" if waiting else "")

        return print_progress(self.config.heartbeat_seconds, self.tell, say)


def _find_silence(scored: Sequence[ScoredRollout]) -> HiraError | None:
    """Return the error of rollouts that all ended before any reply, None if there was one."""
    failed = [rollout for rollout in scored if rollout.attempt.status == "agent_failed"]
    records = [rollout.record for rollout in failed if rollout.record is not None]
    spoke = any(part.turns for record in records for part in record.trajectories.values())
    if spoke or not failed or len(failed) < len(scored):
        return None
    fix = "give the roles less to read, or a longer window (rollouts.window, up to the model's own)"
    return _make_error(failed, scored, "ended before the model wrote anything", fix)


def _make_error(some: Sequence[ScoredRollout], scored: Sequence[ScoredRollout], how: str, fix: str) -> HiraError:
    why, often = Counter(rollout.error or rollout.score.why for rollout in some).most_common(1)[0]
    why = "; ".join(why.splitlines())
    return HiraError(f"{len(some)} of {len(scored)} rollouts {how}", where=f"{often} times: {why}", fix=fix)


@dataclass(eq=False)
class Outcomes:
    """A reader of one rollout's events: the outcomes of tool calls, by role and tool."""

    tools: dict[tuple[str, str], list[bool]] = field(default_factory=lambda: defaultdict(list))
    _roles: dict[str, str] = field(default_factory=dict, init=False)

    def __call__(self, event: Event) -> None:
        if isinstance(event, TurnEnded):
            self._roles[event.conversation] = event.role
        elif isinstance(event, ToolEnded):
            self.tools[self._roles.get(event.conversation, event.conversation), event.tool].append(event.ok)


def choose_problems(problems: Sequence[Problem], update: int, questions: int, seed: int) -> list[Problem]:
    """Choose the problems of an update, by its number alone, so that a run can resume in the middle: passes over all
    problems, each shuffled by the seed. Raises `UsageError` without problems."""
    if not problems:
        raise UsageError("there is no question to train on", fix="name a file with questions and their answers")
    chosen = []
    for place in range(update * questions, (update + 1) * questions):
        lap, position = divmod(place, len(problems))
        order = list(range(len(problems)))
        random.Random(seed_of(seed, "order", lap)).shuffle(order)  # noqa: S311 - a repeatable order
        chosen.append(problems[order[position]])
    return chosen


def _has_signal(group: Sequence[ScoredRollout]) -> bool:
    """Return whether the counted attempts earned different rewards."""
    attempts = [rollout.attempt for rollout in group if rollout.attempt.counts]
    rewards = [attempt.reward for attempt in attempts if attempt.reward is not None]
    return len(rewards) > 1 and pstdev(rewards) >= FLOOR


def _make_lost(number: int, why: str, record: Rollout | None = None) -> ScoredRollout:
    return ScoredRollout(Attempt(number, (), None, "infra_failed"), record, RolloutScore(None), why)


@dataclass(eq=False)
class Collector:
    """Makes rollouts for a trainer without an event loop: one loop, from the first update to the last.

    `pause` is the engine's: it waits until no reply is being sampled, as it must be before weights change.

    >>> with asyncio.Runner() as runner:
    ...     collect = Collector(runner, rollouts.collect, engine.pause)
    ...     trainer = RoleTrainer(model, tokenizer, updates, collect, matpo, folder, on_update=engine.record_update)
    """

    runner: asyncio.Runner
    collect: Callable[[int], Coroutine[Any, Any, Collected]]
    pause: Callable[[], AbstractContextManager[None]] = nullcontext

    def __call__(self, update: int) -> Collected:
        try:
            return self.runner.run(self.collect(update))
        finally:
            for _ in range(2):  # replies arrive just before the engine's thread ends, and may leave calls unfinished
                with self.pause():
                    pass
