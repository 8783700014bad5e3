"""One run's record: every call is looked up in it, and written into it before its result is used."""

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

from hira.errors import HiraError
from hira.journal.store import Writer, packed
from hira.messages import Message, ToolCall
from hira.policy import Completion, Request, Tokens, Usage

T = TypeVar("T")
Kind = Literal["policy", "tool"]
Key = tuple[Kind, str, int, str]

INSERT_CALL = "insert or replace into calls values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class NotRecorded(HiraError):
    """A replay came to a call that the journal does not hold."""


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded call. `result` is None for one that was started and never finished."""

    kind: Kind
    conversation: str
    position: int
    digest: str
    name: str
    request: Any
    result: Any
    began: float
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Asked:
    """A call to be made: in which conversation, what (`digest`), of whom (`name`); `told` makes what is stored of it.

    A call with an `effect` is recorded as started, too. One that may be made `anywhere` brings the same wherever in
    the run it is made, and has no position.
    """

    kind: Kind
    conversation: str
    digest: str
    name: str
    told: Callable[[], Any]
    effect: bool = False
    anywhere: bool = False


@dataclass(slots=True)
class Log:
    """One run's record. `known` are the calls it holds already, `sources` the ids given to what was read."""

    run: str
    _writer: Writer | None
    known: dict[Key, Call] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    unfinished: list[Call] = field(default_factory=list)
    _positions: dict[tuple[str, str], int] = field(default_factory=dict)
    _asked: dict[str, tuple[Message, ...]] = field(default_factory=dict)
    _events: int = 0

    @property
    def trouble(self) -> str:
        """Why nothing is written any more, empty while all is well."""
        return self._writer.trouble if self._writer else ""

    async def policy(self, model: str, request: Request, ask: Callable[[], Awaitable[Completion]]) -> Completion:
        """The completion of this request: the recorded one, else what `ask` brings, recorded before it is returned."""
        earlier = self._asked.get(request.conversation, ())
        self._asked[request.conversation] = request.messages
        asked = Asked(
            "policy",
            request.conversation,
            digest_of(model, request),
            model,
            lambda: _request_record(model, request, _kept(earlier, request.messages)),
        )
        return await self.call(asked, ask, asdict, _completion)

    async def call(
        self,
        asked: Asked,
        make: Callable[[], Awaitable[T]],
        encode: Callable[[T], Any],
        decode: Callable[[Any], T],
    ) -> T:
        """The result of one call: the recorded one, else what `make` brings, recorded before it is returned."""
        counter = (asked.kind, asked.conversation)
        position = self._positions[counter] = self._positions.get(counter, 0) + 1
        key: Key = (asked.kind, asked.conversation, 0 if asked.anywhere else position, asked.digest)
        known = self.known.get(key)
        if known and known.result is not None:
            return decode(known.result)
        if self._writer is None:
            raise NotRecorded(f"the record ends before call {position} of {asked.conversation!r} to {asked.name}")
        if known:
            self.unfinished.append(known)
        began = time.time()
        row = (self.run, *key, asked.name, packed(asked.told()))
        if asked.effect:
            await self._writer.write([(INSERT_CALL, (*row, None, began, None))])
        result = await make()
        await self._writer.write([(INSERT_CALL, (*row, packed(encode(result)), began, time.time() - began))])
        return result

    def read(self, location: str, source: str) -> None:
        """Keep which id a source was given, so that a resumed run gives it the same."""
        if self._writer and location not in self.sources:
            self.sources[location] = source
            self._writer.put([("insert or replace into sources values (?, ?, ?)", (self.run, location, source))])

    def event(self, record: Mapping[str, Any]) -> None:
        self._events += 1
        if self._writer:
            row = (self.run, self._events, packed(dict(record)))
            self._writer.put([("insert or replace into events values (?, ?, ?)", row)])

    def describe(self, question: str, workflow: str) -> None:
        if self._writer:
            self._writer.put(
                [("update runs set question = ?, workflow = ? where id = ?", (question, workflow, self.run))]
            )

    def end(self, status: str, answer: str, error: str) -> None:
        """Say how the run ended; `settle` waits until that is on disk."""
        if self._writer:
            row = (status, answer, error, time.time(), self.run)
            query = "update runs set status = ?, answer = ?, error = ?, ended = ? where id = ?"
            self._writer.put([(query, row)])

    async def settle(self) -> None:
        """Return when everything that was put so far is on disk."""
        if self._writer:
            await self._writer.write([])


def digest_of(model: str, request: Request) -> str:
    """Names what was asked of whom: model, messages, sampling, stops, tools. 32 hexadecimal digits."""
    total = hashlib.blake2b(digest_size=16)
    about = (model, request.stop, request.sampling, request.tools, request.schema, request.continues)
    total.update(repr(about).encode("utf-8", "surrogatepass"))
    for message in request.messages:
        total.update(repr(message.wire).encode("utf-8", "surrogatepass"))
    return total.hexdigest()


def _kept(earlier: tuple[Message, ...], now: tuple[Message, ...]) -> int:
    """How many messages the request shares with its conversation's previous one; only the others are stored."""
    shared = zip(earlier, now, strict=False)
    return next((at for at, (a, b) in enumerate(shared) if a is not b), min(len(earlier), len(now)))


def _request_record(model: str, request: Request, kept: int) -> dict[str, Any]:
    added = [{**message.wire, "prompt": message.prompt} for message in request.messages[kept:]]
    sampling = {name: value for name, value in asdict(request.sampling).items() if value is not None}
    return {"model": model, "kept": kept, "added": added, "sampling": sampling, "stop": request.stop}


def _completion(record: Mapping[str, Any]) -> Completion:
    tokens = record["tokens"]
    return Completion(
        record["text"],
        record["reasoning"],
        tuple(ToolCall(**call) for call in record["calls"]),
        record["finish"],
        record["stop"],
        Usage(**record["usage"]),
        record["model"],
        Tokens(tuple(tokens["prompt"]), tuple(tokens["sampled"]), tuple(tokens["logprobs"])) if tokens else None,
    )
