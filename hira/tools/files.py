"""The tool "files": files that the user attached to the question or that programs of the run wrote, and no others."""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Annotated

from hira.core import tokens
from hira.core.errors import ToolError, UsageError
from hira.core.sanitize import clean, flatten_name, is_text, printable
from hira.core.tool import Observation, Passage, Tool, tool
from hira.evidence import OUTPUT, Source
from hira.tools.documents.document import Lacking
from hira.tools.documents.office import check_library
from hira.tools.documents.parsing import START
from hira.tools.documents.pieces import Piece, join_pieces, write_pieces
from hira.tools.documents.reader import Passages, read_passages
from hira.tools.documents.showing import LONG, find_nearest, fit_within
from hira.tools.file_kinds import how_to_see
from hira.tools.opening import OpenFile, ReadingChild, Unopened, open_copy, open_regular
from hira.tools.python import folder

LARGEST = 64 * 2**20
"""The most bytes that are read of a file that a program wrote."""
SECONDS = 120.0
"""For all files of a question together."""
ENTRIES = 10_000
_LISTED = 80
_FIRST_WORDS = 60
_RANGE = re.compile(r"(\D*)(\d+)\s*(?:-|–|to|\.\.)\s*(\d+)")


def files_tool(
    files: Sequence[Path],
    work: Path | None = None,
    *,
    on_remark: Callable[[str], None] | None = None,
    unread: list[str] | None = None,
) -> Tool:
    """Create the tool "files", which reads these files. Raises `UsageError` for one that cannot be attached.

    Programs of the run write into the folder `work`; their files are read by the paths that the model has seen.
    `on_remark` receives, once for each attached file, what a person should know about how it was read.
    `unread` gets a line for each attached file that could not be read.
    """
    from pydantic import Field

    for file in files:
        check_attached(file.expanduser())
    attached = {str(file): file.expanduser() for file in files}
    reading = RunReader(unread=unread)
    reported: set[str] = set()

    def show_part(path: str, part: str, child: ReadingChild) -> Observation:
        if name := _find_attached(attached, path):
            return show(name, reading.read_again(attached[name], child), part)
        if work and (place := _find_place(work, path)) and (made := _read_written(work, place, reading, child)):
            return show(f"../{place}", made, part, computed=True)
        others = f"; no program wrote {path!r} either" if work else ""
        names = ", ".join(map(flatten_name, attached)) or "no files are attached"
        raise ToolError(f"{path!r} is not among the attached files: {names}{others}")

    async def read_attached(
        path: Annotated[str, Field(description="the path of an attached file")],
        part: Annotated[
            str, Field(description="the part to read of a long file, such as 'page 3' or 'pages 3-5'")
        ] = "",
    ) -> Observation:
        """Read a file that the user attached. A long file is listed by its parts first; then ask for one of them."""
        with ReadingChild() as child:  # a call that is cancelled ends the read
            shown = await asyncio.to_thread(show_part, path, part, child)
        for remark in [*reading.remarks]:
            if on_remark and remark not in reported:
                reported.add(remark)
                on_remark(remark)
        return shown

    # not pure with a work folder: a program may rewrite its file
    made: Tool = tool(read_attached, name="files", seconds=300.0, pure=work is None)
    beside = " Files that a program wrote can be read as well, by their paths." if work else ""
    names = ", ".join(map(flatten_name, attached)) or "none"
    return replace(made, description=f"{made.description} The attached files: {names}.{beside}")


@dataclass(slots=True)
class RunReader:
    """Reads the files of one run, which have `left` seconds together; `remarks` name the attached files whose encoding
    was guessed, `unread` those that could not be read, with the reason."""

    left: float = SECONDS
    known: dict[Path, tuple[tuple[int, int], Passages | ToolError]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    unread: list[str] | None = None

    def read_again(self, path: Path, child: ReadingChild) -> Passages:
        """Read a file unless it was read, or could not be read, since its last change."""
        with open_regular(path) as file:
            marks = (file.size, file.about.st_mtime_ns)
            if path not in self.known or self.known[path][0] != marks:
                try:
                    self.known[path] = (marks, self.read(file, child))
                except Unopened:
                    raise
                except ToolError as error:
                    self.known[path] = (marks, error)
        result = self.known[path][1]
        if isinstance(result, ToolError):
            line = " ".join(clean(str(result)).split())
            if self.unread is not None and line not in self.unread:
                self.unread.append(line)
            raise type(result)(str(result))
        if result.remark:
            self.remarks.append(f"{path.name} {result.remark}")
        return result

    def read(self, file: OpenFile, child: ReadingChild) -> Passages:
        """Read an open file. Raises `ToolError` if the files have taken too long."""
        if self.left <= 0:
            raise ToolError(f"{file.path.name} is not read: the files of this question took {SECONDS:g} s together")
        began = time.monotonic()
        try:
            return read_passages(child, file, self.left)
        finally:
            self.left -= time.monotonic() - began


def _find_place(work: Path, path: str) -> str:
    """Return the place in the work folder that a path means, in the form that programs use (`../1/a.xlsx`) or as a
    unique file name; empty if it means none."""
    wanted = path.strip().strip("\"'`")
    inner = wanted.removeprefix(f"{work}/").removeprefix("./").removeprefix("../")
    if inner.startswith("/") or ".." in inner.split("/"):
        return ""
    if "/" in inner:
        return inner
    places = [place for place in folder.look(work, ENTRIES).files if place.rpartition("/")[2] == inner]
    return places[0] if len(places) == 1 else ""


def _read_written(work: Path, place: str, reading: RunReader, child: ReadingChild) -> Passages | None:
    """Read a copy of a file that a program wrote, so that no link is followed; None if there is no such file."""
    try:
        data = folder.read(work, place, LARGEST + 1)
    except (OSError, ValueError):
        return None
    if len(data) > LARGEST:
        raise ToolError(f"{place} has more than {LARGEST // 2**20} MB; have a program read it")
    with open_copy(Path(place).name, data) as file:
        return reading.read(file, child)


def check_attached(file: Path) -> None:
    """Raise `UsageError` for a file that does not exist, cannot be named to a model, or cannot be read."""
    if not is_text(str(file)):
        fix = "rename what is not UTF-8 in it"
        raise UsageError(f"the path of file {printable(str(file))!r} is not UTF-8", fix=fix)
    if not file.is_file():
        raise UsageError(f"no such file: {str(file)!r}", fix="attach files that exist")
    try:
        with file.open("rb") as data:
            if b"%PDF-" in data.read(START):
                check_library(file)
    except Lacking as error:
        raise UsageError(str(error), where=f"at {file}") from None
    except OSError as error:
        raise UsageError(f"file {str(file)!r} cannot be read: {error.strerror or error}") from None


def _find_attached(attached: dict[str, Path], path: str) -> str:
    """Return the attached file that a path means: as given, as shown, in full, or by its name; empty for none."""
    wanted = path.strip().strip("\"'`").removeprefix("./")
    for spelled in (
        lambda name: name.removeprefix("./"),
        lambda name: str(attached[name].resolve()),
        lambda name: Path(name).name,
        flatten_name,
        lambda name: flatten_name(Path(name).name),
    ):
        if len(matches := [name for name in attached if spelled(name).casefold() == wanted.casefold()]) == 1:
            return matches[0]
    return ""


def show(name: str, read: Passages, part: str, *, computed: bool = False) -> Observation:
    """Return the file whole if it is short, otherwise the requested part of it, or the list of its parts. A file that a
    program `computed` supports a claim as the program's output does."""
    pieces = read.pieces
    parts = _split(pieces)
    unread = f"no text in {', '.join(read.unread)}; {how_to_see(name)}" if read.unread else ""
    unread = f"{name} {read.remark}" if read.remark else unread
    if not parts:
        raise ToolError(f"{name!r} holds no text" + (f"; {unread}" if unread else ""))
    if part.strip():
        text, chosen = _read_part(parts, pieces, part)
    elif read.text and tokens.count(read.text) <= LONG:
        text, chosen = read.text, pieces
    else:
        lines = [f"{name} is long. Ask for one of its {len(parts)} parts:"]
        shown = islice(parts.items(), _LISTED)
        lines += [f"- {place}: {' '.join(held[0].full[:200].split())[:_FIRST_WORDS]} …" for place, held in shown]
        if len(parts) > _LISTED:
            lines.append(f"- and so on to {list(parts)[-1]}")
        return Observation("\n".join([*lines, unread]).strip())
    held, places = join_pieces(chosen, read.title, placed=True)
    source = Source(name, read.title, held, "file", places=places)
    if computed:
        source = Source(name, read.title, f"{OUTPUT}{held}", "computation")
    return Observation(unread, (Passage(source, text),))


def _split(pieces: Sequence[Piece]) -> dict[str, list[Piece]]:
    """Split the document into parts of at most about 3,000 tokens, by name, as the model requests them: by its places
    ("page 3", "sheet Sales"), and longer ones into numbered parts ("part 2 of 7")."""
    pieces_by_place: dict[str, list[Piece]] = {}
    for place, group in groupby(pieces, key=lambda piece: piece.place):
        filled: list[list[Piece]] = []
        room = 0
        for piece in group:
            size = tokens.count(piece.full)
            if not filled or size > room:
                filled.append([])
                room = LONG
            filled[-1].append(piece)
            room -= size
        for number, part in enumerate(filled, 1):
            name = f"part {number} of {len(filled)}" if len(filled) > 1 or not place else ""
            pieces_by_place[", ".join(filter(None, (place, name)))] = part
    return pieces_by_place


def _write_part(pieces: Sequence[Piece]) -> str:
    """Return the text of pieces, with headings where they change."""
    before = ("", *(piece.heading for piece in pieces))
    return "\n\n".join(
        piece.full if piece.heading != heading else piece.text for piece, heading in zip(pieces, before, strict=False)
    )


def _read_part(parts: Mapping[str, Sequence[Piece]], pieces: Sequence[Piece], part: str) -> tuple[str, Sequence[Piece]]:
    """Return the parts of that name, number or range, else the passages that fit the words: text and pieces."""
    if chosen := _choose_parts(parts, " ".join(part.casefold().split())):
        text = "\n\n".join(f"[{name}]\n{_write_part(parts[name])}" for name in chosen)
        if len(chosen) > 1 and tokens.count(text) > LONG:
            raise ToolError(f"{part!r} is too long to read at once; ask for: {', '.join(chosen)}")
        return text, [piece for name in chosen for piece in parts[name]]
    texts = [piece.full for piece in pieces]
    near = find_nearest(texts, part)
    if not near:
        raise ToolError(f"no part {part!r}; the parts are: {', '.join(list(parts)[:_LISTED])}")
    order = fit_within([tokens.count(text) for text in texts], near, LONG)
    return write_pieces(pieces, order), [pieces[index] for index in order]


def _choose_parts(parts: Iterable[str], wanted: str) -> list[str]:
    """Return the names that are meant by "page 3", "3", "part 3" of "part 3 of 7", or "pages 3-5"."""
    names = {name: name.casefold() for name in parts}
    if chosen := [name for name, low in names.items() if wanted == low or low.startswith(f"{wanted}, ")]:
        return chosen
    if span := _RANGE.fullmatch(wanted):
        kind = re.escape(span[1].strip().removesuffix("s")) or r"\D+"
        numbers = {name: re.match(rf"{kind} (\d+)", low) for name, low in names.items()}
        within = range(int(span[2]), int(span[3]) + 1)
        if chosen := [name for name, number in numbers.items() if number and int(number[1]) in within]:
            return chosen
    return [name for name, low in names.items() if wanted in (low.partition(" ")[2], low.partition(" of ")[0])]
