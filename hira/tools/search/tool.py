"""The tool "search": asks the first service that answers, merges hits of one place, and shows the hits."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Annotated

from hira.core.errors import ToolDown, ToolError
from hira.core.events import Notice
from hira.core.sanitize import clean
from hira.core.tool import Observation, Passage, Tool, tool
from hira.evidence import Source
from hira.tools.addresses import canonicalise_url
from hira.tools.search.service import Backend, Hit, Unusable
from hira.tools.toolbox import LONGEST_QUERY

# Hosts that publish the answers of benchmarks; MATPO keeps them out of its training and evaluation.
LEAKING = ("huggingface.co", "hf.co", "hf-mirror.com")


class FallbackSearch:
    """Services in order of preference; if one fails, the next is asked, and a notice reports it."""

    def __init__(self, backends: Sequence[Backend], on_notice: Callable[[Notice], object] = lambda _: None) -> None:
        if not backends:
            raise ValueError("a search needs at least one service")
        self.backends = list(backends)
        self.on_notice = on_notice
        self._unusable: dict[int, str] = {}

    async def search(self, query: str, n: int) -> list[Hit]:
        """Return the hits of the first service that answers."""
        failures: list[str] = []
        down = True
        for at, backend in enumerate(self.backends):  # two may have the same name
            if at in self._unusable:
                failures.append(self._unusable[at])
                continue
            try:
                hits = await backend.search(query, n)
            except ToolError as error:
                failures.append(error.what)
                down = down and isinstance(error, ToolDown)
                if isinstance(error, Unusable):
                    self._unusable[at] = error.what
                self._tell(at, error.what)
                continue
            return hits
        raise (ToolDown if down else ToolError)("no search service answers: " + "; ".join(failures))

    def _tell(self, failed: int, why: str) -> None:
        rest = range(failed + 1, len(self.backends))
        following = next((self.backends[at].name for at in rest if at not in self._unusable), "")
        self.on_notice(Notice(f"search: {why}" + (f"; {following} is used instead" if following else "")))


def search_tool(
    backends: Sequence[Backend],
    *,
    top: int = 10,
    seen: set[str] | None = None,
    on_notice: Callable[[Notice], object] = lambda _: None,
) -> Tool:
    """Create the tool "search" for one run over services in order of preference; if one fails, the next one answers.

    URLs of hits are added to `seen`, so that `browse` may open them.
    """
    from pydantic import Field

    chain = FallbackSearch(backends, on_notice)

    async def search(
        query: Annotated[str, Field(description="what to look for, as one would type it into a search engine")],
    ) -> Observation:
        """Search the web. Returns titles, addresses and short extracts of the best pages; open a page to read it."""
        query = " ".join(query.split())
        if not query:
            raise ToolError("the query is empty; write what to look for")
        if len(query) > LONGEST_QUERY:
            sent = f"at most {LONGEST_QUERY} are sent; shorten it to key words"
            raise ToolError(f"the query has {len(query)} characters, {sent}")
        hits = merge_hits(await chain.search(query, top))[:top]
        if seen is not None:
            seen.update(canonicalise_url(hit.url) for hit in hits)
        note = "" if hits else f"nothing found; try other words for {clean(query)!r}"
        return Observation(note, tuple(map(_passage, hits)))

    made: Tool = tool(search, pure=True)
    return made


def scholar_tool(
    backends: Sequence[Backend],
    *,
    top: int = 5,
    seen: set[str] | None = None,
    on_notice: Callable[[Notice], object] = lambda _: None,
) -> Tool:
    """Create the tool "scholar": the same over services of scholarly works, with `top` hits per query (MARS, 2.1)."""
    described = (
        "Search scholarly works. Returns titles, addresses and abstracts of those that fit best; open one to read it."
    )
    return replace(
        search_tool(backends, top=top, seen=seen, on_notice=on_notice), name="scholar", description=described
    )


def merge_hits(hits: Iterable[Hit]) -> list[Hit]:
    """Return one hit per place, in the order of the first; of two snippets the longer."""
    places: dict[str, Hit] = {}
    for hit in hits:
        known = places.setdefault(canonicalise_url(hit.url), hit)
        if len(hit.snippet) > len(known.snippet):
            places[canonicalise_url(hit.url)] = replace(known, snippet=hit.snippet)
    return list(places.values())


def _passage(hit: Hit) -> Passage:
    text = hit.snippet or hit.title
    return Passage(Source(hit.url, hit.title, text, "hit"), f"{hit.date[:10]}: {text}" if hit.date else text)
