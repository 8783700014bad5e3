"""The engine that samples at a vLLM server: token ids over HTTP, and adapters that are loaded as they are trained.

    VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 vllm serve MODEL --enable-lora --max-loras N --max-lora-rank 64

A server returns the log-probabilities of temperature 1; for another temperature, start it with --logprobs-mode
processed_logprobs, and leave out top-p and top-k.
"""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from hira.core.errors import BadReply, EndpointError, UsageError
from hira.policies.failures import failure, gist, no_connection, read_dict
from hira.policies.local.engine import Sampled, SampleRequest
from hira.policies.transport import transport_for

SECONDS = 900.0
_UNNAMED_WINDOW = 1_000_000
_PARTING = 10.0
"""The longest time, in seconds, that a server may take to unload an adapter at the end."""
_REFUSED = (400, 404, 405)
"""How a server answers that was started without adapters."""
_START = "start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 and --enable-lora"
_TAKEN = "already been loaded"
"""vLLM's message, with a 400, about a name that it has loaded."""


class VllmEngine:
    """Samples at the server of `base_url`, such as http://127.0.0.1:8000/v1, which serves `model`, in any event loop.

    `ends` are the tokens that end a turn, in addition to the model's own. An adapter is loaded under its name, its
    version, so that replies in flight never mix two, and a tag of this engine, so that several can share one server.
    """

    def __init__(self, base_url: str, model: str, *, ends: Sequence[int] = ()) -> None:
        self.base_url = base_url.rstrip("/")
        self.model = model
        self.version = 0
        self.window = _UNNAMED_WINDOW
        self._ends = sorted(ends)
        self._tag = secrets.token_hex(3)
        self._served: dict[str, str] = {}
        self._busy: Counter[str] = Counter()
        self._stale: set[str] = set()
        self._where = f"vLLM at {self.base_url}, model {model!r}"
        self._transport = transport_for(self.base_url)

    async def open(self) -> "VllmEngine":
        """Itself, once the server has said that it serves the model. Raises `EndpointError` or `UsageError`."""
        listed = (await self._call("GET", "/models")).get("data") or []
        entry = next((entry for entry in listed if entry.get("id") == self.model), None)
        if entry is None:
            names = ", ".join(str(entry.get("id")) for entry in listed) or "none"
            raise UsageError(f"the server does not serve {self.model!r}", where=self._where, fix=f"it has: {names}")
        self.window = int(entry.get("max_model_len") or _UNNAMED_WINDOW)
        return self

    async def sample(self, request: SampleRequest) -> Sampled:
        adapter = request.adapter
        if adapter is not None and adapter not in self._served:
            names = ", ".join(self._served) or "none"
            raise UsageError(f"adapter {adapter!r} is not loaded", where=self._where, fix=f"loaded: {names}")
        name = self._served[adapter] if adapter else self.model
        version = self.version
        self._busy[name] += 1
        try:
            reply = await self._call("POST", "/completions", self._body(name, request))
        finally:
            self._busy[name] -= 1
        sampled = _read_sampled(reply, request, version, where=self._where)
        if request.seen:
            for token in sampled.ids:
                request.seen(token)
        return sampled

    async def load(self, adapter: str, folder: Path, version: int) -> None:
        """Load an adapter with the weights in `folder`, which the server must see under the same path. Earlier versions
        without replies in flight are unloaded. A loaded version is not loaded again."""
        name = f"{adapter}-{self._tag}@{version}"
        if self._served.get(adapter) == name:
            return
        try:
            await self._call("POST", "/load_lora_adapter", {"lora_name": name, "lora_path": str(folder)})
        except EndpointError as error:
            if error.status in _REFUSED:
                error.fix = "unload it there, or restart the server" if _TAKEN in error.what else _START
            raise
        if old := self._served.get(adapter):
            self._stale.add(old)
        self._served[adapter] = name
        self.version = version
        for idle in [stale for stale in self._stale if not self._busy[stale]]:
            self._stale.discard(idle)
            await self._call("POST", "/unload_lora_adapter", {"lora_name": idle})

    async def aclose(self) -> None:
        names = {*self._stale, *self._served.values()}
        self._stale.clear()
        self._served.clear()
        await asyncio.gather(*(self._part(name) for name in names))
        await self._transport.aclose()

    async def _part(self, name: str) -> None:
        with suppress(EndpointError):  # the server may have ended before the run
            await self._call("POST", "/unload_lora_adapter", {"lora_name": name}, seconds=_PARTING)

    def _body(self, name: str, request: SampleRequest) -> dict[str, Any]:
        sampling = request.sampling
        body = {
            "model": name,
            "prompt": request.prompt,
            "max_tokens": sampling.max_tokens,
            "temperature": 1.0 if sampling.temperature is None else sampling.temperature,
            "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
            "top_k": sampling.top_k or 0,
            "seed": sampling.seed,
            "stop": request.stops,
            "stop_token_ids": self._ends,
            "logprobs": 1,
            "return_token_ids": True,
            "add_special_tokens": False,
            "skip_special_tokens": False,
            "include_stop_str_in_output": True,
        }
        return {key: value for key, value in body.items() if value is not None}

    async def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, seconds: float = SECONDS
    ) -> Mapping[str, Any]:
        """The reply as an object; of what is no JSON, such as the answers about adapters, an empty one."""
        timeout = httpx.Timeout(None, connect=10.0, read=seconds, write=60.0).as_dict()
        request = httpx.Request(method, self.base_url + path, json=body, extensions={"timeout": timeout})
        try:
            response = await self._transport.handle_async_request(request)
            await response.aread()
        except httpx.HTTPError as error:
            raise no_connection(error, where=self._where, base_url=self.base_url) from error
        try:
            reply = response.json()
        except ValueError:
            reply = response.text
        if not response.is_success:
            raise failure(response.status_code, reply, response.headers, where=self._where, keyed=False)
        return read_dict(reply)


def _read_sampled(reply: Mapping[str, Any], request: SampleRequest, version: int, *, where: str) -> Sampled:
    """Parse the reply. Raises `BadReply` if ids and log-probabilities do not fit: nothing is ever guessed."""
    try:
        choice = reply["choices"][0]
        ids = tuple(int(token) for token in choice["token_ids"])
        logprobs = tuple(float(logprob) for logprob in choice["logprobs"]["token_logprobs"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        what = f"the reply contains no token ids or no log-probabilities: {gist(json.dumps(reply))}"
        raise BadReply(what, where=where, fix="use a vLLM that knows return_token_ids") from error
    read = choice.get("prompt_token_ids")
    if len(ids) != len(logprobs) or not ids or (read is not None and tuple(read) != request.prompt):
        what = f"{len(ids)} token ids and {len(logprobs)} log-probabilities came back"
        raise BadReply(f"{what}, or for another prompt", where=where, retryable=True)
    stop = choice.get("stop_reason")
    finish: Any = "length" if choice.get("finish_reason") == "length" else "stop"
    return Sampled(ids, logprobs, finish, stop if isinstance(stop, str) and stop in request.stops else None, version)
