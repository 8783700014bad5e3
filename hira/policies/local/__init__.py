"""Weights in this process: `hf:NAME_OR_PATH` answers without a server, and trainers sample through the same classes."""

import asyncio
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from hira.core.errors import ContextOverflow, TimedOut
from hira.core.messages import Message
from hira.core.policy import Completion, Delta, Request, Tokens, Usage, Watch, role_of
from hira.policies.dialects.thought import split_thought
from hira.policies.local.engine import Engine, Sampled, SampleRequest
from hira.policies.local.template import Template, opens_thought
from hira.policies.reply import ReplyParts, trim_repetition

KEPT = 8192


@dataclass(frozen=True, slots=True)
class CachedRow:
    """A conversation so far: the `messages` of its last request, and the `ids` and the `text` of prompt and reply."""

    messages: tuple[Message, ...]
    ids: "array[int]"
    text: str


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """The prompt that the model continues: `ids`, and the same as `text`; `before` is the row that it lengthens."""

    ids: tuple[int, ...]
    text: str
    before: int | None = None


class Conversations:
    """The open rows of all conversations of one policy; beyond `kept`, the least recently used are forgotten.

    Rows of runs with the same questions are distinguished by their message objects, of which each run has its own.
    `counts` counts `turns`, `rows` begun, and `broken` rows, whose conversation had a row that does not fit.
    """

    def __init__(self, template: Template) -> None:
        self.template = template
        self.counts: Counter[str] = Counter()
        self._kept = KEPT
        self._number = 0
        self._rows: dict[int, tuple[str, CachedRow]] = {}

    def prompt(self, request: Request) -> TokenPrompt:
        """Return the ids to continue. A turn is kept only once `keep` gets its outcome."""
        text = self.template.prompt(request)
        rows = self._candidates(request)
        fitting = [number for number, row in rows.items() if len(row.text) < len(text) and text.startswith(row.text)]

        def rank(number: int) -> tuple[int, int]:
            """By the messages that are the very same objects, then by its length."""
            pairs = zip(rows[number].messages, request.messages, strict=False)
            return sum(message is other for message, other in pairs), len(rows[number].text)

        best = max(fitting, key=rank, default=None)
        self.counts["turns"] += 1
        if best is not None:
            added = text[len(rows[best].text) :]
            ids = self.template.encode(added)
            if self.template.decode(ids) == added:  # else it cannot be written apart from what precedes it
                return TokenPrompt((*rows[best].ids, *ids), text, best)
        self.counts["rows"] += 1
        self.counts["broken"] += any(_earlier(row, request) for row in rows.values())
        return TokenPrompt(tuple(self.template.encode(text)), text)

    def keep(self, request: Request, prompt: TokenPrompt, sampled: Sequence[int], text: str) -> None:
        self._rows.pop(prompt.before or 0, None)  # another turn may have continued it meanwhile
        self._number += 1
        row = CachedRow(request.messages, array("l", (*prompt.ids, *sampled)), prompt.text + text)
        self._rows[self._number] = (request.conversation, row)
        while len(self._rows) > self._kept:
            del self._rows[next(iter(self._rows))]

    def _candidates(self, request: Request) -> dict[int, CachedRow]:
        """The rows that the request may lengthen: those that began with the same message, else, for a resumed run, all
        rows of the conversation's name."""
        if all(message.role != "assistant" for message in request.messages):
            return {}
        named = {number: row for number, (name, row) in self._rows.items() if name == request.conversation}
        same_opening = {number: row for number, row in named.items() if row.messages[0] is request.messages[0]}
        return same_opening or named


def _earlier(row: CachedRow, request: Request) -> bool:
    known = row.messages
    if known and known[-1].role == "assistant":
        known = known[:-1]  # a new message continues it
    same = all(message is other for message, other in zip(known, request.messages, strict=False))
    return same and len(known) < len(request.messages)


_EVERY = 4
_THOUGHT = "<thinking>"


class Streamed:
    """Sends the new text of a reply to the caller. Text that may be the beginning of a stop string is held back."""

    def __init__(self, template: Template, request: Request, watch: Watch, *, opened: bool) -> None:
        self._template = template
        self._watch = watch
        self._opened = opened
        self._stops = request.stop
        self._held = max([len("</thinking>\n"), *map(len, self._stops)])
        self._ids: list[int] = []
        self._settled = ("", 0)
        self._told = ("", "")

    def see(self, token: int) -> None:
        if token not in self._template.ends:
            self._ids.append(token)
        if len(self._ids) % _EVERY:
            return
        # only the last ids are decoded again: a character may be made of several of them
        settled, start = self._settled
        written = settled + self._template.decode(self._ids[start:])
        if len(self._ids) - start > 4 * _EVERY and not written.endswith("\ufffd"):
            self._settled = (written, len(self._ids))
        if _THOUGHT.startswith(written.lstrip()[: len(_THOUGHT)]):
            return
        reasoning, text, closed = split_thought(written, opened=self._opened)
        if not closed:
            self.push(reasoning[: -self._held].rstrip(), "")
            return
        positions = [position for stop in self._stops if (position := text.find(stop)) >= 0]
        end = max(0, min([len(text) - self._held, *positions]))
        self.push(reasoning, text[:end].rstrip())

    def push(self, reasoning: str, text: str) -> None:
        """Send the new text; earlier text that is not a beginning of it is not taken back."""
        told = self._told
        if reasoning.startswith(told[0]) and reasoning != told[0]:
            self._watch(Delta(reasoning[len(told[0]) :], reasoning=True))
        if text.startswith(told[1]) and text != told[1]:
            self._watch(Delta(text[len(told[1]) :]))
        self._told = (reasoning, text)


LONGEST_REPLY = 8192
SECONDS = 900.0
REMEMBERED = 512
"""Texts whose numbers of tokens are kept."""


class LocalPolicy:
    """Samples with an engine, through a chat template; every completion carries its token ids.

    `model` is what the policy is called. `adapter` names the LoRA adapter of all roles, or of each role, with `*` for
    the others; None is the base alone. `seconds` is the longest that a call may take. The `model` of a `versioned`
    policy's completion, such as `policy:planner@3`, names the model, the adapter and the number of weight updates so
    far. A JSON `schema` is left to the prompt: nothing forces the reply to follow it.
    """

    def __init__(
        self,
        model: str,
        template: Template,
        engine: Engine,
        adapter: Mapping[str, str | None] | str | None = None,
        *,
        seconds: float = SECONDS,
        versioned: bool = False,
    ) -> None:
        self.conversations = Conversations(template)
        self.engine = engine
        self.template = template
        self._adapters = adapter if isinstance(adapter, Mapping) else {"*": adapter}
        self.model = model
        self._seconds = seconds
        self._versioned = versioned
        self._where = f"model {model!r}"
        self._counted = lru_cache(REMEMBERED)(lambda text: len(template.encode(text)))

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        prompt = self.conversations.prompt(request)
        length, window = len(prompt.ids), self.engine.window
        if length >= window:
            what = f"the prompt has {length:,} tokens, and the model's window takes {window:,}"
            overflow = ContextOverflow(what, where=self._where, fix="give it less to read, or use another model")
            overflow.window, overflow.asked = window, length
            raise overflow
        longest = min(window - length, request.sampling.max_tokens or LONGEST_REPLY)
        sampling = replace(request.sampling, max_tokens=longest)
        streamed = Streamed(self.template, request, watch, opened=opens_thought(prompt.text)) if watch else None
        role = role_of(request.conversation)
        adapter = self._adapters[role if role in self._adapters else "*"]
        seen = streamed.see if streamed else None
        try:
            async with asyncio.timeout(self._seconds):
                sampled = await self.engine.sample(SampleRequest(prompt.ids, sampling, request.stop, adapter, seen))
        except TimeoutError:
            what = f"no whole reply within {self._seconds:g} seconds"
            fix = "reduce max_reply_tokens, or increase [timeout] in hira.toml"
            raise TimedOut(what, where=self._where, fix=fix) from None
        completion = self._completion(request, prompt, sampled, adapter)
        if streamed:
            streamed.push(completion.reasoning, completion.text)
        return completion

    def count(self, text: str) -> int:
        """Tokens of a text, by the model's own tokenizer. The last texts are remembered."""
        return self._counted(text)

    async def aclose(self) -> None:
        await self.engine.aclose()

    def _completion(self, request: Request, prompt: TokenPrompt, sampled: Sampled, adapter: str | None) -> Completion:
        text = self.template.decode(sampled.ids)
        self.conversations.keep(request, prompt, sampled.ids, text)
        if sampled.stop is not None and (position := text.find(sampled.stop)) >= 0:
            text = text[:position]
        elif sampled.finish == "stop" and sampled.ids and sampled.ids[-1] in self.template.ends:
            text = self.template.decode(sampled.ids[:-1])
        thought = split_thought(text, opened=opens_thought(prompt.text))
        parts = ReplyParts(thought.text, thought.reasoning, finish=sampled.finish)
        trim_repetition(parts)
        model = f"{self.model}:{adapter}" if adapter and self._versioned else self.model
        return Completion(
            parts.text,
            parts.reasoning,
            finish="stop" if parts.finish == "stop" else "length",
            stop=sampled.stop,
            usage=Usage(1, len(prompt.ids), len(sampled.ids), cost=0.0),
            model=f"{model}@{sampled.version}" if self._versioned else model,
            tokens=Tokens(prompt.ids, sampled.ids, sampled.logprobs),
            notes=(parts.cut,) if parts.cut else (),
        )
