"""A retriever of the user's own, such as a vector store: one function from a query to the passages that fit it."""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any

from hira.core.errors import UsageError
from hira.core.sanitize import printable
from hira.core.tool import Context, Observation, Passage, Tool, find_context, tool
from hira.evidence import Source

Retriever = Callable[..., Awaitable[Iterable[Source]] | Iterable[Source]]
"""Takes a query, after the run's `Context` if it wants that, and returns the passages that fit, best first."""
MOST = 20
"""The passages of one search; more are left out."""
LONGEST = 20_000
"""Characters of one passage that are kept; longer ones are cut."""
SHOWN = 1_000
"""Tokens of one passage that the model reads."""
_METHODS = ("search", "retrieve", "query", "invoke")
_FIX = "return a list of hira.evidence.Source(location, title, text): docs/retriever.md"


def make_search_tool(retrieve: Retriever) -> Tool:
    """Return the tool "search" of a retriever. A plain function runs in a thread and may block.

    Raises:
        UsageError: It is no function of one query.
    """
    from pydantic import Field

    if isinstance(retrieve, type) or not callable(retrieve):
        kind = f"the class {retrieve.__name__}" if isinstance(retrieve, type) else f"{retrieve!r:.80}"
        method = next((name for name in _METHODS if callable(getattr(retrieve, name, None))), "")
        fix = "write async def retrieve(query: str): docs/retriever.md"
        if method:
            fix = f"if its method takes a query, give that: search=store.{method}"
        raise UsageError(f"`search` must be a string or a function of a query, got {kind}", fix=fix)
    name = getattr(retrieve, "__name__", type(retrieve).__name__)
    called: Callable[..., Any] = retrieve if inspect.isroutine(retrieve) else retrieve.__call__  # type: ignore[operator]
    context_name, deps = find_context(called)
    try:
        inspect.signature(retrieve).bind(*([None] if context_name else []), "query")
    except TypeError as error:
        what = f"the retriever {name!r} cannot be called with a query alone: {error}"
        raise UsageError(what, fix="write async def retrieve(query: str)") from None
    is_async = inspect.iscoroutinefunction(retrieve) or inspect.iscoroutinefunction(called)
    Query = Annotated[str, Field(description="a question or its key words")]  # noqa: N806 - a type

    async def run(query: str, *context: Context) -> Observation:
        if is_async:
            return read_sources(await called(*context, query), name, query)
        from anyio import to_thread

        return await to_thread.run_sync(
            lambda: read_sources(called(*context, query), name, query), abandon_on_cancel=True
        )

    async def search(query: Query) -> Observation:
        """Search for passages."""
        return await run(query)

    async def search_in(context: Context, query: Query) -> Observation:
        """Search for passages."""
        return await run(query, context)

    made = tool(search_in if context_name else search, name="search", pure=True, shown=SHOWN)
    return replace(made, deps=deps)


def read_sources(sources: Any, name: str, query: str) -> Observation:
    """Return what a retriever returned as passages.

    Raises:
        UsageError: It is something other than sources with a location and a text.
    """
    if isinstance(sources, str | bytes) or not isinstance(sources, Iterable):
        raise UsageError(f"the retriever {name!r} returned {sources!r:.80}", fix=_FIX)
    first = list(islice(sources, MOST + 1))
    for source in first:
        texts = (source.location, source.title, source.text, source.date) if isinstance(source, Source) else (None,)
        if not (all(isinstance(text, str) for text in texts) and source.location.strip()):
            raise UsageError(f"the retriever {name!r} returned {source!r:.80} among its passages", fix=_FIX)
    if not first:
        return Observation(f"nothing found for {query!r}")
    note = f"only the first {MOST} passages are used" if len(first) > MOST else ""
    passages: list[Passage] = []
    for source in first[:MOST]:
        location = printable(source.location.strip())[:LONGEST]
        kept = replace(source, location=location, text=source.text[:LONGEST], id="")
        place = source.find_place("")  # named above the text, as in passages of documents
        passages.append(Passage(kept, f"({place})\n{kept.text}" if place else kept.text))
    return Observation(note, tuple(passages))
