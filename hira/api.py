"""The Python API: `Hira` holds what runs share, `Run` is a question under way, `Answer` is what comes back.

>>> hira = Hira(model="gpt-5", docs="papers/")
>>> answer = await hira.ask("…")          # ask_sync outside a loop, also inside a notebook
>>> answer.text, answer.citations, answer.status, answer.rollout
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, overload
from weakref import WeakKeyDictionary, WeakSet

from typing_extensions import TypeVar

from hira.agents.run_context import Approve
from hira.core.errors import UsageError
from hira.core.hooks import NO_HOOKS, ApproveTool, Hooks
from hira.core.policy import Effort, Policy
from hira.core.sanitize import without_userinfo
from hira.evidence import Verifier
from hira.runtime.answer import Answer
from hira.runtime.factory import check_names, open_session
from hira.runtime.run import Run, scope
from hira.runtime.session import Session, make_closed_error
from hira.runtime.settings import DOCUMENTS, JOURNAL, MEMORY, OFF, Settings, find_kept_file, load
from hira.runtime.validation import Paths, check, find_files, make_output_type, paths_of
from hira.tools import Tool
from hira.workflows import Workflow

if TYPE_CHECKING:
    from hira.agents.expert import Expert
    from hira.runtime.batch import Batch, Question
    from hira.runtime.chat import Chat
    from hira.runtime.loop_thread import LoopThread
    from hira.tools.retriever import Retriever

T = TypeVar("T")
V = TypeVar("V", default=None)
NUMBERS = ("temperature", "reasoning_effort", "max_time", "max_calls", "max_tokens", "max_cost", "max_reply_tokens")
"""Arguments of `Hira` that are settings, for which None means: as set elsewhere."""


@dataclass(eq=False)
class Hira:
    """Asks questions. Arguments that you leave out come from the environment and hira.toml, or from `settings` alone.

    One object serves many questions at once and any number of event loops. `async with` opens and closes it; without
    it, the first question opens it, and you close it with `aclose` in each loop, or with `close` for good.

    Args:
        model: The model's name, such as `gpt-5`; `offline` answers without a model.
        base_url: The address of an endpoint that speaks the OpenAI API.
        api_key: The key for that endpoint.
        client: An `AsyncOpenAI` or `AsyncAzureOpenAI` that sends the requests of every role that has no endpoint of
            its own. The caller closes it.
        temperature: Sampling temperature of all roles; 0.7 by default.
        reasoning_effort: How much a reasoning model thinks.
        max_time: Seconds that one question may take, or a duration such as "5m".
        max_calls: Calls of models that one question may make.
        max_tokens: Tokens that one question may use.
        max_cost: US dollars that one question may cost.
        docs: Files and folders to search.
        search: Names of web search services, separated by commas, in order of preference; or a retriever of your
            own, a function from a query to passages.
        roles: Models of single roles, by the role's name.
        workflow: The workflow, by its name, as `module:Object`, or as an object.
        tools: Your own tools; every expert that works in a loop gets them.
        experts: Your own experts, in addition to those of hira.
        policies: Policies that replace the endpoint of a role, by role; `"*"` is for all others.
        approve: A function that decides about subtasks before they are handed out.
        approve_tool: A function that decides about each call of a tool that needs approval.
        hooks: Functions that see each tool call and each turn, and may change or refuse it.
        max_reply_tokens: The most tokens of one reply of a model; 4,096 by default.
        instructions: Additional ones for the roles that plan and answer.
        deps: An object that each tool and hook finds in its `Context`.
        verify: How answers are checked: `lexical` (by words alone), `model` or `off`.
        verifier: Your own verifier, as an object or `module:Object`, in place of `verify`.
        journal: Where runs are recorded: True for the user's own file, a path for another, False for nowhere. None
            records them only where the environment, a hira.toml or `settings` names a journal.
        memory: Where verified claims of answers over documents are kept, to be found again by later questions: True
            for the user's own file, a path for another, False for nowhere. None keeps nothing unless a setting does.
        otel: The base URL of an OpenTelemetry collector that gets the spans of runs; False sends none, also where the
            program traces itself.
        settings: All settings at once; then neither the environment nor hira.toml is read.

    Raises:
        UsageError: An argument is not what it should be, names a workflow, role or search service that does not exist,
            or this object is closed.
    """

    model: str | None = None
    _: KW_ONLY
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    client: Any = field(default=None, repr=False)
    temperature: float | None = None
    reasoning_effort: Effort | None = None
    max_time: float | str | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    docs: Paths | None = None
    search: "str | Retriever | None" = None
    roles: Mapping[str, str] | None = None
    workflow: str | Workflow | None = None
    tools: Sequence[Tool] | None = None
    experts: "Sequence[Expert] | None" = None
    policies: Mapping[str, Policy] | None = None
    approve: Approve | None = None
    approve_tool: ApproveTool | None = None
    hooks: Hooks | None = None
    max_reply_tokens: int | None = None
    instructions: str | None = None
    deps: Any = field(default=None, repr=False)
    verify: str | None = None
    verifier: str | Verifier | None = None
    journal: bool | str | Path | None = None
    memory: bool | str | Path | None = None
    otel: str | Literal[False] | None = None
    settings: Settings | None = None
    _sessions: "WeakKeyDictionary[asyncio.AbstractEventLoop, _HeldSession]" = field(
        default_factory=WeakKeyDictionary, init=False, repr=False
    )
    _thread: "LoopThread | None" = field(default=None, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _left: "WeakSet[asyncio.AbstractEventLoop]" = field(default_factory=WeakSet, init=False, repr=False)
    _closed: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        check(vars(self))
        given: dict[str, Any] = {
            "model": self.model,
            "base_url": self.base_url,
            "api_key": self.api_key,
            "docs": None if self.docs is None else paths_of(self.docs, "docs"),
            "search": DOCUMENTS if callable(self.search) else self.search,
            "workflow": self.workflow if isinstance(self.workflow, str) else "",
            "verify": self.verify,
            "instructions": self.instructions,
            "verifier": self.verifier if isinstance(self.verifier, str) else "",
            "otel": OFF if self.otel is False else self.otel,
            "roles": {role: {"model": model} for role, model in (self.roles or {}).items()},
        }
        given = {name: value for name, value in given.items() if value}
        for name, file in (("journal", JOURNAL), ("memory", MEMORY)):
            if (value := getattr(self, name)) is not None:
                given[name] = find_kept_file(file, value, os.environ, Path.cwd(), Path.home()) or OFF
        given |= {name: value for name in NUMBERS if (value := getattr(self, name)) is not None}
        if self.settings is None:
            self.settings = load(given, names={name: f"Hira({name}=…)" for name in given})
        elif given:
            self.settings = self.settings.with_values(given, "Hira(…)")
        workflow = None if isinstance(self.workflow, str) else self.workflow
        check_names(self.settings, workflow, self.experts or (), self.policies or {})

    @overload
    async def ask(
        self, question: str, *, docs: Paths | None = None, files: Paths | None = (), output_type: type[V] | None = None
    ) -> Answer[V]: ...
    @overload
    async def ask(
        self, question: str, *, docs: Paths | None = None, files: Paths | None = (), output_type: Any
    ) -> Answer[Any]: ...
    async def ask(
        self, question: str, *, docs: Paths | None = None, files: Paths | None = (), output_type: Any = None
    ) -> Answer[Any]:
        """Ask one question.

        Args:
            question: The question, as a person would write it.
            docs: Files and folders to search in place of those of this object; [] searches none.
            files: Files that the question is about.
            output_type: The type of an additional value of the answer: a pydantic model, a dataclass, another type,
                or a JSON schema. It costs one call.

        Returns:
            The answer with its citations; `output` is the value of the `output_type`.

        Raises:
            HiraError: The run failed and has no text to return, for example because the key was refused.
        """
        return await self.stream(question, docs=docs, files=files, output_type=output_type).finish()

    @overload
    def ask_sync(
        self, question: str, *, docs: Paths | None = None, files: Paths | None = (), output_type: type[V] | None = None
    ) -> Answer[V]: ...
    @overload
    def ask_sync(
        self, question: str, *, docs: Paths | None = None, files: Paths | None = (), output_type: Any
    ) -> Answer[Any]: ...
    def ask_sync(
        self, question: str, *, docs: Paths | None = None, files: Paths | None = (), output_type: Any = None
    ) -> Answer[Any]:
        """`ask` for code that is not async. It also works inside a running loop, because it uses a separate one."""
        return self.wait_for(self.stream(question, docs=docs, files=files, output_type=output_type).finish())

    def chat(self, run: str | Run = "", *, docs: Paths | None = None) -> "Chat":
        """A conversation, whose questions follow up on each other.

        Args:
            run: A run that it continues, the id of a recorded one, or `last`.
            docs: Files and folders to search in place of those of this object.
        """
        from hira.runtime.chat import Chat  # a single question needs none

        return Chat(self, run, docs=docs)

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the background loop of `ask_sync` and return its result."""
        from hira.runtime.loop_thread import LoopThread  # code that is async needs none

        with self._lock:
            if self._thread is None or not self._thread.is_of_this_process():
                if self._closed:
                    work.close()
                    raise make_closed_error()
                self._thread = LoopThread()
            thread = self._thread
        return thread.run(work)

    def stream(
        self, question: str, *, docs: Paths | None = None, files: Paths | None = (), output_type: Any = None
    ) -> Run:
        """Ask one question and watch it. The arguments are those of `ask`.

        Returns:
            The run, to be iterated for its events; the last one is `RunEnded`, then `run.answer` is there.
        """
        output = None if output_type is None else make_output_type(output_type)
        return Run(scope(self, docs), question, () if files in ((), None) else find_files(files), output=output)

    def batch(self, questions: "Iterable[str | Question]", *, concurrency: int = 8) -> "Batch":
        """Ask many questions.

        Args:
            questions: Their texts, or questions with ids, documents and files.
            concurrency: Questions that run at the same time.

        Returns:
            An object to iterate for the answers, in the order in which they finish. `answer.rollout.question` names
            the question; a failed question is an answer with the status `failed`.
        """
        from hira.runtime.batch import Batch

        return Batch(self, questions, concurrency=concurrency)

    async def resume(self, run: str | Run, *, docs: Paths | None = None) -> Run:
        """Continue a recorded run where it ended; hira repeats no completed call.

        Args:
            run: The run, its id, the beginning of one, or `last`.
            docs: The documents that its question named, if it named any.

        Returns:
            The run, to be iterated for its events or awaited with `finish`.

        Raises:
            UsageError: The run does not exist, is still running, or used another workflow, or tools, experts, policies
                or hooks of a program that this `Hira` does not have.
        """
        from hira.runtime.resuming import resume_run  # a new question reads no record

        return await resume_run(scope(self, docs), run)

    def __repr__(self) -> str:
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.repr}
        shown = (f"{name}={value!r}" for name, value in given.items() if value is not None)
        return without_userinfo(f"Hira({', '.join(shown)})")

    async def open_session(self) -> Session:
        """Return the session that all runs in this event loop share; the first run opens it."""
        loop = asyncio.get_running_loop()
        held = self._sessions.get(loop)
        if held is None:
            if self._closed or loop in self._left:
                raise make_closed_error()
            if self._sessions:
                self._drop_sessions_of_closed_loops()
            holding = self._hold()
            held = self._sessions[loop] = _HeldSession(holding, asyncio.ensure_future(anext(holding)))
        return await asyncio.shield(held.opening)

    async def _hold(self) -> AsyncGenerator[Session]:
        """The session of this event loop. It is closed with this generator, by `aclose` or by the end of the loop:
        `asyncio.run` closes the generators that its loop began."""
        assert self.settings is not None  # noqa: S101 - __post_init__ has set it
        try:
            session = await open_session(
                self.settings,
                search=self.search if callable(self.search) else None,
                tools=self.tools or (),
                experts=self.experts or (),
                policies=self.policies,
                workflow=None if isinstance(self.workflow, str) else self.workflow,
                verifier=None if isinstance(self.verifier, str) else self.verifier,
                client=self.client,
                deps=self.deps,
                hooks=self.hooks or NO_HOOKS,
            )
            try:
                if self.approve_tool:
                    session = session.approving_tools(self.approve_tool)
                elif unapproved := session.tools_to_approve:
                    named = ", ".join(map(repr, unapproved))
                    what = f"a person has to approve calls of {named}, and no one can be asked"
                    fix = "in Python: Hira(approve_tool=…), a function of a ToolUse; in a terminal: hira ask or chat"
                    raise UsageError(what, fix=fix)
                yield session.approving(self.approve) if self.approve else session
            finally:
                await session.aclose()
        finally:
            self._sessions.pop(asyncio.get_running_loop(), None)

    def _drop_sessions_of_closed_loops(self) -> None:
        """Close the records of sessions whose event loops ended without closing them."""
        for loop in [loop for ref in self._sessions.keyrefs() if (loop := ref()) and loop.is_closed()]:
            held = self._sessions.pop(loop, None)
            if held and held.opening.done() and not held.opening.cancelled():
                held.opening.result().close_records()

    async def aclose(self) -> None:
        """Close what this object opened in this event loop and for `ask_sync`, but no policy that was handed in."""
        self._left.add(asyncio.get_running_loop())
        held = self._sessions.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await asyncio.wait([held.opening])
            await held.generator.aclose()
        if self._thread is not None and self._thread.elsewhere():
            await asyncio.to_thread(self.close)

    def close(self) -> None:
        """`aclose` for `ask_sync`, and for every loop in which nothing is open. An `ask_sync` that still waits in
        another thread raises `UsageError`."""
        self._drop_sessions_of_closed_loops()
        with self._lock:
            thread = self._thread if self._thread and self._thread.is_of_this_process() else None
            if thread is None or thread.elsewhere():  # else it is refused
                self._closed, self._thread = True, None
        if thread is not None:
            thread.close(self.aclose())

    async def __aenter__(self) -> Self:
        """Open the session now, so that wrong settings are reported here and not at the first question."""
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


class _HeldSession(NamedTuple):
    """A session that is open as long as its generator is not closed."""

    generator: AsyncGenerator[Session]
    opening: asyncio.Task[Session]


async def ask(
    question: str,
    *,
    model: str | None = None,
    docs: Paths | None = None,
    files: Paths | None = (),
    search: "str | Retriever | None" = None,
    settings: Settings | None = None,
) -> Answer:
    """Ask one question; everything it needed is closed again.

    Args:
        question: The question, as a person would write it.
        model: The model's name; without it, the one of the environment or of hira.toml.
        docs: Files and folders to search.
        files: Files that the question is about.
        search: Names of web search services, separated by commas, or a retriever of your own.
        settings: All settings at once; then neither the environment nor hira.toml is read.

    Returns:
        The answer with its citations.

    Raises:
        HiraError: The run failed and has no text to return, for example because the key was refused.
    """
    async with Hira(model, docs=docs, search=search, settings=settings) as hira:
        return await hira.ask(question, files=files)


def ask_sync(
    question: str,
    *,
    model: str | None = None,
    docs: Paths | None = None,
    files: Paths | None = (),
    search: "str | Retriever | None" = None,
    settings: Settings | None = None,
) -> Answer:
    """`ask` for code that is not async, with the same arguments, result and errors; works inside a running loop too."""
    with Hira(model, docs=docs, search=search, settings=settings) as hira:
        return hira.ask_sync(question, files=files)
