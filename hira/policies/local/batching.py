"""The engine that samples with transformers: it decodes the requests of all coroutines together, in a separate thread.

The thread lives as long as there is work. Rows of one adapter form one batch; batches of several adapters take turns.
"""

import asyncio
import atexit
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Condition, Thread
from typing import Any

import torch

from hira.core.errors import EndpointError, UsageError
from hira.policies.local.decoding import DecodingBatch
from hira.policies.local.engine import PendingReply, Sampled, SampleRequest
from hira.policies.local.model import adapters_in, at_rest, capacity, check_supported, use_adapter, window_of
from hira.policies.local.template import Template

GATHERED_SECONDS = 0.003
READS, READS_ON_A_CPU = 16_384, 2_048
# decoding steps before another batch has its turn, and before rows that wait may join a batch that is not small
_TURN = 16
_JOIN_STEPS = 8


class BatchingEngine:
    """Samples with a transformers or PEFT model for many coroutines of any event loop. With a seed, a reply does not
    depend on concurrent requests, apart from rounding on the device.

    `tokens` bounds the places of all batches together (rows times length), None takes what the device has room for;
    `reads` bounds the prompt tokens of one forward pass: a CPU reads more at once no faster.
    """

    def __init__(self, model: Any, template: Template, *, tokens: int | None = None, reads: int | None = None) -> None:
        check_supported(model)
        self.model = model
        self.version = 0
        self.steps = 0
        self._template = template
        self.window = window_of(model, template.tokenizer)
        self._limit = tokens or capacity(model)
        self._reads = reads or (READS if next(model.parameters()).is_cuda else READS_ON_A_CPU)
        self._changed = Condition()
        self._open: set[PendingReply] = set()
        self._waiting: deque[PendingReply] = deque()
        self._batches: dict[str | None, DecodingBatch] = {}
        self._thread: Thread | None = None
        self._pauses = 0

    async def sample(self, request: SampleRequest) -> Sampled:
        if request.adapter is not None and request.adapter not in (known := adapters_in(self.model)):
            names = ", ".join(known) or "it has none"
            raise UsageError(f"the model has no adapter {request.adapter!r}", fix=f"its adapters: {names}")
        room = self.window - len(request.prompt)
        row = PendingReply(
            request,
            max(1, min(room, request.sampling.max_tokens or room)),
            random.Random(request.sampling.seed),  # noqa: S311 - sampling, not secrets
            self._template,
            asyncio.get_running_loop(),
        )
        with self._changed:
            row.version = self.version
            self._open.add(row)
            self._waiting.append(row)
            self._start()
        try:
            return await asyncio.wrap_future(row.future)
        finally:
            row.cancelled = not row.done
            with self._changed:
                self._open.discard(row)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Pause sampling inside the context. The current step finishes first; rows in flight continue afterwards, and
        read their tokens again with the new weights."""
        with self._changed:
            self._pauses += 1
            while self._thread is not None:
                self._changed.wait()
        try:
            yield
        finally:
            with self._changed:
                self._pauses -= 1
                self._start()

    def record_update(self, version: int | None = None) -> None:
        """Record that the weights have changed; replies name this version from now on, by default the next one."""
        with self._changed:
            self.version = self.version + 1 if version is None else version

    async def aclose(self) -> None:
        """End all requests. The engine can be used again."""
        with self._changed:
            rows = list(self._open)
            self._waiting.clear()
        for row in rows:
            row.cancelled = True
            row.future.cancel()

    def _start(self) -> None:
        if self._waiting and self._thread is None and not self._pauses:
            self._thread = Thread(target=self._work, name="hira-engine", daemon=True)
            self._thread.start()
            atexit.register(self._halt)

    def _halt(self) -> None:
        """Wait for the step under way before the process ends: a thread in a forward pass crashes the process if the
        interpreter ends."""
        with self._changed:
            self._pauses += 1
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        """Sample until no request waits, or until a caller wants a pause. The last rows are delivered after the model
        is as before."""
        time.sleep(GATHERED_SECONDS)
        try:
            with at_rest(self.model), torch.no_grad():
                while self._goes_on():
                    for name in self._list_adapters():
                        with use_adapter(self.model, name) as model:
                            batch = self._batches.setdefault(name, DecodingBatch(model, reads=self._reads))
                            self._turn(name, batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody may be left waiting for it
            with self._changed:
                rows = list(self._open)
                self._waiting.clear()
                self._batches.clear()
            for row in rows:
                row.fail(error if isinstance(error, EndpointError | UsageError) else _describe_failure(error))
                row.deliver()
        finally:
            self._deliver()
            with self._changed:
                self._put_back(row for batch in self._batches.values() for row in batch.evict())
                self._thread = None
                atexit.unregister(self._halt)
                self._changed.notify_all()
                self._start()

    def _goes_on(self) -> bool:
        with self._changed:
            self._waiting = deque(row for row in self._waiting if not row.cancelled)
            return self._busy() and not self._pauses

    def _busy(self) -> bool:
        return bool(self._waiting) or any(batch.live for batch in self._batches.values())

    def _deliver(self) -> None:
        for batch in list(self._batches.values()):
            done, batch.done = batch.done, []
            for row in done:
                row.deliver()

    def _list_adapters(self) -> list[str | None]:
        busy = (name for name, batch in self._batches.items() if batch.rows)
        return list(dict.fromkeys((*busy, *(row.request.adapter for row in list(self._waiting)))))

    def _turn(self, name: str | None, batch: DecodingBatch) -> None:
        """Some steps of one batch; rows that wait for it join at its beginning and every few steps."""
        for step in range(_TURN):
            if self._pauses:
                return
            if (not batch.live or step % _JOIN_STEPS == 0) and (joining := self._joining(name, batch)):
                self._in_memory(partial(batch.admit, joining), joining)
            if not batch.live:
                return
            self._in_memory(batch.step, ())
            self.steps += 1
            self._shrink()
            if batch.done and self._busy():
                self._deliver()

    def _joining(self, name: str | None, batch: DecodingBatch) -> list[PendingReply]:
        """The waiting rows of an adapter that there is room for, in the order in which they came. Each adapter that is
        asked for has an equal share of the places, so that none waits for another to be done."""
        live = batch.live
        width, rows = max((row.held for row in live), default=0), len(live)
        joining: list[PendingReply] = []
        with self._changed:
            share = self._limit // max(1, len(self._list_adapters()))
            for row in list(self._waiting):
                if row.request.adapter != name or row.cancelled:
                    continue
                wider = max(width, len(row.ids) + _TURN)
                if (rows + 1) * wider > share and rows:
                    break
                width, rows = wider, rows + 1
                joining.append(row)
            taken = set(joining)
            self._waiting = deque(row for row in self._waiting if row not in taken)
        return joining

    def _shrink(self) -> None:
        """Put the youngest rows back while the batches have more places than there is room for."""
        while sum(batch.tokens for batch in self._batches.values()) > self._limit:
            batch = max(self._batches.values(), key=lambda row: row.tokens)
            if len(batch.rows) < 2:
                return
            young = sorted(batch.live, key=lambda row: len(row.sampled))[: max(1, len(batch.live) // 8)]
            with self._changed:
                self._put_back(batch.evict(young))

    def _put_back(self, rows: Iterator[PendingReply] | Sequence[PendingReply]) -> None:
        self._waiting.extendleft(reversed([row for row in rows if not row.done]))

    def _in_memory(self, work: Callable[[], None], rows: Sequence[PendingReply]) -> None:
        """Do the work. If the device runs out of memory, continue with half as many rows; a single row fails."""
        try:
            work()
        except torch.OutOfMemoryError as error:
            at_work = [row for batch in self._batches.values() for row in batch.evict()] + list(rows)
            left = list(dict.fromkeys(row for row in at_work if not row.done))
            if len(left) <= 1:
                for row in left:
                    row.fail(_describe_failure(error))
                    row.deliver()
            else:
                self._limit = max(1, sum(len(row.ids) for row in left) // 2)
            with self._changed:
                self._put_back(left)
        else:
            return
        torch.cuda.empty_cache()


def _describe_failure(error: Exception) -> EndpointError:
    message = str(error).strip().partition("\n")[0]
    fix = "look at the error above; if memory is short, send fewer requests at once or use a smaller model"
    failed = EndpointError(f"sampling failed: {type(error).__name__}: {message}", fix=fix)
    failed.__cause__ = error
    return failed
