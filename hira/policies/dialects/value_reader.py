"""Reads values that are nearly JSON: single quotes, bare keys, trailing commas, raw new lines, Python's literals, a
missing bracket at the end. Ambiguous text is not read."""

import re
from collections.abc import Iterator
from typing import Any

from hira.core.patterns import compile_lazily

_DEEPEST = 100
_SPACE = compile_lazily(r"\s*")
_KEY = compile_lazily(r"[A-Za-z_]\w*(?=\s*[:=])")
_LITERAL = compile_lazily(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|\b(?:true|false|null|True|False|None)\b")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
# after the text of a string
_ENDS = compile_lazily(r"\s*(?:[,:}\])]|\Z)")
# where brackets that were never closed count as closed
_OVER = compile_lazily(r"\s*(?:\Z|```|</|<\||<｜)")
_ESCAPE = compile_lazily(
    r"""\\(?:u([0-9a-fA-F]{4})|U(0010[0-9a-fA-F]{4}|000[0-9a-fA-F]{5})|x([0-9a-fA-F]{2})|(["'\\/nrtbf]))"""
)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_MARKS = {mark: re.compile(rf"\\.|{mark}", re.DOTALL) for mark in ('"""', "'''", '"', "'")}


class Unclear(Exception):
    """The text has several meanings, or none."""


class ValueReader:
    """Reads one value, each character of it once. In `quoting` "json" a quotation mark within a string need not be
    escaped, if what follows it cannot follow a string."""

    def __init__(self, text: str, position: int, quoting: str = "json") -> None:
        self.text = text
        self.position = position
        self.loose = quoting == "json"

    def value(self, depth: int = 0) -> Any:
        self._skip()
        mark = self.text[self.position : self.position + 1]
        if depth > _DEEPEST:
            raise Unclear("it is nested too deeply")
        if mark == "{":
            self.position += 1
            members: dict[str, Any] = {}
            for _ in self._items("}"):
                key = self._key()
                if not self._takes(":"):
                    raise Unclear(f"no value after {key!r}")
                members[key] = self.value(depth + 1)
            return members
        if mark == "[":
            self.position += 1
            return [self.value(depth + 1) for _ in self._items("]")]
        if mark and mark in "\"'":
            return self._string()
        if literal := _LITERAL.match(self.text, self.position):
            self.position = literal.end()
            if literal[0] in _WORDS:
                return _WORDS[literal[0]]
            try:
                return float(literal[0]) if set(literal[0]) & set(".eE") else int(literal[0])
            except ValueError:
                raise Unclear("a number is too long") from None
        raise Unclear(f"no value at {self.position}")

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Read the positional and named arguments of a call, from after its opening parenthesis."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for _ in self._items(")"):
            self._skip()
            if key := _KEY.match(self.text, self.position):
                self.position = key.end()
                if not self._takes("="):
                    raise Unclear("a name without a value")
                named[key[0]] = self.value()
            else:
                positional.append(self.value())
        return positional, named

    def _items(self, bracket: str) -> Iterator[None]:
        """Yield at each item, until the bracket comes or the text ends without it."""
        while not (self._takes(bracket) or self._is_over()):
            yield
            if not (self._takes(",") or self.text.startswith(bracket, self.position) or self._is_over()):
                raise Unclear(f"neither a comma nor an end at {self.position}")

    def _key(self) -> str:
        self._skip()
        if bare := _KEY.match(self.text, self.position):
            self.position = bare.end()
            return bare[0]
        if self.text[self.position : self.position + 1] not in ('"', "'"):
            raise Unclear(f"no key at {self.position}")
        return self._string()

    def _string(self) -> str:
        mark = self.text[self.position : self.position + 3]
        mark = mark if mark in _MARKS else mark[0]
        begun = self.position = self.position + len(mark)
        for match in _MARKS[mark].finditer(self.text, begun):
            if match[0] != mark:
                continue
            if self.loose and not _ENDS.match(self.text, match.end()):
                continue
            self.position = match.end()
            text = _ESCAPE.sub(_unescape, self.text[begun : match.start()])
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # two halves make one character
        raise Unclear("a string without an end")

    def _is_over(self) -> bool:
        return bool(self.loose and _OVER.match(self.text, self.position))

    def _takes(self, mark: str) -> bool:
        self._skip()
        if not self.text.startswith(mark, self.position):
            return False
        self.position += len(mark)
        return True

    def _skip(self) -> None:
        space = _SPACE.match(self.text, self.position)
        self.position = space.end() if space else self.position


def _unescape(match: "re.Match[str]") -> str:
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)) if code else _ESCAPED.get(match[4], match[4])
