"""Documents on this machine: read them (`read_file`), index folders of them (`Index`), and let a model search them."""

from hira.tools.documents.document import Document, Part
from hira.tools.documents.index import Index, browse_documents, format_warnings, search_documents
from hira.tools.documents.reader import FileReader, read_file
from hira.tools.documents.store import PassageHit

__all__ = [
    "Document",
    "FileReader",
    "Index",
    "Part",
    "PassageHit",
    "browse_documents",
    "format_warnings",
    "read_file",
    "search_documents",
]
