"""Prompts that are too long for their model: shortened and sent again, instead of losing the run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hira.errors import ContextOverflow
from hira.messages import Message
from hira.policy import Completion, Policy, Request, Watch
from hira.prompts import Prompt
from hira.tokens import clip, count
from hira.untrusted import clean

LEFT_OUT = Prompt(__file__, "left_out")
SHORTENED = 2
# of the window that an endpoint names, for the prompt; the rest is for the reply and for what counts differ by
PROMPT_SHARE = 0.75
AGAIN_SHARE = 0.6
SHORTEST = 200


@dataclass(slots=True)
class Fitting:
    """A policy whose prompts are made to fit; see `fitting`. `limit` is what fits, in our tokens, 0 while unknown."""

    policy: Policy
    limit: int = 0

    @property
    def model(self) -> str:
        return self.policy.model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        for again in range(SHORTENED + 1):
            sent = self._shortened(request)
            try:
                completion = await self.policy.complete(sent, watch)
            except ContextOverflow as overflow:
                if again == SHORTENED:
                    raise
                before, self.limit = sent, _room(sent, overflow)
                if self._shortened(request).messages == before.messages:
                    raise
            else:
                if sent is request:
                    return completion
                note = f"{self.model}: the prompt is longer than the model's window; its oldest parts are left out"
                return replace(completion, notes=(*completion.notes, note))
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        await self.policy.aclose()

    def _shortened(self, request: Request) -> Request:
        if not self.limit:
            return request
        messages = fitted(request.messages, self.limit)
        return request if messages == request.messages else replace(request, messages=messages)


def fitting(policy: Policy) -> Policy:
    """The policy; a prompt that its endpoint finds too long is shortened and sent again, twice at most.

    What fits is remembered, so that the next prompt that is too long is not refused first. The conversation itself and
    its record stay whole; a note of the completion says that less was sent.
    """
    return Fitting(policy)


def fitted(messages: Sequence[Message], limit: int) -> tuple[Message, ...]:
    """The messages in about `limit` tokens: results of calls give way to one line, the oldest first, the newest never;
    after that the longest messages lose their middle. Calls and results stay paired.
    """
    short, sizes = list(messages), [count(message.text) for message in messages]
    over = sum(sizes) - limit

    def put(at: int, text: str) -> None:
        nonlocal over
        short[at] = replace(short[at], text=text)
        size = count(text)
        over -= sizes[at] - size
        sizes[at] = size

    note = LEFT_OUT.fill()
    results = [(at, text) for at, one in enumerate(messages) for _, text in one.values.get("results", ())]
    for at, text in results[:-1]:
        if over <= 0:
            break
        if len(text) > len(note):
            put(at, short[at].text.replace(clean(text), note, 1))
    for at in sorted(range(len(short)), key=lambda at: -sizes[at]):
        if over <= 0 or sizes[at] <= SHORTEST:
            break
        put(at, clip(short[at].text, max(SHORTEST, sizes[at] - over), middle=True))
    return tuple(short)


def _room(sent: Request, overflow: ContextOverflow) -> int:
    """How many tokens, as we count them, to try next."""
    ours = sum(count(message.text) for message in sent.messages)
    scale = ours / overflow.asked if overflow.asked else 1.0
    room = overflow.window * scale * PROMPT_SHARE if overflow.window else ours / 2
    return max(SHORTEST, int(room if room < ours else ours * AGAIN_SHARE))
