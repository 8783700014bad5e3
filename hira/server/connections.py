"""The HTTP connections of `hira serve`: a time limit for the beginning of a request, and a limit on their number."""

from asyncio import TimerHandle, Transport
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 20.0
"""Until the headers of a request have come, from the connection's beginning or the request's first byte."""
MOST_CONNECTIONS = 512


class TimedConnection(H11Protocol):
    """uvicorn's own, closed when headers do not come in time. Where there are too many, the oldest of those that wait
    for a request makes room; where all are being answered, the new one is closed."""

    header_seconds = HEADER_SECONDS
    most = MOST_CONNECTIONS
    _began = 0.0
    _due: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._began = self.loop.time()
        self._due = self.loop.call_later(self.header_seconds, self.transport.abort)
        if len(self.connections) > self.most:
            others: set[Any] = self.connections - {self}
            waiting = [one for one in others if isinstance(one, TimedConnection) and one.waits]
            min(waiting, key=lambda one: one._began, default=self).transport.abort()  # noqa: SLF001 - of this class

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.waits:
            self._stop_clock()
        elif self._due is None and self.timeout_keep_alive_task is None:
            self._due = self.loop.call_later(self.header_seconds, self.transport.abort)

    @property
    def waits(self) -> bool:
        """True if no request with complete headers has arrived, and none is being answered."""
        return self.conn.their_state is h11.IDLE

    def _stop_clock(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
