"""How long an endpoint is waited for: as the settings say, and longer where it was seen to be slow."""

from dataclasses import dataclass
from functools import cache

PATIENCE = 3.0
"""How many times as long as what was measured an endpoint may take."""
SLOW = 20.0
"""Tokens a second below which an endpoint is asked for streams: a whole reply shows nothing until it is there."""
_ENOUGH_READ, _ENOUGH_WRITTEN, _ENOUGH_WHOLE = 200, 8, 100
_BETWEEN = 20


@dataclass(frozen=True, slots=True)
class Timeout:
    """Seconds: to connect, until a stream's first token, between two tokens, and for a whole reply.

    All but the first grow with what was measured of the endpoint (`Pace`): a slow one may take three times as long as
    it was seen to take. A stream that flows may take as long as its tokens need, because their number is bounded.
    """

    connect: float = 10.0
    first_token: float = 300.0
    between_tokens: float = 120.0
    reply: float = 900.0


USUAL = Timeout()


@dataclass(slots=True)
class Pace:
    """How fast a model at an endpoint was seen to read and to write, in tokens a second; 0 while unknown."""

    reads: float = 0.0
    writes: float = 0.0

    @property
    def slow(self) -> bool:
        return 0.0 < self.writes < SLOW

    def saw_reading(self, tokens: int, seconds: float) -> None:
        if tokens >= _ENOUGH_READ:
            self.reads = _blend(self.reads, tokens / max(seconds, 1e-6))

    def saw_writing(self, tokens: int, seconds: float) -> None:
        if tokens >= _ENOUGH_WRITTEN:
            self.writes = _blend(self.writes, tokens / max(seconds, 1e-6))

    def saw_whole(self, tokens: int, seconds: float) -> None:
        """A reply that came at once in the end: how long it was read for is not known, so only a long one says much."""
        if tokens >= _ENOUGH_WHOLE:
            self.saw_writing(tokens, seconds)

    def saw_nothing(self) -> None:
        """No whole reply came in time: from now on it is asked for as a stream."""
        self.writes = min(self.writes or 1.0, SLOW / 2)

    def first_token(self, timeout: Timeout, prompt: int) -> float:
        """Seconds that the first token of a reply to a prompt of so many tokens may take."""
        return max(timeout.first_token, PATIENCE * prompt / self.reads if self.reads else 0.0)

    def between_tokens(self, timeout: Timeout) -> float:
        return max(timeout.between_tokens, PATIENCE * _BETWEEN / self.writes if self.writes else 0.0)

    def reply(self, timeout: Timeout, prompt: int, tokens: int | None) -> float:
        """Seconds that a whole reply of at most so many tokens may take."""
        if not (self.writes and tokens):
            return timeout.reply
        reading = prompt / self.reads if self.reads else 0.0
        return max(timeout.reply, PATIENCE * (reading + tokens / self.writes))


@cache
def pace_at(base_url: str, model: str) -> Pace:
    """What is known of this model at this endpoint, for all who ask it in this process."""
    del base_url, model
    return Pace()


def _blend(known: float, seen: float) -> float:
    return (known + seen) / 2 if known else seen
