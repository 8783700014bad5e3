"""Many questions, several at a time, each a separate run: one that fails is an answer with its error.

>>> async for answer in hira.batch(["…", "…"], concurrency=8): ...
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

from hira.agents.trajectory import Rollout
from hira.core.errors import AccessDenied, HiraError, UsageError, fault
from hira.core.events import Reader
from hira.core.window import CONCURRENCY, check_concurrency, map_concurrently
from hira.journal import NoRun, StillGoing
from hira.runtime.answer import Answer, answer_of
from hira.runtime.resuming import resume_run
from hira.runtime.run import Run, SessionOwner, scope
from hira.runtime.validation import Paths

W = TypeVar("W")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a batch. `run` names a recorded run to resume, if it exists and asks the same; `begin_as` is the id
    of a new run; `docs` are documents to search in place of those of the `Hira`."""

    text: str
    id: str = ""
    files: tuple[Path, ...] = ()
    run: str = ""
    begin_as: str = ""
    docs: Paths | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """A question with its answer, whose status tells a failed one. A wrong question (an empty one) is not begun."""

    question: Question
    answer: Answer
    begun: bool = True


def watch_nothing(_question: Question, _run: str) -> Sequence[Reader]:
    return ()


class Batch:
    """Questions in progress. Iterating asks them and yields each answer when it is ready. Leaving the iteration early
    ends the runs in flight at once; `stop` ends them with the results so far and begins no others.

    `begins` is called with each question and the id of its run before anything is asked, and may return readers of its
    events. `failure` is a failure that every other question would meet too, such as a refused key; it ends the batch.
    """

    def __init__(
        self,
        owner: SessionOwner,
        questions: Iterable[str | Question],
        *,
        concurrency: int = CONCURRENCY,
        begins: Callable[[Question, str], Sequence[Reader]] = watch_nothing,
    ) -> None:
        check_concurrency(concurrency)
        if isinstance(questions, str | bytes | Mapping) or not isinstance(questions, Iterable):
            what = f"`questions` must be a list or another iterable of questions, got {questions!r:.80}"
            fix = "[question async for question in …]" if isinstance(questions, AsyncIterable) else '["…", "…"]'
            raise UsageError(what, fix=f"write batch({fix})")
        self.failure: HiraError | None = None
        self._owner = owner
        self._questions = (question if isinstance(question, Question) else Question(question) for question in questions)
        self._concurrency = concurrency
        self._begins = begins
        self._runs: set[Run] = set()
        self._stopped = False

    def stop(self) -> None:
        """Begin no other question; those in flight are answered from the results so far."""
        self._stopped = True
        for run in self._runs:
            run.stop()

    async def __aiter__(self) -> AsyncIterator[Answer]:
        async with aclosing(self.each()) as finished:
            async for done in finished:
                yield done.answer

    async def each(self) -> AsyncGenerator[Done, None]:
        """The questions with their answers, as they finish. Raises what is wrong with the settings before any work."""
        taken = takewhile(lambda _: not self._stopped, self._questions)
        async with self._open(), aclosing(map_concurrently(taken, self._concurrency, self.answer)) as finished:
            async for done in finished:
                # a refused key or unusable settings fail every other question, too
                failure = done.answer.rollout.failure
                for_all = AccessDenied | UsageError if done.question.docs is None else AccessDenied
                if done.begun and isinstance(failure, for_all) and not isinstance(failure, StillGoing):
                    self.failure = self.failure or done.answer.rollout.failure
                    self._stopped = True
                yield done

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        """Open what answers the questions."""
        await self._owner.open_session()
        yield

    async def answer(self, question: Question) -> Done:
        """Answer one question. Its failure becomes its answer and does not affect the others."""
        try:
            run = await self._run(question)
        except UsageError as error:
            session = await self._owner.open_session()
            failed = make_failed(question, error, workflow=session.workflow.name, model=session.model)
            return replace(failed, begun=bool(question.run))  # what a record says may hold for all of them
        self._runs.add(run)
        if self._stopped:
            run.stop()
        try:
            failure = await work_alone(run, self._begins(question, run.id))
        finally:
            self._runs.discard(run)
        if failure is None:
            return Done(question, run.answer)
        session = await self._owner.open_session()
        return make_failed(replace(question, run=run.id), failure, workflow=session.workflow.name, model=session.model)

    async def _run(self, question: Question) -> Run:
        journal = (await self._owner.open_session()).journal
        owner = scope(self._owner, question.docs)
        if question.run and journal:
            # it is asked anew only where it was never recorded, its record is gone, or it asks something else: one that
            # cannot be resumed now has been paid for
            with suppress(NoRun):
                if (await asyncio.to_thread(journal.entry, question.run)).question == question.text:
                    return await resume_run(owner, question.run)
        return Run(owner, question.text, question.files, run=question.begin_as)


async def work_alone(run: Run, readers: Sequence[Reader]) -> HiraError | None:
    """Work one of several runs, and return its failure, which must not end the others."""
    try:
        await run.work(*readers)
    except HiraError as error:
        return error
    except Exception as error:  # noqa: BLE001 - a fault of hira's own
        return fault(error)
    return None


def make_failed(question: Question, failure: HiraError, *, workflow: str, model: str) -> Done:
    """Return the failed answer of a question whose run ended without one."""
    record = Rollout(question.run, question.text, workflow, status="failed", failure=failure)
    return Done(question, answer_of(record, model))
