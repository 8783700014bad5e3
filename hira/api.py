"""The Python door: `Hira` holds what runs share, `Run` is a question under way, `Answer` is what comes back.

>>> hira = Hira(model="gpt-5", docs="papers/")
>>> answer = await hira.ask("…")          # ask_sync outside a loop, also inside a notebook
>>> answer.text, answer.citations, answer.status, answer.rollout
"""

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload
from weakref import WeakKeyDictionary, WeakSet

from hira.agents.output import OutputType
from hira.agents.run_context import Approve
from hira.core.errors import UsageError
from hira.core.hooks import NO_HOOKS, ApproveTool, Hooks
from hira.core.policy import Effort, Policy
from hira.evidence import Verifier
from hira.runtime.answer import Answer
from hira.runtime.chat import Chat
from hira.runtime.factory import open_session
from hira.runtime.run import Run, resume_run
from hira.runtime.session import Session
from hira.runtime.settings import OFF, Settings, find_journal, load
from hira.runtime.validation import Paths, check, paths_of, present
from hira.tools import Tool
from hira.workflows import Workflow

if TYPE_CHECKING:
    from hira.agents.expert import Expert
    from hira.runtime.batch import Batch, Question

T = TypeVar("T")
NUMBERS = ("temperature", "reasoning_effort", "max_cost", "max_time", "max_reply_tokens")
"""Arguments of `Hira` that are settings, for which None means: as set elsewhere."""


@dataclass(eq=False)
class Hira:
    """Ask questions. What is not given here comes from the environment and from hira.toml, or from `settings` alone.

    `client` is an `AsyncOpenAI` or `AsyncAzureOpenAI` that sends the requests of every role that has no endpoint of its
    own; the caller closes it. `max_cost` is in US dollars and `max_time` in seconds, for each question.
    `roles` name other models for single roles; `tools` go to every expert that works in a loop, `experts` stand beside
    the built-in ones, `policies` speak for roles in place of an endpoint (`"*"` for all that are not named), `workflow`
    is a name or an object of one's own, `approve` is asked about subtasks before they are handed out, and
    `max_reply_tokens` bounds each reply of a model (4,096 where nobody sets it). `instructions` are
    additional ones for the roles that plan and answer, `deps` is handed to each tool whose first parameter is a
    `Context`. `verify` says how answers are checked: `lexical` (by words alone), `model` or `off`; a `verifier` of your
    own, an object or `"module:Object"`, replaces it.
    `journal` records the runs: True in the user's own file, or at a path; without it, runs are recorded only where
    the environment, a hira.toml or `settings` names a journal, and False records nothing.
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
    approve_tool: ApproveTool | None = None
    hooks: Hooks = NO_HOOKS
    max_reply_tokens: int | None = None
    instructions: str = ""
    deps: Any = field(default=None, repr=False)
    verify: str = ""
    verifier: str | Verifier | None = None
    journal: bool | str | Path | None = None
    settings: Settings | None = None
    _sessions: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[Session]]" = field(
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
            "instructions": self.instructions,
            "verifier": self.verifier if isinstance(self.verifier, str) else "",
            "roles": {role: {"model": model} for role, model in self.roles.items()},
        }
        given = {name: value for name, value in given.items() if value}
        if self.journal is not None:
            given["journal"] = find_journal(self.journal, os.environ, Path.cwd(), Path.home()) or OFF
        numbers = {name: getattr(self, name) for name in NUMBERS}
        given |= {name: value for name, value in numbers.items() if value is not None}
        if self.settings is None:
            origins = {name: f"Hira({name}=…)" for name in given}
            self.settings = load(given, os.environ, Path.cwd(), Path.home(), origins)
        elif given:
            self.settings = self.settings.with_values(given, "Hira(…)")

    @overload
    async def ask(self, question: str, *, files: Paths = ()) -> Answer[None]: ...
    @overload
    async def ask(self, question: str, *, files: Paths = (), output_type: type[T]) -> Answer[T]: ...
    @overload
    async def ask(self, question: str, *, files: Paths = (), output_type: Mapping[str, Any]) -> Answer[Any]: ...
    async def ask(
        self, question: str, *, files: Paths = (), output_type: type[Any] | Mapping[str, Any] | None = None
    ) -> Answer[Any]:
        """The answer. With an `output_type` (a pydantic model, a dataclass, another type, or a JSON schema) it has an
        `output` too, which costs one call.

        Raises `HiraError` only where there is nothing to answer from, such as a key that is refused.
        """
        return await self.stream(question, files=files, output_type=output_type).finish()

    @overload
    def ask_sync(self, question: str, *, files: Paths = ()) -> Answer[None]: ...
    @overload
    def ask_sync(self, question: str, *, files: Paths = (), output_type: type[T]) -> Answer[T]: ...
    @overload
    def ask_sync(self, question: str, *, files: Paths = (), output_type: Mapping[str, Any]) -> Answer[Any]: ...
    def ask_sync(
        self, question: str, *, files: Paths = (), output_type: type[Any] | Mapping[str, Any] | None = None
    ) -> Answer[Any]:
        """`ask` for code that is not async; works inside a running loop too, because it has a loop of its own."""
        return self.wait_for(self.stream(question, files=files, output_type=output_type).finish())

    def chat(self, run: str = "") -> Chat:
        """A conversation, whose questions follow up on each other; `run` is a recorded run that it continues."""
        return Chat(self, run)

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work, done in the loop that `ask_sync` has of its own."""
        if self._thread is None:
            try:
                self._check_open()
            except UsageError:
                work.close()
                raise
            self._thread = _LoopThread()
        return self._thread.run(work)

    def stream(
        self, question: str, *, files: Paths = (), output_type: type[Any] | Mapping[str, Any] | None = None
    ) -> Run:
        """The run, to be iterated for its events; the last one is `RunEnded`, then `run.answer` is there."""
        output = None if output_type is None else OutputType(output_type)
        return Run(self, question, present(paths_of(files, "files")), output=output)

    def batch(self, questions: "Iterable[str | Question]", *, concurrency: int = 8) -> "Batch":
        """Many questions, `concurrency` at a time, to be iterated for their answers, which come as they finish.

        `answer.rollout.question` tells which is which. One that fails is an answer with the status `failed`.
        """
        from hira.runtime.batch import Batch

        return Batch(self, questions, concurrency=concurrency)

    async def resume(self, run: str) -> Run:
        """A run of the journal that goes on where it ended; no call that it completed is made again.

        Raises `UsageError` for a run that is not there, that is still running, or that was made with another workflow,
        or with tools, experts or policies of a program's own that this `Hira` does not have. `hira.runtime.replay` goes
        through one without calling anything.
        """
        return await resume_run(self, run)

    async def open_session(self) -> Session:
        """What the runs in this event loop share: opened by the first of them."""
        loop = asyncio.get_running_loop()
        task = self._sessions.get(loop)
        if task is None or _failed(task):
            self._check_open(loop)
            task = self._sessions[loop] = loop.create_task(self._open())
        return await asyncio.shield(task)

    async def _open(self) -> Session:
        assert self.settings is not None  # noqa: S101 - __post_init__ has set it
        made = await open_session(
            self.settings,
            tools=self.tools,
            experts=self.experts,
            policies=self.policies,
            workflow=None if isinstance(self.workflow, str) else self.workflow,
            verifier=None if isinstance(self.verifier, str) else self.verifier,
            client=self.client,
            deps=self.deps,
            hooks=self.hooks,
        )
        try:
            if self.approve_tool:
                made = made.approving_tools(self.approve_tool)
            elif unapproved := made.tools_to_approve:
                what = f"a person has to approve calls of {', '.join(map(repr, unapproved))}, and no one can be asked"
                fix = "run hira in a terminal, or give Hira(approve_tool=…), an async function of a hira.ToolUse"
                raise UsageError(what, fix=fix)
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
        task = self._sessions.pop(asyncio.get_running_loop(), None)
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
            await self.open_session()
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


def _failed(task: "asyncio.Task[Session]") -> bool:
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
