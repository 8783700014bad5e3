"""Any OpenAI-compatible endpoint: OpenAI itself, vLLM, SGLang, llama.cpp, Ollama, LM Studio, a gateway.

Requests and replies are plain dicts over HTTP. The `openai` package is loaded only where the caller hands over one of
its clients. Retries are not made here.
"""

import asyncio
import json
import os
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import httpx

from hira.errors import BadReply, EndpointError, ToolsRefused, UsageError
from hira.policies.accepted import BY_OPENAI, Accepted, longest_reply, refused_field, without
from hira.policies.chat import Continuation, body_of
from hira.policies.client import DirectClient, GivenClient, Sender
from hira.policies.failures import failure, failure_in, gist, no_connection
from hira.policies.probe import missing
from hira.policies.refused import check, known_at, learned
from hira.policies.reply import Parts, completion_of, noted, parts_of
from hira.policies.streaming import MAX_REPLY_BYTES, NoEvents, Unended, read_stream, tell
from hira.policies.transport import transport_for
from hira.policy import Completion, Request, Watch

_OPENAI = "api.openai.com"


@dataclass(frozen=True, slots=True)
class Timeout:
    """Seconds: for a whole call, between two pieces of a stream, and to connect."""

    total: float = 900.0
    idle: float = 300.0
    connect: float = 10.0


class OpenAIPolicy:
    """A model behind an OpenAI-compatible endpoint.

    `key_origin` says in error messages where the key came from; the key itself is never told. `continuation` is how
    the endpoint carries on a message of the model's own: "continue_final_message" (vLLM, SGLang, llama.cpp), "prefix"
    (DeepSeek), "completions" (the older API, with ChatML), "none". `extra_body` is added to every request. A request's
    optional field that the endpoint refuses by name is left out from then on (`accepted`); tools and media that it
    refuses fail at once from then on, for all who ask this model there in this process. A `client` of the `openai`
    package sends the requests in place of `base_url` and `api_key`; the caller closes it.

    After `aclose` it can be used again, also in another event loop.
    """

    def __init__(  # noqa: PLR0913 - each argument is one fact about the endpoint
        self,
        model: str,
        base_url: str = "",
        api_key: str = "",
        *,
        client: Any = None,
        key_origin: str = "",
        timeout: Timeout = Timeout(),
        continuation: Continuation = "none",
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        api_key = api_key.strip()
        url = _checked(base_url if client is None else str(client.base_url), api_key, key_origin)
        official = url.host == _OPENAI
        self.accepted = BY_OPENAI if official else Accepted()
        self.base_url = str(url.copy_with(username=None, password=None) if url.userinfo else url).rstrip("/")
        self._api_key = api_key if client is None else str(client.api_key or "")
        self._model = model
        self._noted: dict[str, str] = {}
        self._tells_ends: bool | None = None
        self._refused = known_at(self.base_url, model)
        self._timeout = timeout
        self._continuation = continuation
        self._extra_body = dict(extra_body or {})
        key = f"key from {key_origin}" if key_origin and api_key else "a key" if api_key else "no key"
        key = key if client is None else "with the client that was given"
        self.where = f"at {self.base_url}, model {model!r}, {key}"
        self._sender: Sender
        if client is not None:
            self._sender = GivenClient(client, where=self.where)
        else:
            limits = httpx.Timeout(None, connect=timeout.connect, write=60.0)
            headers = _headers(url, api_key, official=official)
            self._sender = DirectClient(self.base_url, headers, transport_for(self.base_url), limits)

    @property
    def model(self) -> str:
        return self._model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        check(request, self._refused, where=self.where)
        try:
            async with asyncio.timeout(self._timeout.total):
                parts = await self.ask(request, watch)
        except TimeoutError:
            told = f"no whole reply within {self._timeout.total:g} seconds"
            raise EndpointError(told, where=self.where, retryable=True) from None
        except EndpointError as error:
            if self._api_key and self._api_key in error.what:  # some servers repeat it
                error.what = error.what.replace(self._api_key, "…")
                error.args = (error.what,)
            raise learned(error, request, self._refused, where=self.where) from None
        completion = completion_of(parts, request, where=self.where)
        self._noted = noted(parts, request, self._model) | self._noted  # the first of a kind stays
        return replace(completion, notes=tuple(self._noted.values())) if self._noted else completion

    async def aclose(self) -> None:
        await self._sender.aclose()

    async def ask(self, request: Request, watch: Watch | None = None) -> Parts:
        """The reply as the server wrote it. The request is sent again without a field that is refused by name."""
        room = 0
        while True:
            accepted = replace(self.accepted, longest=room) if room else self.accepted
            body = body_of(
                request, self._model, continuation=self._continuation, stream=watch is not None, accepted=accepted
            )
            body |= self._extra_body
            try:
                return await self._exchange("/completions" if "prompt" in body else "/chat/completions", body, watch)
            except _Refused as refused:
                longest, always = longest_reply(refused.status, refused.said, body)
                if longest:
                    if always:
                        self.accepted = replace(self.accepted, longest=longest)
                    else:
                        room = longest
                    continue
                field = refused_field(refused.status, refused.said, body)
                if not field or field in self.accepted.without or field in self._extra_body:
                    raise await self._failure(refused) from None
                self.accepted = without(self.accepted, field, len(body.get("stop", ())))
            except httpx.HTTPError as error:
                raise no_connection(error, where=self.where, base_url=self.base_url) from error

    async def _exchange(self, path: str, body: dict[str, Any], watch: Watch | None) -> Parts:
        # a lone surrogate, as broken file names and bad decoders leave them, becomes a question mark
        raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        response = await self._sender.post(path, raw)
        try:
            if not response.is_success:
                raise _Refused(response.status_code, await self._read(response), response.headers)
            kind = response.headers.get("content-type", "")
            plain = "json" in kind or "html" in kind or "stream" not in body
            if "event-stream" in kind or not plain:
                parts = await self._streamed(response, watch)
                watch = None  # it has been told
            else:
                parts = self._parts(await self._read(response))
        finally:
            await response.aclose()
        parts.sent = len(raw)
        tell(watch, parts.text, parts.reasoning)
        return parts

    async def _streamed(self, response: httpx.Response, watch: Watch | None) -> Parts:
        """A reply that streams in. A server that never tells how its replies end is believed the second time that one
        is over: the first time, it may have broken off."""
        try:
            parts = await read_stream(_pieces(response), watch, idle=self._timeout.idle, where=self.where)
        except NoEvents as other:
            parts = self._parts(other.raw)
            tell(watch, parts.text, parts.reasoning)
        except Unended as over:
            if self._tells_ends is not False:
                self._tells_ends = self._tells_ends or False
                raise
            return over.parts
        else:
            self._tells_ends = True
        return parts

    async def _read(self, response: httpx.Response) -> bytes:
        pieces, size = [], 0
        async for piece in _pieces(response):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_REPLY_BYTES:
                raise BadReply(f"the reply is longer than {MAX_REPLY_BYTES >> 20} MiB", where=self.where)
        return b"".join(pieces)

    def _parts(self, raw: bytes) -> Parts:
        text = raw.decode("utf-8-sig", "replace")
        try:
            reply = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            if not text.strip():
                raise BadReply("the endpoint's reply is empty", where=self.where, retryable=True) from None
            told = f"the endpoint's reply is not JSON: {gist(text)!r}"
            if text.lstrip().startswith("<"):
                fix = "check the base URL; this looks like a page for people"
                raise BadReply(told, where=self.where, fix=fix) from None
            raise BadReply(told, where=self.where, retryable=True) from None
        if error := failure_in(reply, where=self.where):
            raise error
        return parts_of(reply, where=self.where)

    async def _failure(self, refused: "_Refused") -> EndpointError:
        keyed = bool(self._api_key) or isinstance(self._sender, GivenClient)
        error = failure(refused.status, refused.said, refused.headers, where=self.where, keyed=keyed)
        if refused.status == httpx.codes.NOT_FOUND and not isinstance(error, ToolsRefused):
            error.fix = (
                "check the client's base URL and the name of the model or deployment"
                if isinstance(self._sender, GivenClient)
                else await missing(self._model, self.base_url, self._api_key)
            )
        return error


class _Refused(Exception):
    """The endpoint answered, but not with a reply."""

    def __init__(self, status: int, raw: bytes, headers: Mapping[str, str]) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        text = raw.decode("utf-8", "replace")
        try:
            self.said = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            self.said = text


def _checked(base_url: str, api_key: str, key_origin: str) -> httpx.URL:
    """The URL, if it and the key can be used at all."""
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL as error:
        raise UsageError(f"the base URL {base_url!r} is no URL: {error}") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise UsageError(f"the base URL {base_url!r} is no http URL", fix="write it like http://localhost:8000/v1")
    if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
        origin = f" from {key_origin}" if key_origin else ""
        raise UsageError(f"the key{origin} holds characters that no key has", fix="copy it again, without spaces")
    return url


def _headers(url: httpx.URL, api_key: str, *, official: bool) -> dict[str, str]:
    """The headers of every request. The organization and the project go to OpenAI alone."""
    try:
        release = version("hira")
    except PackageNotFoundError:
        release = "0"
    headers = {
        "User-Agent": f"hira/{release}",
        "Accept": "application/json",
        "Accept-Encoding": "identity",  # replies are small, and what is not packed cannot unpack to gigabytes
        "Content-Type": "application/json",
    }
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    elif url.userinfo:
        headers["Authorization"] = f"Basic {b64encode(f'{url.username}:{url.password}'.encode()).decode()}"
    if official:
        named = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
        headers |= {header: os.environ[name] for header, name in named.items() if os.environ.get(name)}
    return headers


def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body as it comes; httpx only has a part in it where it has to be unpacked."""
    if "content-encoding" in response.headers or not isinstance(response.stream, httpx.AsyncByteStream):
        return response.aiter_bytes()
    return aiter(response.stream)
