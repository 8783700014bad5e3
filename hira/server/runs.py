"""Runs in progress and recently ended: each is a separate task, with any number of clients."""

import asyncio
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hira.agents.history import Earlier
from hira.agents.output_type import OutputType
from hira.agents.trajectory import Rejected, Subtask
from hira.core.errors import HiraError, Interrupted
from hira.core.events import Event
from hira.core.hooks import Refusal, ToolUse, parse_arguments
from hira.core.sanitize import printable
from hira.runtime.run import Run
from hira.runtime.session import Session
from hira.server.keys import Client, KeySpent, RejectedRequest
from hira.server.messages import check_length
from hira.server.outside import Deltas, Hidden, log

Proposal = Subtask | ToolUse
Decided = Subtask | Rejected | ToolUse | Refusal
SHAPE = 'write {"decisions": [{"id": "1"}, {"id": "2", "text": "…"}, {"id": "3", "rejected": "…"}]}'


@dataclass(eq=False, slots=True)
class ApprovalQueue:
    """Holds the subtasks and tool calls of one run that wait for decisions. The run calls it; requests call `decide`.

    A decision can be changed as long as another one is missing. A waiting run does not count against its client's
    limit.
    """

    client: Client
    waiting: dict[str, Proposal] = field(default_factory=dict)
    _decided: dict[str, Decided] = field(default_factory=dict)
    _complete: asyncio.Event = field(default_factory=asyncio.Event)

    async def approve(self, subtasks: Sequence[Subtask]) -> Sequence[Subtask | Rejected]:
        """Return one decision for each of the subtasks."""
        decided = await self._wait({subtask.id: subtask for subtask in subtasks})
        return [decision for decision in decided if isinstance(decision, Subtask | Rejected)]

    async def approve_tool(self, use: ToolUse) -> ToolUse | Refusal:
        """Return the decision on one call."""
        (decision,) = await self._wait({use.id: use})
        assert isinstance(decision, ToolUse | Refusal)  # noqa: S101 - what waits is decided as what it is
        return decision

    async def _wait(self, proposals: Mapping[str, Proposal]) -> list[Decided]:
        self.waiting, self._decided = dict(proposals), {}
        self._complete.clear()
        try:
            async with self.client.release():
                await self._complete.wait()
                decided = [self._decided[name] for name in proposals]
                self.waiting = {}  # complete decisions are final, even while the run waits for a place
            return decided
        finally:
            self.waiting = {}

    def decide(self, decisions: Sequence[Any]) -> None:
        """Take the decisions. Raises `RejectedRequest` if one of them is invalid, and then takes none."""
        made = [self._read(decision) for decision in decisions]
        self._decided |= dict(made)
        if self._decided.keys() == self.waiting.keys():
            self._complete.set()

    def _read(self, decision: Any) -> tuple[str, Decided]:
        if not isinstance(decision, dict) or not all(isinstance(value, str) for value in decision.values()):
            raise RejectedRequest(400, SHAPE)
        name, text, reason = decision.get("id", ""), decision.get("text"), decision.get("rejected")
        if name not in self.waiting:
            kind = "call" if name.startswith("call-") else "subtask"
            raise RejectedRequest(409, f"{kind} {name!r} does not wait for a decision", "conflict")
        proposal = self.waiting[name]
        check_length(len(text or "") + len(reason or ""))
        if reason is not None:
            why = printable(reason).strip()
            return name, Refusal(why) if isinstance(proposal, ToolUse) else Rejected(proposal, why)
        if text is None:
            return name, proposal
        if isinstance(proposal, ToolUse):
            if (arguments := parse_arguments(text)) is None:
                raise RejectedRequest(400, f"the arguments of {name!r} must be a JSON object")
            return name, replace(proposal, arguments=arguments)
        if not text.strip():
            raise RejectedRequest(400, f"the text of subtask {name!r} is empty; reject it instead")
        return name, replace(proposal, text=printable(text).strip())


KEPT = 200
"""The number of ended runs of one key in memory, for clients that still read them; older ones are in the journal."""
AT_ONCE = 50
"""The most events that are sent before other tasks get the loop."""
HEARTBEAT = 10.0
"""Seconds without events after which a stream sends a sign of life."""
GOES_ON = ("interrupted", "partial", "failed")
"""The statuses of ended runs that can be resumed."""


@dataclass(eq=False, slots=True)
class WatchedRun:
    """A run with all its events so far; every client gets those first, then the new ones."""

    run: Run
    workflow: str
    whole: Deltas
    events: list[Event] = field(default_factory=list)
    failure: HiraError | RejectedRequest | None = None
    task: "asyncio.Task[None] | None" = None
    began: float = field(default_factory=time.time)
    queue: ApprovalQueue | None = None
    attached: Sequence[Path] = ()
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def ended(self) -> bool:
        return self.task is not None and self.task.done()

    @property
    def answered(self) -> bool:
        return bool(self.ended and self.run.ended and self.run.answer.text)

    @property
    def recorded(self) -> bool:
        """True if the run has ended and the journal has it, unless somebody deleted it there."""
        return self.ended and self.run.resumable

    @property
    def status(self) -> str:
        if not self.ended:
            return "running"
        if isinstance(self.failure, Interrupted):
            return "interrupted"
        return "failed" if self.failure else self.run.answer.status

    def take(self, event: Event) -> None:
        self.events += self.whole(event)
        self.ring()

    def ring(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def close(self) -> None:
        self.run.give_up()  # it may have ended while it waited for a place, or before it began to
        self.ring()

    def leave(self) -> None:
        """End the run at once, if it has not ended; it may not even have begun."""
        if self.task and not self.task.done():
            self.failure = Interrupted("the client disconnected")
            self.task.cancel()

    async def follow(self, start: int = 0) -> AsyncIterator[Sequence[Event]]:
        """Yield the events from `start` on, some at a time, until the run has ended; none after a while without any."""
        position = start
        while position < len(self.events) or not self.ended:
            if news := self.events[position : position + AT_ONCE]:
                position += len(news)
                yield news
                if len(news) == AT_ONCE:
                    await asyncio.sleep(0)  # of a long run there are thousands
                continue
            try:
                async with asyncio.timeout(HEARTBEAT):
                    await self._news.wait()
            except TimeoutError:
                yield ()

    def describe(self) -> dict[str, Any]:
        """The run as a line of a list; `seconds` is the time since its start, while it is in progress."""
        return {
            "id": self.run.id,
            "question": self.run.question,
            "workflow": self.workflow,
            "follows": self.run.earlier.run if self.run.earlier else "",
            "status": self.status,
            "began": self.began,
            "seconds": None if self.ended else round(time.time() - self.began, 1),
            "resumable": self.run.resumable and self.status in GOES_ON,
        }


@dataclass(frozen=True, slots=True)
class NewRun:
    """A question that a client asks."""

    question: str
    files: Sequence[Path] = ()
    """Files in a separate folder, which is deleted with the run."""
    approve: bool = False
    """The run waits for decisions on its subtasks."""
    attended: bool = False
    """The page shows the run, so a person can decide on tool calls."""
    output: OutputType | None = None
    earlier: Earlier | None = None
    instructions: str = ""
    """They come after those of the server."""
    store: bool = True
    """If false, the run is not kept after its end."""


class Runs:
    """All runs by name. `sessions` are by workflow, the default first; no client sees the `hidden` texts."""

    def __init__(self, sessions: Mapping[str, Session], hidden: Hidden) -> None:
        self.sessions = sessions
        self.hidden = hidden
        self.known: dict[str, WatchedRun] = {}
        self.resuming = asyncio.Lock()

    def session(self, workflow: str) -> Session:
        """Return the session of a workflow. Raises `RejectedRequest` if it is not served."""
        name = workflow if workflow in self.sessions else workflow.removeprefix("hira/")
        if name not in self.sessions:
            what = f"{workflow[:80]!r} does not exist; there are {', '.join(self.sessions)}"
            raise RejectedRequest(404, what, "model_not_found", field="model")
        return self.sessions[name]

    def begin(self, client: Client, workflow: str, new: NewRun) -> WatchedRun:
        """Begin a run of the client; it waits until the client's limits let it."""
        name = "-".join(part for part in (time.strftime("%Y%m%d-%H%M%S"), client.tag, secrets.token_hex(3)) if part)
        session = replace(self.session(workflow), shared=client.allowance)
        queue = ApprovalQueue(client) if new.approve or (new.attended and session.tools_to_approve) else None
        session = decide_in_queue(session, queue, subtasks=new.approve)
        if new.instructions:
            session = session.with_instructions(
                "\n\n".join(filter(None, (session.settings.instructions, new.instructions)))
            )
        session = session if new.store else replace(session, journal=None)
        run = Run(session, new.question, new.files, run=name, earlier=new.earlier, output=new.output)
        watched = self.start(client, run, session.workflow.name, queue, new.files)
        if not new.store and watched.task:
            watched.task.add_done_callback(lambda _: self.forget(name))
        return watched

    def start(
        self, client: Client, run: Run, workflow: str, queue: ApprovalQueue | None, attached: Sequence[Path] = ()
    ) -> WatchedRun:
        """Start the work on a new run, or on one of the journal, which keeps its attached files."""
        before = self.known.get(run.id)
        attached = before.attached if before else attached
        ended = [name for name, watched in self.known.items() if watched.ended and client.owns(name)]
        for name in ended[: max(0, len(ended) - KEPT)]:  # the oldest of this client
            self.forget(name)
        watched = WatchedRun(run, workflow, Deltas(self.hidden), queue=queue, attached=attached)
        self.known[run.id] = watched
        watched.task = asyncio.create_task(self._work(client, watched))
        watched.task.add_done_callback(lambda _: watched.close())
        return watched

    async def _work(self, client: Client, watched: WatchedRun) -> None:
        run = watched.run
        try:
            async with client.acquire():
                await run.work(watched.take, stream=True)
            spent = run.answer.rollout.failure
            if isinstance(spent, KeySpent) and not run.spent.calls:
                raise client.refuse_spent(spent)  # the rest pays for no call
            if not (run.answer.text and run.answer.rollout.usage.calls):  # passages alone are not an answer
                watched.failure = run.failure
        except (HiraError, RejectedRequest) as error:
            watched.failure = error
        except Exception as error:  # noqa: BLE001 - a fault in one run must not end the server
            log.exception("a fault in hira in the run %s", run.id)
            watched.failure = HiraError(f"a fault in hira ({type(error).__name__}); see the log of this server")

    def of(self, client: Client, run: str) -> WatchedRun:
        """Return a run of this server. Raises `RejectedRequest` if it is missing or, in the same words, another's."""
        watched = self.known.get(run)
        if watched is None or not client.owns(run):
            raise refuse_missing(run)
        return watched

    def forget(self, name: str) -> None:
        """Drop an ended run from memory, and delete its attached files."""
        gone = self.known.pop(name, None)
        for folder in {path.parent for path in gone.attached} if gone else ():
            shutil.rmtree(folder, ignore_errors=True)

    async def aclose(self) -> None:
        """End every run at once; each can be resumed from the journal."""
        tasks = [watched.task for watched in self.known.values() if watched.task and not watched.task.done()]
        for watched in self.known.values():
            watched.leave()
        if tasks:
            await asyncio.wait(tasks)


def decide_in_queue(session: Session, queue: ApprovalQueue | None, *, subtasks: bool) -> Session:
    """Return the session with decisions taken in the queue: on tool calls, and with `subtasks` on subtasks too."""
    if queue is None:
        return session
    session = session.approving_tools(queue.approve_tool)
    return session.approving(queue.approve) if subtasks else session


def refuse_missing(run: str) -> RejectedRequest:
    what = f"there is no run {run[:80]!r}; it may have been deleted"
    return RejectedRequest(404, what, "not_found")
