"""What a verifier is given and what it says."""

from collections.abc import Sequence
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
