"""The HTTP connections of `hira serve`: limits on their number and the time for headers, and one length a request."""

from asyncio import TimerHandle, Transport
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

try:
    from resource import RLIMIT_NOFILE, getrlimit

    _DESCRIPTORS = getrlimit(RLIMIT_NOFILE)[0]
except ImportError:  # Windows
    _DESCRIPTORS = 512

HEADER_SECONDS = 20.0
"""Until the headers of a request have come, from the connection's beginning or the request's first byte."""
MOST_CONNECTIONS = min(512, _DESCRIPTORS // 2) if _DESCRIPTORS > 0 else 512
"""Connections at once; half of the descriptors that this process may have are left for everything else."""
BACKLOG = MOST_CONNECTIONS // 2
"""Connections that are accepted at once, before any of them can be closed."""
_REPLIES = {
    408: b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    503: b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n",
}


class _StrictParser(h11.Connection):
    """Refuses a request with two lengths: a proxy may read the other one, and take part of the body for a request."""

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("both Content-Length and Transfer-Encoding", error_status_hint=400)
        return event


class TimedConnection(H11Protocol):
    """A connection of uvicorn that is closed when headers do not come in time.

    If there are too many connections, the one whose client has been silent for longest before its request was complete
    makes room.
    """

    header_seconds = HEADER_SECONDS
    most = MOST_CONNECTIONS
    _heard = 0.0
    _due: TimerHandle | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = _StrictParser(h11.SERVER, self.config.h11_max_incomplete_event_size or 64 * 1024)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._heard = self.loop.time()
        self._due = self.loop.call_later(self.header_seconds, self._refuse, 408)
        if len(self.connections) > self.most:
            others = [other for other in self.connections - {self} if isinstance(other, TimedConnection)]
            unfinished = [  # their clients have to send more before they get an answer
                other
                for other in others
                if other.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not other.transport.is_closing()
            ]
            if unfinished:
                min(unfinished, key=lambda connection: connection._heard)._refuse(503)  # noqa: SLF001 - of this class
            else:  # all of them are being answered
                self._close(503)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._heard = self.loop.time()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:  # the headers have arrived, or a request is being answered
            self._stop_clock()
        elif self._due is None and self.timeout_keep_alive_task is None:
            self._due = self.loop.call_later(self.header_seconds, self._refuse, 408)

    def _refuse(self, status: int) -> None:
        """Close the connection, with a status if a request has begun and nothing of its answer has been sent."""
        self._stop_clock()
        begun = self.conn.their_state is h11.SEND_BODY or bool(self.conn.trailing_data[0])
        if begun and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._close(status)
        else:
            self.transport.abort()

    def _close(self, status: int) -> None:
        self._stop_clock()
        self.transport.write(_REPLIES[status])
        self.transport.close()

    def _stop_clock(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


def limit_connections() -> dict[str, Any]:
    """Return uvicorn's settings: it replies 503 to too many requests, counting those of closed connections."""
    return {"http": TimedConnection, "limit_concurrency": MOST_CONNECTIONS + BACKLOG, "backlog": BACKLOG}
