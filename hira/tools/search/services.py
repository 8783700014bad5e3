"""The search services of the whole web and of scholarly works, each with its wire form; most need a key."""

import asyncio
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from hira.core.bm25 import words
from hira.core.errors import ToolDown, ToolError, UsageError, did_you_mean
from hira.core.sanitize import clean
from hira.tools.search.google import FORM as GOOGLE_FORM
from hira.tools.search.google import NAME as GOOGLE
from hira.tools.search.service import SECONDS, Backend, Fields, Form, Hit, HostPace, Line, Service, Unusable, make_hit
from hira.tools.search.vendor import NAME as VENDOR

if TYPE_CHECKING:
    import httpx

_ENGINES = "duckduckgo,brave,mojeek,startpage,yahoo"  # its default puts encyclopedias first
_WORDS = 50  # Brave accepts no longer query
_TERMS = 8
_PAPER = ("title", "url", "abstract", "publicationDate", "year", "openAccessPdf")
_ATOM = "{http://www.w3.org/2005/Atom}"
_ATOM_PARTS = ("title", "id", "summary", "published")


def _read_searxng(told: Any) -> Any:
    if not told["results"] and (silent := [str(engine[0]) for engine in told.get("unresponsive_engines") or ()]):
        raise ToolDown(f"searxng found nothing because its engines do not answer: {clean(', '.join(silent)[:200])}")
    return told["results"]


def _read_mediawiki(told: Any) -> Any:
    if "error" in told:
        raise ToolError(f"mediawiki refused the query: {clean(str(told['error'].get('info', ''))[:200])}")
    return told["query"]["search"]


def _locate_article(title: str) -> str:
    """Return the address of an article, relative to the API, empty for a title that would lead out of the wiki."""
    outside = not {".", ".."}.isdisjoint(title.split("/"))
    return "" if outside else f"../wiki/{quote(title.replace(' ', '_'))}"


def _read_optional(name: str) -> Callable[[Any], Any]:
    """Return the reader of results that are missing if nothing was found."""
    return lambda told: told.get(name) or ()


def _ask_serper(query: str, n: int) -> dict[str, Any]:
    return {"q": query, "num": n}


def _order_words(record: Mapping[str, Any]) -> str:
    """Restore the abstract, which OpenAlex returns as word → places."""
    index = record.get("abstract_inverted_index") or {}
    return " ".join(word for _, word in sorted((place, word) for word, places in index.items() for place in places))


def _ask_arxiv(query: str, n: int) -> dict[str, Any]:
    """All words of the query must occur."""
    terms = [word for word in query.replace('"', " ").split() if words(word)][:_TERMS] or [query]
    return {"search_query": " AND ".join(f'all:"{term}"' for term in terms), "max_results": n}


def _parse_atom(text: str) -> list[dict[str, str | None]]:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("entities are not expanded")
    try:
        entries = ET.fromstring(text).iter(f"{_ATOM}entry")  # noqa: S314 - entities were ruled out above
    except ET.ParseError as error:
        raise ValueError("not XML") from error
    return [{part: entry.findtext(_ATOM + part) for part in _ATOM_PARTS} for entry in entries]


def _join_date(record: Mapping[str, Any]) -> str:
    parts = ((record.get("issued") or {}).get("date-parts") or [[]])[0]
    return "-".join(f"{part:02d}" for part in parts if part)


def _describe_publication(record: Mapping[str, Any]) -> str:
    return f"{record.get('snippet') or ''} ({(record.get('publication_info') or {}).get('summary', '')})"


def _locate_article_of_pmc(record: Mapping[str, Any]) -> str:
    """Return the address of the free full text, preferably as PDF, which has pages, or else of the abstract."""
    links = (record.get("fullTextUrlList") or {}).get("fullTextUrl") or ()
    free = {link.get("documentStyle"): link.get("url") for link in links if link.get("availabilityCode") in _FREE_TEXT}
    abstract = f"https://europepmc.org/article/{record['source']}/{record['id']}"
    if record["source"] == "MED":  # its page needs no script
        abstract = f"https://pubmed.ncbi.nlm.nih.gov/{record['id']}/"
    return str(free.get("pdf") or free.get("html") or free.get("doi") or abstract)


_FREE_TEXT = frozenset({"OA", "F"})
_TAKEN_BACK = frozenset({"retraction", "withdrawal", "removal"})
_PAPER_FIELDS: Fields = (
    "title",
    lambda record: (record.get("openAccessPdf") or {}).get("url") or record["url"],
    "abstract",
    lambda record: record.get("publicationDate") or record.get("year"),
)


def _find_within(name: str, field: str | Callable[[Any], object]) -> Callable[[Any], object]:
    """Return the function that reads a field of the work that a record holds under this name."""
    return lambda record: record[name].get(field) if isinstance(field, str) else field(record[name])


def _ask_papers(path: str, ask: Callable[[str, int], dict[str, Any]], fields: Fields, unknown: str = "") -> Form:
    """Return a form of Semantic Scholar, where all users without a key share one allowance."""
    url = f"https://api.semanticscholar.org/graph/v1/paper/{path}"
    refused = "its key was not accepted; check it"
    return Form(url, ask, _read_optional("data"), fields, (1.0, 1), refused, unknown, key="x-api-key", key_needed=False)


_GOOGLE = ("title", "link", "snippet", "date")
_FREE = "it blocks requests for a while"
# Google's results by serper.dev and serpapi.com, the indexes of Brave and Exa, Wikipedia or any other wiki
_WEB = {
    "searxng": Form(  # the user's own server, which sets the length of a page of results
        "/search",
        lambda query, _: {"q": query, "format": "json"},
        _read_searxng,
        ("title", "url", "content", "publishedDate"),
        refused="it does not return JSON; add `json` to `search.formats` in its settings.yml",
    ),
    "serper": Form("https://google.serper.dev/search", _ask_serper, "organic", _GOOGLE, post=True, key="X-API-KEY"),
    "tavily": Form(
        "https://api.tavily.com/search",
        lambda query, n: {"query": query, "max_results": min(n, 20)},
        "results",
        ("title", "url", "content", "published_date"),
        post=True,
        key="Authorization",
    ),
    "brave": Form(
        "https://api.search.brave.com/res/v1/web/search",
        lambda query, n: {"q": " ".join(query.split()[:_WORDS]), "count": min(n, 20)},
        lambda told: (told.get("web") or {}).get("results") or (),
        ("title", "url", "description", "page_age"),
        pace=(1.0, 1),
        key="X-Subscription-Token",
        headers={"Accept": "application/json"},
    ),
    "exa": Form(
        "https://api.exa.ai/search",
        lambda query, n: {"query": query, "numResults": n, "contents": {"highlights": True}},
        "results",
        ("title", "url", lambda record: " … ".join(record.get("highlights") or ()), "publishedDate"),
        post=True,
        key="x-api-key",
    ),
    "serpapi": Form(
        "https://serpapi.com/search.json",
        lambda query, n: {"engine": "google", "q": query, "num": n},
        _read_optional("organic_results"),
        _GOOGLE,
        key="?api_key",
    ),
    "jina": Form(
        "https://s.jina.ai/",
        lambda query, _: {"q": query},
        "data",
        ("title", "url", "description", "date"),
        key="Authorization",
        headers={"Accept": "application/json", "X-Respond-With": "no-content"},
    ),
    "mediawiki": Form(
        "https://en.wikipedia.org/w/api.php",
        lambda query, n: {
            "action": "query",
            "list": "search",
            "srsearch": query[:300],
            "srlimit": min(n, 50),
            "format": "json",
            "formatversion": 2,
        },
        _read_mediawiki,
        ("title", lambda record: _locate_article(record["title"]), "snippet", "timestamp"),
        pace=(0.0, 3),
        refused="it needs a contact; set one",
    ),
    GOOGLE: GOOGLE_FORM,
}
_WORKS = {
    "serper_scholar": Form(
        "https://google.serper.dev/scholar",
        _ask_serper,
        "organic",
        ("title", "link", "snippet", "year"),
        post=True,
        key="X-API-KEY",
    ),
    "serpapi_scholar": Form(
        "https://serpapi.com/search.json",
        lambda query, n: {"engine": "google_scholar", "q": query, "num": min(n, 20)},
        _read_optional("organic_results"),
        ("title", "link", _describe_publication),
        key="?api_key",
    ),
    "openalex": Form(  # a free key allows a thousand searches a day, without one only a few are allowed
        "https://api.openalex.org/works",
        lambda query, n: {"search": query, "per_page": min(n, 100)},
        "results",
        (
            "display_name",
            lambda record: (
                (record.get("open_access") or {}).get("oa_url")
                or (record.get("primary_location") or {}).get("landing_page_url")
                or record.get("doi")
                or record["id"]
            ),
            _order_words,
            "publication_date",
        ),
        refused="its key was not accepted; a free one is given at openalex.org",
        retracted=lambda record: record.get("is_retracted") is True,
        key="?api_key",
        key_needed=False,
    ),
    "semantic_scholar": _ask_papers(
        "search",
        lambda query, n: {"query": query, "limit": min(n, 100), "fields": ",".join(_PAPER)},
        _PAPER_FIELDS,
    ),
    "europepmc": Form(  # all of PubMed, preprints, and the full texts of PubMed Central
        "https://www.ebi.ac.uk/europepmc/webservices/rest/search",
        lambda query, n: {"query": query, "pageSize": min(n, 100), "resultType": "core", "format": "json"},
        lambda told: told["resultList"]["result"],
        ("title", _locate_article_of_pmc, "abstractText", "firstPublicationDate"),
        pace=(0.1, 3),
        refused=_FREE,
        retracted=lambda record: (
            "retracted publication" in map(str.lower, (record.get("pubTypeList") or {}).get("pubType") or ())
        ),
        contact="email",
    ),
    "arxiv": Form(
        "https://export.arxiv.org/api/query",
        _ask_arxiv,
        iter,
        _ATOM_PARTS,
        pace=(3.0, 1),
        refused=_FREE,
        parse=_parse_atom,
    ),
    "crossref": Form(  # requests with a contact get better service
        "https://api.crossref.org/works",
        lambda query, n: {"query": query, "rows": n},
        lambda told: told["message"]["items"],
        (lambda record: (record.get("title") or [""])[0], "URL", "abstract", _join_date),
        pace=(0.0, 3),
        refused=_FREE,
        retracted=lambda record: any(update.get("type") in _TAKEN_BACK for update in record.get("updated-by") or ()),
        contact="mailto",
    ),
}
_CITATIONS = {
    "semantic_scholar_match": _ask_papers(
        "search/match",
        lambda query, _: {"query": query, "fields": "title"},
        ("title", lambda record: f"https://www.semanticscholar.org/paper/{record['paperId']}", lambda _: ""),
        unknown="knows no work of this title; give its DOI or arXiv id",
    )
} | {
    f"semantic_scholar_{direction}": _ask_papers(
        f"{{}}/{direction}",
        lambda _, n: {"limit": min(n, 1000), "fields": ",".join(_PAPER)},
        tuple(_find_within(name, field) for field in _PAPER_FIELDS),
        unknown="does not know this work; check its DOI or arXiv id, or give its title",
    )
    for direction, name in (("citations", "citingPaper"), ("references", "citedPaper"))
}
"""The parts of `follow_citations`: the work of a title, the works that cite a work, and those that it cites."""
SCHOLARLY = frozenset(_WORKS)
BACKENDS = (*_WEB, VENDOR, "ddgs", *_WORKS)
CITATIONS = tuple(_CITATIONS)


def open_backend(
    name: str,
    client: "httpx.AsyncClient",
    *,
    key: str = "",
    base_url: str = "",
    contact: str = "",
    paces: dict[str, HostPace] | None = None,
) -> Backend:
    """Open the service of that name, or `litellm:<provider>` for one that litellm knows. `paces` has the rate of
    requests to each host, for backends that ask the same one.

    Raises `UsageError` for an unknown name, and for a missing key, address or library.
    """
    base_url = base_url.rstrip("/")
    if name.startswith("litellm:"):
        return _open_litellm(name, key, base_url)
    if name == "ddgs":
        return _open_ddgs()
    form = (_WEB | _WORKS | _CITATIONS).get(name)
    if form is None:
        raise UsageError(f"there is no search service {name!r}", fix=did_you_mean(name, BACKENDS))
    keyless = form.key and form.key_needed and not key
    if keyless or (form.url.startswith("/") and not base_url):
        what = "an API key" if keyless else "the address of its server"
        fix = "set it, or choose another with --search or search="
        raise UsageError(f"the search service {name!r} needs {what}", fix=fix)
    url = base_url + urlsplit(form.url).path if base_url else form.url
    pace = ({} if paces is None else paces).setdefault(urlsplit(url).netloc, HostPace(*form.pace))
    shown = "semantic_scholar" if name in _CITATIONS else name
    return Service(name, Line(shown, form, client, url, key, contact, pace).ask)


def _open_litellm(name: str, key: str, base_url: str) -> Backend:
    """Open one of litellm's search providers. Loading the library takes seconds."""
    from hira.policies.litellm import load

    library = load()
    place = {"api_key": key or None, "api_base": base_url or None}

    async def ask(query: str, n: int) -> list[Hit]:
        provider = name.partition(":")[2]
        try:
            async with asyncio.timeout(SECONDS):
                told = await library.asearch(query, provider, max_results=n, timeout=SECONDS, **place)
        except TimeoutError:
            raise ToolDown(f"{name} did not answer within {SECONDS:g} seconds") from None
        except Exception as error:  # noqa: BLE001 - litellm raises any error of its providers; the next service is asked
            refused = getattr(error, "status_code", 0) in {401, 403} or "api key" in str(error).lower()
            kind = Unusable if refused else ToolDown
            why = " ".join(str(error).split())
            why = clean(why.replace(key, "…") if key else why)[:200]
            raise kind(f"{name} failed: {why}") from None
        return [make_hit(result.title, result.url, result.snippet, result.date) for result in told.results[:n]]

    return Service(name, ask)


def _open_ddgs() -> Backend:
    """Open the public pages of several search engines, read by the library ddgs. Needs no key.

    The engines do not invite programs to these pages, so it is used only on request.
    """
    try:
        library: Any = import_module("ddgs")  # no types to import: it is an extra
        failure: type[Exception] = import_module("ddgs.exceptions").DDGSException
    except ImportError:
        raise UsageError("the search service 'ddgs' needs the library ddgs", fix="pip install 'hira[ddgs]'") from None

    async def ask(query: str, n: int) -> list[Hit]:
        search = library.DDGS(timeout=int(SECONDS)).text
        try:
            records = await asyncio.to_thread(search, query, max_results=n, backend=_ENGINES)
        except failure as error:
            if "no results" in str(error).lower():
                return []
            raise ToolDown(f"ddgs failed: {clean(' '.join(str(error).split()))[:200]}") from None
        return [make_hit(record["title"], record["href"], record.get("body")) for record in records[:n]]

    return Service("ddgs", ask)
