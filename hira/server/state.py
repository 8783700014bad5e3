"""The state that requests share, their clients, and the reports of errors."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from hira.core.errors import HiraError
from hira.runtime.session import Session
from hira.server.keys import Client, Clients, RejectedRequest
from hira.server.outside import PathScrubber, log
from hira.server.runs import Runs
from hira.server.wire import as_refusal, error_of

LARGEST = 32 * 2**20
"""Bytes of a request."""
SMALL = 256 * 2**10
"""Bytes of a request that is read even while others fill the memory for bodies."""
MOST = 8 * LARGEST
"""Bytes of the larger bodies of all requests together, until their requests have been answered."""
BODY_SECONDS = 120.0
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]", "::1", "testserver"})
Handler = Callable[["AppState", Request], Awaitable[Response]]


@dataclass(slots=True)
class AppState:
    """The state that requests share. `folder` contains attached files; `hosts` are the names by which the server may be
    called, None for any.

    Bodies of requests are read one by one, each in a `turn`, and the loop runs in between, so that many requests at
    once do not block it for longer than one.
    """

    runs: Runs
    clients: Clients
    scrub: PathScrubber
    folder: Path
    hosts: frozenset[str] | None = LOCAL
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    bodies: dict[int, int] = field(default_factory=dict)
    """Bytes of the bodies that are larger than `SMALL`, by request."""

    @property
    def session(self) -> Session:
        """Any session: they share the journal."""
        return next(iter(self.runs.sessions.values()))

    def client(self, request: Request) -> Client:
        """The client of a request. Pages of other sites are refused, even if no key is needed: one whose name points to
        this server sends that name, and others cannot send JSON."""
        host = re.sub(r":\d+$", "", request.headers.get("host", "")).lower()
        if self.hosts is not None and host not in self.hosts:
            raise RejectedRequest(403, f"this server is not called {host[:80]!r}")
        return self.clients.of(request.headers.get("authorization", ""))


STOPPING = RejectedRequest(503, "the server stops; ask again later", kind="server_error")


def guard(state: AppState, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Wrap the handler: every error gets OpenAI's format, and the server keeps running."""

    async def respond(request: Request) -> Response:
        try:
            if request.method == "POST":
                # a browser sends JSON to another site only if that site agrees, and this server never does
                kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                if kind != "application/json":
                    raise RejectedRequest(415, "the body must be application/json")
                async with state.turn:
                    await asyncio.sleep(0)
            return await handler(state, request)
        except (RejectedRequest, HiraError) as error:
            return refusal(as_refusal(error))
        except ClientDisconnect:
            return Response(status_code=499)
        except asyncio.CancelledError:  # the server ends, after the longest wait for the answer
            return refusal(STOPPING)
        except Exception as error:  # noqa: BLE001 - a fault of hira's own
            log.exception("a fault in hira at %s %s", request.method, request.url.path)
            what = f"a fault in hira ({type(error).__name__}); see the log of this server"
            return refusal(RejectedRequest(500, what, kind="server_error"))
        finally:
            state.bodies.pop(id(request), None)

    return respond


def refusal(refused: RejectedRequest) -> JSONResponse:
    return JSONResponse(error_of(refused), refused.status)


async def unknown(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    what = f"{request.method} {request.url.path[:200]} is not served here"
    if request.url.path.startswith("/v1/"):
        what += "; there are GET /v1/models, POST /v1/chat/completions and POST /v1/responses"
    return refusal(RejectedRequest(status, what, "not_found"))


async def body_of(request: Request, bodies: dict[int, int], seconds: float = BODY_SECONDS) -> bytes:
    """Return the body, and enter its size into `bodies`. Raises `RejectedRequest` if it is too large, alone or together
    with the others, before reading all of it, or if it does not arrive in time."""
    length, read = request.headers.get("content-length", ""), bytearray()
    too_large = RejectedRequest(413, f"the body is larger than {LARGEST // 2**20} MB")
    if length.isdecimal() and int(length) > LARGEST:
        raise too_large
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                read += part
                if len(read) > LARGEST:
                    raise too_large
                if len(read) > SMALL:
                    bodies[id(request)] = len(read)
                    if sum(bodies.values()) > MOST:
                        what = f"the requests being answered hold {MOST // 2**20} MB already; send this one again later"
                        raise RejectedRequest(503, what, kind="server_error")
    except TimeoutError:
        raise RejectedRequest(408, f"the body did not come within {seconds:g} seconds") from None
    return bytes(read)
