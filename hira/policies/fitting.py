"""Prompts that are too long for their model are shortened, instead of losing the run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hira.core.errors import ContextOverflow
from hira.core.messages import Message
from hira.core.policy import Request
from hira.core.prompts import Prompt
from hira.core.sanitize import clean
from hira.core.tokens import clip, count

LEFT_OUT = Prompt(__file__, "left_out")
# the prompt's share of the window that an endpoint names; the rest is for the reply and for differences in counting
PROMPT_SHARE = 0.75
AGAIN_SHARE = 0.6
SHORTEST = 200
# the factor by which servers may count more tokens, and the least share of a window for the reply, as a divisor
COUNTED_AS = 1.1
LEAST_REPLY = 4
_BYTES = 4


@dataclass(slots=True)
class Window:
    """How long prompts may be: `limit` is the most tokens of a prompt by our count, `size` the most of prompt and reply
    together; both are 0 while unknown."""

    limit: int = 0
    size: int = 0

    def fit(self, request: Request) -> Request:
        if not (self.size or self.limit):
            return request
        limit = self.limit
        if self.size:
            reply = min(request.sampling.max_tokens or self.size, self.size // LEAST_REPLY)
            tools = count(str(request.tools)) if request.tools else 0
            room = max(SHORTEST, self.size - reply - tools)
            limit = min(limit or room, room)
        if self._count(request, limit) <= limit:
            return request
        messages = trim_messages(request.messages, limit)
        return request if messages == request.messages else replace(request, messages=messages)

    def narrow(self, sent: Request, overflow: ContextOverflow) -> bool:
        """Learn from a prompt that was too long. Return False if it cannot be shortened."""
        ours = sum(count(message.text) for message in sent.messages)
        scale = ours / overflow.asked if overflow.asked else 1.0
        room = overflow.window * scale * PROMPT_SHARE if overflow.window else ours / 2
        self.limit = max(SHORTEST, int(room if room < ours else ours * AGAIN_SHARE))
        return self.fit(sent) is not sent

    def leave_room(self, request: Request) -> Request:
        """The request for a reply no longer than the window leaves room for."""
        limit = request.sampling.max_tokens
        if not self.size or limit is None or self._count(request, self.size - limit) <= self.size - limit:
            return request
        room = max(self.size // LEAST_REPLY, self.size - int(COUNTED_AS * self._count(request, 0)))
        return replace(request, sampling=replace(request.sampling, max_tokens=min(limit, room)))

    def _count(self, request: Request, limit: int) -> int:
        """The approximate number of tokens of the prompt; an upper bound, without counting, for one that surely
        fits."""
        most = _BYTES * (sum(len(message.text) for message in request.messages) + len(str(request.tools)))
        if most <= limit:
            return most
        return sum(count(message.text) for message in request.messages) + count(str(request.tools))


def trim_messages(messages: Sequence[Message], limit: int) -> tuple[Message, ...]:
    """The messages in about `limit` tokens: results of calls give way to one line, the oldest first, the newest never;
    after that the longest messages lose their middle. Calls and results stay paired.
    """
    short, sizes = list(messages), [count(message.text) for message in messages]
    over = sum(sizes) - limit

    def put(index: int, text: str) -> None:
        nonlocal over
        short[index] = replace(short[index], text=text)
        size = count(text)
        over -= sizes[index] - size
        sizes[index] = size

    note = LEFT_OUT.fill()
    results = [(index, text) for index, message in enumerate(messages) for _, text in message.values.get("results", ())]
    for index, text in results[:-1]:
        if over <= 0:
            break
        if len(text) > len(note):
            put(index, short[index].text.replace(clean(text), note, 1))
    for index in sorted(range(len(short)), key=lambda place: -sizes[place]):
        if over <= 0:
            break
        put(index, clip(short[index].text, max(SHORTEST, sizes[index] - over), middle=True))
    return tuple(short)
