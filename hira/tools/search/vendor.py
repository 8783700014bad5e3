"""The web search of a model's vendor, over the Responses API: a model searches, and the pages it names are the hits.

The model's words about a page are shown but do not count as evidence: hira opens the page and checks claims against its
text.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hira.core.budget import Budget, CallNeed, Spending
from hira.core.errors import OutOfBudget, ToolDown, ToolError
from hira.core.policy import Usage
from hira.core.prices import Price
from hira.core.prompts import Prompt
from hira.core.sanitize import clean
from hira.tools.search.service import Backend, Form, Hit, HostPace, Line, Service
from hira.tools.search.tool import Cache, cache_search

if TYPE_CHECKING:
    import httpx

NAME = "openai"
ROLE = "search"
"""The role whose settings hold the model and its endpoint, and whose limits count its tokens."""
SECONDS = 100.0
READS = 8_000
"""Tokens: about what a model reads in one search."""
PROMPT = Prompt(__file__, "vendor")
_LINK = re.compile(r"\(?\[+[^\[\]]*\]+\([^()\s]*\)\)?")
_CAMPAIGN = re.compile(r"([?&])utm_source=openai(?:&|$)")
_LONGEST = 1_000
"""Characters of what the model says with a citation."""


@dataclass(frozen=True, slots=True)
class VendorSearch:
    """The search of one vendor, with the cache of its answers; the `budget` of a run pays for the tokens."""

    client: "httpx.AsyncClient"
    model: str
    base_url: str
    key: str = field(default="", repr=False)
    price: Price | None = None
    cache: Cache | None = None
    budget: Budget = field(default_factory=Budget)
    seconds: float = SECONDS
    name: str = NAME

    def for_run(self, budget: Budget) -> Backend:
        """Return the search that a run with this budget makes; a cached answer costs nothing."""
        mine = replace(self, budget=budget)
        return cache_search(mine, self.cache, f"{self.model} {self.base_url}") if self.cache else mine

    async def search(self, query: str, n: int) -> list[Hit]:
        """Return the pages that the model cites, then those that it only found. Raises `ToolError`."""
        used: list[Usage] = []

        def ask(query: str, n: int) -> dict[str, Any]:
            prompt = str(PROMPT.fill(query=query, count=n))
            sources = ["web_search_call.action.sources"]
            return {"model": self.model, "input": prompt, "tools": [{"type": "web_search"}], "include": sources,
                    "store": False}  # fmt: skip

        def read(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
            counts = told.get("usage") or {}
            cached = (counts.get("input_tokens_details") or {}).get("cached_tokens") or 0
            usage = Usage(1, counts.get("input_tokens") or 0, counts.get("output_tokens") or 0, cached)
            used.append(replace(usage, cost=self.price.of(usage)) if self.price else usage)
            return read_pages(told, self.model)

        refused = f"its key was not accepted; check OPENAI_API_KEY, or `api_key` of [roles.{ROLE}]"
        form = Form(f"{self.base_url.rstrip('/')}/responses", ask, read, ("title", "url", "said"), post=True,
                    key="Authorization", refused=refused, seconds=self.seconds)  # fmt: skip
        line = Line(NAME, form, self.client, form.url, self.key, "", HostPace())
        try:
            with Spending(self.budget, CallNeed(ROLE, READS, self.price)) as spending:
                try:
                    return [replace(hit, quoted=False) for hit in await Service(NAME, line.ask).search(query, n)]
                finally:
                    spending.usage = sum(used, Usage())
        except OutOfBudget as spent:
            raise ToolDown(f"{NAME} is not asked: {spent.what}") from None


def read_pages(told: Mapping[str, Any], model: str) -> list[Mapping[str, Any]]:
    """Return the pages of a response: title, URL and what the model `said` with the citation. Raises `ToolError`."""
    if error := told.get("error"):
        raise ToolDown(f"{NAME} failed: {clean(str(error.get('message')))[:200]}")
    items = told["output"]
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    searches = [item.get("action") or {} for item in items if item["type"] == "web_search_call"]
    pages = [page for part in parts for page in _read_cited(part)]
    if not pages and (refusal := next((part["refusal"] for part in parts if part["type"] == "refusal"), "")):
        raise ToolError(f"{NAME} refused the query: {clean(refusal)[:200]!r}; ask differently")
    if not (pages or searches):
        raise ToolDown(f"{NAME}: the model {model!r} did not search the web; name one that can in [roles.{ROLE}]")
    for action in searches:
        pages += [{"url": _drop_campaign(source["url"])} for source in (*(action.get("sources") or ()), action)
                  if source.get("url")]  # fmt: skip
    return pages


def _read_cited(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the cited pages of a part of the reply, each with the sentences of its paragraph up to the citation."""
    for note in part.get("annotations") or ():
        if note["type"] == "url_citation":
            text = part["text"][: note.get("end_index") or 0]
            said = _LINK.sub("", text.rpartition("\n")[2][-_LONGEST:])
            yield {"url": _drop_campaign(note["url"]), "title": note.get("title"), "said": said.strip("-*• ")}


def _drop_campaign(url: str) -> str:
    """Return the address without the mark of where the visitor comes from."""
    return _CAMPAIGN.sub(r"\1", url).rstrip("?&")
