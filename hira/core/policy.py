"""The policy interface, which all of hira calls models through.

A workflow never knows whether a `Policy` is an endpoint, the weights in training or a script.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

from hira.core.messages import Message, ToolCall


class Bounds(NamedTuple):
    """The smallest and largest number that a record may contain, checked where it is read and not where hira computes
    it. Loads nothing: pydantic asks for the schema."""

    least: float
    most: float

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {**handler(source), "ge": self.least, "le": self.most}


Count = Annotated[int, Bounds(0, 10**15)]
"""Tokens, calls, positions."""
Seconds = Annotated[float, Bounds(0, 1e11)]
"""A duration, or seconds since the epoch up to the year 5138."""
Dollars = Annotated[float, Bounds(0, 1e12)]


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, as they are; `asdict` copies their contents."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """Options of sampling. `None` leaves the endpoint's own default; `max_tokens` counts completion tokens.

    `reasoning_effort` is how much a reasoning model thinks; if an endpoint refuses it, the request is repeated without
    it.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    max_tokens: int | None = None
    seed: int | None = None
    reasoning_effort: Effort | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of calls. `cost` is in US dollars, None if no price is known; `seconds` is summed over calls."""

    calls: Count = 0
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    cached_tokens: Count = 0
    cost: Dollars | None = None
    seconds: Seconds = 0.0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        known = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            sum(known) if known else None,
            self.seconds + other.seconds,
        )

    def times(self, number: int) -> "Usage":
        return sum((self for _ in range(number)), Usage())

    def __sub__(self, other: "Usage") -> "Usage":
        return self + Usage(
            -other.calls,
            -other.prompt_tokens,
            -other.completion_tokens,
            -other.cached_tokens,
            None if other.cost is None else -other.cost,
            -other.seconds,
        )


@dataclass(frozen=True, slots=True)
class Tokens:
    """The token ids of one turn and the log-probabilities of the sampled ones. Shapes: (P,), (T,), (T,)."""

    prompt: tuple[int, ...]
    sampled: tuple[int, ...]
    logprobs: tuple[float, ...]


Choose = Literal["auto", "none"]
VERIFIER = "verifier"  # the role that checks the answer


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a policy. `CallOptions` says how the reply is received and bounded, which is not recorded.

    `tools` are function definitions in the chat API's shape; `schema` is a JSON schema the reply should follow; with
    `choose` "none" the tools are shown, because the history refers to them, but the model may not call them;
    `continues` asks the model to continue the last message, the assistant's own; `conversation` names the conversation,
    so that weights in training can append to its tokens.
    """

    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    stop: tuple[str, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    schema: Mapping[str, Any] | None = None
    continues: bool = False
    conversation: str = ""
    choose: Choose = "auto"


Finish = Literal["stop", "length", "calls", "filtered"]


@dataclass(frozen=True, slots=True)
class Completion:
    """The reply to a request. `text` ends before the stop string; `stop` is the one that matched, if known.

    `notes` explain to a person how the reply came about, one line each.
    """

    text: str
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = "stop"
    stop: str | None = None
    usage: Usage = Usage(calls=1)
    model: str = ""
    tokens: Tokens | None = None
    notes: tuple[str, ...] = ()


class Delta(NamedTuple):
    """A piece of a reply as it streams in."""

    text: str
    reasoning: bool = False


Watch = Callable[[Delta], None]


class Tell(Protocol):
    """Takes a notice for a person, and the endpoint if the call waits for one."""

    def __call__(self, text: str, endpoint: str = "", /) -> None: ...


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How one reply is received, and its bounds. A policy that knows nothing of bounds uses it as a function, which
    takes each piece of the reply as it arrives; it is false if no caller wants the pieces."""

    watch: Watch | None = None
    """Takes each piece of the reply; an empty one is a sign that the endpoint is at work."""
    tell: "Tell | None" = None
    """Takes notices for a person while the reply is awaited."""
    seconds: float | None = None
    """The time for everything, repeated requests included."""
    left: int | None = None
    """The most tokens of a repeated request."""
    again: int | None = None
    """The most tokens of the reply to a repeated request."""
    cut_at: float | None = None
    """When a streamed reply is cut, on the event loop's clock, and used as far as it has arrived."""
    is_enough: Callable[[str], bool] | None = None
    """Returns whether hira ignores all text after this one, so that the reply may end there."""
    run: str = ""
    """The run that asks, for gateways that tell requests apart."""

    @classmethod
    def of(cls, watch: "Watch | None") -> "CallOptions":
        """Return the call itself, or one without bounds for a plain function."""
        return watch if isinstance(watch, CallOptions) else cls(watch)

    def __bool__(self) -> bool:
        return self.watch is not None

    def __call__(self, delta: Delta) -> None:
        if self.watch:
            self.watch(delta)


UNWATCHED = CallOptions()


@runtime_checkable
class Policy(Protocol):
    """Answers requests, and calls `watch`, if given, with each piece. hira's `CallOptions` also bound the reply."""

    @property
    def model(self) -> str: ...

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class TokenCounter(Protocol):
    """A policy that counts the tokens of a text for its model, without a network. It is called in a thread."""

    def count(self, text: str) -> int: ...


def counting(policy: Policy) -> TokenCounter | None:
    """Return the policy, or the one that it wraps, if it can count tokens."""
    inner: object = policy
    while inner is not None and not isinstance(inner, TokenCounter):
        inner = getattr(inner, "policy", None)
    return inner


def cut_at_stop(completion: Completion, stops: tuple[str, ...]) -> Completion:
    """End the text before its first stop string, whatever the server did with it."""
    hits = [(position, stop) for stop in stops if (position := completion.text.find(stop)) >= 0]
    if not hits:
        return completion
    position, stop = min(hits)
    return replace(completion, text=completion.text[:position], stop=stop, finish="stop")


def role_of(conversation: str) -> str:
    """Return the role at the end of a conversation's name: "2/code.3" belongs to `code`.

    >>> role_of("2/code.3"), role_of("planner")
    ('code', 'planner')
    """
    return re.sub(r"\.\d+$", "", conversation.rpartition("/")[2])
