"""`Run`: one question under way."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout, Status
from hira.core.errors import HiraError, Interrupted, UsageError
from hira.core.events import AnyEvent, Notice, Reader, RunEnded
from hira.core.policy import Usage
from hira.journal import Log
from hira.runtime.answer import Answer, answer_of
from hira.runtime.session import Session, make_closed_error
from hira.runtime.validation import Paths, paths_of, question_of
from hira.workflows import rollout

if TYPE_CHECKING:
    from hira.agents.history import Earlier
    from hira.agents.output_type import OutputType
    from hira.journal.records import Entry


class SessionOwner(Protocol):
    """Who opens the session that runs share: a `Hira`, or a session itself."""

    async def open_session(self) -> Session: ...


@dataclass(frozen=True, slots=True)
class DocsOwner:
    """Opens the session of another owner over the documents of a question."""

    owner: SessionOwner
    docs: tuple[Path, ...]

    async def open_session(self) -> Session:
        return await (await self.owner.open_session()).with_docs(self.docs)


def scope(owner: SessionOwner, docs: Paths | None) -> SessionOwner:
    """Return the owner, with the documents that a question names; None names none."""
    if docs is None:
        return owner
    folder = Path.cwd()
    return DocsOwner(owner, tuple(folder / Path(path).expanduser() for path in paths_of(docs, "docs")))


class Run:
    """A question in progress. Iterating asks it and yields its events as they happen, `RunEnded` last; from then on
    `answer` is ready. Leaving the iteration early ends the run at once, with the status `interrupted` and no text;
    `stop` ends it with the results so far.

    >>> run = hira.stream("…")
    >>> async for event in run: ...
    >>> run.answer.text

    Python closes an iteration that a `break` leaves a moment later; `contextlib.aclosing(aiter(run))` does so at once.

    Attributes:
        id: The name of the run, also in the journal.
        question: The question.
        files: The files that the question is about.
        earlier: The turns that a follow-up question continues.
        going: True while the run is in progress.
        task: The task that works on the run while it is in progress.
        left: The cancelled work of a run whose iteration was left early.
        failure: The error that made the run fail, None if none did.
    """

    def __init__(  # noqa: PLR0913 - a run that is resumed brings its record
        self,
        owner: SessionOwner,
        question: str,
        files: Sequence[Path],
        *,
        run: str = "",
        log: Log | None = None,
        past: "Entry | None" = None,
        earlier: "Earlier | None" = None,
        output: "OutputType | None" = None,
    ) -> None:
        self.id: str = run or time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(3)
        self._log = log
        self._past = past
        self.earlier = earlier
        self.output = output
        self._begun = False
        self.going: bool = False
        self.question: str = question_of(question)
        self.files: tuple[Path, ...] = tuple(files)
        self.failure: HiraError | None = None
        self._owner = owner
        self._context: RunContext | None = None
        self._stop = False
        self.task: asyncio.Task[Any] | None = None
        self._cut = ""
        self._answer: Answer | None = None
        self.left: asyncio.Task[None] | None = None

    @property
    def answer(self) -> Answer:
        """The answer; `failure` says what made the run fail, if it did. Raises `UsageError` before the run's end."""
        if self._answer is None:
            how = "iterate over it to its end, or leave it early inside of contextlib.aclosing(aiter(run))"
            raise UsageError("the run has not ended yet", fix=how)
        return self._answer

    @property
    def ended(self) -> bool:
        """True once the answer is ready."""
        return self._answer is not None

    async def finish(self) -> Answer:
        """Ask the question and return its answer. Raises `HiraError` only for a failed run without a text."""
        await self.work()
        if self.failure and not self.answer.text:
            raise self.failure
        return self.answer

    @property
    def spent(self) -> Usage:
        """The usage of the run so far."""
        return self._context.rollout.usage if self._context else Usage()

    def stop(self) -> None:
        """End soon: calls in flight are dropped and the answer is written from the results so far. A run that is still
        reading its documents ends without an answer."""
        self._stop = True
        if self._context:
            self._context.stop()
        elif self.task and not self._cut:
            self._cut = "interrupted before the question was asked"
            self.task.cancel()

    def cut_off(self) -> None:
        """End at once, because the `Hira` is being closed: who waits for the answer gets a `UsageError`."""
        self._stop = True
        if self.task and not self._cut and self.task is not self.left:
            self._cut = "interrupted because its Hira was closed"
            self.task.cancel()

    def list_calls(self) -> list[str]:
        return [*self._context.state.calling.values()] if self._context else []

    async def __aiter__(self) -> AsyncGenerator[AnyEvent]:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        task = asyncio.create_task(self.work(queue.put_nowait, stream=True))
        task.add_done_callback(lambda _: queue.put_nowait(None))
        last: RunEnded | None = None
        try:
            while (event := await queue.get()) is not None:
                if isinstance(event, RunEnded):
                    last = event
                else:
                    yield event
            await task
            if last:
                yield last
        finally:
            if not task.done():
                self.left = task
                task.cancel()
                await asyncio.wait([task])

    @property
    def resumable(self) -> bool:
        """True if the journal contains the work so far, so that the run can be resumed."""
        return bool(self._log and self._log.writer and not self._log.trouble)

    def give_up(self, why: str = "cancelled") -> None:
        """End the record of a run that was claimed and never came to its question; one of the journal has the answer
        and the cost that it had. Of a run that has begun nothing is changed."""
        if self._log and not self._begun:
            self._begun = True
            past = self._past
            kept = (past.status, past.answer, past.error) if past and past.status != "running" else None
            self._log.end(*(kept or ("interrupted", "", why)), (past and past.usage) or Usage())

    async def work(self, *readers: Reader, stream: bool = False, notice: str = "") -> None:
        """Ask the question, once; afterwards `answer` is ready. `stream` sends the models' text to the readers as it
        arrives. Raises `UsageError` for a run that was asked before.

        `notice` is a text that the person has already seen, for the record.
        """
        if self._context:
            raise UsageError("a run asks its question once", fix="start another run for the next question")
        self.going = True
        try:
            session = await self._owner.open_session()
            if session.runs.is_closed:
                raise make_closed_error()
            session.runs.begun.add(self)
            log = self._log = self._log or session.begin_log(
                self.id, self.question, self.files, self.earlier, self.output
            )
            if notice:
                log.event(Notice(notice))
            self.task = asyncio.current_task()
            if self._stop:
                self.stop()
            try:
                options = replace(session.options, stream=stream, output=self.output)
                async with session.open_context(self.id, self.question, self.files, readers, options, log) as context:
                    self._context = context
                    self._begun = True
                    record = await rollout(session.workflow, self.question, context, self.earlier)
                    await session.toolset.keep_claims(record, context.events)
                    await log.settle()  # an answer that somebody has seen is recorded
                    if log.trouble:
                        context.events(Notice(f"{log.trouble}; this run cannot be resumed"))
            except asyncio.CancelledError:
                if not self._end_cancelled(session):
                    raise
                return
            except Exception as error:
                await self._end_failed(session, log, error)
                raise
            if self._cut and self.task:
                self.task.uncancel()  # something has ignored it, and the run has come to its end
            self.failure = record.failure if record.status == "failed" else None
            self._answer = answer_of(record, session.model, self.output)
        finally:
            self.going, self.task = False, None

    def _end_cancelled(self, session: Session) -> bool:
        """End a cancelled run. Returns whether `stop` has cancelled it; raises `UsageError` if `cut_off` has."""
        cut = bool(self._cut and self.task and not self.task.uncancel())
        why = self._cut if cut else "cancelled"
        self.give_up(why)
        self._break_off(session, "interrupted", Interrupted(why))
        if cut and session.runs.is_closed:
            raise make_closed_error() from None
        return cut

    async def _end_failed(self, session: Session, log: Log, error: Exception) -> None:
        """End a run that could not begin, or that a fault in the program's workflow ended."""
        self._begun = True
        why = str(error) or type(error).__name__
        self._break_off(session, "failed", error if isinstance(error, HiraError) else HiraError(why))
        record = self.answer.rollout
        record.unused = log.read_unused()
        log.end("failed", "", why, record.usage)
        await log.settle()

    def _break_off(self, session: Session, status: Status, failure: HiraError) -> None:
        """Make the answer of a run that was interrupted or failed."""
        record = self._context.rollout if self._context else Rollout(self.id, self.question, session.workflow.name)
        record.status = status
        record.failure = (record.failure or failure) if status == "interrupted" else failure
        self._answer = answer_of(record, session.model, self.output)
