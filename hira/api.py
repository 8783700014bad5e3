"""The Python door: `Hira` holds what runs share, `Run` is a question under way, `Answer` is what comes back.

>>> hira = Hira(model="gpt-5", docs="papers/")
>>> answer = await hira.ask("…")          # ask_sync outside a loop, also inside a notebook
>>> answer.text, answer.citations, answer.status, answer.rollout
"""

import asyncio
import os
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from hira.answer import Answer, answer_of
from hira.casting import crew
from hira.crew import HANDED, Crew
from hira.errors import HiraError, Interrupted, Stop, UsageError
from hira.events import Event, Notice, Reader, RunEnded
from hira.evidence import Verifier
from hira.given import check, paths_of, present, question_of
from hira.journal import Entry, Log, StillGoing
from hira.policy import Effort, Policy, Usage
from hira.settings import Settings, load
from hira.team import Approve, Team
from hira.tools import Tool
from hira.trajectory import Rollout
from hira.workflows import Workflow, rollout

if TYPE_CHECKING:
    from hira.agents.expert import Expert
    from hira.batch import Batch, Question

T = TypeVar("T")
NUMBERS = ("temperature", "reasoning_effort", "max_cost", "max_time", "max_reply_tokens")
"""Arguments of `Hira` that are settings, for which None means: as set elsewhere."""
Paths = str | Path | Sequence[str | Path]


class Run:
    """A question under way. Iterating asks it and gives its events as they happen, `RunEnded` last; `answer` is there
    from then on. Leaving the iteration early ends the run at once, with the status `interrupted` and no text; `stop`
    ends it with what is known.

    >>> run = hira.stream("…")
    >>> async for event in run: ...
    >>> run.answer.text

    Python closes an iteration that a `break` leaves a moment later; `contextlib.aclosing(aiter(run))` does so at once.
    """

    def __init__(
        self,
        hira: "Hira | Crew",
        question: str,
        files: Sequence[Path],
        *,
        run: str = "",
        log: Log | None = None,
        past: Entry | None = None,
    ) -> None:
        self.id = run or time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(3)
        self._log = log
        self._past = past
        self._begun = False
        self.question = question_of(question)
        self.files = tuple(files)
        self.failure: HiraError | None = None
        self._hira = hira
        self._team: Team | None = None
        self._stop = False
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """The answer of a run that has ended; `failure` says what made it fail, if it did."""
        if self._answer is None:
            how = "iterate over it to its end, or leave it early inside of contextlib.aclosing(aiter(run))"
            raise RuntimeError(f"the run has not ended yet: {how}")
        return self._answer

    @property
    def spent(self) -> Usage:
        """What the run has taken so far."""
        return self._team.rollout.usage if self._team else Usage()

    def stop(self) -> None:
        """End soon: calls in flight are dropped and the answer is written from what is known."""
        self._stop = True
        if self._team:
            self._team.stop(Interrupted("interrupted; answering from what is known"))

    async def __aiter__(self) -> AsyncGenerator[Event]:
        crew = await self._hira.opened()
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.create_task(self.work(queue.put_nowait, stream=True))
        crew.iterated.add(task)
        task.add_done_callback(crew.iterated.discard)
        task.add_done_callback(lambda _: queue.put_nowait(None))
        last: Event | None = None
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
                task.cancel()
                await asyncio.wait([task])

    @property
    def resumable(self) -> bool:
        """Whether the journal holds what was done so far, so that the run can go on later."""
        return self._log is not None and not self._log.trouble

    def give_up(self) -> None:
        """End the record of a run that was claimed and never came to its question; one of the journal has the answer
        and the cost that it had. Of a run that has begun nothing is changed."""
        if self._log and not self._begun:
            self._begun = True
            past = self._past
            kept = (past.status, past.answer, past.error) if past and past.status != "running" else None
            self._log.end(*(kept or ("interrupted", "", "cancelled")), Usage(**past.usage) if past else Usage())

    async def work(self, *readers: Reader, stream: bool = False, said: str = "") -> None:
        """Ask the question, once; `answer` is there afterwards. `stream` shows the models' text as it comes.

        `said` is what the person was told before, for the record.
        """
        if self._team:
            raise RuntimeError("a run asks its question once; make another for the next")
        crew = await self._hira.opened()
        log = self._log = self._log or crew.begun(self.id, self.files)
        if log and said:
            log.event(Notice(said))
        try:
            async with crew.team(self.id, self.question, self.files, readers, stream=stream, log=log) as team:
                self._team = team
                if self._stop:
                    self.stop()
                self._begun = True
                record = await rollout(crew.workflow, self.question, team)
                if log and log.trouble:
                    team.events(Notice(f"{log.trouble}; this run cannot be resumed"))
        except asyncio.CancelledError:
            if log and not self._begun:
                log.describe(self.question, crew.workflow.name)
            self.give_up()
            record = self._team.rollout if self._team else Rollout(self.id, self.question, crew.workflow.name)
            record.status, record.failure = "interrupted", record.failure or Interrupted("cancelled")
            self._answer = answer_of(record, crew.model)
            raise
        except Exception as error:
            self._begun = True
            if log:  # a run that could not begin, or that a fault in one's own workflow ended
                log.describe(self.question, crew.workflow.name)
                log.end("failed", "", str(error) or type(error).__name__)
                await log.settle()
            raise
        self.failure = None if isinstance(record.failure, Stop) else record.failure
        self._answer = answer_of(record, crew.model)


@dataclass(eq=False)
class Hira:
    """Ask questions. What is not given here comes from the environment and from hira.toml, or from `settings` alone.

    `client` is an `AsyncOpenAI` or `AsyncAzureOpenAI` that sends the requests of every role that has no endpoint of its
    own; the caller closes it. `max_cost` is in US dollars and `max_time` in seconds, for each question.
    `roles` name other models for single roles; `tools` go to every expert that works in a loop, `experts` stand beside
    the built-in ones, `policies` speak for roles in place of an endpoint (`"*"` for all that are not named), `workflow`
    is a name or an object of one's own, `approve` is asked about subtasks before they are handed out, and
    `max_reply_tokens` bounds each reply of a model (4,096 where nobody sets it). `verify` says how answers are checked:
    `lexical` (by words alone), `model` or `off`; a `verifier` of your own, an object or `"module:Object"`, replaces it.
    One object serves many questions at once and any number of event loops; `async with` opens and closes it, else the
    first question does. Close it when done, with `aclose` in each loop, or `close` for good. What is closed raises
    `UsageError` when it is asked again.
    """

    model: str = ""
    _: KW_ONLY
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    client: Any = field(default=None, repr=False)
    temperature: float | None = None
    reasoning_effort: Effort | None = None
    max_cost: float | None = None
    max_time: float | None = None
    docs: Paths = ()
    search: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    workflow: str | Workflow = ""
    tools: Sequence[Tool] = ()
    experts: "Sequence[Expert]" = ()
    policies: Mapping[str, Policy] = field(default_factory=dict)
    approve: Approve | None = None
    max_reply_tokens: int | None = None
    verify: str = ""
    verifier: str | Verifier | None = None
    settings: Settings | None = None
    _crews: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Crew]]" = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )
    _thread: "_LoopThread | None" = field(default=None, init=False, repr=False)
    _left: "WeakSet[asyncio.AbstractEventLoop]" = field(default_factory=WeakSet, init=False, repr=False)
    _closed: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        check(vars(self))
        given: dict[str, Any] = {
            "model": self.model,
            "base_url": self.base_url,
            "api_key": self.api_key,
            "docs": paths_of(self.docs, "docs"),
            "search": self.search,
            "workflow": self.workflow if isinstance(self.workflow, str) else "",
            "verify": self.verify,
            "verifier": self.verifier if isinstance(self.verifier, str) else "",
            "roles": {role: {"model": model} for role, model in self.roles.items()},
        }
        given = {name: value for name, value in given.items() if value}
        numbers = {name: getattr(self, name) for name in NUMBERS}
        given |= {name: value for name, value in numbers.items() if value is not None}
        if self.settings is None:
            origins = {name: f"Hira({name}=…)" for name in given}
            self.settings = load(given, os.environ, Path.cwd(), Path.home(), origins)
        elif given:
            self.settings = self.settings.changed(given, "Hira(…)")

    async def ask(self, question: str, *, files: Paths = ()) -> Answer:
        """The answer. Raises `HiraError` only where there is nothing to answer from, such as a key that is refused."""
        run = self.stream(question, files=files)
        await run.work()
        if run.failure and not run.answer.text:
            raise run.failure
        return run.answer

    def ask_sync(self, question: str, *, files: Paths = ()) -> Answer:
        """`ask` for code that is not async; works inside a running loop too, because it has a loop of its own."""
        if self._thread is None:
            self._check_open()
            self._thread = _LoopThread()
        return self._thread.run(self.ask(question, files=files))

    def stream(self, question: str, *, files: Paths = ()) -> Run:
        """The run, to be iterated for its events; the last one is `RunEnded`, then `run.answer` is there."""
        return Run(self, question, present(paths_of(files, "files")))

    def batch(self, questions: "Iterable[str | Question]", *, concurrency: int = 8) -> "Batch":
        """Many questions, `concurrency` at a time, to be iterated for their answers, which come as they finish.

        `answer.rollout.question` tells which is which. One that fails is an answer with the status `failed`.
        """
        from hira.batch import Batch

        return Batch(self, questions, concurrency=concurrency)

    async def resume(self, run: str) -> Run:
        """A run of the journal that goes on where it ended; no call that it completed is made again.

        Raises `UsageError` for a run that is not there, that is still going on, or that was made with another workflow,
        or with tools, experts or policies of a program's own that this `Hira` does not have. `hira.replay` goes through
        one without calling anything.
        """
        crew = await self.opened()
        journal = crew.journal
        if journal is None:
            raise UsageError("nothing is recorded here", fix="name the journal, or leave out --journal off")
        entry = await asyncio.to_thread(journal.entry, run)
        if entry.alive:
            fix = "wait until it ends, or end that process"
            raise StillGoing(f"run {entry.id} is still going on", where=f"in process {entry.pid}", fix=fix)
        if lacking := [name for name in entry.settings.get(HANDED, ()) if name not in crew.handed]:
            raise UsageError(f"run {entry.id} was made with {', '.join(lacking)}, which this Hira does not have",
                             fix="give the same tools, experts, policies and workflow as then")  # fmt: skip
        if entry.workflow not in ("", crew.workflow.name):
            what = f"run {entry.id} was made with the workflow {entry.workflow!r}, not {crew.workflow.name!r}"
            raise UsageError(what, fix=f"give that one: Hira(workflow={entry.workflow!r})")
        log = await asyncio.to_thread(journal.resume, entry)
        return Run(self, entry.question, tuple(map(Path, entry.files)), run=entry.id, log=log, past=entry)

    async def opened(self) -> Crew:
        """What the runs in this event loop share: opened by the first of them."""
        loop = asyncio.get_running_loop()
        task = self._crews.get(loop)
        if task is None or _failed(task):
            self._check_open(loop)
            task = self._crews[loop] = loop.create_task(self._open())
        return await asyncio.shield(task)

    async def _open(self) -> Crew:
        assert self.settings is not None  # noqa: S101 - __post_init__ has set it
        made = await crew(
            self.settings,
            tools=self.tools,
            experts=self.experts,
            policies=self.policies,
            workflow=None if isinstance(self.workflow, str) else self.workflow,
            verifier=None if isinstance(self.verifier, str) else self.verifier,
            client=self.client,
        )
        try:
            return made.approving(self.approve) if self.approve else made
        except UsageError:
            await made.aclose()
            raise

    def _check_open(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        if self._closed or loop in self._left:
            raise UsageError("this Hira is closed", fix="make another, or ask before the end of its `with`")

    async def aclose(self) -> None:
        """Close what this object opened in this event loop and for `ask_sync`; policies that were handed in are left to
        their owner."""
        self._left.add(asyncio.get_running_loop())
        task = self._crews.pop(asyncio.get_running_loop(), None)
        if task is not None:
            await asyncio.wait([task])
            if not _failed(task):
                await task.result().aclose()
        if self._thread is not None and self._thread.elsewhere():
            await asyncio.to_thread(self.close)

    def close(self) -> None:
        """`aclose` for `ask_sync`, and for every loop in which nothing is open."""
        self._closed = True
        if self._thread is not None:
            thread, self._thread = self._thread, None
            thread.run(self.aclose())
            thread.close()

    async def __aenter__(self) -> Self:
        """Opens what runs share, so that what is wrong with the settings is told here and not to the first question."""
        try:
            await self.opened()
        except asyncio.CancelledError:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _failed(task: "asyncio.Task[Crew]") -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


class _LoopThread:
    """An event loop in a thread of its own; a daemon, so that a forgotten one keeps no program from ending."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="hira", daemon=True)
        self._thread.start()

    def elsewhere(self) -> bool:
        return threading.current_thread() is not self._thread

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work; what interrupts the waiting cancels the work."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


async def ask(
    question: str,
    *,
    model: str = "",
    docs: Paths = (),
    files: Paths = (),
    search: str = "",
    settings: Settings | None = None,
) -> Answer:
    """Ask one question; everything it needed is closed again."""
    async with Hira(model, docs=docs, search=search, settings=settings) as hira:
        return await hira.ask(question, files=files)


def ask_sync(
    question: str,
    *,
    model: str = "",
    docs: Paths = (),
    files: Paths = (),
    search: str = "",
    settings: Settings | None = None,
) -> Answer:
    """`ask` for code that is not async; works inside a running loop too."""
    with Hira(model, docs=docs, search=search, settings=settings) as hira:
        return hira.ask_sync(question, files=files)
