"""Bytes to text: byte-order mark, declared charset, UTF-8, a guess, and at last cp1252, which can read anything."""

import codecs
import re

from hira.tools.charsets import find_codec

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,100}encoding\s*=\s*["']([\w.:-]+)|<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w.:-]+)"""
    rb"""|^[ \t\f]*(?:\#|%|//).{0,40}?coding[:=][ \t]*([\w.-]+)""",
    re.IGNORECASE | re.MULTILINE,
)
_SAMPLE = 65_536
_STRAY = 100
"""A zero byte among so many does not make a text something else."""
_CONTROLS = bytes(range(9)) + bytes(range(14, 27)) + bytes(range(28, 32))


def decode(data: bytes) -> str | None:
    """The text, with line ends as "\\n"; None if the bytes are no text in any charset."""
    text = _decode(data)
    return None if text is None else text.replace("\r\n", "\n").replace("\r", "\n")


def _decode(data: bytes) -> str | None:
    for mark, charset in _MARKS:
        if data.startswith(mark):
            return data.decode(charset, errors="replace")
    if zeros := data[:_SAMPLE].count(0):
        if charset := _wide(data[:_SAMPLE]):
            return data.decode(charset, errors="replace")
        return _strayed(data) if zeros * _STRAY <= len(data[:_SAMPLE]) else None
    if len(data[:_SAMPLE].translate(None, _CONTROLS)) < 0.95 * len(data[:_SAMPLE]):
        return None
    for charset in filter(None, (_declared(data), "utf-8")):
        try:
            return data.decode(charset)
        except UnicodeDecodeError:
            continue
    return _guessed(data)


def _strayed(data: bytes) -> str | None:
    try:
        return data.replace(b"\0", b"").decode()
    except UnicodeDecodeError:
        return None


def _declared(data: bytes) -> str:
    """The declared charset if it is one of text: codecs such as `undefined` or `punycode` are not believed."""
    match = _DECLARED.search(data[:2048])
    return find_codec(next(name for name in match.groups() if name).decode("ascii")) if match else ""


def _wide(sample: bytes) -> str:
    """UTF-16 without a mark shows in zeros that stand at every other byte and nowhere else."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) / 2
    if odd > 0.4 * half and even < 0.02 * half:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 * half and odd < 0.02 * half else ""


def _guessed(data: bytes) -> str:
    """What no declaration helps with. A guess needs enough foreign bytes to be worth more than cp1252."""
    foreign = sum(byte >= 0x80 for byte in data[:_SAMPLE])
    if foreign > 0.05 * len(data[:_SAMPLE]):
        try:
            from charset_normalizer import from_bytes
        except ImportError:
            pass
        else:
            if best := from_bytes(data[:_SAMPLE]).best():
                return data.decode(best.encoding, errors="replace")
    return data.decode("cp1252", errors="replace")
