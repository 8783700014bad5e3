"""Tools of MCP servers, started as a process (stdio) or reached by URL (streamable HTTP): `pip install 'hira[mcp]'`.

A connection is reopened after it ended (`session`). The package "mcp" takes more than a second to import; it is loaded
when the first server is opened.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from hira.core.errors import ToolDown, ToolError, UsageError
from hira.core.sanitize import clean, clip_title
from hira.core.tool import Observation, Tool, read_result
from hira.tools.addresses import LONGEST
from hira.tools.mcp.session import McpSession, Server, SessionEnded, reason, require

if TYPE_CHECKING:
    import mcp_types
    from mcp_types import CallToolResult

__all__ = ["Server", "mcp_tools", "require"]

PAGES = 50
KEPT = 400_000
"""The most characters of a result."""
LONGEST_NAME = 64
DESCRIPTION = 2_000
MOST = 128
"""Tools of one server: more than OpenAI's endpoint accepts in a request."""
SCHEMA = 20_000
"""Characters of a tool's parameters, as written in a prompt."""
_FAULT = 1_000
# The parts of a schema that are prose for the model; all others have to reach the server unchanged.
_PROSE = frozenset({"title", "description", "$comment"})


class McpConnection:
    """The session with a server. The next call restarts a session that has ended; calls in progress are not repeated,
    because they may have had their effect."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._session: McpSession | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def tools(self) -> "list[mcp_types.Tool]":
        """Return all tools of the server. Raises `UsageError` if it cannot be started, reached or understood."""
        session = await self._open()
        try:
            async with asyncio.timeout(self.server.start):
                tools: list[mcp_types.Tool] = []
                cursor: str | None = None
                for _ in range(PAGES):
                    page = await session.ask(session.client.list_tools(cursor=cursor))
                    tools += page.tools
                    cursor = page.next_cursor
                    if cursor is None:
                        return tools
                raise ValueError(f"there are more than {PAGES} pages of tools")
        except SessionEnded:
            await session.end()
            raise self._unusable(session.why or "ended") from None
        except Exception as error:  # noqa: BLE001 - a server may break its client in any way; the person sees it
            late = f"not within {self.server.start:g} seconds"
            why = late if isinstance(error, TimeoutError) else reason(error)
            raise self._unusable(f"does not list its tools: {why}") from None

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Observation:
        """Call a tool of the server and return its result. `ToolError` explains to the model why there is no result."""
        try:
            session = await self._open()
        except UsageError as error:
            raise ToolDown(f"{error.what}. Do without it") from None
        try:
            result = await session.ask(session.client.call_tool(tool, dict(arguments)))
        except SessionEnded:
            await session.end()
            why = session.why if session.refused else "closed during the call"
            raise ToolDown(f"the server {self.server.name!r} {why}; the next call connects again") from None
        except Exception as error:  # noqa: BLE001 - a server may break its client in any way; the model sees it
            raise ToolError(f"the server {self.server.name!r} gave no result: {reason(error)}") from None
        return make_observation(self.server.name, tool, arguments, result)

    async def aclose(self) -> None:
        self._closed = True
        if self._session:
            await self._session.end()

    async def _open(self) -> McpSession:
        async with self._opening:
            if self._session and not self._session.ended:
                return self._session
            if self._closed:
                raise self._unusable("has been closed")
            if self._session:
                await self._session.end()
            await asyncio.to_thread(require)
            session = self._session = McpSession(self.server)
            try:
                await session.begin()
            except BaseException as error:
                await session.end()
                if isinstance(error, SessionEnded):
                    raise self._unusable(session.why) from None
                raise
            return session

    def _unusable(self, why: str) -> UsageError:
        fix = "check its url and headers" if self.server.url else "check its command and args"
        return UsageError(f"the MCP server {self.server.name!r} {why}", where=self.server.place, fix=fix)


def make_observation(server: str, tool: str, arguments: Mapping[str, Any], result: "CallToolResult") -> Observation:
    """Return the result's texts as one passage of a source; other contents are described in words.

    Raises `ToolError`, with the server's message, if the server marks the result as an error.
    """
    texts, told = _read_parts(result)
    text = "\n\n".join(texts)
    if result.is_error:
        raise ToolError(clean(text[: 4 * _FAULT])[:_FAULT] or "the server reports a failure without a reason")
    if len(text) > KEPT:
        told.append(f"Of {len(text):,} characters, the first {KEPT:,} were kept.")
        text = text[:KEPT]
    if not text:
        return Observation("\n".join(told) or "Done. The tool returned nothing.")
    seen = read_result(f"mcp:{server}/{tool}", f"{server}: {tool}", arguments, text)
    return replace(seen, text="\n".join(told))


def _read_parts(result: "CallToolResult") -> tuple[list[str], list[str]]:
    """Return the texts of a result, and descriptions of its other contents. Without a text, its structure is one."""
    from mcp_types import TextResourceContents

    texts: list[str] = []
    lines: list[str] = []
    for block in result.content:
        if block.type == "text":
            texts.append(block.text)
        elif block.type == "resource_link":
            lines.append(f"A link to {clip_title(block.name)}: {str(block.uri)[:LONGEST]}")
        elif block.type == "resource":
            if isinstance(block.resource, TextResourceContents):
                texts.append(block.resource.text)
            else:
                lines.append(_describe_unseen("A file", block.resource.mime_type, len(block.resource.blob)))
        else:
            what = "A picture" if block.type == "image" else "A sound"
            lines.append(_describe_unseen(what, block.mime_type, len(block.data)))
    texts = [text for text in texts if text.strip()]
    if not texts and result.structured_content:
        texts = [json.dumps(result.structured_content, ensure_ascii=False, indent=1)]
    return texts, lines


def _describe_unseen(what: str, mime_type: str | None, encoded: int) -> str:
    return f"{what} ({mime_type or 'of unknown type'}, {encoded * 3 // 4:,} bytes), which cannot be shown here."


@asynccontextmanager
async def mcp_tools(server: Server, tell: Callable[[str], object] = lambda _: None) -> AsyncIterator[tuple[Tool, ...]]:
    """Open the server's tools, usable from any task until the context is left; then its process ends.

    `tell` gets a line for tools that are left out. Raises `UsageError` if the server cannot be used.
    """
    connection = McpConnection(server)
    try:
        offered = await connection.tools()
        yield tuple(_make_tools(connection, offered, tell))
    finally:
        await connection.aclose()


def _make_tools(
    connection: McpConnection, offered: "Iterable[mcp_types.Tool]", tell: Callable[[str], object]
) -> Iterable[Tool]:
    """Yield tools with unique names that every endpoint and dialect accepts."""
    server, taken = connection.server, set[str]()
    for offer in offered:
        name = make_name(server.name, offer.name)
        if len(taken) == MOST:
            tell(f"MCP server {server.name!r}: only its first {MOST} tools are used")
            return
        parameters = clean_schema(offer.input_schema)
        if parameters is None or name in taken:
            why = "its name is taken" if name in taken else "its parameters cannot be written in a prompt"
            tell(f"MCP server {server.name!r}: the tool {clean(clip_title(offer.name))!r} is left out: {why}")
            continue
        taken.add(name)
        text = clean((offer.description or offer.title or offer.name)[: 4 * DESCRIPTION])[:DESCRIPTION].strip()
        yield Tool(name, text, parameters, partial(connection.call, offer.name), server.seconds)


def make_name(server: str, tool: str) -> str:
    """Make a name that endpoints accept (letters, digits, `_`, at most 64) and that a special token can contain.

    >>> make_name("Files", "read.text-file")
    'files_read_text_file'
    """
    return re.sub(r"[^a-z0-9_]+", "_", f"{server}_{tool}".lower())[:LONGEST_NAME]


def clean_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema with its prose cleaned. None if it is not the schema of an object, is too large for a prompt,
    or has a name or value that would have to be changed to be safe in a prompt, because the server would not recognize
    it."""
    if len(json.dumps(schema, ensure_ascii=False)) > SCHEMA:
        return None
    cleaned: dict[str, Any] = {"type": "object", "properties": {}, "required": [], **_prose(schema)}
    properties, required = cleaned["properties"], cleaned["required"]
    if cleaned["type"] != "object" or not isinstance(properties, dict) or not isinstance(required, list):
        return None
    for name in properties:
        if not isinstance(properties[name], dict):  # `true` means any value
            properties[name] = {}
    written = json.dumps(cleaned, ensure_ascii=False)
    return cleaned if clean(written) == written else None


def _prose(part: Any, key: str = "") -> Any:
    if isinstance(part, Mapping):
        return {name: _prose(value, name) for name, value in part.items()}
    if isinstance(part, list):
        return [_prose(value) for value in part]
    return clean(part) if isinstance(part, str) and key in _PROSE else part
