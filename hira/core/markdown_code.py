"""Where the code of a Markdown text is, for every renderer."""

import re

from hira.core.patterns import compile_lazily

_LINE_END = compile_lazily(r"\r\n?|\n")
_BACKTICKS = compile_lazily(r"(\\*+)(`++)")
# the line that may make a table of the lines around it
_TABLE = compile_lazily(r"^[ \t>*+\d.)]*+[ \t|:]*+-[ \t|:-]*+\r?$", re.MULTILINE)
_BLANK = compile_lazily(r"^[^\S\n]*(?:>[>\s]*)?$", re.MULTILINE)
LONGEST_MARKDOWN = 100_000
"""The longest answer, in characters, whose code is kept as it is: Python needs a second to parse 200,000."""


def find_code(text: str) -> list[tuple[int, int]]:
    """Return where code certainly begins and ends: fences and spans, whether or not a renderer knows HTML and tables.

    CommonMark's own parser finds the blocks, so that no fence begins in a piece of HTML or ends outside its list.
    """
    if len(text) > LONGEST_MARKDOWN or ("`" not in text and "~~~" not in text):
        return []
    from markdown_it import MarkdownIt  # slow to load

    lines = [0, *(end.end() for end in _LINE_END.finditer(text)), len(text)]
    tabular = "|" in text and bool(_TABLE.search(text))
    readings: list[set[tuple[int, int]]] = []
    for without in (["inline"], ["inline", "html_block"]):
        places: set[tuple[int, int]] = set()
        html_end = 0
        for token in MarkdownIt("commonmark").disable(without).parse(text):
            begin, end = (lines[line] for line in token.map or (0, 0))
            if token.type == "html_block" and end > html_end:
                blank = _BLANK.search(text, end)  # in some renderers HTML continues beyond its list up to here
                html_end = blank.start() if blank else len(text)
            if begin < html_end:
                continue
            if token.type == "fence" and "|" not in token.info:  # a line with a bar may be the head of a table instead
                places.add((begin, end))
            elif token.type == "inline":
                places.update(_find_spans(text, begin, end, tabular=tabular))
        readings.append(places)
    return sorted(readings[0] & readings[1])


def _find_spans(text: str, begin: int, end: int, *, tabular: bool) -> list[tuple[int, int]]:
    """Return the code spans of a block's lines: each run of backticks with the next run of the same length.

    In a table a span ends with its cell. Where a text has one, the spans of a block count only if each of its runs has
    its partner in the same cell, since then they are the same for every division into cells and paragraphs.
    """
    runs: list[tuple[int, int, int | None]] = []  # where it begins, its length, the run that closes it
    following: dict[int, int] = {}
    backticks = list(_BACKTICKS.finditer(text, begin, end))
    for index in range(len(backticks) - 1, -1, -1):
        length = len(backticks[index][2])
        # the first backtick after an odd number of backslashes is plain text
        opening = length - len(backticks[index][1]) % 2
        runs.append((backticks[index].end() - opening, opening, following.get(opening)))
        following[length] = index
    spans: list[tuple[int, int]] = []
    index = 0
    while index < len(backticks):
        start, opening, closing = runs[len(backticks) - 1 - index]
        if closing is None:
            if tabular and opening:
                return []
            index += 1
            continue
        stop = backticks[closing].end()
        if tabular and any(sign in text[start:stop] for sign in "|\r\n"):
            return []
        spans.append((start, stop))
        index = closing + 1
    return spans
