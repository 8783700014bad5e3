"""Policies by name. Each is loaded when it is first used, because the SDKs behind them are heavy."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hira.core.dataclasses import dataclass
from hira.core.errors import UsageError
from hira.core.policy import Policy
from hira.policies.names import GGUF, IN_PROCESS, Api
from hira.policies.retrying import USUAL, Timeout

if TYPE_CHECKING:
    from hira.policies.chat import Continuation

OPENAI_URL = "https://api.openai.com/v1"
# Where model servers usually listen: Ollama, LM Studio, vLLM, llama.cpp, SGLang.
LOCAL_PORTS = (11434, 1234, 8000, 8080, 30000)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which model, and where. `key_origin` says in error messages where the key came from; a `patient` policy waits a
    while for an endpoint that is down."""

    model: str
    base_url: str = ""
    api_key: str = ""
    key_origin: str = ""
    continuation: "Continuation" = "none"
    extra_body: Mapping[str, Any] | None = None
    patient: bool = True
    adapter: str = ""
    client: Any = None
    timeout: Timeout = USUAL
    api: Api = "chat"


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
    wanted = Wanted(
        model, base_url, api_key, key_origin, continuation, extra_body, patient, adapter, client, timeout, api
    )
    if model.startswith(IN_PROCESS):
        return _local(wanted)
    if model.startswith(GGUF):
        return _llama(wanted)
    kind, slash, _ = model.partition("/")
    return KINDS.get(kind + slash, _openai)(wanted)


def _offline(wanted: Wanted) -> Policy:
    from hira.policies.offline import OfflinePolicy

    del wanted
    return OfflinePolicy()


def _local(wanted: Wanted) -> Policy:
    from hira.policies.fitting import fitting
    from hira.policies.local.loading import open_local

    policy = open_local(wanted.model.removeprefix(IN_PROCESS), wanted.adapter, seconds=wanted.timeout.reply)
    missing = next((name for name in ("torch", "transformers") if find_spec(name) is None), "")
    if missing:
        raise UsageError(f"models named {IN_PROCESS}… need {missing}", fix="pip install 'hira[train]'")
    return fitting(policy)


def _llama(wanted: Wanted) -> Policy:
    from hira.policies.llama.policy import LlamaPolicy

    policy = LlamaPolicy(wanted.model.removeprefix(GGUF), wanted.continuation, wanted.timeout)
    return _steady(policy, policy.place, policy.where, patient=wanted.patient)


def _litellm(wanted: Wanted) -> Policy:
    from hira.policies.litellm import LiteLLMPolicy

    model = wanted.model.removeprefix("litellm/")
    policy = LiteLLMPolicy(
        model, wanted.base_url, wanted.api_key, key_origin=wanted.key_origin, seconds=wanted.timeout.reply
    )
    provider = model.partition("/")[0]
    return _steady(policy, wanted.base_url or f"litellm/{provider}", policy.where, patient=wanted.patient)


def _openai(wanted: Wanted) -> Policy:
    from hira.policies.openai import OpenAIPolicy

    policy = OpenAIPolicy(
        wanted.model,
        wanted.base_url or OPENAI_URL,
        wanted.api_key,
        client=wanted.client,
        api=wanted.api,
        key_origin=wanted.key_origin,
        continuation=wanted.continuation,
        extra_body=wanted.extra_body,
        timeout=wanted.timeout,
    )
    return _steady(policy, policy.base_url, policy.where, patient=wanted.patient)


def _steady(policy: Policy, endpoint: str, where: str, *, patient: bool) -> Policy:
    """The policy, retried, and within the limits of its endpoint and its window."""
    from hira.policies.fitting import fitting
    from hira.policies.limited import gate_at, limit_policy
    from hira.policies.retrying import retrying

    return fitting(retrying(limit_policy(policy, partial(gate_at, endpoint), where=where, patient=patient)))


KINDS: Mapping[str, Callable[[Wanted], Policy]] = {"offline": _offline, "litellm/": _litellm}
