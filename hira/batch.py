"""Many questions at once, so many at a time, each a run of its own: one that fails is an answer with its error.

>>> async for answer in hira.batch(["…", "…"], concurrency=8): ...
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hira.answer import Answer
from hira.errors import AccessDenied, HiraError, UsageError
from hira.events import Reader
from hira.trajectory import Rollout

if TYPE_CHECKING:
    from hira.api import Hira, Run

CONCURRENCY = 8


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `run` names a run of the journal that is gone on with, if it is there and asks the same."""

    text: str
    id: str = ""
    files: tuple[Path, ...] = ()
    run: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """A question with its answer; `answer.status` tells a failed one."""

    question: Question
    answer: Answer


def _unwatched(_question: Question, _run: str) -> Sequence[Reader]:
    return ()


class Batch:
    """Questions under way. Iterating asks them and gives each answer when it is there; leaving the iteration early
    ends the runs in flight at once, `stop` ends them with what is known and begins no others.

    `begins` is told each question and the name of its run before anything is asked, and may return readers of its
    events. `failure` is what no other question would get past either, such as a refused key; it ends the batch.
    """

    def __init__(
        self,
        hira: "Hira",
        questions: Iterable[str | Question],
        *,
        concurrency: int = CONCURRENCY,
        begins: Callable[[Question, str], Sequence[Reader]] = _unwatched,
    ) -> None:
        if concurrency < 1:
            raise UsageError(f"{concurrency} questions at once are none", fix="ask at least one at a time")
        self.failure: HiraError | None = None
        self._hira = hira
        self._questions = (Question(one) if isinstance(one, str) else one for one in questions)
        self._concurrency = concurrency
        self._begins = begins
        self._runs: set[Run] = set()
        self._stopped = False

    def stop(self) -> None:
        """Begin no other question; those in flight are answered from what is known."""
        self._stopped = True
        for run in self._runs:
            run.stop()

    async def __aiter__(self) -> AsyncIterator[Answer]:
        async with aclosing(self.each()) as finished:
            async for done in finished:
                yield done.answer

    async def each(self) -> AsyncGenerator[Done, None]:
        """The questions with their answers, as they finish. Raises what is wrong with the settings before any work."""
        await self._hira.opened()
        running: set[asyncio.Task[Done]] = set()
        try:
            while True:
                while not self._stopped and len(running) < self._concurrency and (one := next(self._questions, None)):
                    running.add(asyncio.create_task(self._done(one)))
                if not running:
                    return
                finished, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
                    yield task.result()
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)

    async def _done(self, question: Question) -> Done:
        """The question, answered. A fault of one question is told in its answer and leaves the others alone."""
        run = await self._run(question)
        self._runs.add(run)
        if self._stopped:
            run.stop()
        failure: HiraError
        try:
            await run.work(*self._begins(question, run.id))
        except HiraError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - a fault of hira's own in one question must not end the others
            failure = HiraError(f"a fault in hira: {type(error).__name__}: {error}")
        else:
            self._notice(run.failure)
            return Done(question, run.answer)
        finally:
            self._runs.discard(run)
        self._notice(failure)
        crew = await self._hira.opened()
        record = Rollout(run.id, question.text, crew.workflow.name, status="failed", failure=failure)
        return Done(question, Answer("", "failed", (), (), record, crew.model, str(failure)))

    def _notice(self, failure: HiraError | None) -> None:
        if isinstance(failure, AccessDenied | UsageError):
            self.failure = self.failure or failure
            self._stopped = True

    async def _run(self, question: Question) -> "Run":
        from hira.api import Run

        if question.run:
            try:
                run = await self._hira.resume(question.run)
            except UsageError:  # it was never recorded, or its record is gone: it is asked anew
                pass
            else:
                if run.question == question.text:
                    return run
        return Run(self._hira, question.text, question.files)
