"""The demo's tokenizer: names are tokens, and so is every phrase of the prompts between them.

A model of half a million parameters could read the workflow's prompts letter by letter, but not in ten minutes. So the
vocabulary is learned from conversations of the real workflow: texts are cut at names, at dates, at the ids of sources
and at the end of every line that a role wrote; each piece is a token. Whatever else comes is read letter by letter,
so nothing is lost and any text can be asked.
"""

import re
import string
from collections.abc import Iterable, Sequence
from typing import Any

from hira.core.messages import Message

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
"""Ids of sources, and dates: names to a workflow that reads documents."""


def phrases(conversations: Iterable[Sequence[Message]], names: Sequence[str], inserted: Sequence[str]) -> list[str]:
    """The pieces of all messages between names and dates, in the order in which they first come.

    `inserted` are texts that stand in prompts: questions and subtasks are cut out first, so that they are made of the
    same pieces wherever they stand.
    """
    names_ = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    whole = re.compile("(" + "|".join(sorted(map(re.escape, inserted), key=len, reverse=True)) + ")")
    prompted = re.compile(rf"{_DATE}|\b(?:{names_})\b")
    free = re.compile(rf"{_DATE}|{_ID}|\b(?:{names_})\b")
    found: dict[str, None] = {}
    for message in (message for messages in conversations for message in messages):
        own = message.role == "assistant"
        cut = free if own or message.prompt == "result" else prompted
        for part in [message.text] if own else whole.split(message.text):
            for piece in cut.split(part):
                found.update(dict.fromkeys(re.findall(r"[^\n]*\n|[^\n]+", piece) if own else [piece]))
    return [piece for piece in found if len(piece) > 1]


def tokenizer(pieces: Sequence[str], names: Sequence[str], window: int) -> Any:
    """A tokenizer of transformers over letters, names and these pieces. Nothing is lost."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = dict.fromkeys([*string.printable, *sorted({sign for piece in pieces for sign in piece})])
    vocabulary = {one: at for at, one in enumerate([PAD, BEGIN, END, UNKNOWN, *letters])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    inner.decoder = decoders.Fuse()
    inner.add_special_tokens([PAD, BEGIN, END])
    roles = ["system\n", "user\n", "assistant\n"]
    known = dict.fromkeys([*roles, *names, *pieces])
    inner.add_tokens([AddedToken(one, normalized=False) for one in known])
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
