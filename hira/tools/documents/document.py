"""What every reader makes of a file: a title and the text, in parts that say where they stand."""

from dataclasses import dataclass
from pathlib import Path

from hira.core.errors import ToolError
from hira.core.sanitize import clip_title


class NoText(ToolError):
    """The file holds no text: it is empty, or of a kind such as an image or a program."""


class Lacking(ToolError):
    """The file can be read once a package is installed."""


@dataclass(frozen=True, slots=True)
class Part:
    """A page, a sheet, a slide or a chapter; `place` names it ("page 3", "sheet Sales"), "" for a whole file.

    `media` says that there is something to see and no text, which is work for the multimodal expert.
    """

    text: str
    place: str = ""
    media: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read. Headings in `parts` are written the markdown way, table rows name their columns."""

    path: Path
    title: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The whole text; a part that has a place is introduced by it: "[page 3]"."""
        return "\n\n".join(f"[{part.place}]\n{part.text}" if part.place else part.text for part in self.parts)

    @property
    def unread(self) -> list[str]:
        """The places that hold no text but something to see."""
        return [part.place or "the file" for part in self.parts if part.media]


def add_title(path: Path, parts: tuple[Part, ...], title: str = "") -> Document:
    """A document under the title it gives itself, else its first heading, else the name of its file."""
    given = clip_title(title)
    if given.lower().startswith(("untitled", "microsoft word -", "powerpoint presentation", "document")):
        given = ""
    return Document(path, given or _heading(parts) or path.stem, parts)


def _heading(parts: tuple[Part, ...]) -> str:
    for part in parts[:3]:
        for line in part.text[:2000].splitlines():
            if line.startswith("#"):
                return clip_title(line.lstrip("#").strip(" *_"))
    return ""
