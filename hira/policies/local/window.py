"""What a model takes: how long a prompt, how many rows at once, and whether it can be sampled here at all."""

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
    return min([int(one) for one in known if one and one < _UNSET], default=_UNSET)


def check_supported(model: Any) -> None:
    """Raise `UsageError` for a model whose memory is no keys and values of attention: its rows could not be padded."""
    kinds = set(getattr(model.config.get_text_config(), "layer_types", None) or ())
    if not kinds <= _ATTENTION or getattr(model, "_is_stateful", False):
        kind = ", ".join(sorted(kinds - _ATTENTION)) or type(model).__name__
        what = f"a model with {kind} cannot be sampled in this process"
        raise UsageError(what, fix="serve it with vLLM and set --base-url")


def places(model: Any) -> int:
    """The bytes of keys and values that one token takes."""
    config = model.config.get_text_config()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    element = torch.finfo(model.dtype).bits // 8 if model.dtype.is_floating_point else 2
    return int(2 * config.num_hidden_layers * heads * size * element)


def capacity(model: Any) -> int:
    """How many tokens of keys and values may be held at once: on a GPU in half of the memory that is free."""
    device = next(model.parameters()).device
    if device.type != "cuda":
        return _PLACES_ON_CPU
    free, _ = torch.cuda.mem_get_info(device)
    return max(1, int(free * _SHARE) // places(model))
