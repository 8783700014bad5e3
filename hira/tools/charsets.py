"""Bytes to text, by what a server, the text and the bytes themselves say of their encoding."""

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
_META = re.compile(
    rb"<(?:meta\b[^>]{0,300}?charset\s*=|\?xml\b[^>]{0,200}?encoding\s*=)\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE
)

_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,100}encoding\s*=\s*["']([\w.:-]+)|<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w.:-]+)"""
    rb"""|^[ \t\f]*(?:\#|%|//).{0,40}?coding[:=][ \t]*([\w.-]+)""",
    re.IGNORECASE | re.MULTILINE,
)
_SAMPLE = 65_536
_FOREIGN = 0.05
_STRAY = 100
"""A zero byte among so many does not make a text something else."""
_CONTROLS = bytes(range(9)) + bytes(range(14, 27)) + bytes(range(28, 32))


def decode_page(body: bytes, content_type: str = "") -> str:
    """A web page: byte-order mark, then the HTTP header, then the page's own meta, then UTF-8, then a guess.

    Only names of text encodings are believed; what cannot be decoded becomes U+FFFD.
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body.decode(name, "replace")
    header, meta = _CHARSET.search(content_type), _META.search(body[:4096])
    own = find_codec(meta[1].decode("ascii", "ignore")) if meta else ""
    if name := find_codec(header[1] if header else "") or ("utf-8" if own.startswith("utf-") else own):
        return body.decode(name, "replace")  # a meta that could be read as ASCII stands in no UTF-16
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode(_guessed(body), "replace")


def find_codec(told: str) -> str:
    """The codec of that name if it is one of text; browsers read the older names as their later supersets."""
    try:
        name = codecs.lookup(told).name if told else ""
    except (LookupError, ValueError):
        return ""
    return _WIDER.get(name, name) if name in _CODECS else ""


def decode_file(data: bytes) -> str | None:
    """A file, with line ends as "\\n": byte-order mark, declared charset, UTF-8, a guess, and at last cp1252, which can
    read anything. None if the bytes are no text in any charset."""
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
    # a guess needs enough foreign bytes to be worth more than cp1252
    foreign = sum(byte >= 0x80 for byte in data[:_SAMPLE])
    return data.decode(_guessed(data) if foreign > _FOREIGN * len(data[:_SAMPLE]) else "cp1252", "replace")


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


def _guessed(body: bytes) -> str:
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return "cp1252"
    best = from_bytes(body[:_SAMPLE]).best()
    return find_codec(best.encoding if best else "") or "cp1252"
