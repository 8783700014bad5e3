"""What a GGUF file says of its model, read from the head of the file."""

import struct
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"GGUF"
TEMPLATE = "tokenizer.chat_template"
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_MOST_BYTES = 16 << 20
"""Of one string; a longer one means that this is no GGUF file."""


def read_header(path: Path) -> dict[str, Any]:
    """The metadata of a GGUF file, version 2 or later: numbers and strings by their keys, without the arrays.

    Raises `ValueError` for a file that is not GGUF or that ends within its head.
    """
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise ValueError("it does not begin like a GGUF file")
        try:
            version, _tensors, count = struct.unpack("<IQQ", file.read(20))
            if not 2 <= version < 1 << 16:
                raise ValueError(f"its version {version} cannot be read")
            found = {}
            for _ in range(count):
                key = _string(file)
                value = _value(file, _number(file, "<I"))
                if value is not None:
                    found[key] = value
        except (struct.error, EOFError, UnicodeDecodeError):
            raise ValueError("its header is damaged or cut off") from None
    return found


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        _skip_array(file)
        return None
    return _number(file, _format(kind))


def _skip_array(file: BinaryIO) -> None:
    kind, count = struct.unpack("<IQ", file.read(12))
    if kind != _STRING:
        file.seek(struct.calcsize(_format(kind)) * count, 1)
        return
    for _ in range(count):
        file.seek(_length(file), 1)


def _format(kind: int) -> str:
    if kind not in _NUMBERS:
        raise ValueError(f"its header contains a value of unknown type {kind}")
    return _NUMBERS[kind]


def _number(file: BinaryIO, form: str) -> Any:
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def _length(file: BinaryIO) -> int:
    length: int = _number(file, "<Q")
    if length > _MOST_BYTES:
        raise ValueError("its header is damaged")
    return length


def _string(file: BinaryIO) -> str:
    length = _length(file)
    raw = file.read(length)
    if len(raw) < length:
        raise EOFError
    return raw.decode("utf-8", "replace")
