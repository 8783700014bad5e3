"""The demo's model: half a million parameters, made at random."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the model is. `window` is the most tokens of a conversation."""

    window: int = 256
    hidden: int = 128
    heads: int = 4
    layers: int = 2


SHAPE = Shape()


def model(tokenizer: Any, seed: int, shape: Shape = SHAPE) -> Any:
    """A Qwen3: of Qwen2, transformers would not load the tokenizer as it was saved.

    A larger initialisation than 0.06 keeps it on a plateau for long.
    """
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=shape.hidden,
            intermediate_size=3 * shape.hidden,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.heads,
            head_dim=shape.hidden // shape.heads,
            max_position_embeddings=shape.window,
            initializer_range=0.06,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
        )
    )
