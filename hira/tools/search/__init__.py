"""Web search: services with one form of result, asked in order of preference, and the tool that uses them.

>>> client = open_client(identification(contact="ann@example.org"))
>>> backends = [open_backend("serper", client, key="…"), open_backend("mediawiki", client)]
>>> search = search_tool(backends, seen=seen, on_notice=events)
"""

from hira.tools.search.cache import Cache, Cached, SharedSearch
from hira.tools.search.service import Backend, Hit, Unusable, open_client
from hira.tools.search.services import BACKENDS, SCHOLARLY, open_backend
from hira.tools.search.tool import LEAKING, scholar_tool, search_tool

__all__ = [
    "BACKENDS",
    "LEAKING",
    "SCHOLARLY",
    "Backend",
    "Cache",
    "Cached",
    "Hit",
    "SharedSearch",
    "Unusable",
    "open_backend",
    "open_client",
    "scholar_tool",
    "search_tool",
]
