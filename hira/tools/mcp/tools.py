"""A server's tools as tools of roles."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hira.core.sanitize import clean, clip_title
from hira.core.tool import Observation, Tool
from hira.tools.mcp.connection import Connection
from hira.tools.mcp.result import make_observation
from hira.tools.mcp.session import Server

if TYPE_CHECKING:
    import mcp_types

LONGEST_NAME = 64
DESCRIPTION = 2_000
MOST = 128
"""Tools of one server: more than OpenAI's endpoint takes in a request."""
SCHEMA = 20_000
"""Characters of a tool's parameters, as they are written in a prompt."""
# What of a schema is prose for the model; all else has to reach the server as it is.
_PROSE = frozenset({"title", "description", "$comment"})


@asynccontextmanager
async def mcp_tools(server: Server, tell: Callable[[str], object] = lambda _: None) -> AsyncIterator[tuple[Tool, ...]]:
    """The server's tools, usable from any task until the context is left; then its process is gone.

    `tell` is told of tools that are left out. Raises `UsageError` where the server cannot be used.
    """
    connection = Connection(server)
    try:
        offered = await connection.tools()
        yield tuple(_made(connection, offered, tell))
    finally:
        await connection.aclose()


def _made(connection: Connection, offered: "Iterable[mcp_types.Tool]", tell: Callable[[str], object]) -> Iterable[Tool]:
    """Tools with names that no other has and that every endpoint and dialect takes."""
    server, taken = connection.server, set[str]()
    for one in offered:
        name = make_name(server.name, one.name)
        if len(taken) == MOST:
            tell(f"MCP server {server.name!r}: only its first {MOST} tools are used")
            return
        parameters = safe(one.input_schema)
        if parameters is None or name in taken:
            why = "its name is taken" if name in taken else "its parameters cannot be written in a prompt"
            tell(f"MCP server {server.name!r}: the tool {clean(clip_title(one.name))!r} is left out: {why}")
            continue
        taken.add(name)
        told = clean((one.description or one.title or one.name)[: 4 * DESCRIPTION])[:DESCRIPTION].strip()
        yield Tool(name, told, parameters, _run(connection, one.name), server.seconds)


def _run(connection: Connection, tool: str) -> Callable[[dict[str, Any]], Any]:
    async def run(arguments: dict[str, Any]) -> Observation:
        return make_observation(connection.server.name, tool, arguments, await connection.call(tool, arguments))

    return run


def make_name(server: str, tool: str) -> str:
    """A name that endpoints take (letters, digits, `_`, at most 64) and that a special token can be made of.

    >>> named("Files", "read.text-file")
    'files_read_text_file'
    """
    return re.sub(r"[^a-z0-9_]+", "_", f"{server}_{tool}".lower())[:LONGEST_NAME]


def safe(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema with its prose cleaned. None if it is no schema of an object, is too large for a prompt, or if a name
    or a value in it would have to be changed so that it forms no token of a prompt: the server would not know it
    again."""
    if len(json.dumps(schema, ensure_ascii=False)) > SCHEMA:
        return None
    cleaned: dict[str, Any] = {"type": "object", "properties": {}, "required": [], **_prose(schema)}
    if cleaned["type"] != "object" or not isinstance(cleaned["properties"], dict):
        return None
    if not isinstance(cleaned["required"], list):
        return None
    for name, one in cleaned["properties"].items():
        if not isinstance(one, dict):  # `true` stands for any value
            cleaned["properties"][name] = {}
    written = json.dumps(cleaned, ensure_ascii=False)
    return cleaned if clean(written) == written else None


def _prose(part: Any, key: str = "") -> Any:
    if isinstance(part, Mapping):
        return {name: _prose(value, name) for name, value in part.items()}
    if isinstance(part, list):
        return [_prose(value) for value in part]
    return clean(part) if isinstance(part, str) and key in _PROSE else part
