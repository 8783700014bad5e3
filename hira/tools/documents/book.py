"""Books (.epub): one part a chapter, in reading order."""

from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from hira.core.errors import ToolError
from hira.tools.charsets import decode_file
from hira.tools.documents.archive import Archive, open_archive
from hira.tools.documents.document import Document, Part, add_title
from hira.tools.documents.web import page_of

_CONTAINER = "META-INF/container.xml"
_OPF = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_PAGES = ("application/xhtml+xml", "text/html")


def read_epub(path: Path) -> Document:
    with open_archive(path) as archive:
        if _CONTAINER not in archive.names:
            raise ToolError(f"{path.name} is not a book: it names no content")
        rootfile = next(archive.xml(_CONTAINER).iter("{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"), None)
        package = "" if rootfile is None else rootfile.get("full-path", "")
        root = archive.xml(package)
        parts: list[Part] = []
        for name in _chapters(archive, package):
            title, text = page_of(decode_file(archive.read(name)) or "")
            if text:
                number = len(parts) + 1
                parts.append(Part(text, f"chapter {number}: {title}" if title else f"chapter {number}"))
        return add_title(path, tuple(parts), root.findtext(f"{_OPF}metadata/{_DC}title") or "")


def _chapters(archive: Archive, package: str) -> list[str]:
    root = archive.xml(package)
    beside = PurePosixPath(package).parent
    items = {
        item.get("id", ""): str(beside / unquote(item.get("href", "")))
        for item in root.iter(f"{_OPF}item")
        if item.get("media-type") in _PAGES and "nav" not in item.get("properties", "").split()
    }
    spine = [items.get(one.get("idref", ""), "") for one in root.iter(f"{_OPF}itemref")]
    return [name for name in (spine if any(spine) else items.values()) if name in archive.names]
