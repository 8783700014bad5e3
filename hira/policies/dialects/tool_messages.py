"""Dialects whose results are messages of tools."""

from typing import Any, cast

from hira.policies.dialects.native import DIALECT
from hira.policies.dialects.protocol import Dialect


class _ToolMessages:
    """A dialect whose results are tool messages, as those of `native`."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.results = DIALECT.results

    def __getattr__(self, name: str) -> Any:
        if name == "_dialect":  # a copy that is not filled yet
            raise AttributeError(name)
        return getattr(self._dialect, name)


def with_tool_messages(dialect: Dialect) -> Dialect:
    """The dialect with results as tool messages; `native` has no others."""
    return dialect if dialect is DIALECT else cast("Dialect", _ToolMessages(dialect))
