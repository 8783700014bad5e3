"""Documents on this machine: read them (`read_file`), index folders of them (`Index`), and let a model search them."""

from hira.tools.documents.document import Document, Part
from hira.tools.documents.index import Hit, Index, format_warnings
from hira.tools.documents.reader import FileReader, read_file
from hira.tools.documents.search import browse_documents, search_documents

__all__ = [
    "Document",
    "FileReader",
    "Hit",
    "Index",
    "Part",
    "browse_documents",
    "format_warnings",
    "read_file",
    "search_documents",
]
