"""Files of JSON lines that survive a crash: each record is one line, and a last line that was cut off is dropped."""

import json
from collections.abc import Iterable, Iterator
from typing import IO, Any

from hira.journal.encoding import DamagedRecord, read_json, spell_value


def encode_line(record: Any, *, allow_nan: bool = True) -> bytes:
    """Return a record, or a dataclass, as one line. Halves of characters become question marks."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=allow_nan, default=spell_value)
    return text.encode("utf-8", "replace") + b"\n"


def append_lines(file: IO[bytes], records: Iterable[Any], *, allow_nan: bool = True) -> None:
    """Append one line for each record, all in one write. Raises `OSError`."""
    file.write(b"".join(encode_line(record, allow_nan=allow_nan) for record in records))
    file.flush()


def read_lines(raw: bytes) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Yield each line with its object, None if it has none. Texts may contain other separators of lines."""
    for line in raw.splitlines(keepends=True):
        try:
            record = read_json(line)
        except DamagedRecord:
            record = None
        yield line, record if isinstance(record, dict) else None


def repair_last_line(file: IO[bytes]) -> None:
    """Drop a last line that a crash has cut off; a whole record that lacks only the line's end gets one."""
    file.seek(0)
    lines = list(read_lines(file.read()))
    if not lines or lines[-1][0].endswith(b"\n"):
        return
    if lines[-1][1] is None:
        file.truncate(sum(len(whole) for whole, _ in lines[:-1]))
    else:
        file.write(b"\n")
