"""Regular expressions that are compiled at first use: most match rare texts, and compiling all of them took a sixth of
the time until a program's first request."""

import re
from typing import Any, cast


class _Lazy:
    """Represents a compiled pattern; each of its methods is looked up once."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, value)
        return value


def compile_lazily(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when one of its methods is first used. A faulty one raises only then."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))
