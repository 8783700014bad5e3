"""The inputs that a loaded model takes, and its active adapter."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from hira.core.errors import UsageError

_UNSET = 1_000_000
_SHARE = 0.5
_PLACES_ON_CPU = 131_072
_ATTENTION = {"full_attention", "sliding_attention", "chunked_attention", "attention"}


def window_of(model: Any, tokenizer: Any) -> int:
    """How many tokens prompt and reply may have together."""
    config = model.config.get_text_config()
    known = [getattr(config, "max_position_embeddings", None), getattr(tokenizer, "model_max_length", None)]
    return min([int(window) for window in known if window and window < _UNSET], default=_UNSET)


def check_supported(model: Any) -> None:
    """Raise `UsageError` for a model whose memory is no keys and values of attention: its rows could not be padded."""
    kinds = set(getattr(model.config.get_text_config(), "layer_types", None) or ())
    if not kinds <= _ATTENTION or getattr(model, "_is_stateful", False):
        kind = ", ".join(sorted(kinds - _ATTENTION)) or type(model).__name__
        what = f"a model with {kind} cannot be sampled in this process"
        raise UsageError(what, fix="serve it with vLLM and name that (--base-url or base_url=)")


def capacity(model: Any) -> int:
    """How many tokens of keys and values may be held at once: on a GPU in half of the memory that is free."""
    device = next(model.parameters()).device
    if device.type != "cuda":
        return _PLACES_ON_CPU
    config = model.config.get_text_config()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    element = torch.finfo(model.dtype).bits // 8 if model.dtype.is_floating_point else 2
    free, _ = torch.cuda.mem_get_info(device)
    return max(1, int(free * _SHARE) // int(2 * config.num_hidden_layers * heads * size * element))


@contextmanager
def at_rest(model: Any) -> Iterator[None]:
    """Evaluation mode, without dropout, on the model's device: a new thread begins with the first. Afterwards modes,
    active adapters and what is trained are as they were."""
    training = [module for module in model.modules() if module.training]
    trained = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    active = adapters_in(model) and list(model.active_adapters)
    device = next(model.parameters()).device
    model.eval()
    try:
        with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
            yield
    finally:
        for module in training:
            module.training = True
        if active:
            _activate(model, active)
        for parameter, was in trained:
            parameter.requires_grad_(was)


@contextmanager
def use_adapter(model: Any, adapter: str | None) -> Iterator[Any]:
    """The base model with this adapter in it, None with none. Nothing is merged into its weights."""
    if not adapters_in(model):
        yield model
    elif adapter is None:
        model.base_model.disable_adapter_layers()
        try:
            yield model.get_base_model()
        finally:
            model.base_model.enable_adapter_layers()
    else:
        if list(model.active_adapters) != [adapter]:
            _activate(model, [adapter])
        yield model.get_base_model()


def adapters_in(model: Any) -> list[str]:
    """The names of the adapters of a PEFT model; none of any other."""
    return list(model.peft_config) if hasattr(model, "peft_config") and hasattr(model, "get_base_model") else []


def _activate(model: Any, adapters: list[str]) -> None:
    if len(adapters) == 1:
        model.set_adapter(adapters[0])
    else:
        model.base_model.set_adapter(adapters)
