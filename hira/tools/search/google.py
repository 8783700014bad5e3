"""Google with its parameters and its boxes, by serper.dev: the search of MATPO's worker (2510.04678, appendix A)."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from hira.core.errors import ToolError
from hira.core.tool import Observation, Tool, tool
from hira.tools import LONGEST_QUERY
from hira.tools.search.service import Backend, Form
from hira.tools.search.tool import show_hits

NAME = "serper_google"
MOST = 100


def _ask(query: str, n: int) -> Any:
    """Return the body for a query, or for the parameters that `google_search` writes as JSON."""
    return json.loads(query) if query.startswith("{") else {"q": query, "num": n}


def _read(told: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the knowledge graph, the results, the questions that people also ask, and the related searches."""
    if graph := told.get("knowledgeGraph"):
        facts = "; ".join(f"{name}: {value}" for name, value in (graph.get("attributes") or {}).items())
        parts = (graph.get("type"), graph.get("description"), facts)
        text = ". ".join(part.rstrip(".") for part in parts if part)
        place = graph.get("descriptionLink") or graph.get("website") or _locate(graph["title"])
        yield {"title": f"Knowledge graph: {graph['title']}", "link": place, "snippet": text}
    yield from told["organic"]
    for asked in told.get("peopleAlsoAsk") or ():
        title = f"People also ask: {asked['question']}"
        yield {"title": title, "link": asked.get("link"), "snippet": f"{asked['question']} {asked.get('snippet', '')}"}
    for related in told.get("relatedSearches") or ():
        yield {"title": "Related search", "link": _locate(related["query"]), "snippet": related["query"]}


def _locate(query: str) -> str:
    return f"https://www.google.com/search?{urlencode({'q': query})}"


FORM = Form(
    "https://google.serper.dev/search", _ask, _read, ("title", "link", "snippet", "date"), post=True, key="X-API-KEY"
)


def google_tool(backend: Backend, *, seen: set[str] | None = None) -> Tool:
    """Create the tool "google_search" for one run. URLs of hits are added to `seen`, so that `browse` may open them."""
    from pydantic import Field

    async def google_search(  # noqa: PLR0913, PLR0917 - the paper's own arguments
        q: Annotated[str, Field(description="the query")],
        gl: Annotated[str, Field(description="country, as two letters")] = "us",
        hl: Annotated[str, Field(description="language, as two letters")] = "en",
        location: Annotated[str, Field(description='place, such as "Austin, Texas, United States"')] = "",
        num: Annotated[int, Field(description="number of results", ge=1, le=MOST)] = 10,
        tbs: Annotated[str, Field(description='time: "qdr:d", "qdr:w", "qdr:m", "qdr:y" for the last day … year')] = "",
        page: Annotated[int, Field(description="page of results", ge=1)] = 1,
        autocorrect: Annotated[bool, Field(description="correct the spelling of the query")] = True,  # noqa: FBT002 - a tool's argument
    ) -> Observation:
        """Search Google. Returns results, the knowledge graph, questions that people also ask, and related searches."""
        q = " ".join(q.split())
        if not q or len(q) > LONGEST_QUERY:
            raise ToolError(f"the query must have 1 to {LONGEST_QUERY} characters; write key words")
        wide = {"gl": gl, "hl": hl, "location": location, "num": num, "tbs": tbs, "page": page}
        parameters = {"q": q, **{name: value for name, value in wide.items() if value}, "autocorrect": autocorrect}
        hits = await backend.search(json.dumps(parameters, ensure_ascii=False), MOST)
        return show_hits(hits, "" if hits else "nothing found; try other words", len(hits), seen)

    return tool(google_search, pure=True)
