"""Bytes of a web page to text, by what the server, the page and the bytes themselves say of their encoding."""

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
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_META = re.compile(
    rb"<(?:meta\b[^>]{0,300}?charset\s*=|\?xml\b[^>]{0,200}?encoding\s*=)\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE
)


def decode(body: bytes, content_type: str = "") -> str:
    """Bytes to text: byte-order mark, then the HTTP header, then the page's own meta, then UTF-8, then a guess.

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


def _guessed(body: bytes) -> str:
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return "cp1252"
    best = from_bytes(body[:50_000]).best()
    return find_codec(best.encoding if best else "") or "cp1252"
