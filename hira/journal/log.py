"""The record of one run: every call is looked up in it, and recorded before its result is shown or used."""

import json
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from hira.core import errors
from hira.core.errors import EndpointError, HiraError, Stop
from hira.core.events import Event, TurnText, record
from hira.core.policy import Completion, Count, Request, Seconds, Usage, fields_of
from hira.journal.encoding import DamagedRecord, Digests, dump_request, pack, storable, validate
from hira.journal.store import Statement, Writer

T = TypeVar("T")
Kind = Literal["policy", "tool"]
Key = tuple[Kind, str, int, str]

FAILED = "failed"
UNCHANGED = "unchanged"  # marks a result that something still had to change when the run ended
OWN = "own"  # marks a result that is no other run's, because hooks or a person decided on it
MOST_EVENTS = 500  # the most events that wait for the next policy call


class NotRecorded(HiraError):
    """A replay came to a call that the journal does not hold."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One recorded call."""

    kind: Kind
    conversation: str
    position: Count
    digest: str
    name: str
    request: Any
    result: Any
    """None for a call that was started and never finished; of a failure, what `_describe_failure` writes."""
    began: Seconds
    seconds: Seconds | None

    @property
    def key(self) -> Key:
        return self.kind, self.conversation, self.position, self.digest

    @property
    def failed(self) -> bool:
        return isinstance(self.result, dict) and FAILED in self.result

    @property
    def replied(self) -> bool:
        """Return whether a policy completed this request."""
        return self.kind == "policy" and self.result is not None and not self.failed

    @property
    def usage(self) -> Usage:
        """The cost of the reply. It counts, whether the run takes the reply or not."""
        return validate(Completion, self.result).usage if self.replied else Usage()

    @property
    def ended(self) -> float:
        return self.began + (self.seconds or 0.0)


class CallSpec(NamedTuple):
    """A call to make."""

    kind: Kind
    conversation: str
    digest: str
    """Names its content."""
    name: str
    """Its addressee."""
    dump: Callable[[], Any]
    """Returns its stored form."""
    effect: bool = False
    """The call is also recorded when it starts."""
    shared: bool = False
    """The call has the same result everywhere in the run, and no position."""
    rerun: bool = False
    """The call is taken from the record only in a replay, because its own effects are recorded."""
    forced: bool = False
    """The run has to end; it reuses the forced reply of its record."""
    never_reused: bool = False
    """A result of another run never replaces the call."""
    undo: Callable[[], None] = lambda: None
    """Called if the run ends before the call does."""
    change: Callable[[Any], Awaitable[Any]] | None = None
    """Replaces a new result; if it fails, a resumed run changes the recorded result and does not call again."""


Reuse = Callable[[Kind, str], Awaitable[Any]]
"""Finds what another run brought for the same digest, None if there is nothing."""


Within = AbstractAsyncContextManager[None]
"""Bounds how long a call is awaited."""
UNBOUNDED: Within = nullcontext()


@dataclass(slots=True)
class Log:
    """The record of one run."""

    run: str = ""
    writer: Writer | None = None
    """Writes it into the journal; None for a record that is only read, in a replay, and for one that is not kept."""
    known: dict[Key, RecordedCall] = field(default_factory=dict)
    """Its recorded calls."""
    sources: dict[str, str] = field(default_factory=dict)
    """The ids of its sources, by location."""
    ended: Stop | None = None
    """The failure that ended a replayed run: a call that was not made because of it raises it again."""
    reuse: Reuse | None = None
    """Finds calls of other runs."""
    began: float = field(default_factory=time.time)
    """Seconds since the epoch."""
    ahead: float = field(default_factory=lambda: time.time() - time.monotonic())
    """Seconds by which its clock is ahead of the monotonic one: it never goes back, whatever happens to the machine's
    clock, because times give the order of a run's events."""
    dialects: Mapping[str, str] = field(default_factory=dict)
    """The dialects in which roles began, if they had been learned."""
    again: Collection[Key] = ()
    """The recorded calls that ended the run early, so that a resumed run makes them anew."""
    is_replay: bool = False
    """A call that it lacks is not made, but raises."""
    unfinished: list[RecordedCall] = field(default_factory=list)
    missed: bool = False
    departed: str = ""
    """The first conversation that left the record, whose later calls hira makes anew."""
    _taken: set[Key] = field(default_factory=set)
    _positions: dict[tuple[str, str], int] = field(default_factory=dict)
    _digests: Digests = field(default_factory=Digests)
    _events: list[Event] = field(default_factory=list)
    _rows: list[Statement] = field(default_factory=list)
    _recorded: int = 0
    _held: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def trouble(self) -> str:
        """Why nothing is written any more, empty while all is well."""
        return self.writer.trouble if self.writer else ""

    def read_conversation(self, conversation: str) -> list[Completion]:
        """Return the recorded completions of a conversation; with them the run has taken these calls."""
        calls = (call for call in self.known.values() if call.conversation == conversation and call.position)
        good = [call for call in calls if call.replied]
        self._taken |= {call.key for call in good}
        return [validate(Completion, call.result) for call in sorted(good, key=lambda call: call.position)]

    def read_unused(self) -> Usage:
        """Return the usage of the recorded calls of policies that the resumed run did not take."""
        return sum((call.usage for key, call in self.known.items() if key not in self._taken), Usage())

    def knows(self, model: str, request: Request, *, forced: bool) -> bool:
        """Return whether the record has the reply to this request, so that it costs nothing now."""
        name, latest = request.conversation, self._digests.latest.get(request.conversation)
        digest, _ = self._digests.of(model, request)
        self._digests.back(name, latest)
        known = self.known.get(("policy", name, self._positions.get(("policy", name), 0) + 1, digest))
        return bool(known and known.result is not None and not self._repeats(known, forced=forced))

    def _repeats(self, call: RecordedCall, *, forced: bool) -> bool:
        """Return whether a resumed run makes a recorded call anew: it ended the run, which now continues, or failed."""
        return call.key in self.again and not (forced and call.replied)

    def record_lost(self, conversation: str, model: str, usage: Usage) -> None:
        """Record the cost of a reply that broke off or was replaced, at position 0, which no request has."""
        if self.writer and usage.calls:
            now, result = time.monotonic() + self.ahead, fields_of(Completion("", usage=usage))
            request = pack(dump_request(model, Request(()), 0))
            row = (self.run, "policy", conversation, 0, str(now), model, request, pack(result), now, 0.0)
            self.writer.write([("calls", row)])

    def conversations(self) -> list[str]:
        """The conversations that the record holds something of, in the order of their names."""
        return sorted({call.conversation for call in self.known.values() if call.kind == "policy"})

    def holds(self, conversation: str) -> bool:
        """Return whether the record contains a call of any kind under this name."""
        return any(call.conversation == conversation for call in self.known.values())

    def policy(
        self,
        model: str,
        request: Request,
        ask: Callable[[], Awaitable[Completion]],
        within: Within = UNBOUNDED,
        finish: Callable[[Completion], Completion] | None = None,
        *,
        forced: bool = False,
    ) -> Awaitable[Completion]:
        """The completion of this request: the recorded one, else what `ask` brings, recorded before it is returned."""
        name = request.conversation
        undo = partial(self._digests.back, name, self._digests.latest.get(name))
        digest, kept = self._digests.of(model, request) if self.writer or self.is_replay else ("", 0)
        dump = partial(dump_request, model, request, kept, forced=forced)
        spec = CallSpec("policy", name, digest, model, dump, undo=undo, forced=forced)
        return self.call(spec, ask, fields_of, partial(validate, Completion), within, finish=finish)

    async def call(  # noqa: C901, PLR0912 - from the record, from another run, in place of another, or made now
        self,
        spec: CallSpec,
        make: Callable[[], Awaitable[T]],
        encode: Callable[[T], Any],
        decode: Callable[[Any], T],
        within: Within = UNBOUNDED,
        *,
        prepare: Callable[[], Awaitable[T | None]] | None = None,
        finish: Callable[[T], T] | None = None,
    ) -> T:
        """Return the recorded result of one call, or else that of `make`, recorded before it is returned.

        `prepare` runs before a new call, which counts as started afterwards; if it returns a result, that
        replaces the call's. A failure of the endpoint is recorded too, because the run may continue after it. `make` is
        awaited `within` a context that may end early; `finish` completes its result before it is recorded.
        """
        if not (self.writer or self.is_replay):
            return await _make_unrecorded(spec, make, within, prepare, finish)
        counter = (spec.kind, spec.conversation)
        position = self._positions[counter] = self._positions.get(counter, 0) + 1
        key: Key = (spec.kind, spec.conversation, 0 if spec.shared else position, spec.digest)
        known = self.known.get(key)
        if self.writer and known and (spec.rerun or self._repeats(known, forced=spec.forced)):
            known = None
        if known and known.result is not None:
            self._taken.add(key)
            with suppress(DamagedRecord):  # a resumed run makes the call again
                return await self._restore(known, spec, encode, decode)
        if self.writer is None:
            self.missed = True
            self._positions[counter] -= 1
            spec.undo()
            what = f"the record ends before call {position} of {spec.conversation!r} to {spec.name}"
            raise self.ended or NotRecorded(what)
        if known:
            self.unfinished.append(known)
        elif self.known and not (spec.shared or spec.rerun) and position < self._last_of(spec.kind, spec.conversation):
            self.departed = self.departed or spec.conversation
        began = time.monotonic() + self.ahead
        request = pack(spec.dump()) if spec.kind == "tool" else None  # a tool may change what it is given
        keep = partial(self._keep, spec, key, began, request)
        if self.reuse and (reused := await _find_reusable(self.reuse, spec)) is not None:
            keep(reused)
            with suppress(DamagedRecord):
                return _decode(decode, reused)
        if prepare and (replacement := await prepare()) is not None:
            keep(encode(replacement))
            return replacement
        if spec.effect:
            self.writer.write([("calls", (self.run, *key, spec.name, request or pack(spec.dump()), None, began, None))])
            await self.writer.commit()
        try:
            async with within:
                try:
                    result = await make()
                except EndpointError as failure:
                    keep(_describe_failure(failure))
                    raise
                if finish:
                    result = finish(result)
                if spec.change:
                    result = await _change_result(result, spec.change, encode, keep, effect=spec.effect)
                else:
                    keep(encode(result))
        except Stop:
            self._positions[counter] -= 1  # as for a call that was not begun, because the run had to end
            spec.undo()
            raise
        await self.writer.commit()  # before anybody sees or uses the result
        return result

    async def _restore(
        self, known: RecordedCall, spec: CallSpec, encode: Callable[[T], Any], decode: Callable[[Any], T]
    ) -> T:
        """Return the result of a recorded call, or raise its failure, or `DamagedRecord`."""
        if known.failed:
            raise _failure(known.result)
        try:
            result = _decode(decode, known.result)
        except DamagedRecord as error:
            if self.writer:
                raise
            what = f"the recorded call {known.position} of {spec.conversation!r} to {spec.name} cannot be read"
            raise NotRecorded(f"{what}: {error.what}") from None
        if not (spec.change and self.writer and known.result.get(UNCHANGED)):
            return result
        keep = partial(self._keep, spec, known.key, known.began, None)
        return await _change_result(result, spec.change, encode, keep, effect=spec.effect)

    def _keep(self, spec: CallSpec, key: Key, began: float, request: bytes | None, result: Any) -> None:
        assert self.writer is not None  # noqa: S101 - a replay comes to no call that is made
        waiting = self._take_waiting() if spec.kind == "policy" else ()
        if old := self.known.get(key):
            self.record_lost(old.conversation, old.name, old.usage)
        seconds = time.monotonic() + self.ahead - began
        row = (self.run, *key, spec.name, request or pack(spec.dump()), pack(result), began, seconds)
        self.writer.write([*waiting, ("calls", row)])

    def _last_of(self, kind: Kind, conversation: str) -> int:
        """The last position of a conversation in the resumed record, without those that it makes anew."""
        if not self._held:
            for call in self.known.values():
                counter = (call.kind, call.conversation)
                position = 0 if call.key in self.again else call.position
                self._held[counter] = max(self._held.get(counter, 0), position)
        return self._held.get((kind, conversation), 0)

    def read(self, location: str, source: str) -> None:
        """Keep which id a source was given, so that a resumed run gives it the same."""
        if self.writer and location not in self.sources:
            self.sources[location] = source
            self._rows.append(("sources", (self.run, storable(location), source)))

    def event(self, event: Event) -> None:
        """Keep an event, to be written with the next call of a policy. Pieces of a text are left to the turn's end."""
        if self.writer is None or isinstance(event, TurnText):
            return
        self._events.append(event)
        if len(self._events) >= MOST_EVENTS:
            self.writer.write(self._take_waiting())

    def _take_waiting(self) -> list[Statement]:
        """Return the step that writes the pending ids and events, the events as one row."""
        rows, self._rows = self._rows, []
        if self._events:
            waiting, self._events = self._events, []
            rows.append(("events", (self.run, self._recorded + 1, pack([*map(record, waiting)]))))
            self._recorded += len(waiting)
        return rows

    def tools(self, tools: Mapping[str, Any]) -> None:
        """Keep what tools the run has, so that it can be replayed without them."""
        if self.writer:
            self.writer.write([("tools", (json.dumps(tools, default=str, separators=(",", ":")), self.run))])

    def end(self, status: str, answer: str, error: str, usage: Usage = Usage()) -> None:
        """Say how the run ended."""
        if self.writer:
            row = (status, storable(answer), storable(error), time.time(), pack(usage).decode(), self.run)
            self.writer.alive.discard(self.run)
            self.writer.write([*self._take_waiting(), ("end", row)])

    async def settle(self) -> None:
        """Return when other processes can read all that was recorded so far."""
        if self.writer:
            await self.writer.commit()


async def _make_unrecorded(
    spec: CallSpec,
    make: Callable[[], Awaitable[T]],
    within: Within,
    prepare: Callable[[], Awaitable[T | None]] | None,
    finish: Callable[[T], T] | None,
) -> T:
    """Make a call of a run that nobody records."""
    if prepare and (replacement := await prepare()) is not None:
        return replacement
    async with within:
        result = await make()
        result = finish(result) if finish else result
        return await spec.change(result) if spec.change else result


async def _find_reusable(reuse: Reuse, spec: CallSpec) -> Any:
    """Find the result of an identical call of another run; None without one, or if its reply was cut."""
    if spec.rerun or spec.never_reused:
        return None
    result = await reuse(spec.kind, spec.digest)
    cut = isinstance(result, dict) and result.get("finish") == "length"  # this run may allow a longer reply
    return None if cut else result


async def _change_result(
    result: T,
    change: Callable[[T], Awaitable[T]],
    encode: Callable[[T], Any],
    keep: Callable[[Any], None],
    *,
    effect: bool,
) -> T:
    """Record what a result becomes. If that fails, keep as it came what cannot be called again."""
    try:
        changed = await change(result)
    except Exception:
        if effect:
            keep({**encode(result), UNCHANGED: True})
        raise
    keep(encode(changed))
    return changed


def _decode(decode: Callable[[Any], T], result: Any) -> T:
    """Decode a recorded result. Raises `DamagedRecord` if its maker cannot."""
    try:
        return decode(result)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DamagedRecord(f"{type(error).__name__}: {error}") from None


def _describe_failure(failure: EndpointError) -> dict[str, Any]:
    names = ("what", "where", "fix", "status", "retryable", "retry_after")
    return {FAILED: type(failure).__name__, **{name: getattr(failure, name) for name in names}}


def _failure(record: Mapping[str, Any]) -> EndpointError:
    values = dict(record)
    kind = getattr(errors, values.pop(FAILED), None)
    made = kind if isinstance(kind, type) and issubclass(kind, EndpointError) else EndpointError
    return made(values.pop("what"), **values)
