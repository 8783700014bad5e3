"""A retriever of the user's own, such as a vector store: one function from a query to the passages that fit it."""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Annotated, Any

from hira.core.errors import UsageError
from hira.core.tool import Context, Observation, Passage, Tool, find_context, tool
from hira.evidence import Source

Retriever = Callable[..., Awaitable[Iterable[Source]] | Iterable[Source]]
"""Takes a query, after the run's `Context` if it wants that, and returns the passages that fit, best first."""
MOST = 50
LONGEST = 100_000
"""The passages of one search, and the characters of one; more are left out."""
_FIX = "return a list of hira.evidence.Source(location, title, text): docs/retriever.md"


def make_search_tool(retrieve: Retriever) -> Tool:
    """Return the tool "search" of a retriever. A plain function runs in a thread and may block.

    Raises:
        UsageError: It is no function of one query.
    """
    from pydantic import Field

    Query = Annotated[str, Field(description="a question or its key words")]  # noqa: N806 - a type
    called = retrieve if inspect.isroutine(retrieve) else getattr(retrieve, "__call__", None)  # noqa: B004 - an object may have the method
    if called is None:
        raise UsageError(f"`search` is neither names of services nor a function: {retrieve!r:.80}", fix=_FIX)
    context_name, deps = find_context(called)
    queries = [name for name in inspect.signature(called).parameters if name != context_name]
    if not queries:
        raise UsageError(f"the retriever {_name_of(retrieve)!r} takes no query", fix="write async def retrieve(query: str)")

    async def run(query: str, *context: Context) -> Observation:
        if inspect.iscoroutinefunction(called):
            sources = await called(*context, query)
        else:
            from anyio import to_thread

            sources = await to_thread.run_sync(partial(called, *context, query), abandon_on_cancel=True)
        return read_sources(sources, _name_of(retrieve), query)

    async def search(query: Query) -> Observation:
        """Search for passages."""
        return await run(query)

    async def search_in(context: Context, query: Query) -> Observation:
        """Search for passages."""
        return await run(query, context)

    return replace(tool(search_in if context_name else search, name="search", pure=True), deps=deps)


def read_sources(sources: Any, name: str, query: str) -> Observation:
    """Return what a retriever found as passages.

    Raises:
        UsageError: It is something other than sources with a location and a text.
    """
    if isinstance(sources, str | bytes) or not isinstance(sources, Iterable):
        raise UsageError(f"the retriever {name!r} returned {sources!r:.80}", fix=_FIX)
    found = list(islice(sources, MOST + 1))
    for source in found:
        if not isinstance(source, Source) or not (isinstance(source.text, str) and source.location):
            raise UsageError(f"the retriever {name!r} returned {source!r:.80} among its passages", fix=_FIX)
    if not found:
        return Observation(f"nothing found for {query!r}")
    note = f"only the first {MOST} passages are used" if len(found) > MOST else ""
    kept = [replace(source, text=source.text[:LONGEST]) for source in found[:MOST]]
    return Observation(note, tuple(Passage(source, source.text) for source in kept))


def _name_of(retrieve: object) -> str:
    return getattr(retrieve, "__name__", type(retrieve).__name__)
