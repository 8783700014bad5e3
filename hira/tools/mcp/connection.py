"""A server that may be called from any task, and again after it has ended."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hira.core.errors import ToolDown, ToolError, UsageError
from hira.tools.mcp.session import Ended, Server, Session, reason, require

if TYPE_CHECKING:
    import mcp_types

PAGES = 50


class Connection:
    """The session with a server. One that has ended is begun again by the next call; what was under way is not
    repeated, because it may have had its effect."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._session: Session | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def tools(self) -> "list[mcp_types.Tool]":
        """All that the server offers. Raises `UsageError` if it cannot be started, reached or understood."""
        session = await self._opened()
        try:
            async with asyncio.timeout(self.server.start):
                return await _listed(session)
        except Ended:
            await session.end()
            raise self._unusable(session.why or "ended") from None
        except Exception as error:  # noqa: BLE001 - a server may break its client in any way; the person is told
            late = f"not within {self.server.start:g} seconds"
            why = late if isinstance(error, TimeoutError) else reason(error)
            raise self._unusable(f"does not list its tools: {why}") from None

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> "mcp_types.CallToolResult":
        """What the server's tool returned. `ToolError` says, for the model, that there is no result."""
        try:
            session = await self._opened()
        except UsageError as error:
            raise ToolDown(f"{error.what}. Do without it") from None
        try:
            return await session.ask(session.client.call_tool(tool, dict(arguments)))
        except Ended:
            await session.end()
            why = session.why if session.overlong else "closed during the call"
            raise ToolDown(f"the server {self.server.name!r} {why}; the next call connects again") from None
        except Exception as error:  # noqa: BLE001 - a server may break its client in any way; the model is told
            raise ToolError(f"the server {self.server.name!r} gave no result: {reason(error)}") from None

    async def aclose(self) -> None:
        self._closed = True
        await self._end()

    async def _end(self) -> None:
        if self._session:
            await self._session.end()

    async def _opened(self) -> Session:
        async with self._opening:
            if self._session and not self._session.ended:
                return self._session
            if self._closed:
                raise self._unusable("has been closed")
            await self._end()
            await asyncio.to_thread(require)
            session = self._session = Session(self.server)
            try:
                await session.begin()
            except Ended:
                await session.end()
                raise self._unusable(session.why) from None
            except BaseException:
                await session.end()
                raise
            return session

    def _unusable(self, why: str) -> UsageError:
        fix = "check its url and headers" if self.server.url else "check its command and args"
        return UsageError(f"the MCP server {self.server.name!r} {why}", where=self.server.place, fix=fix)


async def _listed(session: Session) -> "list[mcp_types.Tool]":
    found: list[mcp_types.Tool] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await session.ask(session.client.list_tools(cursor=cursor))
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise ValueError(f"there are more than {PAGES} pages of tools")
