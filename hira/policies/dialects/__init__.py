"""How calls are written and results are written back. The only place that parses what a model wrote."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hira.core.plugin import LazyMapping
from hira.policies.dialects.native import DIALECT as NATIVE
from hira.policies.dialects.protocol import Call, Dialect, Explained, Parsed

if TYPE_CHECKING:
    from hira.policies.dialects.json import DIALECT as JSON
    from hira.policies.dialects.tags import DIALECT as TAGS
    from hira.policies.dialects.xml import DIALECT as XML

DIALECTS: Mapping[str, Dialect] = LazyMapping(
    {name: f"{__name__}.{name}:DIALECT" for name in ("native", "tags", "xml", "json")}
)
# the next dialect for a model whose calls cannot be read
FALLBACKS = {"native": "json", "json": "tags"}

__all__ = [
    "DIALECTS", "FALLBACKS", "JSON", "NATIVE", "TAGS", "XML", "Call", "Dialect", "Explained", "Parsed",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in ("JSON", "TAGS", "XML"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return DIALECTS[name.lower()]
