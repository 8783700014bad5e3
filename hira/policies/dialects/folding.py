"""Compares calls with the texts that a conversation has read, by letters, digits and brackets alone: white space, case,
quotation marks, Markdown, escapes, invisible characters, accents and look-alikes make no difference."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from hira.core.patterns import compile_lazily
from hira.core.sanitize import unescape
from hira.core.tool import Tool
from hira.policies.dialects.call_formats import DRESS
from hira.policies.dialects.protocol import Call

LEAST = 8
"""The fewest characters of a piece, when a model joins pieces of several texts to a call. The last piece may be
shorter, and so may one other; a call of fewer than two such pieces is compared only as a whole."""
PIECES = 8
_ESCAPED = compile_lazily(r"(?<!\\)\\++u([0-9a-fA-F]{4})|(?:%[0-9a-fA-F]{2})+")
_BREAKS = compile_lazily(r"\\++[nrt]?")
_DROPPED = compile_lazily(r"[^\w()]+|_+")
_SIGNS = bytes(code for code in range(128) if not (chr(code).isalnum() or chr(code) in "()"))
# letters of other scripts that are drawn like Latin ones, after `casefold`
_DRAWN_ALIKE = str.maketrans(
    "аһсԁеіјкӏмпорԛгѕтѵԝхуьαβεικνορτυχϲɑɡıոօսհցզ",
    "ahcdeijklmnopqrstvwxybabeikvoptuxcaginouhgq",
)
_WORDS = """arguments argument parameters parameter args input actioninput toolinput kwargs argkey argvalue name tool
toolname function functionname functions action recipientname call calls begin end json constrain message sep""".split()
LONGEST = 20_000
"""Characters of arguments that are compared in another form."""


def _unescape(escape: "re.Match[str]") -> str:
    return chr(int(escape[1], 16)) if escape[1] else unquote(escape[0])


def fold(text: str) -> str:
    """Return the letters, digits and round brackets of a text, in one case and script.

    >>> fold('**Action:** Delete\\\\_File(\\n  “path”…)')
    'actiondeletefile(path)'
    """
    if "&" in text:
        text = unescape(text)
    if "\\" in text or "%" in text:
        text = _BREAKS.sub("", _ESCAPED.sub(_unescape, text))
    if text.isascii():
        return text.encode().translate(None, _SIGNS).decode().lower()
    text = _DROPPED.sub("", unicodedata.normalize("NFKD", text).casefold())
    return text if text.isascii() else text.translate(_DRAWN_ALIKE)


@dataclass(frozen=True, slots=True)
class ReadTexts:
    """The folded texts that a conversation has read."""

    folded: Sequence[str]

    def hold(self, passage: str) -> bool:
        wanted = _fold_call(passage)
        return bool(wanted) and any(wanted in text for text in self.folded)

    def hold_in_pieces(self, passage: str) -> bool:
        left, short = _fold_call(passage), 0
        for _ in range(PIECES if len(left) >= 2 * LEAST else 0):
            begins = range(1, len(left) + 1)
            size = bisect_left(begins, 1, key=lambda size: 1 - any(left[:size] in text for text in self.folded))
            left, short = left[size:], short + (size < LEAST)
            if not left:
                return True
            if not size or short > 1:
                return False
        return False

    def hold_reworded(self, call: Call, tool: Tool) -> bool:
        """Return whether a text has the call in another form: its name, and before or after it nothing but its
        arguments and the words of call formats. Next to a name that is a plain word, one of these is needed: prose may
        have that word before a value."""
        name = fold(call.name)
        texts = [text for text in self.folded if name in text]
        values = set(filter(None, map(fold, _values_of(call.arguments)))) if texts else set()
        if not values or sum(map(len, values)) > LONGEST:
            return False
        words = {*map(fold, tool.fields), *_WORDS} - {""}
        part, written, backwards = _compile_forms(name, frozenset({*values, *words, "(", ")"}))
        for text in texts:
            reverse = text[::-1]
            for match in written.finditer(text):
                held = re.findall(part, match[1])
                first = next((index for index, text in enumerate(held) if text in values), len(held))
                announced = not call.name.isalpha() or text.endswith(tuple(_WORDS), 0, match.start())
                if (announced or not words.isdisjoint(held[:first])) and values <= set(held):
                    return True
                if announced and (before := backwards.match(reverse, len(text) - match.start())):
                    held += re.findall(part, before[0][::-1])
                    if values <= set(held):
                        return True
        return False


@lru_cache(maxsize=100)
def _compile_forms(name: str, parts: frozenset[str]) -> "tuple[str, re.Pattern[str], re.Pattern[str]]":
    """Compile the patterns of a part of a call, of a name with parts after it, and of parts before it, backwards."""
    longest_first = sorted(parts, key=len, reverse=True)
    part = "|".join((*map(re.escape, longest_first), r"\d"))
    backwards = "|".join(re.escape(value[::-1]) for value in longest_first)
    return part, re.compile(f"{re.escape(name)}((?:{part})*)"), re.compile(f"(?:{backwards}|\\d)*")


def _fold_call(passage: str) -> str:
    """Fold a passage without the tokens that announce a call, which a model may add to a quotation."""
    dress = DRESS.match(passage)
    return fold(passage[dress.end() :] if dress else passage)


def _values_of(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list | tuple):
        for child in value.values() if isinstance(value, Mapping) else value:
            yield from _values_of(child)
    else:
        yield str(value)
