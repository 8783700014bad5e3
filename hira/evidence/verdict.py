"""What a verifier is given and what it says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from hira.core.sources import Source

Verdict = Literal["supported", "contradicted", "unsupported", "unchecked"]
"""`unsupported`: the evidence does not say so. `unchecked`: nothing could compare the claim with the evidence."""
VERDICTS: Sequence[Verdict] = ("unchecked", "unsupported", "contradicted", "supported")
"""In the order in which one says more than another."""


@dataclass(frozen=True, slots=True)
class SourcedClaim:
    """A claim and the sources that it is held against: those that the answer cites for it, or `attributed` ones.

    `read` is everything that the run read.
    """

    text: str
    sources: tuple[Source, ...]
    attributed: bool = False
    read: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class PackedClaims:
    """Claims as they are sent to another process: each source once, named by its place in the list."""

    sources: list[Source]
    claims: list[tuple[str, list[int], bool, list[int]]]

    @property
    def size(self) -> int:
        """Characters of the sources."""
        return sum(len(one.text) for one in self.sources)


def pack_claims(claims: Iterable[SourcedClaim]) -> PackedClaims:
    places: dict[Source, int] = {}

    def place(sources: Iterable[Source]) -> list[int]:
        return [places.setdefault(one, len(places)) for one in sources]

    packed = [(one.text, place(one.sources), one.attributed, place(one.read)) for one in claims]
    return PackedClaims(list(places), packed)


def unpack_claims(packed: PackedClaims) -> list[SourcedClaim]:
    def found(places: Iterable[int]) -> tuple[Source, ...]:
        return tuple(packed.sources[one] for one in places)

    return [
        SourcedClaim(text, found(cited), attributed, found(read)) for text, cited, attributed, read in packed.claims
    ]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a verifier says of one claim.

    `score` is between 0 and 1, the confidence that the claim is supported. `quote` is the passage that decided and
    `source` the id of the source that holds it, empty if there is none. `reason` says why a claim could not be checked,
    or not fully.
    """

    verdict: Verdict
    score: float = 0.0
    quote: str = ""
    source: str = ""
    by: str = ""
    reason: str = ""
