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

from hira.core.messages import Message
from hira.core.policy import Request
from hira.policies.local.template import Template

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
        self._rows: OrderedDict[int, tuple[str, Row]] = OrderedDict()
        self._named: dict[str, dict[int, dict[int, Row]]] = {}

    def prompt(self, request: Request) -> Prompt:
        """The ids to go on from. Nothing is kept of a turn until `keep` is told what came of it."""
        text = self.template.prompt(request)
        rows = self._candidates(request)
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
            self._forget(prompt.before)
        self._number += 1
        row = Row(request.messages, array("l", (*prompt.ids, *sampled)), prompt.text + said)
        self._rows[self._number] = (request.conversation, row)
        begun = self._named.setdefault(request.conversation, {}).setdefault(_first(row.messages), {})
        begun[self._number] = row
        while len(self._rows) > self._kept:
            self._forget(next(iter(self._rows)))

    def _candidates(self, request: Request) -> dict[int, Row]:
        """The rows that the request may lengthen: those that began with the same message, else, for a run that was
        taken up again, all of the conversation's name."""
        if all(message.role != "assistant" for message in request.messages):
            return {}
        named = self._named.get(request.conversation, {})
        own = named.get(_first(request.messages))
        return own or {number: row for rows in named.values() for number, row in rows.items()}

    def _added(self, text: str) -> list[int] | None:
        """The ids of what the environment added; None if the tokenizer cannot write it apart from what precedes it."""
        ids = self.template.encode(text)
        return ids if self.template.decode(ids) == text else None

    def _forget(self, number: int) -> None:
        if number not in self._rows:  # another turn went on from it meanwhile
            return
        name, row = self._rows.pop(number)
        named = self._named[name]
        del named[_first(row.messages)][number]
        if not named[_first(row.messages)]:
            del named[_first(row.messages)]
        if not named:
            del self._named[name]


def _first(messages: Sequence[Message]) -> int:
    """Names the run that a message began: a row holds its messages, so that no other object has this number."""
    return id(messages[0])


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
