"""All waiting for an endpoint: how long for a connection, a token, a reply, and between two attempts."""

from dataclasses import dataclass
from functools import cache

# Seconds between two attempts: the limit of the first wait, which doubles, up to the largest; the shortest.
FIRST_WAIT, GROWN_WAIT, SHORTEST_WAIT = 0.5, 8.0, 0.1
# Seconds: hira waits as long as an endpoint asks for (Retry-After, a 429 above all), but not at all if that is longer:
# the call fails at once and names the time. To wait a shorter time than asked, cap the pause in `Endpoint.complete`
# (endpoint.py) before the failure is recorded.
GIVE_UP_BEYOND = 60.0
# Attempts in all, after replies that are not completions, and after time-outs, each of which may take minutes.
ATTEMPTS, BAD_REPLIES, SILENCES = 5, 3, 2
# Failures in a row after which hira leaves an endpoint alone, for how many seconds, and how long patient callers wait.
FAILURES, SHUT_SECONDS, PATIENCE_SECONDS = 5, 30.0, 120.0
# The shortest wait, in seconds, that is reported to the person.
REPORTED_WAIT = 1.0

ALLOWED_SLOWDOWN = 3.0
"""The factor by which an endpoint may exceed its measured times."""
SLOW = 20.0
"""Tokens a second below which an endpoint is asked for streams: a whole reply shows nothing until it is there."""
_ENOUGH_READ, _ENOUGH_WRITTEN, ENOUGH_WHOLE = 200, 8, 100
"""Tokens that say how fast an endpoint is. A whole reply does not show how long the model read, so it has to be
longer."""
_BETWEEN = 20


@dataclass(frozen=True, slots=True)
class Timeout:
    """Seconds: to connect, until a stream's first token, between two tokens, and for a whole reply.

    All but the first grow with the endpoint's measured times (`Pace`): a slow one may take three times as long as
    before. A flowing stream may take as long as its tokens need, because their number is bounded.
    """

    connect: float = 10.0
    first_token: float = 300.0
    between_tokens: float = 120.0
    reply: float = 900.0


USUAL = Timeout()


@dataclass(slots=True)
class Pace:
    """The measured speed of a model at an endpoint, reading and writing, in tokens a second; 0 while unknown. `runs_on`
    says whether it has continued to write after its reply was complete."""

    reads: float = 0.0
    writes: float = 0.0
    runs_on: bool = False

    @property
    def slow(self) -> bool:
        return 0.0 < self.writes < SLOW

    def saw_reading(self, tokens: int, seconds: float) -> None:
        if tokens >= _ENOUGH_READ:
            self.reads = _blend(self.reads, tokens / max(seconds, 1e-6))

    def saw_writing(self, tokens: int, seconds: float) -> None:
        if tokens >= _ENOUGH_WRITTEN:
            self.writes = _blend(self.writes, tokens / max(seconds, 1e-6))

    def bound(self, timeout: Timeout, prompt: int, tokens: int | None) -> tuple[float, float, float]:
        """Return the seconds until the first token of the reply to a `prompt` of this many tokens, between two tokens,
        and for a whole reply of at most this many `tokens`."""
        reading = ALLOWED_SLOWDOWN * prompt / self.reads if self.reads else 0.0
        writing = ALLOWED_SLOWDOWN / self.writes if self.writes else 0.0
        whole = reading + writing * tokens if writing and tokens else 0.0
        between = max(timeout.between_tokens, writing * _BETWEEN)
        return max(timeout.first_token, reading), between, max(timeout.reply, whole)


@cache
def pace_at(base_url: str, model: str) -> Pace:
    """Return the measured times of this model at this endpoint, shared by all callers in this process."""
    del base_url, model
    return Pace()


def _blend(known: float, seen: float) -> float:
    return (known + seen) / 2 if known else seen
