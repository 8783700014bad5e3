"""A search service made of one function: it asks, this turns what came into hits."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from hira.core.errors import ToolDown
from hira.core.sanitize import clip_title
from hira.tools.addresses import LONGEST
from hira.tools.search.hit import Hit, canonical, plain, whole


class Found(NamedTuple):
    """A result as a service words it; markup is removed later."""

    title: object
    url: object
    snippet: object
    date: object = ""


Ask = Callable[[str, int], Awaitable[Iterable[Found]]]
_UNREAD = (KeyError, TypeError, AttributeError, IndexError, ValueError)


def each(results: Iterable[Any], form: Callable[[Any], Found]) -> list[Found]:
    """The results that can be read. One that lacks something is left out; where none can be read, that is raised."""
    found: list[Found] = []
    wrong: Exception | None = None
    for one in results:
        try:
            found.append(form(one))
        except _UNREAD as error:
            wrong = error
    if wrong and not found:
        raise wrong
    return found


@dataclass(frozen=True, slots=True)
class Service:
    """A `Backend` whose `ask` knows the wire form of one service."""

    name: str
    ask: Ask

    async def search(self, query: str, n: int) -> list[Hit]:
        try:
            found = list(await self.ask(query, n))
        except _UNREAD:
            raise ToolDown(f"{self.name} answered in a format that hira cannot read") from None
        hits = [
            Hit(clip_title(plain(one.title) or url), url, plain(one.snippet), 0, self.name, whole(one.date))
            for one in found
            if len(url := whole(one.url)) <= LONGEST and canonical(url)
        ]
        return [
            Hit(hit.title, hit.url, hit.snippet, rank, hit.backend, hit.date) for rank, hit in enumerate(hits[:n], 1)
        ]
