"""A batch on a Ray cluster: the same questions, answered by workers on its machines. Needs the extra `ray`.

Each worker is a process with one `Hira`; it needs hira, and what the settings name: documents, servers, the journal.
"""

import asyncio
import math
import os
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

from hira.core.errors import EndpointError, HiraError, UsageError
from hira.core.events import Reader
from hira.core.window import CONCURRENCY
from hira.runtime.batch import Batch, Done, Question, make_failed, watch_nothing
from hira.runtime.factory import open_session
from hira.runtime.session import Session
from hira.runtime.settings import Settings

# Questions that one worker has in hand; a second one begins beyond that.
EACH = 16


class Asker:
    """The program of a worker: created there, called from here."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session: asyncio.Task[Session] | None = None
        self._batch = Batch(self, ())

    async def answer(self, question: Question) -> Done:
        return await self._batch.answer(question)

    async def open_session(self) -> Session:
        """The session of this worker, opened by the first question."""
        if self._session is None:
            self._session = asyncio.create_task(open_session(self._settings))
        return await asyncio.shield(self._session)

    async def open(self) -> str:
        """The model, once everything is open. Raises what is wrong with the settings on that machine."""
        return (await self.open_session()).model

    async def stop(self) -> None:
        self._batch.stop()

    async def close(self) -> None:
        if self._session is not None:
            await (await self._session).aclose()


class RayBatch(Batch):
    """Questions under way on the cluster at `address`: `local` for one of this machine's own, `auto` for the one that
    it belongs to, `ray://HOST:PORT` or `HOST:PORT` for another. `begins` cannot return readers."""

    def __init__(
        self,
        settings: Settings,
        questions: Iterable[Question],
        *,
        address: str,
        concurrency: int = CONCURRENCY,
        begins: Callable[[Question, str], Sequence[Reader]] = watch_nothing,
    ) -> None:
        super().__init__(Asker(settings), questions, concurrency=concurrency, begins=begins)
        try:
            self._ray: Any = import_module("ray")  # no types to import: it is an extra, and takes a second
        except ImportError:
            raise UsageError("batches on a cluster need Ray", fix="pip install 'hira[ray]'") from None
        self._settings = settings
        self._address = address
        self._askers: list[Any] = []
        self._busy: Counter[int] = Counter()

    def stop(self) -> None:
        super().stop()
        for asker in self._askers:
            asker.stop.remote()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        await asyncio.to_thread(self._join)
        try:
            await self._start()
            yield
            await asyncio.gather(*(asker.close.remote() for asker in self._askers))
        finally:
            await asyncio.to_thread(self._ray.shutdown)

    def _join(self) -> None:
        """Join the cluster. Nothing about its use is sent anywhere."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            self._ray.init(address=self._address, log_to_driver=False, logging_level="ERROR", namespace="hira")
        except (ConnectionError, RuntimeError, ValueError) as error:
            first = str(error).partition("\n")[0]
            raise EndpointError(f"the Ray cluster cannot be joined: {first}", where=f"at {self._address}") from None

    async def _start(self) -> None:
        cpus = int(self._ray.cluster_resources().get("CPU", 1))
        workers = max(1, min(cpus, math.ceil(self._concurrency / EACH)))
        made = self._ray.remote(num_cpus=1, max_restarts=-1, scheduling_strategy="SPREAD")(Asker)
        most = self._concurrency + 8  # room for `stop` beside the questions
        self._askers = [made.options(max_concurrency=most).remote(self._settings) for _ in range(workers)]
        try:
            await asyncio.gather(*(asker.open.remote() for asker in self._askers))
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, HiraError) else error from None

    async def answer(self, question: Question) -> Done:
        """The answer of the worker that has least to do."""
        named = replace(question, begin_as=question.begin_as or time.strftime("%Y%m%d-%H%M%S-") + secrets.token_hex(3))
        self._begins(question, question.run or named.begin_as)
        index = min(range(len(self._askers)), key=self._busy.__getitem__)
        self._busy[index] += 1
        try:
            done: Done = await self._askers[index].answer.remote(named)
        except self._ray.exceptions.RayError as error:
            failure = HiraError(f"a worker of the cluster failed: {str(error).partition(chr(10))[0]}")
            run = question.run or named.begin_as
            return make_failed(replace(question, run=run), failure, workflow=self._settings.workflow, model="")
        finally:
            self._busy[index] -= 1
        return replace(done, question=question)
