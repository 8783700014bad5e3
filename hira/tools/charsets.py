"""Bytes to text, by the encoding that a server and the bytes themselves declare."""

import codecs
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
_SAMPLE = 65_536
_CONTROLS = bytes(range(9)) + bytes(range(14, 27)) + bytes(range(28, 32))


def decode_page(body: bytes, content_type: str = "") -> str:
    """Decode a web page: byte-order mark, then the HTTP header, then UTF-8, then the page's own declaration, then
    cp1252.

    Only names of text encodings are trusted; undecodable bytes become U+FFFD.
    """
    header = _CHARSET.search(content_type)
    return _decode(body, find_codec(header[1]) if header else "")


def decode_file(data: bytes) -> str | None:
    """Decode a file, with line ends as "\\n": byte-order mark, UTF-8, declared charset, and at last cp1252, which can
    read anything. None if the bytes are not text: they hold a zero, or one control character in twenty."""
    sample = data[:_SAMPLE]
    marked = data.startswith(tuple(mark for mark, _ in _MARKS))
    if not marked and (0 in sample or len(sample.translate(None, _CONTROLS)) < 0.95 * len(sample)):
        return None
    return _decode(data, "").replace("\r\n", "\n").replace("\r", "\n")


def find_codec(name: str) -> str:
    """Return the codec of that name if it is one of text; older names mean their later supersets, as in browsers."""
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return ""
    return _WIDER.get(codec, codec) if codec in _CODECS else ""


def _decode(data: bytes, charset: str) -> str:
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    if charset:
        return data.decode(charset, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        declared = _DECLARED.search(data[:4096])
        own = find_codec(declared[1].decode("ascii", "ignore")) if declared else ""
        # a declaration that can be read as ASCII is not in UTF-16
        return data.decode("utf-8" if own.startswith("utf-") else own or "cp1252", "replace")
