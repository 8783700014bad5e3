"""How long replies may be: a bound for all of them, and less for turns that need little."""

from dataclasses import dataclass

REPLY = 4096
"""Tokens of a reply where nobody set another bound."""
CLOSING = 2048
"""Tokens of the answer with which a role closes because it has to."""
RECORD = 2048
"""Tokens of a reply that is one JSON record: an assignment, a distillation, a rubric."""
INTERRUPTED_TOKENS, INTERRUPTED_SECONDS = 1024, 60.0
"""What the closing answer may take after Ctrl-C."""


@dataclass(frozen=True, slots=True)
class ReplyBound:
    """Tokens of one reply. One of nothing but thought is asked for once more with `again` tokens, if that is more."""

    tokens: int = REPLY
    again: int = 2 * REPLY

    @classmethod
    def of(cls, tokens: int | None) -> "ReplyBound":
        """The bound that somebody set, which nothing exceeds; else the usual one."""
        return cls(tokens, tokens) if tokens else cls()

    def for_turn(self, *, record: bool = False, closing: bool = False, interrupted: bool = False) -> int:
        kinds = ((RECORD, record), (CLOSING, closing), (INTERRUPTED_TOKENS, interrupted))
        return min([self.tokens, *(tokens for tokens, applies in kinds if applies)])
