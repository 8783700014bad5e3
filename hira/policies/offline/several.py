"""Questions that ask for several things, "Which ships were lost?": all sentences that answer are told, not the best."""

import re

MOST = 8
"""Sentences that are told at most."""
MORE = "There may be more."

_PLURAL = r"[a-z]{3,}s(?<![sui]s)(?<!does)|people|men|women|children"
_ASKED = re.compile(
    rf"^\W*(?:(?:(?:in|at|on|from|to|by|for|with) )?(?:which|what) (?:of the )?(?:[a-z]+ )?(?:{_PLURAL})"
    r" (?!(?:is|was|has|does)\b)"
    rf"|(?:who|what|which) (?:are|were) (?:all )?the (?:[a-z]+ )*?(?:{_PLURAL})\b"
    r"|(?:list|name) (?:all|the)\b)",
    re.IGNORECASE,
)
_SERIES = re.compile(r",|;|\b(?:and|und|or|both|all|only|no)\b")


def asks_several(question: str) -> bool:
    """Whether a question asks for all things of a kind."""
    return bool(_ASKED.match(question))


def complete(text: str) -> bool:
    """Whether one sentence may be all there is to say: it tells a series itself."""
    return bool(_SERIES.search(text))
