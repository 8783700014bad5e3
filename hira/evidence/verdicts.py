"""The verdict of a verifier on a claim. A new one is also needed in `_CHINESE` and `ALARM` below, and in
docs/evidence.md. For one that models give, extend `Ruling`, raise `VERSION` (`hira/agents/ruling.py`) and add a line to
the prompt (`hira/agents/verifier.md`). No other place names them all; what asks `holds` or `denies` gets False."""

from enum import StrEnum


class Verdict(StrEnum):
    """A verdict on one claim, a plain string in JSON. The members are in the order of their rank.

    `UNSUPPORTED`: the evidence does not say so. `UNCHECKED`: the claim could not be compared with the evidence.
    """

    UNCHECKED = "unchecked"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    SUPPORTED = "supported"

    def __repr__(self) -> str:
        return repr(self.value)

    @property
    def holds(self) -> bool:
        """True if the evidence says what the claim says."""
        return self is Verdict.SUPPORTED

    @property
    def denies(self) -> bool:
        """True if the evidence says something that cannot be true together with the claim."""
        return self is Verdict.CONTRADICTED

    @property
    def rank(self) -> int:
        """The position from the least to the most informative verdict."""
        return list(Verdict).index(self)

    def label(self, *, chinese: bool = False) -> str:
        """The word that a report shows."""
        return _CHINESE[self] if chinese else self.value


class Relevance(StrEnum):
    """How far an answer answers its question. `REFUSAL`: it says that it has no answer."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    REFUSAL = "refusal"


_CHINESE = {
    Verdict.UNCHECKED: "未核对",
    Verdict.UNSUPPORTED: "未见于原文",
    Verdict.CONTRADICTED: "相矛盾",
    Verdict.SUPPORTED: "有据",
}
ALARM = (Verdict.SUPPORTED, Verdict.UNCHECKED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
"""The verdicts from the best to the one that a reader must see first."""
