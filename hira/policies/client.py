"""The httpx client under the SDK: one endpoint, one kind of request, as little as that needs."""

from typing import Any

import httpx

MAX_REDIRECTS = 4


class DirectClient(httpx.AsyncClient):
    """An httpx client for one endpoint and one kind of request, without what that needs nothing of: cookies, hooks,
    authentication in rounds, merged URLs.

    The SDK writes a request's head, which is most of its cost at each call and is the same every time. So the head of
    the first request to a URL is kept, and `repeat` sends later bodies under it.

    A redirect is followed within the endpoint's own host, with method and body, and nowhere else: neither the key nor
    the prompt goes to another host. A redirect that cannot be followed is the response.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, timeout: httpx.Timeout) -> None:
        super().__init__(transport=transport, trust_env=False, timeout=timeout)
        self._direct = transport
        self._extensions = {"timeout": timeout.as_dict()}
        self._heads: dict[str, tuple[httpx.URL, list[tuple[bytes, bytes]]]] = {}

    def build_request(self, method: str, url: Any, **given: Any) -> httpx.Request:
        """Called by the SDK, with its headers."""
        request = httpx.Request(
            method, url, headers=given.get("headers"), content=given["content"], extensions=self._extensions
        )
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
        self._heads[str(url)] = (request.url, headers)
        return request

    def knows(self, url: str) -> bool:
        return url in self._heads

    async def repeat(self, url: str, content: bytes) -> httpx.Response:
        """Send a new body under the head of the first request to the URL; the response's body is still to be read."""
        known, headers = self._heads[url]
        request = httpx.Request("POST", known, headers=headers, content=content, extensions=self._extensions)
        return await self.send(request, stream=True)

    async def send(self, request: httpx.Request, *, stream: bool = False, **_: Any) -> httpx.Response:
        for hop in range(MAX_REDIRECTS + 1):
            response = await self._direct.handle_async_request(request)
            response.request = request
            onward = _onward(request, response) if hop < MAX_REDIRECTS else None
            if onward is None:
                break
            await response.aclose()
            request = onward
        if not stream:
            await response.aread()
        return response


def _onward(request: httpx.Request, response: httpx.Response) -> httpx.Request | None:
    """The request that a redirect asks for, if it stays at its host."""
    if response.status_code not in {307, 308}:
        return None
    try:
        url = request.url.join(response.headers.get("location", ""))
    except httpx.InvalidURL:
        return None
    same = (url.scheme, url.host, url.port) == (request.url.scheme, request.url.host, request.url.port)
    safer = (request.url.scheme, url.scheme, url.host) == ("http", "https", request.url.host)
    if not (same or safer):  # another port may be another server
        return None
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"host"]
    return httpx.Request(request.method, url, headers=headers, content=request.content, extensions=request.extensions)
