"""What a program wrote, as sources of their own beside what it printed: figures to be looked at, files to be cited."""

from collections.abc import Sequence
from pathlib import Path

from hira.core.prompts import Prompt
from hira.core.tool import Passage
from hira.evidence import OUTPUT, Source

FIGURE = Prompt(__file__, "figure")

PICTURES = frozenset([".png", ".jpg", ".jpeg", ".gif", ".webp"])
MOST = 5
"""Files of one call that become sources; the others are told by their paths."""
LARGEST = 100_000
"""Bytes of a text file that are kept as its source."""
_SHOWN = 400


def candidates(files: Sequence[Path]) -> list[Path]:
    """Of what a call wrote, what may become a source: the pictures first."""
    pictures = [path for path in files if path.suffix.lower() in PICTURES]
    return [*pictures, *(path for path in files if path not in pictures)][:MOST]


def source_of(name: str, content: bytes, code: str, place: str) -> Passage | None:
    """A picture as media, whose text says where it came from; a text as a computation; None for anything else.

    `name` is the path that is told, `place` names the program.
    """
    title = Path(name).name
    if Path(name).suffix.lower() in PICTURES:
        told = FIGURE.fill(place=place, name=name)
        return Passage(Source(name, title, told, "media"), told)
    try:
        text = content[:LARGEST].decode("utf-8", "strict" if len(content) <= LARGEST else "ignore")
    except UnicodeDecodeError:
        return None
    if "\0" in text or not text.strip():
        return None
    rest = " …" if len(content) > LARGEST else ""
    head = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"
    return Passage(Source(name, title, f"{code.strip()}{OUTPUT}{text}{rest}", "computation"), head)
