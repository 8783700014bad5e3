"""A search service made of one function: it asks, this turns what came into hits."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from hira.errors import ToolDown
from hira.tools.search.hit import Hit, canonical, plain


class Found(NamedTuple):
    """A result as a service words it; markup is removed later."""

    title: object
    url: object
    snippet: object
    date: object = ""


Ask = Callable[[str, int], Awaitable[Iterable[Found]]]


@dataclass(frozen=True, slots=True)
class Service:
    """A `Backend` whose `ask` knows the wire form of one service."""

    name: str
    ask: Ask

    async def search(self, query: str, n: int) -> list[Hit]:
        try:
            found = list(await self.ask(query, n))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError):
            raise ToolDown(f"{self.name} answered in a form that hira does not read") from None
        hits = [
            Hit(plain(one.title) or str(one.url), str(one.url), plain(one.snippet), 0, self.name, str(one.date or ""))
            for one in found
            if canonical(str(one.url or ""))
        ]
        return [
            Hit(hit.title, hit.url, hit.snippet, rank, hit.backend, hit.date) for rank, hit in enumerate(hits[:n], 1)
        ]
