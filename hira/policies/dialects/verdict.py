"""The verdict that a judge closes with: `Verdict: correct` or `Verdict: incorrect`, read to the letter."""

import re

from hira.core.policy import Completion
from hira.policies.dialects.answer import strip_thought

_LINE = re.compile(r"^[\s>#*_-]*verdict[\s*_]*[:：](.*)$", re.IGNORECASE | re.MULTILINE)
_DRESS = re.compile(r"\\boxed|\\text|[\s*_`'\"“”{}$.。!]")


def verdict(completion: Completion) -> bool | None:
    """Whether the last verdict accepts; None if there is none, or none that can be read.

    The one word counts and nothing else: "incorrect" is not "correct", and neither are "not correct" and "partly
    correct". A reply that was cut off has not come to its verdict.
    """
    if completion.finish == "length":
        return None
    found = _LINE.findall(strip_thought(completion))
    return {"correct": True, "incorrect": False}.get(_DRESS.sub("", found[-1]).lower()) if found else None
