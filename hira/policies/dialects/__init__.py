"""How calls are written and results are written back. The only place that parses what a model wrote."""

from hira.policies.dialects.dialect import Call, Dialect, Explained, Parsed, rewrite_messages
from hira.policies.dialects.json import DIALECT as JSON
from hira.policies.dialects.native import DIALECT as NATIVE
from hira.policies.dialects.tags import DIALECT as TAGS
from hira.policies.dialects.xml import DIALECT as XML

DIALECTS: dict[str, Dialect] = {"native": NATIVE, "tags": TAGS, "xml": XML, "json": JSON}
# the next dialect for a model whose calls cannot be read
FALLBACKS: dict[str, Dialect] = {"native": JSON, "json": TAGS}

__all__ = [
    "DIALECTS", "FALLBACKS", "JSON", "NATIVE", "TAGS", "XML", "Call", "Dialect", "Explained", "Parsed",
    "rewrite_messages",
]  # fmt: skip
