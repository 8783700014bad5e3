"""`search` and `open` of `hira mcp`: what hira itself reads, for agents that write their own answers."""

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from hira.api import Hira
from hira.core.errors import HiraError, ToolError
from hira.core.events import Events
from hira.core.sanitize import clean
from hira.core.tool import Context, Observation, Tool
from hira.runtime.session import budget_of

if TYPE_CHECKING:
    from hira.runtime.session import Session

REMEMBERED = 1_000
"""The latest locations that were shown; of the web, only these can be opened."""
SOME_DOCS = "paths of the server's documents to search (default: all)"


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
"""The schema of what both tools return."""


@dataclass(slots=True)
class Reading:
    """Searches and opens what the `client` reads, each call with separate tools."""

    client: Hira
    _shown: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    async def find_tools(self) -> list[str]:
        """Return the names of the tools that there is something to read with."""
        toolset = (await self.client.open_session()).toolset
        readable = bool(toolset.index or toolset.backends)
        return [*(["search"] if readable or toolset.retrievers else []), *(["open"] if readable else [])]

    async def search(self, query: str, docs: tuple[Path, ...] | None = None) -> dict[str, Any]:
        """Return passages that fit the query. Raises `HiraError` if the search fails."""
        session = await self.client.open_session()
        return await self._call(session if docs is None else await session.with_docs(docs), "search", {"query": query})

    async def open(self, location: str, intent: str = "") -> dict[str, Any]:
        """Return a document or page, of a long one the passages that fit the intent."""
        session = await self.client.open_session()
        return await self._call(session, "browse", {"url": location, "intent": intent})

    async def _call(self, session: "Session", name: str, arguments: dict[str, str]) -> dict[str, Any]:
        context = Context(session.options.deps, "mcp", " ".join(self._shown))
        toolset = session.toolset
        async with toolset.toolbox(context, (), Events(), budget_of(session.settings)) as tools:
            tool: Tool | None = getattr(tools, name)
            if tool is None:
                raise ToolError("there is nothing to read; give the server documents (--docs) or a search (--search)")
            try:
                observation = await tool.call(arguments)
            except HiraError:
                raise
            except Exception as error:  # somebody's retriever
                raise ToolError(f"{name} failed: {type(error).__name__}: {error}") from error
        self._shown.extend(passage.source.location for passage in observation.passages)
        return as_json(observation)


def as_json(observation: Observation) -> dict[str, Any]:
    """Return the passages, each with its location and, if it is known, its place ("p. 12")."""
    passages = [
        {
            "title": clean(passage.source.title),
            "location": passage.source.location,
            "place": passage.source.find_place(""),
            "text": clean(passage.text),
        }
        for passage in observation.passages
    ]
    return {"passages": passages, "note": clean(observation.text)}


def as_text(result: dict[str, Any]) -> str:
    """Return the passages as text, each after its title and location."""
    blocks = [
        f"{passage['title']} — {', '.join(filter(None, (passage['location'], passage['place'])))}\n{passage['text']}"
        for passage in result["passages"]
    ]
    return "\n\n".join(filter(None, [*blocks, result["note"]]))
