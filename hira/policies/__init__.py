"""Policies by name. Each is loaded at its first use, because their SDKs are heavy."""

import ipaddress
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from hira.core.errors import UsageError
from hira.core.policy import Policy
from hira.policies.retrying import USUAL, Retrying, Timeout

if TYPE_CHECKING:
    from hira.policies.chat import Continuation

# The APIs of OpenAI that an endpoint may speak.
Api = Literal["chat", "responses"]
OFFLINE = "offline"
LITELLM = "litellm/"
# Weights in this process: a folder, or a model of the Hub.
IN_PROCESS = "hf:"
# A GGUF file, served by llama.cpp on this machine.
GGUF = "gguf:"
OLLAMA_URL = "http://127.0.0.1:11434/v1"
OPENAI, OLLAMA = "openai", "ollama"
# Providers whose models litellm asks, by its own names for them.
PROVIDERS = frozenset(
    "anthropic azure bedrock cerebras cohere databricks deepseek fireworks_ai gemini groq huggingface mistral "
    "nvidia_nim openrouter perplexity together_ai vertex_ai watsonx xai".split()
)
# Models that are known by how their names begin.
FAMILIES = {"claude-": "anthropic", "gemini-": "gemini"}
# Providers that may also stand before a colon. Others would be mistaken for models of Ollama such as `mistral:7b`.
_BEFORE_COLON = frozenset({OPENAI, OLLAMA, "anthropic", "gemini"})


def has_own_place(model: str) -> bool:
    """Return whether the model needs no endpoint that hira has to know."""
    return model == OFFLINE or model.startswith((LITELLM, IN_PROCESS, GGUF))


def resolve_name(name: str) -> str:
    """The model that a name means where no endpoint is named for it; the name itself if it names no provider.

    Raises `UsageError` for a provider that litellm asks, if litellm is not installed.

    >>> resolve_name("openai:gpt-5"), resolve_name("ollama/qwen3:8b"), resolve_name("qwen3-32b")
    ('gpt-5', 'qwen3:8b@http://127.0.0.1:11434/v1', 'qwen3-32b')
    >>> resolve_name("models/qwen3.gguf")
    'gguf:models/qwen3.gguf'
    """
    if has_own_place(name):
        return name
    if name.lower().endswith(".gguf"):
        return f"{GGUF}{name}"
    provider, model = _provider_of(name)
    if provider == OPENAI:
        return model
    if provider == OLLAMA:
        return f"{model}@{OLLAMA_URL}"
    if not provider:
        return name
    if find_spec("litellm") is None:
        what = f"{name!r} is a model of {provider}, which needs litellm, and litellm is not installed"
        fix = "pip install 'hira[litellm]', or name an OpenAI-compatible endpoint that has it with --base-url"
        raise UsageError(what, fix=fix)
    return f"{LITELLM}{provider}/{model}"


def _provider_of(name: str) -> tuple[str, str]:
    """The provider that a name names, and its model there; an empty provider if it names none."""
    for sign, known in (("/", PROVIDERS | _BEFORE_COLON), (":", _BEFORE_COLON)):
        provider, found, model = name.partition(sign)
        if found and model and provider in known:
            return provider, model
    family = next((provider for begins, provider in FAMILIES.items() if name.startswith(begins)), "")
    return family, name


def names_of(model: str) -> list[str]:
    """The models of a setting such as "gpt-5, qwen3-32b", the first choice first.

    >>> names_of("gpt-5, qwen3-32b")
    ['gpt-5', 'qwen3-32b']
    """
    return [name.strip() for name in model.split(",") if name.strip()]


def place_of(name: str) -> tuple[str, str]:
    """Model and base URL of one entry of such a setting; the URL is empty where the entry has none.

    >>> place_of("qwen3-32b@http://127.0.0.1:8000/v1")
    ('qwen3-32b', 'http://127.0.0.1:8000/v1')
    """
    model, at, rest = name.partition("@http")
    return model, f"http{rest}" if at else ""


OPENAI_URL = "https://api.openai.com/v1"
# Where model servers usually listen: Ollama, LM Studio, vLLM, llama.cpp, SGLang.
LOCAL_PORTS = (11434, 1234, 8000, 8080, 30000)


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_nearby(base_url: str) -> bool:
    """Return whether an endpoint is on this machine or in its network, judging by its address."""
    host = urlsplit(base_url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return bool(host) and ("." not in host or host.endswith((".local", ".internal")))


def open_policy(  # noqa: PLR0913 - each says one thing of the place
    model: str,
    *,
    base_url: str = "",
    api_key: str = "",
    key_origin: str = "",
    continuation: "Continuation" = "none",
    extra_body: Mapping[str, Any] | None = None,
    patient: bool = True,
    adapter: str = "",
    client: Any = None,
    timeout: Timeout = USUAL,
    api: Api = "chat",
) -> Policy:
    """The policy that the model's name asks for: "offline", "litellm/…", "hf:…" for weights in this process with a LoRA
    `adapter` or without, "gguf:…" for a file that llama.cpp serves on this machine, else a model at an
    OpenAI-compatible endpoint.

    Without `base_url` that is OpenAI's own; a `client`, which is an `AsyncOpenAI` or `AsyncAzureOpenAI`, sends the
    requests in its own way and remains the caller's to close. Failures that may pass are retried; all who ask one
    endpoint share its limits, and a `patient` policy waits a while for an endpoint that is down.
    """
    if model.startswith(IN_PROCESS):
        return _open_local(model.removeprefix(IN_PROCESS), adapter, timeout)
    if model.startswith(GGUF):
        from hira.policies.llama import LlamaPolicy

        served = LlamaPolicy(model.removeprefix(GGUF), continuation, timeout)
        return _harden(served, served.place, served.where, patient=patient)
    if model == OFFLINE:
        from hira.policies.offline import OfflinePolicy

        return OfflinePolicy()
    if model.startswith(LITELLM):
        from hira.policies.litellm import LiteLLMPolicy

        name = model.removeprefix(LITELLM)
        through = LiteLLMPolicy(name, base_url, api_key, key_origin=key_origin, seconds=timeout.reply)
        place = base_url or f"{LITELLM}{name.partition('/')[0]}"
        return _harden(through, place, through.where, patient=patient)
    from hira.policies.openai import OpenAIPolicy

    policy = OpenAIPolicy(
        model,
        base_url or OPENAI_URL,
        api_key,
        client=client,
        api=api,
        key_origin=key_origin,
        continuation=continuation,
        extra_body=extra_body,
        timeout=timeout,
    )
    return _harden(policy, policy.base_url, policy.where, patient=patient)


def _open_local(name: str, adapter: str, timeout: Timeout) -> Policy:
    from hira.policies.fitting import ContextTrimmer
    from hira.policies.local.loading import OpenedLocally

    policy = OpenedLocally(name, adapter, timeout.reply)
    missing = next((name for name in ("torch", "transformers") if find_spec(name) is None), "")
    if missing:
        raise UsageError(f"models named {IN_PROCESS}… need {missing}", fix="pip install 'hira[train]'")
    return ContextTrimmer(policy)


def _harden(policy: Policy, endpoint: str, where: str, *, patient: bool) -> Policy:
    """The policy, retried, and within the limits of its endpoint and its window."""
    from hira.policies.fitting import ContextTrimmer
    from hira.policies.limited import gate_at

    return ContextTrimmer(Retrying(policy, partial(gate_at, endpoint), where, patient))
