"""Office files are zip archives of XML. They are opened here, within bounds, without entities.

A few kilobytes can unpack to gigabytes, by compression or by XML entities, so sizes are counted while unpacking and a
document type declaration, which no office program writes, is refused.
"""

import posixpath
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from xml.etree.ElementTree import Element, fromstring
from xml.parsers.expat import ParserCreate

from hira.core.errors import ToolError

MEMBER = 64 * 1024 * 1024
TOTAL = 256 * 1024 * 1024
RATIO = 300
TEXT = 100 * 1024 * 1024
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""For older programs; the element next to it has the same content."""
_RATIO_FROM = 4 * 1024 * 1024
_ENTRIES = 20_000
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_RELATIONS = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"


class _PrologEnded(Exception): ...


@dataclass(slots=True)
class Archive:
    """An open zip; `read` unpacks a member (at most 64 MB each, 256 MB together).

    A few bytes can also ask for a text again and again: `count_text` counts what is written of texts that are repeated.
    """

    path: Path
    zip: zipfile.ZipFile
    unpacked: int = 0
    written: int = 0
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = frozenset(self.zip.namelist())
        if len(self.names) > _ENTRIES:
            raise ToolError(f"{self.path.name} holds more than {_ENTRIES} entries; it is not read")

    def read(self, name: str) -> bytes:
        try:
            with self.zip.open(name) as member:
                info = self.zip.getinfo(name)
                limit = min(MEMBER, TOTAL - self.unpacked, max(_RATIO_FROM, RATIO * info.compress_size))
                data = member.read(limit + 1)
        except NotImplementedError:  # a RuntimeError, too; an unknown compression
            raise
        except RuntimeError:
            raise ToolError(f"{self.path.name} is protected by a password") from None
        if len(data) > limit:
            raise ToolError(f"{self.path.name} unpacks to too much data ({name!r}); it is not read")
        self.unpacked += len(data)
        return data

    def xml(self, name: str, *, optional: bool = False) -> Element:
        """Return the root of a member, an empty element if an `optional` one is missing. Raises `ToolError` for
        declared entities, `ParseError` for invalid XML."""
        if optional and name not in self.names:
            return Element("missing")
        return fromstring(self.read_without_doctype(name))  # noqa: S314 - every declaration of entities is refused

    def read_without_doctype(self, name: str) -> bytes:
        """Return the bytes of an XML member. Raises `ToolError` if it declares a document type (entities). Only what is
        before the first element is parsed."""
        data, parser = self.read(name), ParserCreate()

        def refuse(*_: object) -> None:
            raise ToolError(f"{self.path.name}: {name!r} declares a document type (entities); it is not read")

        def end_prolog(*_: object) -> None:
            raise _PrologEnded

        parser.StartDoctypeDeclHandler = refuse
        parser.StartElementHandler = end_prolog
        with suppress(_PrologEnded):
            parser.Parse(data, True)  # noqa: FBT003 - the parser takes it by position
        return data

    def count_text(self, text: str) -> str:
        """Return the text. Raises `ToolError` once all these texts are longer than a file's text may be."""
        self.written += len(text)
        if self.written > TEXT:
            raise ToolError(f"{self.path.name} holds more than {TEXT // 2**20} MB of text; it is not read")
        return text

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """Return the references of a member: id → (last word of the type, target), targets as member names."""
        folder, base = posixpath.split(name)
        relations = self.xml(posixpath.join(folder, "_rels", f"{base}.rels"), optional=True)
        return {
            relation.get("Id", ""): (
                relation.get("Type", "").rpartition("/")[2],
                posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).lstrip("/"),
            )
            for relation in relations.iter(_RELATIONS)
            if relation.get("TargetMode") != "External"
        }

    def property(self, name: str) -> str:
        """Return one of the document's properties, such as its "title" or "creator", "" without it."""
        properties = self.xml("docProps/core.xml", optional=True)
        return properties.findtext(f"{{http://purl.org/dc/elements/1.1/}}{name}") or ""


def find_outermost(root: Element, tags: Collection[str]) -> list[Element]:
    """Return the elements with these tags that are not inside another such element, through every wrapper, in order."""
    elements: list[Element] = []
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element.tag in tags:
            elements.append(element)
        elif element.tag != FALLBACK:
            waiting += reversed(element)
    return elements


@contextmanager
def open_archive(path: Path, data: BinaryIO, main: str = "", what: str = "") -> Iterator[Archive]:
    """Open an archive. Raises `ToolError` if it is protected by a password or in the old format, or is not `what` the
    reader expects because it has no member `main`.

    The errors of the libraries for a damaged one are left to the caller, which reads many kinds of files.
    """
    data.seek(0)
    if data.read(8) == _OLE:
        locked = _ENCRYPTED in data.read()
        why = "is protected by a password" if locked else "is in an old Office format; save it in the new one"
        raise ToolError(f"{path.name} {why}")
    with zipfile.ZipFile(data) as inside:
        archive = Archive(path, inside)
        if main and main not in archive.names:
            raise ToolError(f"{path.name} is not {what}")
        yield archive
