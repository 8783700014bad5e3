"""`Chat`: questions that follow up on each other."""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol, overload

from typing_extensions import TypeVar

from hira.core.errors import UsageError
from hira.journal import Journal
from hira.runtime.answer import Answer
from hira.runtime.resuming import run_id_of
from hira.runtime.run import Run, SessionOwner, scope
from hira.runtime.validation import Paths, find_files, make_output_type

if TYPE_CHECKING:
    from hira.agents.history import Earlier

T = TypeVar("T")
V = TypeVar("V", default=None)


class ChatOwner(SessionOwner, Protocol):
    """Whose chat it is: a `Hira`, which also has the loop for code that is not async."""

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T: ...


class Chat:
    """A conversation: each question comes with the earlier questions and answers, and begins with the sources and the
    memory of the earlier turns. A source keeps its id in all of them.

    >>> chat = hira.chat()
    >>> await chat.ask("When was ASEAN founded?")
    >>> await chat.ask("And by whom?")

    Ask one question at a time; a run that nobody began gives way to the next. Later turns do not see a turn without
    an answer. Where runs are recorded, each names the one that it continues, so that it can be resumed
    and replayed.

    Args:
        owner: The `Hira` whose chat it is.
        run: A run that the first question continues, or the id of a recorded one.
        docs: Files and folders to search in place of those of the `Hira`.

    Attributes:
        runs: The questions asked here, in order.
    """

    def __init__(self, owner: ChatOwner, run: str | Run = "", *, docs: Paths | None = None) -> None:
        self.runs: list[Run] = []
        self._owner = owner
        self._scoped = scope(owner, docs)
        self._run = run if isinstance(run, Run) else run_id_of(run)
        self._earlier: Earlier | None = None
        self._preparing = False

    @overload
    async def ask(
        self, question: str, *, files: Paths | None = (), output_type: type[V] | None = None
    ) -> Answer[V]: ...
    @overload
    async def ask(self, question: str, *, files: Paths | None = (), output_type: Any) -> Answer[Any]: ...
    async def ask(self, question: str, *, files: Paths | None = (), output_type: Any = None) -> Answer[Any]:
        """Ask the next question.

        Args:
            question: The question; it may refer to earlier turns.
            files: Files that the question is about.
            output_type: The type of an additional value of the answer, as for `Hira.ask`.

        Returns:
            The answer, as `Hira.ask` gives it.
        """
        return await (await self.stream(question, files=files, output_type=output_type)).finish()

    @overload
    def ask_sync(self, question: str, *, files: Paths | None = (), output_type: type[V] | None = None) -> Answer[V]: ...
    @overload
    def ask_sync(self, question: str, *, files: Paths | None = (), output_type: Any) -> Answer[Any]: ...
    def ask_sync(self, question: str, *, files: Paths | None = (), output_type: Any = None) -> Answer[Any]:
        """`ask` for code that is not async."""
        return self._owner.wait_for(self.ask(question, files=files, output_type=output_type))

    async def stream(self, question: str, *, files: Paths | None = (), output_type: Any = None) -> Run:
        """Ask the next question and watch it. The arguments are those of `ask`.

        Returns:
            The run, to be iterated for its events.

        Raises:
            UsageError: The question before it is still in progress, or the recorded run does not exist.
        """
        attached = find_files(files)
        output = None if output_type is None else make_output_type(output_type)
        refusal = UsageError("the question before has no answer yet", fix="await it, then ask the next one")
        if self._preparing:
            raise refusal
        self._preparing = True
        try:
            if self.runs and (last := self.runs[-1]).going:
                for _ in range(2):  # Python closes an iteration that a `break` left in the second turn of its loop
                    await asyncio.sleep(0)
                if last.left is None:
                    raise refusal
                await asyncio.wait([last.left])
            if self.runs and not self.runs[-1].ended:
                self.runs.pop()  # its question was never asked
            await self._look_back()
        finally:
            self._preparing = False
        run = Run(self._scoped, question, attached, earlier=self._earlier, output=output)
        self.runs.append(run)
        return run

    async def _look_back(self) -> None:
        """Read what the turns so far leave for the next one."""
        journal = (await self._owner.open_session()).journal
        last = self.runs[-1] if self.runs else self._run
        if isinstance(last, Run):
            if last.answer.text:
                self._earlier = await earlier_of(last, journal)
        elif last:
            if journal is None:
                raise UsageError("no runs are recorded here", fix="record them: Hira(journal=True)")
            from hira.runtime.trace.reading import read_conversation

            self._earlier = await asyncio.to_thread(read_conversation, journal, last)


async def earlier_of(run: Run, journal: Journal | None) -> "Earlier":
    """Return what an answered run and the turns before it leave for the next question; from the record, if there is
    one, so that a resumed or replayed run reads the same."""
    from hira.agents.history import Earlier
    from hira.runtime.trace.reading import read_conversation

    if journal and run.resumable:
        return await asyncio.to_thread(read_conversation, journal, run.id, run.earlier)
    return Earlier.of(run.answer.rollout, run.earlier)
