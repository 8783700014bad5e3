"""Bytes to text, by the encoding that a server or the bytes declare, otherwise by a guess."""

import codecs
import contextlib
import re
from collections import Counter

from hira.tools.file_kinds import RECOGNISING, can_recognise

_CODECS = frozenset(
    """utf-8 ascii iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9 iso8859-10
    iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257
    cp1258 cp437 cp850 cp852 cp866 cp874 koi8-r koi8-u mac-roman tis-620 gb2312 gbk gb18030 big5 big5hkscs euc_jp
    shift_jis cp932 iso2022_jp euc_kr cp949 johab utf-16 utf-16-le utf-16-be utf-32""".split()
)
_WIDER = {
    **dict.fromkeys(("ascii", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
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
_LOOKED_AT, _JUDGED, _STEPS = 4_000_000, 4_000, 8
"""Bytes of a file of unknown encoding that are looked through, those that are judged, and in how many parts."""
_STRAY = 0.01
"""The most of a text's bytes that can be zeros by accident."""
_HIGH = re.compile(rb"[\x80-\xff]+")
_LATIN_LETTER = re.compile(rb"[\xc0-\xff]|(?<=[A-Za-z])[\x80-\xbf](?=[a-z])")
_FOREIGN = 0.25
"""The share of runs of more than two bytes beyond ASCII that text in Latin letters does not reach."""
_WESTERN = (
    "äöüß", "àâæçéèêëîïôœùûüÿ", "àèéìíîòóùú", "áéíñóúüªº", "ãáàâçéêíóôõúüªº", "àçèéíïòóúü", "æøåéäöü", "áðéíóúýþæö",
    "áéëïíóöüèê", "àèìòùáéíóú", "äöüõšž",
)  # fmt: skip
_CENTRAL = ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîşţ", "čćđšžäöü")
_ALPHABETS = {"cp1252": _WESTERN, "cp1250": _CENTRAL, "iso8859_2": _CENTRAL, "cp1254": ("âçğıîöşûü",)}
"""The letters beyond ASCII of some languages in Latin letters, by encoding."""
_BETTER = 0.05
"""How many more letters, as a share, an alphabet must cover than those of cp1252."""
_OTHER = (
    "cp1251", "koi8_u", "koi8_r", "cp866", "cp1253", "cp1255", "cp1256", "gb18030", "big5", "cp932", "euc_jp", "cp949"
)  # fmt: skip
_NAMES = {"cp866": "CP866", "cp932": "Shift-JIS", "cp949": "EUC-KR", "euc_jp": "EUC-JP", "iso8859_2": "ISO-8859-2"}
_CONTROLS = bytes(range(9)) + bytes(range(14, 27)) + bytes(range(28, 32))


def decode_page(body: bytes, content_type: str = "") -> str:
    """Decode a web page: byte-order mark, then the HTTP header, then the page's own declaration, then UTF-8, then
    cp1252.

    Only names of text encodings are trusted; undecodable bytes become U+FFFD.
    """
    header = _CHARSET.search(content_type)
    text = _decode(body, find_codec(header[1]) if header else "", _DECLARED)
    return body.decode("cp1252", "replace") if text is None else text


def decode_file(data: bytes) -> str | None:
    """Decode a file as `decode_text` does, without the remark."""
    decoded = decode_text(data)
    return None if decoded is None else decoded[0]


def decode_text(data: bytes) -> tuple[str, str] | None:
    """Decode a file, with line ends as "\\n": byte-order mark, UTF-16 by its zeros, declared charset, UTF-8, and at
    last a guess. Up to 1 % of stray zeros are dropped. None if the bytes are not text: they hold more zeros, or one
    control character in twenty.

    The second text is empty, or says after the file's name how it was read if a person should know.
    """
    sample, wide = data[:_SAMPLE], ""
    if not data.startswith(tuple(mark for mark, _ in _MARKS)):
        wide = _find_utf16(sample)
        if not wide:
            if sample.count(0) > _STRAY * len(sample):
                return None
            data, sample = data.replace(b"\0", b""), sample.replace(b"\0", b"")
            if len(sample.translate(None, _CONTROLS)) < 0.95 * len(sample):
                return None
    text, remark = _decode(data, wide, _DECLARED, _CODING), ""
    if text is None:
        codec, remark = _guess_codec(data)
        text = data.decode(codec, "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n"), remark


def _guess_codec(data: bytes) -> tuple[str, str]:
    """Return the likely encoding of bytes that are not UTF-8, and a remark, empty for Western European languages."""
    sample = _take_sample(data)
    runs = _HIGH.findall(sample)
    foreign = sum(len(run) > 2 for run in runs) > _FOREIGN * len(runs)
    codec = "cp1252" if foreign else _compare_alphabets(sample)
    if foreign and can_recognise():
        from charset_normalizer import from_bytes  # only few files need it

        match = from_bytes(sample, steps=_STEPS, cp_isolation=list(_OTHER)).best()
        codec = match.encoding if match else codec
    if codec == "cp1252" and not foreign:
        return codec, ""
    name = _NAMES.get(codec) or re.sub("^CP", "Windows-", codec.upper().replace("_", "-"))
    more = f"; to have its encoding recognised: {RECOGNISING}" if foreign and not can_recognise() else ""
    return codec, f"is not UTF-8; read as {name}: save it as UTF-8 if its text looks wrong{more}"


def _compare_alphabets(sample: bytes) -> str:
    """Return the encoding in which most letters are in one language's alphabet; cp1252 unless another is better."""
    found = Counter(_LATIN_LETTER.findall(sample))
    covered = dict.fromkeys(_ALPHABETS, 0)
    for codec, alphabets in _ALPHABETS.items():
        letters = [(byte.decode(codec, "replace").lower(), number) for byte, number in found.items()]
        covered[codec] = max(sum(number for letter, number in letters if letter in known) for known in alphabets)
    best = max(covered, key=lambda codec: covered[codec])
    return best if covered[best] > (1 + _BETTER) * covered["cp1252"] else "cp1252"


def _take_sample(data: bytes) -> bytes:
    """Return lines beyond ASCII, a few thousand bytes in all; long ones are cut at a blank, not in a character."""
    lines: list[bytes] = []
    room = _JUDGED
    for line in data[:_LOOKED_AT].split(b"\n"):
        if line.isascii():
            continue
        first = _HIGH.search(line)
        part = line[max(first.start() - room // 4, 0) if first else 0 :]
        lines.append(part if len(part) <= room else part[:room].rpartition(b" ")[0] or part[:room])
        room -= len(lines[-1])
        if room <= 0 or len(part) > room:
            break
    return b"\n".join(lines)


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


def _decode(data: bytes, charset: str, *declarations: re.Pattern[bytes]) -> str | None:
    """Decode bytes; None if they are not UTF-8 and nothing says what they are."""
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
    return data.decode(codec, "replace") if codec else None
