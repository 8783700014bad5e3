"""Policies by name. Each is loaded when it is first used, because the SDKs behind them are heavy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hira.policy import Policy

if TYPE_CHECKING:
    from hira.policies.chat import Continuation

OPENAI_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which model, and where. `key_origin` says in error messages where the key came from."""

    model: str
    base_url: str = ""
    api_key: str = ""
    key_origin: str = ""
    continuation: "Continuation" = "none"
    extra_body: Mapping[str, Any] | None = None


def open_policy(
    model: str,
    *,
    base_url: str = "",
    api_key: str = "",
    key_origin: str = "",
    continuation: "Continuation" = "none",
    extra_body: Mapping[str, Any] | None = None,
) -> Policy:
    """The policy that the model's name asks for: "offline", "litellm/…", else a model at an OpenAI-compatible endpoint.

    Without `base_url` that is OpenAI's own. Failures that may pass are retried.
    """
    wanted = Wanted(model, base_url, api_key, key_origin, continuation, extra_body)
    kind, slash, _ = model.partition("/")
    return KINDS.get(kind + slash, _openai)(wanted)


def _offline(wanted: Wanted) -> Policy:
    from hira.policies.offline import OfflinePolicy

    del wanted
    return OfflinePolicy()


def _litellm(wanted: Wanted) -> Policy:
    from hira.policies.litellm import LiteLLMPolicy
    from hira.policies.retrying import retrying

    model = wanted.model.removeprefix("litellm/")
    return retrying(LiteLLMPolicy(model, wanted.base_url, wanted.api_key, key_origin=wanted.key_origin))


def _openai(wanted: Wanted) -> Policy:
    from hira.policies.openai import OpenAIPolicy
    from hira.policies.retrying import retrying

    policy = OpenAIPolicy(
        wanted.model,
        wanted.base_url or OPENAI_URL,
        wanted.api_key,
        key_origin=wanted.key_origin,
        continuation=wanted.continuation,
        extra_body=wanted.extra_body,
    )
    return retrying(policy)


KINDS: Mapping[str, Callable[[Wanted], Policy]] = {"offline": _offline, "litellm/": _litellm}
