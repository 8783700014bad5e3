"""One question put to several workflows at once: with the same models and tools, and what one of them has searched or
fetched is free for the others.

>>> async with comparison(settings, ["hira", "react", "rag"], "…") as compared:
...     async for one in compared.each():
...         print(one.workflow, one.answer.status, one.seconds)
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hira.core.concurrency import SingleFlight
from hira.core.errors import UsageError
from hira.core.events import Reader
from hira.core.policy import Policy
from hira.core.window import map_concurrently
from hira.runtime.answer import Answer
from hira.runtime.batch import Question, make_failed, work_alone
from hira.runtime.factory import open_session
from hira.runtime.registry import WorkflowUnion, make_workflow
from hira.runtime.run import Run
from hira.runtime.session import Session
from hira.runtime.settings import Settings


@dataclass(frozen=True, slots=True)
class Compared:
    """How one workflow fared: its answer, and the seconds from the question to it."""

    workflow: str
    answer: Answer
    seconds: float


class Comparison:
    """A question under way in several workflows. `stop` ends those in flight with what they know."""

    def __init__(self, sessions: Mapping[str, Session], question: str, files: Sequence[Path] = ()) -> None:
        self.sessions = sessions
        self.question = question
        self.files = tuple(files)
        self._runs = {name: Run(session, question, self.files) for name, session in sessions.items()}

    def stop(self) -> None:
        for run in self._runs.values():
            run.stop()

    async def each(self, *readers: Reader) -> AsyncGenerator[Compared, None]:
        """Yield each workflow's result as it ends. A failed one is an answer with its error, and does not affect the
        others.

        The `readers` get the events of all of them.
        """
        async with aclosing(map_concurrently(self._runs, len(self._runs), partial(self._one, readers))) as finished:
            async for outcome in finished:
                yield outcome

    async def _one(self, readers: Sequence[Reader], name: str) -> Compared:
        run, began = self._runs[name], time.monotonic()
        failure = await work_alone(run, readers)
        if failure is None:
            return Compared(name, run.answer, time.monotonic() - began)
        question = Question(self.question, run=run.id)
        done = make_failed(question, failure, workflow=name, model=self.sessions[name].model)
        return Compared(name, done.answer, time.monotonic() - began)


@asynccontextmanager
async def comparison(
    settings: Settings,
    names: Sequence[str],
    question: str,
    *,
    files: Sequence[Path] = (),
    policies: Mapping[str, Policy] | None = None,
) -> AsyncIterator[Comparison]:
    """The comparison, with everything that it opened closed at its end. Raises what is wrong with the settings."""
    made = {name: make_workflow(settings.with_values({"workflow": name}, "--workflow")) for name in names}
    if not made:
        raise UsageError("there is no workflow to compare", fix="name some: --workflow hira,react,rag")
    common = await open_session(settings, workflow=WorkflowUnion(made), policies=policies)
    common.toolset.once = SingleFlight()
    try:
        yield Comparison({name: common.beside(workflow) for name, workflow in made.items()}, question, files)
    finally:
        await common.aclose()
