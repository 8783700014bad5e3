"""The tiny demo's model and tokenizer: half a million random parameters that read a phrase as one token.

Such a model could read the workflow's prompts letter by letter, but not in ten minutes. So the vocabulary is learned
from conversations of the real workflow: texts are split at names, dates, source ids and at the end of every line that a
role wrote; each piece is a token. Any other text is read letter by letter, so any question can be asked.
"""

import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hira.core.messages import Message


@dataclass(frozen=True, slots=True)
class TinyShape:
    """The sizes of the model. `window` is the most tokens of a conversation."""

    window: int = 256
    hidden: int = 128
    heads: int = 4
    layers: int = 2


SHAPE = TinyShape()


def make_model(tokenizer: Any, seed: int, shape: TinyShape = SHAPE) -> Any:
    """Return a Qwen3: for Qwen2, transformers would not load the tokenizer as it was saved.

    A larger initialisation than 0.06 keeps it on a plateau for a long time.
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


END, PAD, UNKNOWN = "<|im_end|>", "<|pad|>", "�"
BEGIN = "<|im_start|>"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_DATE = r"\d{4}-\d\d-\d\d"
_ID = r"(?<=\[)/?s\d+(?=\])"
IDS = 12
YEARS = tuple(map(str, range(2024, 2048)))
DAYS = tuple(f"-{number:02}" for number in range(1, 32))
READ = (*(f"{slash}s{number}" for number in range(1, IDS + 1) for slash in ("", "/")), *YEARS, *DAYS)
"""Ids of sources, and dates: names for a workflow that reads documents."""


def find_phrases(
    conversations: Iterable[Sequence[Message]], names: Sequence[str], inserted: Sequence[str]
) -> list[str]:
    """Return the pieces of all messages between names and dates, in the order of their first occurrence.

    `inserted` are texts within prompts, questions and subtasks: they are cut out first, so that they consist of the
    same pieces everywhere.
    """
    names_ = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    whole = re.compile("(" + "|".join(sorted(map(re.escape, inserted), key=len, reverse=True)) + ")")
    prompted = re.compile(rf"{_DATE}|\b(?:{names_})\b")
    free = re.compile(rf"{_DATE}|{_ID}|\b(?:{names_})\b")
    phrases: dict[str, None] = {}
    for message in (message for messages in conversations for message in messages):
        is_reply = message.role == "assistant"
        cut = free if is_reply or message.prompt == "result" else prompted
        for part in [message.text] if is_reply else whole.split(message.text):
            for piece in cut.split(part):
                phrases.update(dict.fromkeys(re.findall(r"[^\n]*\n|[^\n]+", piece) if is_reply else [piece]))
    return [piece for piece in phrases if len(piece) > 1]


def make_tokenizer(pieces: Sequence[str], names: Sequence[str], window: int) -> Any:
    """Return a tokenizer of transformers over letters, names and these pieces. Nothing is lost."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = dict.fromkeys([*string.printable, *sorted({sign for piece in pieces for sign in piece})])
    vocabulary = {token: index for index, token in enumerate([PAD, BEGIN, END, UNKNOWN, *letters])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    inner.decoder = decoders.Fuse()
    inner.add_special_tokens([PAD, BEGIN, END])
    roles = ["system\n", "user\n", "assistant\n"]
    known = dict.fromkeys([*roles, *names, *pieces])
    inner.add_tokens([AddedToken(token, normalized=False) for token in known])
    made = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=inner,
        eos_token=END,
        pad_token=PAD,
        unk_token=UNKNOWN,
        additional_special_tokens=[BEGIN],
        model_max_length=window,
    )
    made.chat_template = TEMPLATE
    return made
