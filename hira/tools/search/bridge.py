"""Search through other people's libraries, where they are installed: litellm's providers, and ddgs."""

import asyncio
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hira.core.errors import ToolDown, UsageError
from hira.core.sanitize import clean
from hira.tools.search.service import SECONDS, Backend, Found, Service, Unusable

if TYPE_CHECKING:
    import httpx

_ENGINES = "duckduckgo,brave,mojeek,startpage,yahoo"  # its own choice puts encyclopedias first


def litellm(client: "httpx.AsyncClient", *, provider: str, key: str = "", base_url: str = "") -> Backend:
    """One of litellm's search providers. `UsageError` if litellm is not installed; loading it takes seconds."""
    from hira.policies.litellm import load

    del client  # litellm has its own
    library = load()
    name = f"litellm:{provider}"

    async def ask(query: str, n: int) -> Iterable[Found]:
        place = {"api_key": key or None, "api_base": base_url or None}
        try:
            async with asyncio.timeout(SECONDS):
                told = await library.asearch(query, provider, max_results=n, timeout=SECONDS, **place)
        except TimeoutError:
            raise ToolDown(f"{name} did not answer within {SECONDS:g} seconds") from None
        except Exception as error:  # noqa: BLE001 - litellm raises what its providers raise; it is told, and another asked
            refused = getattr(error, "status_code", 0) in {401, 403} or "api key" in str(error).lower()
            kind = Unusable if refused else ToolDown
            why = " ".join(str(error).split())
            why = clean(why.replace(key, "…") if key else why)[:200]
            raise kind(f"{name} failed: {why}") from None
        return [Found(one.title, one.url, one.snippet, one.date) for one in told.results]

    return Service(name, ask)


def ddgs(client: "httpx.AsyncClient") -> Backend:
    """The public pages of several search engines, read by the library ddgs. Needs no key.

    The engines do not invite programs to these pages, which is why nobody is given this without asking for it.
    """
    try:
        library: Any = import_module("ddgs")  # no types to import: it is an extra
        failure: type[Exception] = import_module("ddgs.exceptions").DDGSException
    except ImportError:
        raise UsageError("the search service 'ddgs' needs the library ddgs", fix="pip install 'hira[ddgs]'") from None
    del client  # ddgs has its own

    async def ask(query: str, n: int) -> Iterable[Found]:
        def blocking() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = library.DDGS(timeout=int(SECONDS)).text(
                query, max_results=n, backend=_ENGINES
            )
            return found

        try:
            found = await asyncio.to_thread(blocking)
        except failure as error:
            if "no results" in str(error).lower():
                return []
            raise ToolDown(f"ddgs failed: {clean(' '.join(str(error).split()))[:200]}") from None
        return [Found(one["title"], one["href"], one.get("body")) for one in found]

    return Service("ddgs", ask)
