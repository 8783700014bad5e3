"""Policies by name. Each is loaded at its first use, because their SDKs are heavy."""

from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hira.core.errors import UsageError
from hira.core.policy import Policy
from hira.core.sanitize import without_userinfo
from hira.policies.names import GGUF, IN_PROCESS, LITELLM, OFFLINE, OPENAI_URL, Api, Continuation, has_own_place

if TYPE_CHECKING:
    from hira.policies.waiting import Timeout


def open_policy(  # noqa: PLR0913 - each says one thing of the place
    model: str,
    *,
    base_url: str = "",
    api_key: str = "",
    key_origin: str = "",
    continuation: Continuation = "none",
    extra_body: Mapping[str, Any] | None = None,
    patient: bool = True,
    adapter: str = "",
    client: Any = None,
    timeout: "Timeout | None" = None,
    api: Api = "chat",
) -> Policy:
    """Open the policy that a model's name means: "offline", "litellm/…", "hf:…" for weights in this process, with a
    LoRA `adapter` or without, "gguf:…" for a file that llama.cpp serves here, else a model at an OpenAI-compatible
    endpoint, OpenAI's own without `base_url`.

    A `client` (`AsyncOpenAI` or `AsyncAzureOpenAI`) sends the requests itself; the caller closes it. All policies of
    one endpoint share its limits; a `patient` one waits a while for an endpoint that is down.
    """
    if extra_body and has_own_place(model):
        what = f"`extra_body` is for models at an OpenAI-compatible endpoint, not for {model!r}"
        raise UsageError(what, fix="leave it out, or name the base_url of the server of this model")
    if model == OFFLINE:
        from hira.policies.offline import OfflinePolicy

        return OfflinePolicy()
    from hira.policies.endpoint import Endpoint
    from hira.policies.limited import gate_at
    from hira.policies.waiting import USUAL

    timeout = timeout or USUAL
    if model.startswith(IN_PROCESS):
        from hira.policies.local.loading import OpenedLocally

        local = OpenedLocally(model.removeprefix(IN_PROCESS), adapter, timeout.reply)
        if missing := next((name for name in ("torch", "transformers") if find_spec(name) is None), ""):
            raise UsageError(f"models named {IN_PROCESS}… need {missing}", fix="pip install 'hira[train]'")
        return Endpoint(local, attempts=1)
    policy: Any
    if model.startswith(GGUF):
        from hira.policies.llama import LlamaPolicy

        policy = LlamaPolicy(model.removeprefix(GGUF), continuation, timeout)
        place = policy.place
    elif model.startswith(LITELLM):
        from hira.policies.litellm import LiteLLMPolicy

        name = model.removeprefix(LITELLM)
        policy = LiteLLMPolicy(name, base_url, api_key, key_origin=key_origin, seconds=timeout.reply)
        place = without_userinfo(base_url) or f"{LITELLM}{name.partition('/')[0]}"
    else:
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
        place = policy.base_url
    return Endpoint(policy, partial(gate_at, place), policy.where, patient)
