"""Web search: services with one form of result, asked in order of preference, and the tools that use them."""

from hira.tools.search.service import Backend, Hit, Unusable, open_client
from hira.tools.search.services import BACKENDS, CITATIONS, SCHOLARLY, open_backend
from hira.tools.search.tool import LEAKING, Cache, cache_search, citations_tool, scholar_tool, search_tool, share_search
from hira.tools.search.vendor import NAME as VENDOR
from hira.tools.search.vendor import VendorSearch

__all__ = [
    "BACKENDS", "CITATIONS", "LEAKING", "SCHOLARLY", "VENDOR", "Backend", "Cache", "Hit", "Unusable",
    "VendorSearch", "cache_search", "citations_tool", "open_backend", "open_client", "scholar_tool", "search_tool",
    "share_search",
]  # fmt: skip
