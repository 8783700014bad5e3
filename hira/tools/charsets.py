"""Bytes to text, by the encoding that a server and the bytes themselves declare."""

import codecs
import contextlib
import re

_CODECS = frozenset(
    """utf-8 ascii iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9 iso8859-10
    iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257
    cp1258 cp437 cp850 cp852 cp866 cp874 koi8-r koi8-u mac-roman tis-620 gb2312 gbk gb18030 big5 big5hkscs euc_jp
    shift_jis cp932 iso2022_jp euc_kr cp949 johab utf-16 utf-16-le utf-16-be utf-32""".split()
)
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_DECLARED = re.compile(
    rb"<(?:meta\b[^>]{0,300}?charset\s*=|\?xml\b[^>]{0,200}?encoding\s*=)\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE
)
_CODING = re.compile(rb"^[ \t\f]*(?:#|%|//|;)[^\r\n]{0,60}?coding[:=][ \t]*([\w.-]+)", re.IGNORECASE | re.MULTILINE)
_SAMPLE = 65_536
_STRAY = 0.01
"""The most of a text's bytes that can be zeros by accident."""
_CONTROLS = bytes(range(9)) + bytes(range(14, 27)) + bytes(range(28, 32))


def decode_page(body: bytes, content_type: str = "") -> str:
    """Decode a web page: byte-order mark, then the HTTP header, then the page's own declaration, then UTF-8, then
    cp1252.

    Only names of text encodings are trusted; undecodable bytes become U+FFFD.
    """
    header = _CHARSET.search(content_type)
    return _decode(body, find_codec(header[1]) if header else "", _DECLARED)


def decode_file(data: bytes) -> str | None:
    """Decode a file, with line ends as "\\n": byte-order mark, UTF-16 by its zeros, declared charset, UTF-8, and at
    last cp1252, which can read anything. Up to 1 % of stray zeros are dropped. None if the bytes are not text: they
    hold more zeros, or one control character in twenty."""
    sample, wide = data[:_SAMPLE], ""
    if not data.startswith(tuple(mark for mark, _ in _MARKS)):
        wide = _find_utf16(sample)
        if not wide:
            if sample.count(0) > _STRAY * len(sample):
                return None
            data, sample = data.replace(b"\0", b""), sample.replace(b"\0", b"")
            if len(sample.translate(None, _CONTROLS)) < 0.95 * len(sample):
                return None
    return _decode(data, wide, _DECLARED, _CODING).replace("\r\n", "\n").replace("\r", "\n")


def find_codec(name: str) -> str:
    """Return the codec of that name if it is one of text; older names mean their later supersets, as in browsers."""
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""
    return _WIDER.get(codec, codec) if codec in _CODECS else ""


def _find_utf16(sample: bytes) -> str:
    """Return the byte order of UTF-16 without a mark: of every two bytes one is often zero, the other hardly ever."""
    even, odd, half = sample[::2].count(0), sample[1::2].count(0), len(sample) / 2
    if odd > 0.4 * half and even <= _STRAY * half:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 * half and odd <= _STRAY * half else ""


def _decode(data: bytes, charset: str, *declarations: re.Pattern[bytes]) -> str:
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    if charset:
        return data.decode(charset, "replace")
    match = next(filter(None, (declaration.search(data[:4096]) for declaration in declarations)), None)
    codec = find_codec(match[1].decode("ascii", "ignore")) if match else ""
    if codec.startswith("utf-"):  # UTF-8, because a declaration that can be read as ASCII is not in UTF-16
        return data.decode("utf-8", "replace")
    for name in filter(None, (codec, "utf-8")):
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode(name)
    return data.decode(codec or "cp1252", "replace")
