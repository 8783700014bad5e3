"""Any OpenAI-compatible endpoint: OpenAI itself, vLLM, SGLang, llama.cpp, Ollama, LM Studio, a gateway. Requests and
replies are plain dicts over HTTP; `Endpoint` retries."""

import asyncio
import hashlib
import json
import os
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import httpx
from pydantic_core import to_json

from hira import __version__
from hira.core.errors import BadReply, EndpointError, TimedOut, ToolsRefused, UsageError
from hira.core.policy import UNWATCHED, CallOptions, Completion, Delta, Request, Watch, role_of
from hira.core.sanitize import without_userinfo
from hira.core.tokens import count, read_count
from hira.policies.chat import (
    BY_OPENAI,
    PROMPT_CACHE_KEY,
    Accepted,
    body_of,
    check,
    find_refused_field,
    learn_from_error,
    longest_reply,
    refusals_of,
    without,
)
from hira.policies.client import NO_LABELS, DirectClient, GivenClient, log
from hira.policies.failures import failure, failure_in, gist, message_in, no_connection, read_dict
from hira.policies.names import Api, Continuation
from hira.policies.probe import ServedModel, ask_server, missing
from hira.policies.reply import UNENDED, ReplyParts, completion_of, count_spoken_tokens, notice_cut_prompt, parts_of
from hira.policies.responses import ONLY_HERE, PATH, Turns, parts_of_response, responses_body, take_event
from hira.policies.streaming import (
    BROKE_OFF,
    MAX_REPLY_BYTES,
    SLOW_FIX,
    Bounds,
    NoEvents,
    StreamState,
    may_end,
    take_chunk,
    tell,
)
from hira.policies.transport import transport_for
from hira.policies.waiting import ENOUGH_WHOLE, SLOW, USUAL, Timeout, pace_at

_OPENAI = "api.openai.com"
_AZURE = ".openai.azure.com"
_BYTES_A_TOKEN = 4
_JSON = json.JSONDecoder(strict=False)
_LONG_KEY = 8


class OpenAIPolicy:
    """A model at an OpenAI-compatible endpoint. It can be used again after `aclose`, also in another event loop.

    `key_origin` names the origin of the key in error messages, which never contain the key. `continuation` is how the
    endpoint continues a message of the model: "continue_final_message" (vLLM, SGLang, llama.cpp), "prefix" (DeepSeek),
    "completions" (the older API, with ChatML), "none". `extra_body` is added to every request. A `client` of the
    `openai` package sends the requests in place of `base_url` and `api_key`; the caller closes it. `api` is "chat" or
    "responses"; a model that only has the second is asked there after its first refusal.

    Replies stream if the caller wants the pieces, if they may have to be cut, if the endpoint has been slow, or if the
    model has written on after its reply was complete. An optional field that the endpoint refuses by name is left out
    afterwards (`accepted`); tools and media that it refuses fail at once, for all callers of this model there in this
    process.
    """

    def __init__(  # noqa: PLR0913 - each argument is one fact about the endpoint
        self,
        model: str,
        base_url: str = "",
        api_key: str = "",
        *,
        client: Any = None,
        api: Api = "chat",
        key_origin: str = "",
        timeout: Timeout = USUAL,
        continuation: Continuation = "none",
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        api_key = api_key.strip()
        url = _parse_url(base_url if client is None else str(client.base_url), api_key, key_origin)
        official = self._official = url.host == _OPENAI
        self._is_openai = official or url.host.endswith(_AZURE)
        self.accepted = BY_OPENAI if official else Accepted()
        self.base_url = str(url.copy_with(username=None, password=None) if url.userinfo else url).rstrip("/")
        self._api_key = api_key if client is None else str(client.api_key or "")
        self.model = model
        self._noted = ""
        self._tells_ends: bool | None = None
        self._refused = refusals_of(self.base_url, model)
        self._timeout = timeout
        self._pace = pace_at(self.base_url, model)
        self._continuation = continuation
        self._extra_body = dict(extra_body or {})
        key = f"key from {key_origin}" if key_origin and api_key else "a key" if api_key else "no key"
        key = key if client is None else "with the given client"
        self.where = f"at {self.base_url}, model {model!r}, {key}"
        self._told: ServedModel | None = None
        self._headers: Mapping[str, str] = {}
        self._api: Api = api
        self._turns = Turns()
        self._sender: DirectClient | GivenClient
        if client is not None:
            self._sender = GivenClient(client)
        else:
            limits = httpx.Timeout(None, connect=timeout.connect, write=60.0)
            self._headers = _headers(url, api_key, official=official)
            self._sender = DirectClient(self.base_url, self._headers, transport_for(self.base_url), limits)

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        call, pace = CallOptions.of(watch), self._pace
        is_enough = call.is_enough
        stream = bool(call or pace.slow or call.cut_at is not None or (is_enough and pace.runs_on))
        began = asyncio.get_running_loop().time()
        try:
            check(request, self._refused)
            parts = await self.ask(request, call, stream=stream)
            completion = completion_of(parts, request)
        except EndpointError as error:
            if self._api_key and self._api_key in error.what:  # some servers repeat it
                key = re.escape(self._api_key)  # a short one, as local servers take it, may be a part of other words
                whole = key if len(self._api_key) >= _LONG_KEY else rf"(?<!\w){key}(?!\w)"
                error.what = re.sub(whole, "…", error.what)
                error.args = (error.what,)
            if error.completion_tokens:
                error.prompt_tokens = sum(count(message.text) for message in request.messages)
            learned = learn_from_error(error, request, self._refused)
            learned.where = self.where
            raise learned from None
        if not stream:
            if (tokens := completion.usage.completion_tokens) >= ENOUGH_WHOLE:
                pace.saw_writing(tokens, asyncio.get_running_loop().time() - began)
            pace.runs_on = pace.runs_on or (is_enough is not None and may_end(parts.text) and is_enough(parts.text))
        self._noted = self._noted or notice_cut_prompt(parts, request)
        notes = [note for note in (self._noted, UNENDED if parts.finish is None else "") if note]
        return replace(completion, notes=(*completion.notes, *notes)) if notes else completion

    async def describe_model(self) -> ServedModel:
        """Return the server's description of the model, which is requested once."""
        if self._told is None:
            self._told = ServedModel()  # other callers do not wait for it
            if self._headers:
                self._told = await ask_server(self.base_url, self.model, self._headers)
        return self._told

    async def aclose(self) -> None:
        await self._sender.aclose()

    async def ask(self, request: Request, call: CallOptions = UNWATCHED, *, stream: bool = False) -> ReplyParts:
        """The reply as the server wrote it. The request is sent again without a field that is refused by name."""
        room, loop = 0, asyncio.get_running_loop()
        while True:
            accepted = replace(self.accepted, longest=room) if room else self.accepted
            path, body = self._write(request, accepted, stream=stream)
            if call.run and self._is_openai and PROMPT_CACHE_KEY not in accepted.without:
                # a digest, so that the key does not reveal the run; its requests share their beginnings
                run = call.run.encode("utf-8", "replace")
                body[PROMPT_CACHE_KEY] = hashlib.blake2b(run, digest_size=16).hexdigest()
            body |= self._extra_body
            raw = _dump(body)
            tokens = body.get(self.accepted.length) or request.sampling.max_tokens
            seconds = self._pace.bound(self._timeout, len(raw) // _BYTES_A_TOKEN, tokens)
            bounds = Bounds(*seconds, call.cut_at, tokens)
            began, longest = loop.time(), bounds.first if "stream" in body else bounds.reply
            labels = NO_LABELS if self._official else write_labels(call.run, request.conversation)
            post = self._sender.post(path, raw, labels)
            try:
                async with asyncio.timeout(longest) as limit, aclosing(await post) as response:
                    log.debug("%s %s", response.status_code, response.headers.get("content-type", ""))
                    if response.is_success:
                        kind = response.headers.get("content-type", "")
                        streams = "stream" in body and "json" not in kind and "html" not in kind
                        if "event-stream" in kind or streams:
                            limit.reschedule(None)
                            parts = await self._read_stream(response, bounds, call, path, began)
                        else:
                            parts = self._parts(await self._read(response), path)
                            tell(call.watch, parts.text, parts.reasoning)
                        self._turns.keep(parts.items)
                        parts.sent = len(raw)
                        return parts
                    said = _read_json((await self._read(response)).decode("utf-8", "replace"))
            except TimeoutError:
                if "stream" not in body:  # from now on replies are streamed
                    self._pace.writes = min(self._pace.writes or 1.0, SLOW / 2)
                what = f"no reply came within {longest:.3g} seconds"
                raise TimedOut(what, fix=SLOW_FIX, retryable=True) from None
            except httpx.HTTPError as error:
                raise no_connection(error, base_url=self.base_url) from error
            room = await self._adapt(response, said, body) or room

    async def _adapt(self, refusal: httpx.Response, said: Any, body: Mapping[str, Any]) -> int:
        """Learn what the endpoint takes from a refusal, whose body is `said`: JSON or text. Return the most tokens of
        this one reply, 0 if it does not bound them. Raises the failure if nothing can be learned."""
        status = refusal.status_code
        if self._api == "chat" and status in {400, 404} and ONLY_HERE.search(message_in(said)):
            self._api = "responses"
            return 0
        longest, always = longest_reply(status, said, body)
        if longest and always:
            self.accepted = replace(self.accepted, longest=longest)
            return 0
        if longest:
            return longest
        field = find_refused_field(status, said, body)
        if field and field not in self.accepted.without and field not in self._extra_body:
            self.accepted = without(self.accepted, field, len(body.get("stop", ())))
            return 0
        given = isinstance(self._sender, GivenClient)
        error = failure(status, said, refusal.headers, keyed=bool(self._api_key) or given)
        if status == httpx.codes.NOT_FOUND and not isinstance(error, ToolsRefused):
            error.fix = "check the client's base URL and the name of the model or deployment"
            if not given:
                error.fix = await missing(self.model, self.base_url, self._api_key)
        raise error

    def _write(self, request: Request, accepted: Accepted, *, stream: bool) -> tuple[str, dict[str, Any]]:
        if self._api == "responses":
            return PATH, responses_body(request, self.model, self._turns, stream=stream, accepted=accepted)
        body = body_of(request, self.model, continuation=self._continuation, stream=stream, accepted=accepted)
        return "/completions" if "prompt" in body else "/chat/completions", body

    async def _read_stream(
        self, response: httpx.Response, bounds: Bounds, call: CallOptions, path: str, began: float
    ) -> ReplyParts:
        """A reply that streams in. `BadReply` if the endpoint did not say how it ended, unless it never does: it is
        believed the second time, since the first reply may have broken off."""
        call(Delta(""))  # the endpoint is at work
        take = take_event if path == PATH else take_chunk
        state = StreamState(take, bounds, call.watch, call.is_enough, began=began)
        try:
            parts = await state.receive(_pieces(response))
        except NoEvents as other:
            parts = self._parts(other.raw, path)
            tell(state.watch, parts.text, parts.reasoning)
        except httpx.HTTPError as error:
            raise _add_cost(no_connection(error, base_url=self.base_url), state) from error
        except EndpointError as error:
            raise _add_cost(error, state) from None
        else:
            if parts.finish is None and self._tells_ends is not False:
                self._tells_ends = self._tells_ends or False
                raise _add_cost(BadReply(BROKE_OFF, retryable=True), state)
            if parts.finish is not None and not (parts.cut or state.enough):  # else hira ended it
                self._tells_ends = True
            usage = parts.usage or {}
            cached = read_dict(usage.get("prompt_tokens_details")).get("cached_tokens")
            fresh = read_count(usage.get("prompt_tokens")) - read_count(cached)
            self._pace.saw_reading(fresh, state.first - state.began)
            self._pace.saw_writing(state.pieces, state.last - state.first)
        return parts

    async def _read(self, response: httpx.Response) -> bytes:
        pieces, size = [], 0
        async for piece in _pieces(response):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_REPLY_BYTES:
                raise BadReply(f"the reply is longer than {MAX_REPLY_BYTES >> 20} MiB")
        return b"".join(pieces)

    def _parts(self, raw: bytes, path: str) -> ReplyParts:
        text = raw.decode("utf-8-sig", "replace")
        reply = _read_json(text)
        if reply is text:
            if not text.strip():
                raise BadReply("the endpoint's reply is empty", retryable=True)
            is_page = text.lstrip().startswith("<")
            what = f"the endpoint's reply is not JSON: {gist(text)!r}"
            fix = "check the base URL; this looks like a web page" if is_page else ""
            raise BadReply(what, fix=fix, retryable=not is_page)
        if error := failure_in(reply):
            raise error
        return (parts_of_response if path == PATH else parts_of)(reply)


def _dump(body: Mapping[str, Any]) -> bytes:
    """Write the body as JSON. A lone surrogate, as of a broken file name, becomes a question mark."""
    try:
        return to_json(body)
    except ValueError:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _add_cost(error: EndpointError, state: StreamState) -> EndpointError:
    """The error, with what the reply that broke off has cost by our count."""
    error.completion_tokens = count_spoken_tokens(state.join())
    return error


def _read_json(text: str) -> Any:
    try:
        return _JSON.decode(text)
    except (ValueError, RecursionError):
        return text


def _parse_url(base_url: str, api_key: str, key_origin: str) -> httpx.URL:
    """The URL, if it and the key can be used at all."""
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL as error:
        raise UsageError(f"the base URL {without_userinfo(base_url)!r} is not a URL: {error}") from None
    if url.scheme not in {"http", "https"} or not url.host:
        what = f"the base URL {without_userinfo(base_url)!r} is not an http URL"
        raise UsageError(what, fix="write it like http://localhost:8000/v1")
    if not (api_key.isascii() and api_key.isprintable()) or " " in api_key:
        origin = f" from {key_origin}" if key_origin else ""
        what = f"the key{origin} contains characters that are not valid in a key"
        raise UsageError(what, fix="copy it again, without spaces")
    return url


_PLAIN = re.compile(r"[\w./-]*", re.ASCII)
"""A name that percent-encoding would not change."""


@lru_cache(maxsize=1024)
def write_labels(run: str, conversation: str) -> Mapping[str, str]:
    """Return the headers that name a request's run, role and conversation, by which a gateway can tell them apart."""
    if not conversation:
        return NO_LABELS
    names = {"Run": run, "Role": role_of(conversation), "Conversation": conversation}
    return {
        f"X-Hira-{name}": value if _PLAIN.fullmatch(value) else quote(value) for name, value in names.items() if value
    }


def _headers(url: httpx.URL, api_key: str, *, official: bool) -> dict[str, str]:
    """The headers of every request. The organization and the project go to OpenAI alone."""
    headers = {
        "User-Agent": f"hira/{__version__}",
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
