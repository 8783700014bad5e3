"""What a model server of this machine or network says of its model before it is asked anything: its window and its chat
template. Endpoints elsewhere are not asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import httpx

from hira.policies.reply import whole
from hira.policies.transport import is_nearby, transport_for

SECONDS = 2.0
LLAMA_FALLBACK = "{%- for message in messages -%} {{- '<|im_start|>' + message.role + ' ' + message.content"
"""How the template begins that llama.cpp takes for a model without one, whatever its line ends."""
_WINDOWS = ("max_model_len", "max_context_length", "context_length", "context_window")


@dataclass(frozen=True, slots=True)
class Served:
    """`window` is in tokens, for prompt and reply together, 0 where the server does not say it. `untaught` is a model
    without a chat template whose vocabulary does not know the marks of the server's own either."""

    window: int = 0
    untaught: bool = False


@runtime_checkable
class Describes(Protocol):
    """A policy that can tell what its server says of its model."""

    async def served(self) -> Served: ...


async def ask_server(base_url: str, model: str, headers: Mapping[str, str]) -> Served:
    """What the server says. Raises nothing that a server could cause; each question may take two seconds."""
    if not is_nearby(base_url):
        return Served()
    transport = transport_for(base_url)
    async with httpx.AsyncClient(transport=transport, trust_env=False, headers=headers, timeout=SECONDS) as client:
        listed = await _json(client, "GET", f"{base_url}/models")
        entries = [one for one in _list(listed.get("data")) if isinstance(one, dict)]
        entry = next((one for one in entries if one.get("id") == model), entries[0] if len(entries) == 1 else {})
        if entry.get("owned_by") == "llamacpp":
            return await _llama(client, base_url.removesuffix("/v1"), entry)
        return Served(next((size for name in _WINDOWS if (size := whole(entry.get(name)))), 0))


async def _llama(client: httpx.AsyncClient, root: str, entry: Mapping[str, Any]) -> Served:
    """llama.cpp tells the window of one slot, and the template that it uses, which may be its own."""
    props = await _json(client, "GET", f"{root}/props")
    window = whole(_dict(props.get("default_generation_settings")).get("n_ctx"))
    template = props.get("chat_template")
    if not isinstance(template, str) or not " ".join(template.split()).startswith(" ".join(LLAMA_FALLBACK.split())):
        return Served(window or whole(_dict(entry.get("meta")).get("n_ctx")))
    mark = await _json(client, "POST", f"{root}/tokenize", {"content": "<|im_start|>", "parse_special": True})
    return Served(window, untaught=len(_list(mark.get("tokens"))) > 1)


async def _json(client: httpx.AsyncClient, method: str, url: str, body: Any = None) -> dict[str, Any]:
    try:
        response = await client.request(method, url, json=body)
        said = response.json() if response.is_success else {}
    except (httpx.HTTPError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
