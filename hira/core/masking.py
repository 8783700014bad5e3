"""Finds keys and passwords in a text, also in disguise, and masks them.

A page, a file or a program may spell a key with invisible characters, which cleaning would remove and so restore the
key, or encode it, which a model reads as well: percent-encoding, references of HTML, escapes of JSON, base64 and hex.
"""

import base64
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote

from hira.core.patterns import ESCAPES, INVISIBLE, JOINERS, compile_lazily

MASK = "[secret]"
_ROUNDS = 4  # of encodings within each other
# one encoded character, or some invisible ones
_ENCODED = compile_lazily(
    rf"{ESCAPES}|(?:{INVISIBLE}|{JOINERS})+|%[0-7][0-9a-f]|%[c-f][0-9a-f](?:%[89ab][0-9a-f]){{1,3}}"
    r"|&#0*+[0-9]{1,7};?|&#x0*+[0-9a-f]{1,6};?|&[a-z][a-z0-9]{1,31};?|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\[\"/\\nrt]",
    re.IGNORECASE,
)
_MAY_BE_ENCODED = compile_lazily(rf"[%&\\\x1b]|{INVISIBLE}|{JOINERS}")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_SPACE = compile_lazily(r"\s+")
_URL_SAFE = str.maketrans("-_", "+/")


class Spellings(NamedTuple):
    """How the secrets may be spelled: as they are, decoded, and without whitespace in base64 and hex."""

    plain: tuple[str, ...]
    decoded: tuple[str, ...]
    packed: tuple[str, ...]


class _Decoded(NamedTuple):
    """A text after one round of decoding: where each decoded piece begins and ends in it, and in the text before."""

    text: str
    begins: Sequence[int]
    ends: Sequence[int]
    spans: Sequence[tuple[int, int]]

    def find_origin(self, begin: int, end: int) -> tuple[int, int]:
        """Return the part of the text before that a part of this one comes from."""
        return self._find(begin)[0], self._find(end - 1)[1]

    def _find(self, place: int) -> tuple[int, int]:
        index = bisect_right(self.begins, place) - 1
        if index < 0:
            return place, place + 1
        begin, end = self.spans[index]
        beyond = place - self.ends[index]
        return (begin, end) if beyond < 0 else (end + beyond, end + beyond + 1)


def mask(text: str, secrets: frozenset[str]) -> str:
    """Return the text with `MASK` for each secret. Takes time in proportion to the text's length."""
    spellings = spell(secrets)
    for spelling in spellings.plain:
        text = text.replace(spelling, MASK)
    rounds = list(_decode(text))
    decoded = rounds[-1].text if rounds else text
    places = _find_all(spellings.decoded, decoded) if rounds else []
    packed = "".join(decoded.split()).translate(_URL_SAFE)
    if any(spelling in packed for spelling in spellings.packed):
        bare = _replace(_SPACE, decoded)
        packed = bare.text.translate(_URL_SAFE)
        places += [bare.find_origin(*place) for place in _find_all(spellings.packed, packed)]
    for earlier in reversed(rounds):
        places = [earlier.find_origin(*place) for place in places]
    parts: list[str] = []
    covered = 0
    for begin, end in sorted(places):
        if begin >= covered:
            parts += text[covered:begin], MASK
        covered = max(covered, end)
    return "".join([*parts, text[covered:]])


def _decode(text: str) -> Iterator[_Decoded]:
    for _ in range(_ROUNDS):
        if not _MAY_BE_ENCODED.search(text):
            return
        decoded = _replace(_ENCODED, text)
        if not decoded.spans:
            return
        yield decoded
        text = decoded.text


def _replace(pattern: re.Pattern[str], text: str) -> _Decoded:
    parts: list[str] = []
    begins: list[int] = []
    ends: list[int] = []
    spans: list[tuple[int, int]] = []
    length = done = 0
    for token in pattern.finditer(text):
        value = _value(token[0])
        parts += text[done : token.start()], value
        begins.append(length + token.start() - done)
        length = begins[-1] + len(value)
        ends.append(length)
        spans.append(token.span())
        done = token.end()
    return _Decoded("".join([*parts, text[done:]]), begins, ends, spans)


def _value(token: str) -> str:
    if token[0] == "%":
        return unquote(token)
    if token[0] == "&":
        import html  # its table of names is large, and few texts need it

        return html.unescape(token)
    if token[0] == "\\":
        return chr(int.from_bytes(bytes.fromhex(token[2:]))) if len(token) > 2 else _ESCAPED.get(token[1], token[1])
    return ""


def _find_all(spellings: Sequence[str], text: str) -> list[tuple[int, int]]:
    return [match.span() for spelling in spellings for match in re.finditer(re.escape(spelling), text)]


@lru_cache(maxsize=8)
def spell(secrets: frozenset[str]) -> Spellings:
    """Return the spellings of the secrets, longest first; cached, because every text is searched for them."""
    plain, decoded, packed = set[str](), set[str](), set[str]()
    for secret in secrets:
        raw = secret.encode("utf-8", "surrogatepass")
        plain |= {secret, quote(raw, safe="")}
        decoded |= {secret, *(decoding.text for decoding in _decode(secret))}
        packed |= {raw.hex(), raw.hex().upper()}
        for before in range(3):  # in base64 after none, one and two other bytes: what only these bytes decide
            coded = base64.b64encode(bytes(before) + raw).decode()
            packed.add(coded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6])
    longest_first = (tuple(sorted(forms - {""}, key=len, reverse=True)) for forms in (plain, decoded, packed))
    return Spellings(*longest_first)
