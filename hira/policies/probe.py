"""Probes a base URL: which models, which server, and whether there is an endpoint at all."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import httpx

from hira.core.errors import find_near
from hira.core.tokens import read_count
from hira.policies.failures import read_dict, read_list, read_string
from hira.policies.names import LOCAL_PORTS, is_nearby
from hira.policies.transport import StreamTransport, transport_for

SECONDS = 2.0
LLAMA_FALLBACK = "{%- for message in messages -%} {{- '<|im_start|>' + message.role + ' ' + message.content"
"""How the template begins that llama.cpp takes for a model without one, whatever its line ends."""
_WINDOWS = ("max_model_len", "max_context_length", "context_length", "context_window")


@dataclass(frozen=True, slots=True)
class ServedModel:
    """`window` is in tokens, for prompt and reply together, 0 where the server does not say it. `untaught` is a model
    without a chat template whose vocabulary does not know the marks of the server's own either."""

    window: int = 0
    untaught: bool = False


@runtime_checkable
class Describes(Protocol):
    """A policy that can ask its server about its model."""

    async def describe_model(self) -> ServedModel: ...


async def ask_server(base_url: str, model: str, headers: Mapping[str, str]) -> ServedModel:
    """Ask the server about the model. Raises nothing that a server could cause; each request may take two seconds."""
    if not is_nearby(base_url):
        return ServedModel()
    transport = transport_for(base_url)
    async with httpx.AsyncClient(transport=transport, trust_env=False, headers=headers, timeout=SECONDS) as client:
        listed = await _json(client, "GET", f"{base_url}/models")
        entries = [entry for entry in read_list(listed.get("data")) if isinstance(entry, dict)]
        entry = next((entry for entry in entries if entry.get("id") == model), entries[0] if len(entries) == 1 else {})
        if entry.get("owned_by") != "llamacpp":
            return ServedModel(next((size for name in _WINDOWS if (size := read_count(entry.get(name)))), 0))
        # llama.cpp reports the window of one slot and the template that it uses, which may be its built-in one
        root, fallback = base_url.removesuffix("/v1"), " ".join(LLAMA_FALLBACK.split())
        props = await _json(client, "GET", f"{root}/props")
        window = read_count(read_dict(props.get("default_generation_settings")).get("n_ctx"))
        if not " ".join(read_string(props.get("chat_template")).split()).startswith(fallback):
            return ServedModel(window or read_count(read_dict(entry.get("meta")).get("n_ctx")))
        mark = await _json(client, "POST", f"{root}/tokenize", {"content": "<|im_start|>", "parse_special": True})
        return ServedModel(window, untaught=len(read_list(mark.get("tokens"))) > 1)


async def _json(client: httpx.AsyncClient, method: str, url: str, body: Any = None) -> Mapping[str, Any]:
    status, reply = await _fetch(client, method, url, body)
    return read_dict(reply) if status == httpx.codes.OK else {}


LOCAL_SECONDS = 0.3
PROBE_SECONDS = 5.0
WANTS_KEY = frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN})

_OWNERS = {
    "llamacpp": "llama.cpp",
    "vllm": "vLLM",
    "sglang": "SGLang",
    "library": "Ollama",
    "organization_owner": "LM Studio",
    "openai": "OpenAI",
    "system": "OpenAI",
    "hira.testing": "hira.testing",
}


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of GET /models."""

    base_url: str
    """The URL that works."""
    ok: bool
    """The reply was a list of models."""
    models: tuple[str, ...] = ()
    server: str = ""
    status: int = 0
    error: str = ""
    """Describes any other reply in one line."""
    lacks_v1: bool = False
    """The requested URL fails, but the same with /v1 works."""

    @property
    def chat_model(self) -> str:
        """The first of the models that does not look like one for embeddings."""
        return next((name for name in self.models if "embed" not in name.lower()), self.models[0])


async def probe(base_url: str, api_key: str = "") -> Probe:
    """Ask an endpoint for its models. Raises nothing that the endpoint could cause."""
    base_url = base_url.rstrip("/")
    async with _client(transport_for(base_url), api_key, PROBE_SECONDS) as client:
        endpoint = await _models(client, base_url)
        if not endpoint.ok and not base_url.endswith("/v1"):
            other = await _models(client, f"{base_url}/v1")
            if other.ok:
                endpoint = Probe(other.base_url, ok=True, models=other.models, server=other.server, lacks_v1=True)
        return endpoint


async def ask_for_token(base_url: str, api_key: str, model: str) -> int:
    """Return the status with which an endpoint answers a chat of one token, 0 if it does not answer soon."""
    hello = {"model": model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    async with _client(transport_for(base_url), api_key, PROBE_SECONDS) as client:
        status, _ = await _fetch(client, "POST", f"{base_url.rstrip('/')}/chat/completions", hello)
        return status


async def find_local(ports: Sequence[int] = LOCAL_PORTS) -> list[Probe]:
    """The servers on this machine's usual ports, asked at once without a key; one that wants a key shows no models."""
    async with _client(StreamTransport(), "", LOCAL_SECONDS) as client:
        tasks = [asyncio.ensure_future(_models(client, f"http://127.0.0.1:{port}/v1")) for port in ports]
        done, late = await asyncio.wait(tasks, timeout=LOCAL_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        answers = [task.result() for task in tasks if task in done]
        return [answer for answer in answers if answer.ok or answer.status in WANTS_KEY]


async def missing(model: str, base_url: str, api_key: str) -> str:
    """Suggest what to do about a 404: a URL without /v1, or a model with another name."""
    endpoint = await probe(base_url, api_key)
    if endpoint.lacks_v1:
        return f"the base URL lacks /v1: set it to {endpoint.base_url}"
    if not endpoint.ok:
        return "check the base URL, most end in /v1, and the model's name"
    if model in endpoint.models:
        return "the endpoint lists this model; check the base URL's path"
    near = find_near(model, endpoint.models, most=3, likeness=0.4) or endpoint.models[:3]
    return f"the endpoint has {', '.join(near)}" if near else "the endpoint lists no models"


def _client(transport: httpx.AsyncBaseTransport, api_key: str, seconds: float) -> httpx.AsyncClient:
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if api_key:
        headers["Authorization"] = f"Bearer {api_key}"
    timeout = httpx.Timeout(seconds)
    return httpx.AsyncClient(transport=transport, trust_env=False, headers=headers, timeout=timeout)


async def _models(client: httpx.AsyncClient, base_url: str) -> Probe:
    status, reply = await _fetch(client, "GET", f"{base_url}/models")
    if status == 0:
        return Probe(base_url, ok=False, error=str(reply))
    listed = reply.get("data") if isinstance(reply, dict) and reply.get("object") == "list" else None
    if status != httpx.codes.OK or not isinstance(listed, list):
        what = "something that is not a list of models" if status == httpx.codes.OK else f"status {status}"
        return Probe(base_url, ok=False, status=status, error=f"/models answered with {what}")
    entries = [entry for entry in listed if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
    owners = {str(entry.get("owned_by")) for entry in entries}
    server = next((_OWNERS[owner] for owner in sorted(owners) if owner in _OWNERS), "")
    return Probe(base_url, ok=True, models=tuple(entry["id"] for entry in entries), server=server, status=status)


async def _fetch(client: httpx.AsyncClient, method: str, url: str, body: Any = None) -> tuple[int, Any]:
    """Status and JSON; status 0 and the reason if there was no answer; None for what is not JSON."""
    try:
        response = await client.request(method, url, json=body)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return 0, str(error) or type(error).__name__
    try:
        return response.status_code, response.json()
    except (ValueError, RecursionError):
        return response.status_code, None
