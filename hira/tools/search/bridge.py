"""Search services that litellm knows, named `litellm:<provider>`: for those that hira has no adapter of its own for."""

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hira.errors import ToolError
from hira.tools.search.hit import Backend
from hira.tools.search.line import SECONDS, Unusable
from hira.tools.search.service import Found, Service
from hira.untrusted import clean

if TYPE_CHECKING:
    import httpx


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
            raise ToolError(f"{name} did not answer within {SECONDS:g} seconds") from None
        except Exception as error:  # noqa: BLE001 - litellm raises what its providers raise; it is told, and another asked
            refused = getattr(error, "status_code", 0) in {401, 403} or "api key" in str(error).lower()
            kind = Unusable if refused else ToolError
            why = " ".join(str(error).split())
            why = clean(why.replace(key, "…") if key else why)[:200]
            raise kind(f"{name} failed: {why}") from None
        return [Found(one.title, one.url, one.snippet, one.date) for one in told.results]

    return Service(name, ask)
