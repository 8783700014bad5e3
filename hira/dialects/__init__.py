"""How calls are written and results are written back. The only place that parses what a model wrote."""

from hira.dialects.dialect import Call, Dialect, Parsed
from hira.dialects.native import DIALECT as NATIVE
from hira.dialects.rewriting import rewritten
from hira.dialects.tags import DIALECT as TAGS

DIALECTS: dict[str, Dialect] = {"native": NATIVE, "tags": TAGS}

__all__ = ["DIALECTS", "NATIVE", "TAGS", "Call", "Dialect", "Parsed", "rewritten"]
