"""Token in, token out: a conversation keeps the ids that were sampled, and only what is new is made into tokens.

What the run-time prompt is, as text, is always what the chat template renders from the request's messages. As long as
that text begins with what the model has read and written so far, the ids go on from there, with the sampled ones as
they were sampled; nothing is ever decoded and encoded again. Where it does not, because a template strips earlier
reasoning or a dialect has cut what the model wrote, a new row begins with a rendering of the whole, and it is counted.
"""

from array import array
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from hira.messages import Message
from hira.policies.local.template import Template
from hira.policy import Request

KEPT = 8192


@dataclass(frozen=True, slots=True)
class Row:
    """A conversation so far: the `messages` that were asked last, and the `ids` and the `text` of prompt and reply."""

    messages: tuple[Message, ...]
    ids: "array[int]"
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is asked to go on from: `ids`, and the same as `text`; `before` is the row that it lengthens."""

    ids: tuple[int, ...]
    text: str
    before: int | None = None


class Conversations:
    """The open rows of all conversations of one policy; the least recently used are forgotten over `kept`.

    Rows of runs that ask the same are told apart by their messages, which are objects of their own in each run.
    `counts` tells `turns`, `rows` (begun), and of those `broken` ones, whose conversation had a row that does not fit.
    """

    def __init__(self, template: Template, *, kept: int = KEPT) -> None:
        self.template = template
        self.counts: Counter[str] = Counter()
        self._kept = kept
        self._number = 0
        self._rows: OrderedDict[int, Row] = OrderedDict()
        self._named: dict[str, dict[int, Row]] = {}

    def prompt(self, request: Request) -> Prompt:
        """The ids to go on from. Nothing is kept of a turn until `keep` is told what came of it."""
        text = self.template.prompt(request)
        rows = self._named.get(request.conversation, {})
        fitting = [number for number, row in rows.items() if len(row.text) < len(text) and text.startswith(row.text)]
        best = max(fitting, key=lambda number: _shared(rows[number], request), default=None)
        self.counts["turns"] += 1
        if best is not None and (added := self._added(text[len(rows[best].text) :])) is not None:
            return Prompt((*rows[best].ids, *added), text, best)
        self.counts["rows"] += 1
        self.counts["broken"] += any(_earlier(row, request) for row in rows.values())
        return Prompt(tuple(self.template.encode(text)), text)

    def keep(self, request: Request, prompt: Prompt, sampled: Sequence[int], said: str) -> None:
        """Keep what the model wrote after the prompt: its ids and, as `said`, their text."""
        if prompt.before is not None:
            self._forget(request.conversation, prompt.before)
        self._number += 1
        row = Row(request.messages, array("l", (*prompt.ids, *sampled)), prompt.text + said)
        self._rows[self._number] = row
        self._named.setdefault(request.conversation, {})[self._number] = row
        while len(self._rows) > self._kept:
            oldest = next(iter(self._rows))
            name = next(name for name, rows in self._named.items() if oldest in rows)
            self._forget(name, oldest)

    def _added(self, text: str) -> list[int] | None:
        """The ids of what the environment added; None if the tokenizer cannot write it apart from what precedes it."""
        ids = self.template.encode(text)
        return ids if self.template.decode(ids) == text else None

    def _forget(self, name: str, number: int) -> None:
        self._rows.pop(number, None)
        rows = self._named.get(name, {})
        rows.pop(number, None)
        if not rows:
            self._named.pop(name, None)


def _shared(row: Row, request: Request) -> tuple[int, int]:
    """How well a row fits: by the messages that are the very same objects, then by its length."""
    same = sum(one is other for one, other in zip(row.messages, request.messages, strict=False))
    return same, len(row.text)


def _earlier(row: Row, request: Request) -> bool:
    """Whether the request goes on from where the row was asked."""
    known = row.messages
    if known and known[-1].role == "assistant":
        known = known[:-1]  # it is carried on in a new message
    here = request.messages[: len(known)]
    return (
        len(here) < len(request.messages)
        and all(one is other for one, other in zip(known, here, strict=False))
        and len(known) == len(here)
    )
