"""The gate between sampling and changing weights: who samples passes through, who changes weights closes it."""

import asyncio
from types import TracebackType


class Gate:
    """`async with gate:` around each stretch of sampling. `close()` lets nobody else in and waits until all who are
    inside have come out; `open()` lets them in again.

    Stretches are segments of a reply or whole replies: the shorter they are, the less waits for the longest.
    """

    def __init__(self) -> None:
        self.inside = 0
        self._opened = asyncio.Event()
        self._opened.set()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def closed(self) -> bool:
        return not self._opened.is_set()

    async def __aenter__(self) -> None:
        while self.closed:
            await self._opened.wait()
        self.inside += 1
        self._empty.clear()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.inside -= 1
        if not self.inside:
            self._empty.set()

    async def close(self) -> None:
        self._opened.clear()
        await self._empty.wait()

    def open(self) -> None:
        self._opened.set()
