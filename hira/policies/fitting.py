"""Prompts that are too long for their model: shortened and sent again, instead of losing the run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hira.core.errors import ContextOverflow, EndpointError
from hira.core.messages import Message
from hira.core.policy import Completion, Policy, Request, Watch
from hira.core.prompts import Prompt
from hira.core.sanitize import clean
from hira.core.tokens import clip, count
from hira.policies.probe import Describes

LEFT_OUT = Prompt(__file__, "left_out")
SHORTENED = 2
# of the window that an endpoint names, for the prompt; the rest is for the reply and for what counts differ by
PROMPT_SHARE = 0.75
AGAIN_SHARE = 0.6
SHORTEST = 200
# what prompts are counted as more than we count, and the share of a window (one in so many) that a reply has at least
COUNTED_AS = 1.1
LEAST_REPLY = 4
_BYTES = 4


UNTAUGHT = "the model has no chat template: it is a base model, which only continues text"


@dataclass(slots=True)
class ContextTrimmer:
    """A policy that shortens a prompt that its endpoint finds too long and sends it again, twice at most.

    The limit is remembered, so that the next long prompt is not refused first; a nearby server is asked for its window
    before the first call. The conversation and its record stay whole; a notice reports at once that less is sent, and
    so does a note of the completion. `limit` is the most tokens of a prompt by our count, `window` the most of prompt
    and reply together; both are 0 while unknown.
    """

    policy: Policy
    limit: int = 0
    window: int = 0
    _asked: bool = False

    @property
    def model(self) -> str:
        return self.policy.model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        if not self._asked:
            await self._learn()
        if self.window:
            request = self._leave_room(request)
        reported = False
        for again in range(SHORTENED + 1):
            sent = self._shorten(request) if self.window or self.limit else request
            if sent is not request and request.tell and not reported:
                request.tell(self._note)
                reported = True
            try:
                completion = await self.policy.complete(sent, watch)
            except ContextOverflow as overflow:
                if again == SHORTENED:
                    raise
                before, self.limit = sent, _room(sent, overflow)
                if self._shorten(request).messages == before.messages:
                    raise
            else:
                if sent is request:
                    return completion
                return replace(completion, notes=(*completion.notes, self._note))
        raise AssertionError("unreachable")

    async def aclose(self) -> None:
        await self.policy.aclose()

    @property
    def _note(self) -> str:
        return f"{self.model}: the prompt is longer than the model's window; its oldest parts are removed"

    async def _learn(self) -> None:
        """Ask a server nearby, once, for its model's window. Raises `EndpointError` for a model that cannot chat."""
        self._asked = True
        inner: object = self.policy
        while not isinstance(inner, Describes):
            if (inner := getattr(inner, "policy", None)) is None:
                return
        told = await inner.describe_model()
        self.window = told.window
        if told.untaught:
            self._asked = False
            fix = "serve its instruct version, or give the server a template (llama.cpp: --chat-template-file FILE)"
            raise EndpointError(UNTAUGHT, where=getattr(inner, "where", f"model {self.model!r}"), fix=fix)

    def _leave_room(self, request: Request) -> Request:
        """The request for a reply no longer than the window leaves room for."""
        asked = request.sampling.max_tokens
        if asked is None or self._size(request, self.window - asked) <= self.window - asked:
            return request
        room = max(self.window // LEAST_REPLY, self.window - int(COUNTED_AS * self._size(request, 0)))
        return replace(request, sampling=replace(request.sampling, max_tokens=min(asked, room)))

    def _size(self, request: Request, limit: int) -> int:
        """About how many tokens the prompt is; of one that is surely within the limit that bound, without counting."""
        most = _BYTES * (sum(len(message.text) for message in request.messages) + len(str(request.tools)))
        if most <= limit:
            return most
        return sum(count(message.text) for message in request.messages) + count(str(request.tools))

    def _shorten(self, request: Request) -> Request:
        limit = self.limit
        if self.window:
            reply = min(request.sampling.max_tokens or self.window, self.window // LEAST_REPLY)
            tools = count(str(request.tools)) if request.tools else 0
            room = max(SHORTEST, self.window - reply - tools)
            limit = min(limit or room, room)
        if self._size(request, limit) <= limit:
            return request
        messages = trim_messages(request.messages, limit)
        return request if messages == request.messages else replace(request, messages=messages)


def trim_messages(messages: Sequence[Message], limit: int) -> tuple[Message, ...]:
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
