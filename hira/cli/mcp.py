"""`hira mcp`: hira as an MCP server with the tools `ask`, `search` and `open`, over stdio or, on this machine, HTTP."""

import asyncio
import json
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import hira
from hira.agents.trajectory import Status
from hira.api import Hira
from hira.cli import INTERRUPTED, OK, output
from hira.cli.progress import describe_event
from hira.cli.running import announce_model
from hira.cli.shell import Shell, brief, format_json
from hira.core.errors import HiraError, ToolError, UsageError, did_you_mean, uncapitalise
from hira.core.events import Events
from hira.core.sanitize import clean
from hira.core.tool import Context, Observation
from hira.runtime.answer import Answer
from hira.runtime.session import budget_of
from hira.runtime.settings import Settings
from hira.tools.mcp import require
from hira.workflows import WORKFLOWS

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, Tool

HOST = "127.0.0.1"
PATH = "/mcp"
LEAVING = 2
REMEMBERED = 1_000
"""The latest locations that were shown; of the web, only these can be opened."""
SOME_DOCS = "paths of the server's documents to search (default: all)"

Tell = Callable[[str], Awaitable[None]]


class AskArguments(BaseModel):
    """The arguments of the tool `ask`."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    question: str = Field(min_length=1, description="the question, complete in itself")
    workflow: str = Field("", description="workflow that answers (default: the server's)")
    docs: list[str] = Field([], description=SOME_DOCS)


class SearchArguments(BaseModel):
    """The arguments of the tool `search`."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    query: str = Field(min_length=1, description="a question or its key words")
    docs: list[str] = Field([], description=SOME_DOCS)


class OpenArguments(BaseModel):
    """The arguments of the tool `open`."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    location: str = Field(min_length=1, description="the location of a passage, as the search shows it")
    intent: str = Field("", description="what to look for in a long document")


ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "status": {"type": "string", "enum": list(get_args(Status))},
        "citations": {"type": "array", "items": {"type": "object"}},
        "sources": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["answer", "status", "citations", "sources"],
}
"""The schema of what `ask` returns."""
PASSAGES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "passages": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in ("title", "location", "place", "text")},
            },
        },
        "note": {"type": "string"},
    },
    "required": ["passages", "note"],
}
"""The schema of what `search` and `open` return."""
TOOLS: dict[str, type[AskArguments | SearchArguments | OpenArguments]] = {
    "ask": AskArguments,
    "search": SearchArguments,
    "open": OpenArguments,
}


@dataclass(frozen=True, slots=True)
class McpOptions:
    settings: Mapping[str, Any]
    http: int | None = None


def mcp(options: McpOptions, shell: Shell) -> int:
    require()
    return asyncio.run(_serve(shell.load_settings(options.settings), options.http, shell))


async def _serve(settings: Settings, port: int | None, shell: Shell) -> int:
    working = asyncio.current_task()
    assert working is not None  # noqa: S101 - asyncio.run has made it
    loop = asyncio.get_running_loop()
    before = signal.signal(signal.SIGTERM, lambda *_: loop.call_soon_threadsafe(working.cancel))
    try:
        async with Hira(settings=settings) as client:
            if line := announce_model(await client.open_session()):
                shell.remark(line)
            served = server(client, shell.folder)
            await (_over_stdio(served) if port is None else _over_http(served, port, shell))
    except asyncio.CancelledError:
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)
    return OK


@dataclass(slots=True)
class Reading:
    """Searches and opens what the `client` reads, each call with separate tools."""

    client: Hira
    _shown: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    async def read(self, name: str, arguments: dict[str, str], docs: tuple[Path, ...] | None = None) -> Observation:
        """Return what the tool `search` or `browse` reads. Raises `HiraError` if it fails."""
        session = await self.client.open_session()
        if docs is not None:
            session = await session.with_docs(docs)
        context = Context(session.options.deps, "mcp", " ".join(self._shown))
        async with session.toolset.toolbox(context, (), Events(), budget_of(session.settings)) as tools:
            tool = tools.search if name == "search" else tools.browse
            if tool is None:
                raise ToolError("there is nothing to read; give the server documents (--docs) or a search (--search)")
            try:
                observation = await tool.call(arguments)
            except HiraError:
                raise
            except Exception as error:  # somebody's retriever
                raise ToolError(f"{name} failed: {type(error).__name__}: {error}") from error
        self._shown.extend(passage.source.location for passage in observation.passages)
        return observation


def server(client: Hira, folder: Path) -> "Server[Any]":
    """Return the MCP server that asks this `Hira`. Relative paths of documents start at `folder`."""
    from mcp import MCPError
    from mcp.server.lowlevel import Server
    from mcp_types import INVALID_PARAMS, ListToolsResult

    assert client.settings is not None  # noqa: S101 - it was made with settings
    settings, reading = client.settings, Reading(client)

    async def list_tools(
        _context: "ServerRequestContext[Any]", _params: "PaginatedRequestParams | None"
    ) -> "ListToolsResult":
        toolset = (await client.open_session()).toolset
        readable = bool(toolset.index or toolset.backends)
        reads = [*(["search"] if readable or toolset.retrievers else []), *(["open"] if readable else [])]
        return ListToolsResult(tools=describe_tools(settings, reads))

    async def call_tool(context: "ServerRequestContext[Any]", params: "CallToolRequestParams") -> "CallToolResult":
        if params.name not in TOOLS:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name!r}; the tools are {', '.join(TOOLS)}")
        reported = 0

        async def tell(text: str) -> None:
            nonlocal reported
            reported += 1
            await context.session.report_progress(reported, None, text)

        try:
            given = TOOLS[params.name].model_validate(params.arguments or {})
            if isinstance(given, AskArguments):
                answer = await _finish(_answer(client, given, find_docs(given.docs, settings, folder), tell))
                text = output.text(answer)
                if answer.status != "answered":
                    text = f"{text}\n\nStatus: {answer.status.replace('_', ' ')}. {answer.error}".strip()
                return make_result(text, json.loads(format_json(answer.json())))
            if isinstance(given, SearchArguments):
                docs = find_docs(given.docs, settings, folder)
                found = await reading.read("search", {"query": given.query}, docs)
            else:
                found = await reading.read("browse", {"url": given.location, "intent": given.intent})
            return make_result(*format_passages(found))
        except ValidationError as error:
            first = error.errors()[0]
            return make_result(f"{'.'.join(map(str, first['loc']))}: {uncapitalise(first['msg'])}")
        except HiraError as error:
            return make_result(str(error))

    return Server("hira", version=hira.__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def describe_tools(settings: Settings, reads: Sequence[str]) -> "list[Tool]":
    """Describe `ask` and those named in `reads`. They have the argument `docs` only if the server has documents."""
    from mcp_types import Tool

    named = ", ".join(path.name for path in settings.docs)
    purposes = {
        "ask": "Research a question in several steps and answer it with citations that were checked against the "
        + (f"sources. It searches these documents: {named}." if named else "sources."),
        "search": "Find passages with their titles, locations and places, without an answer. Cite a passage by its "
        "location and place.",
        "open": "Read a document or page that a search showed, of a long one the passages that fit an intent.",
    }
    tools = []
    for name in ("ask", *reads):
        schema = TOOLS[name].model_json_schema()
        schema = {key: schema[key] for key in ("type", "properties", "required", "additionalProperties")}
        if not settings.docs:
            schema["properties"].pop("docs", None)
        if name == "ask":
            schema["properties"]["workflow"]["enum"] = ["", *WORKFLOWS]
        title, returned = ("Ask hira", ANSWER) if name == "ask" else (None, PASSAGES)
        about = purposes[name]
        tools.append(Tool(name=name, title=title, description=about, input_schema=schema, output_schema=returned))
    return tools


def find_docs(names: Sequence[str], settings: Settings, folder: Path) -> tuple[Path, ...] | None:
    """Return the documents and folders that a call names, by paths that are absolute or relative to `folder` or a root;
    None if it names none. Raises `UsageError` for those of nobody.

    The caller is usually a model, and may have been manipulated: nothing outside the server's documents is read.
    """
    roots, docs = settings.docs, []
    for name in names:
        paths = ((start / name).resolve() for start in (folder, *roots))
        offered = (path for path in paths if path.exists() and any(path.is_relative_to(doc.resolve()) for doc in roots))
        if (path := next(offered, None)) is None:
            where = f"documents: {', '.join(map(str, roots)) or 'none'}"
            raise UsageError(f"{name!r} is not one of the server's documents", where=where)
        docs.append(path)
    return tuple(docs) or None


async def _answer(client: Hira, question: AskArguments, docs: tuple[Path, ...] | None, tell: Tell) -> Answer:
    """Return the answer, and report the run's progress in lines. Raises `UsageError` for an unknown workflow."""
    async with AsyncExitStack() as stack:
        if workflow := question.workflow:
            if workflow not in WORKFLOWS:
                raise UsageError(f"unknown workflow {workflow!r}", fix=did_you_mean(workflow, WORKFLOWS))
            assert client.settings is not None  # noqa: S101 - it was made with settings
            changed = client.settings.with_values({"workflow": workflow}, "the call")
            client = await stack.enter_async_context(Hira(settings=changed))
        run = client.stream(question.question, docs=docs)
        events: Any = aiter(run)
        async with aclosing(events):
            async for event in events:
                if line := describe_event(event):
                    await tell(brief(line))
    if run.failure and not run.answer.text:
        raise run.failure
    return run.answer


async def _finish(work: Coroutine[Any, Any, Answer]) -> Answer:
    """The result of the work. A caller that gives up ends it, and what the work has open is closed in peace: the
    protocol's cancellation would otherwise cut every step of the closing as well."""
    import anyio

    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        raise


def format_passages(observation: Observation) -> tuple[str, dict[str, Any]]:
    """Return the passages as text and as structure, with their locations and, if known, their places ("p. 12")."""
    passages = []
    blocks = []
    for passage in observation.passages:
        title, text, place = clean(passage.source.title), clean(passage.text), passage.source.find_place("")
        passages.append({"title": title, "location": passage.source.location, "place": place, "text": text})
        blocks.append(f"{title} — {', '.join(filter(None, (passage.source.location, place)))}\n{text}")
    note = clean(observation.text)
    return "\n\n".join(filter(None, [*blocks, note])), {"passages": passages, "note": note}


def make_result(text: str, structured: dict[str, Any] | None = None) -> "CallToolResult":
    """Return a result as text and as structure; without a structure the call has failed."""
    from mcp_types import CallToolResult, TextContent

    words = TextContent(type="text", text=text)
    return CallToolResult(content=[words], structured_content=structured, is_error=structured is None)


async def _over_stdio(served: "Server[Any]") -> None:
    from mcp.server.stdio import stdio_server

    wire = os.dup(sys.stdin.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())  # what runs below reads no message of the client's
    os.close(nothing)
    lines: Any = _lines(wire)
    try:
        async with aclosing(lines), stdio_server(lines) as (read, write):
            await served.run(read, write, served.create_initialization_options())
    except* BrokenPipeError:
        pass  # the client reads no more


async def _lines(wire: int) -> AsyncIterator[str]:
    """Yield the lines of a descriptor. A daemon thread waits for the next one when the server ends: the protocol's own
    reader would be awaited, so that Ctrl-C had no effect before the client's next message."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        with suppress(RuntimeError), os.fdopen(wire, "rb") as file:  # the loop has been closed
            while (line := file.readline()).endswith(b"\n"):  # a client that leaves may leave half a line
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, name="mcp stdin", daemon=True).start()
    while line := await lines.get():
        yield line.decode("utf-8", "replace")


async def _over_http(served: "Server[Any]", port: int, shell: Shell) -> None:
    import uvicorn

    from hira.server.connections import limit_connections

    try:
        listening = socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on port {port}: {error}", fix="name another with --http PORT") from None
    with listening:
        app = served.streamable_http_app(streamable_http_path=PATH, host=HOST)
        options: dict[str, Any] = {"log_level": "error", "log_config": None, "timeout_graceful_shutdown": LEAVING}
        shell.remark(f"MCP server at http://{HOST}:{listening.getsockname()[1]}{PATH}; Ctrl-C ends it")
        await uvicorn.Server(uvicorn.Config(app, **options, **limit_connections())).serve(sockets=[listening])
