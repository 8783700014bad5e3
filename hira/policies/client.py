"""Ways to send a request: straight over HTTP, or through a client object of the `openai` package."""

import json
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Mapping
from types import MappingProxyType
from typing import Any

import httpx

from hira.core.errors import EndpointError
from hira.policies.failures import no_connection
from hira.policies.transport import Heading, StreamTransport, heading_of

log = logging.getLogger("hira.policies")
LOGGED = 20_000
"""Characters of a request that the log shows."""
NO_LABELS: Mapping[str, str] = MappingProxyType({})


class DirectClient:
    """Posts to one endpoint under headers that are written once, without the cookies, hooks and merged URLs that take
    most of a general client's time. It follows no redirect, so the key and the prompt go only to the named place."""

    def __init__(
        self, base_url: str, headers: Mapping[str, str], transport: httpx.AsyncBaseTransport, timeout: httpx.Timeout
    ) -> None:
        self._base_url = base_url
        self._transport = transport
        self._extensions = {"timeout": timeout.as_dict()}
        self._headers = headers
        self._headings: dict[str, Heading] = {}

    def post(self, path: str, raw: bytes, labels: Mapping[str, str] = NO_LABELS) -> Awaitable[httpx.Response]:
        url = self._base_url + path
        _log_request(url, raw)
        if not isinstance(self._transport, StreamTransport):
            headers = {**self._headers, **labels}
            request = httpx.Request("POST", url, headers=headers, content=raw, extensions=self._extensions)
            return self._transport.handle_async_request(request)
        if path not in self._headings:
            first = httpx.Request("POST", url, headers=self._headers)
            self._headings[path] = heading_of("POST", first.url, first.headers.raw)
        heading = self._headings[path]
        if labels:
            more = "".join(f"{name}: {value}\r\n" for name, value in labels.items())
            heading = heading._replace(raw=heading.raw + more.encode("ascii"))
        return self._transport.send(heading, raw, self._extensions["timeout"])

    async def aclose(self) -> None:
        await self._transport.aclose()


class GivenClient:
    """Sends requests through an `AsyncOpenAI` or `AsyncAzureOpenAI` that the caller configured, with its
    authentication, headers, proxies and time-outs. The caller closes it. hira retries, not the client."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.base_url = str(client.base_url).rstrip("/")

    async def post(self, path: str, raw: bytes, labels: Mapping[str, str] = NO_LABELS) -> httpx.Response:
        import openai  # installed: the client comes from it

        _log_request(f"{self.base_url}{path}", raw)
        try:
            response = await self._client.post(
                path,
                cast_to=httpx.Response,
                body=json.loads(raw),
                options={"max_retries": 0, "headers": dict(labels)},
                stream=True,
                stream_cls=openai.AsyncStream[Any],
            )
        except openai.APIStatusError as error:
            refused = error.response
            return httpx.Response(refused.status_code, headers=dict(refused.headers), content=refused.content)
        except openai.APIConnectionError as error:
            raise no_connection(error, base_url=self.base_url) from error
        except openai.OpenAIError as error:
            raise EndpointError(f"the client cannot send the request: {error}") from error
        headers = {name: value for name, value in response.headers.items() if name.lower() != "content-encoding"}
        return httpx.Response(response.status_code, headers=headers, stream=_Unpacked(response))

    async def aclose(self) -> None:
        """Leave the client open: it belongs to the caller."""


class _Unpacked(httpx.AsyncByteStream):
    """The body of a client's response, whichever HTTP library the client uses."""

    def __init__(self, response: Any) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # the HTTP library under `openai` is httpx up to its version 2, httpx2 from version 3 on
        newer = (sys.modules["httpx2"].HTTPError,) if "httpx2" in sys.modules else ()
        try:
            async for piece in self._response.aiter_bytes():
                yield piece
        except (httpx.HTTPError, *newer) as error:
            raise httpx.ReadError(str(error)) from error

    async def aclose(self) -> None:
        await self._response.aclose()


def _log_request(url: str, raw: bytes) -> None:
    """Log a request for a reader of DEBUG. Keys are in the headers, or in parts of the URL that are left out."""
    if log.isEnabledFor(logging.DEBUG):
        place = httpx.URL(url).copy_with(userinfo=b"", query=None)
        log.debug("POST %s %s", place, raw[:LOGGED].decode("utf-8", "replace"))
