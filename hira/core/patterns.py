"""Regular expressions that are compiled at first use: compiling all took a sixth of the time to the first request."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

ESCAPES = r"(?:\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b.?)"
"""A terminal's escape sequence."""
INVISIBLE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Controls, zero-width characters, bidirectional overrides, byte-order marks, fillers, variation selectors, tags; and
lone surrogates, which cannot be sent."""
JOINERS = "[\u200c\u200d\ufe0e\ufe0f]"
"""Scripts and emoji need these between their characters; elsewhere, and in runs, they only hide something."""


@dataclass
class _Lazy:
    """A pattern that is compiled when one of its methods is first used, and raises only then if it is faulty; each
    method is looked up once."""

    pattern: str
    _flags: int = 0

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    compile_lazily = re.compile
else:
    compile_lazily = _Lazy
