"""Names of models, parsed in one place: a name says the provider, the place and the weights."""

import ipaddress
from importlib.util import find_spec
from typing import Literal
from urllib.parse import urlsplit

from hira.core.errors import UsageError

# The APIs of OpenAI that an endpoint may speak.
Api = Literal["chat", "responses"]
# How an endpoint continues a message of the assistant.
Continuation = Literal["none", "continue_final_message", "prefix", "completions"]
OFFLINE = "offline"
NOTHING_FOUND = "no endpoint, key or local server was found"
"""The origin of the model `offline` where nobody named one."""
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
# Providers that may also come before a colon. Others would look like models of Ollama such as `mistral:7b`.
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
        fix = "pip install 'hira[litellm]', or name an OpenAI-compatible endpoint that has it (--base-url or base_url=)"
        raise UsageError(what, fix=fix)
    return f"{LITELLM}{provider}/{model}"


def _provider_of(name: str) -> tuple[str, str]:
    """The provider that a name names, and its model there; an empty provider if it names none."""
    for sign, known in (("/", PROVIDERS | _BEFORE_COLON), (":", _BEFORE_COLON)):
        provider, separator, model = name.partition(sign)
        if separator and model and provider in known:
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
    model, separator, rest = name.partition("@http")
    return model, f"http{rest}" if separator else ""


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
