"""The limits on a server: messages of at most 5 MB, few unrequested ones, and no compressed bodies.

The package "mcp" bounds none of these over pipes, and over HTTP only events.
"""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import httpx2

LONGEST_MESSAGE = 5_000_000
"""The most characters of a server's message. The package "mcp" takes time in the square of its length."""
TOO_LONG = f"sent a message of more than {LONGEST_MESSAGE // 10**6} MB"
UNASKED = 100
"""The most requests and notifications of a server within a second, and at once."""
End = Callable[[str], None]
"""Ends the session; the text says why, as the rest of a sentence that begins with the server's name."""


@dataclass(slots=True)
class BoundedMessages:
    """The messages of a server. Beyond `UNASKED`, notifications and lines that are no messages are passed over; a
    further request ends the session, because each waits in a task until the server reads its answer."""

    _messages: Any
    _end: End
    _left: float = UNASKED
    _counted: float = field(default_factory=time.monotonic)

    @property
    def last_context(self) -> Any:
        return getattr(self._messages, "last_context", None)

    async def __aenter__(self) -> Self:
        await self._messages.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._messages.__aexit__(*error)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while True:
            item = await self._messages.__anext__()
            message = getattr(item, "message", None)
            method = getattr(message, "method", "")
            if (message and not method) or self._is_within():
                return item
            if hasattr(message, "id"):
                self._end(f"sent more than {UNASKED} requests within a second")
                raise StopAsyncIteration

    async def receive(self) -> Any:
        return await self.__anext__()

    async def aclose(self) -> None:
        await self._messages.aclose()

    def _is_within(self) -> bool:
        now = time.monotonic()
        self._left = min(UNASKED, self._left + (now - self._counted) * UNASKED)
        self._counted = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


async def bound_body(response: "httpx2.Response", end: End) -> None:
    """End the session if the response's body is compressed, or longer than a message may be."""
    import httpx2

    if encoding := response.headers.get("content-encoding", "identity").strip().lower().replace("identity", ""):
        end(f"answered in the encoding {encoding[:20]!r}, although hira accepts none")
        raise httpx2.RemoteProtocolError("a packed body")
    if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        return  # its events are bounded

    class Body(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            length = 0
            async for piece in whole:
                length += len(piece)
                if length > LONGEST_MESSAGE:
                    end(TOO_LONG)
                    raise httpx2.RemoteProtocolError("a long body")
                yield piece

        async def aclose(self) -> None:
            await whole.aclose()

    whole: Any = response.stream
    response.stream = Body()
