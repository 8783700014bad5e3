"""PDF files, by pypdf: one part a page. A page without text is marked for the multimodal expert."""

import logging
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hira.core.errors import ToolError
from hira.tools.documents.document import Document, Lacking, Part, add_title
from hira.tools.documents.plain import reflow

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

# pypdf reports every small flaw of a file as a warning, which would be printed in the middle of a run
logging.getLogger("pypdf").addHandler(logging.NullHandler())
_HYPHENATED = re.compile(r"(?<=[a-zß-ÿ])[-\u00ad]\n(?=[a-zß-ÿ])")


def check_library(path: Path) -> None:
    """Raise `Lacking` if the library that reads PDF files is not installed."""
    if find_spec("pypdf") is None:
        raise Lacking(f"{path.name} needs pypdf: pip install 'hira[pdf]'")


def read_pdf(path: Path) -> Document:
    check_library(path)
    import pypdf

    try:
        with path.open("rb") as file:
            reader = pypdf.PdfReader(file)
            if reader.is_encrypted:
                _unlock(reader, path)
            parts = tuple(page_of(page, number) for number, page in enumerate(reader.pages, 1))
            title = (reader.metadata.title if reader.metadata else None) or ""
    except (ToolError, OSError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever a damaged file makes pypdf stumble over
        raise ToolError(f"{path.name} is damaged or not a PDF file: {_line(error)}") from None
    if not parts:
        raise ToolError(f"{path.name} is damaged: it holds no pages")
    return add_title(path, parts, str(title))


def _unlock(reader: "PdfReader", path: Path) -> None:
    """Many files are encrypted with no password, only to forbid printing; others cannot be opened."""
    from pypdf.errors import DependencyError

    try:
        opened = reader.decrypt("")
    except DependencyError:
        raise ToolError(f"{path.name} is encrypted; reading it needs: pip install cryptography") from None
    if not opened:
        raise ToolError(f"{path.name} is protected by a password")


def page_of(page: "PageObject", number: int) -> Part:
    """One page. If its content cannot be read as text, it can still be looked at."""
    place = f"page {number}"
    try:
        text = page.extract_text()
    except MemoryError:  # says nothing of the page, which would be kept as one without text
        raise
    except Exception:  # noqa: BLE001 - one damaged page must not hide the others; it is marked as unread
        return Part("", place, media=True)
    text = reflow(_HYPHENATED.sub("", text)).strip()
    return Part(text, place, media=not text)


def _line(error: Exception) -> str:
    return " ".join((str(error) or type(error).__name__).split())[:120]
