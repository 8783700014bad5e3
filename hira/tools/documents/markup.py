"""reStructuredText, Org and LaTeX as plain text with Markdown headings; each line keeps its number in the file."""

import re
import unicodedata
from collections.abc import Callable, Iterator

from hira.tools.documents.sheets import lines_of

Lines = list[tuple[str, int]]
"""The lines of a text, each with its number in the file."""
_DEEPEST = 6


def _number(text: str) -> Lines:
    return [(line, number) for number, line in enumerate(text.split("\n"), 1)]


_ADORNMENT = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}\s*")


def read_rst(text: str) -> tuple[str, Lines]:
    """Read headings by the lines of signs below (and above) them; the signs' order is that of the levels."""
    lines = _number(text)
    styles: list[str] = []
    read: Lines = []
    index = 0
    while index < len(lines):
        over = index + 2 < len(lines) and _is_heading(*(line for line, _ in lines[index + 1 : index + 3]))
        over = over and lines[index][0].rstrip() == lines[index + 2][0].rstrip()
        title, number = lines[index + over]
        if over or (index + 1 < len(lines) and _is_heading(title, lines[index + 1][0])):
            style = lines[index + over + 1][0][0] * (1 + over)
            if style not in styles:
                styles.append(style)
            read.append((f"{'#' * min(styles.index(style) + 1, _DEEPEST)} {title.strip()}", number))
            index += 2 + over
        else:
            read.append(lines[index])
            index += 1
    return "", read


def _is_heading(title: str, below: str) -> bool:
    if not title.strip() or _ADORNMENT.fullmatch(title):
        return False
    return _ADORNMENT.fullmatch(below) is not None and len(below.rstrip()) >= len(title.strip())


_ORG_HEADING = re.compile(r"(\*+)\s+(?:(?:TODO|DONE)\s+)?(.*?)(?:\s+:[\w@:]+:)?\s*")
_ORG_KEYWORD = re.compile(r"\s*#\+(\w+):?\s*(.*)")
_ORG_KEPT = ("author", "date", "caption")


def read_org(text: str) -> tuple[str, Lines]:
    """Read headings, tables and blocks; drawers of properties and most settings are left out."""
    title, end = "", ""
    read: Lines = []
    table: list[tuple[list[str], int]] = []
    for line, number in [*_number(text), ("", 0)]:
        if line.lstrip().startswith("|") and not end:
            if not line.lstrip().startswith("|-"):
                table.append((line.strip().strip("|").split("|"), number))
            continue
        read += _read_rows(table)
        table = []
        mark = line.strip().upper()
        keyword = _ORG_KEYWORD.fullmatch(line)
        name = keyword[1].lower() if keyword else ""
        if end and mark == end:
            read.append(("" if end == _DRAWER_ENDS else "```", number))
            end = ""
        elif end:
            read.append(("" if end == _DRAWER_ENDS else line, number))
        elif mark == ":PROPERTIES:":
            end = _DRAWER_ENDS
        elif name in ("begin_src", "begin_example"):
            end = f"#+{name.replace('begin', 'end').upper()}"
            read.append(("```", number))
        elif keyword and name == "title":
            title = keyword[2]
        else:
            read.append((_read_org_line(line), number))
    return title, read[:-1]


_DRAWER_ENDS = ":END:"


def _read_org_line(line: str) -> str:
    if heading := _ORG_HEADING.fullmatch(line):
        return f"{'#' * min(len(heading[1]), _DEEPEST)} {heading[2]}"
    if keyword := _ORG_KEYWORD.fullmatch(line):
        return f"{keyword[1].title()}: {keyword[2]}" if keyword[1].lower() in _ORG_KEPT else ""
    return line


def _read_rows(table: list[tuple[list[str], int]]) -> Lines:
    """Return the rows of a table, after the names of their columns."""
    table = [(row, number) for row, number in table if any(cell.strip() for cell in row)]
    shown = lines_of([[cell.strip() for cell in row] for row, _ in table], expected=True)
    return list(zip(shown, [number for _, number in table[len(table) - len(shown) :]], strict=True))


_SECTION = re.compile(r"\\(part|chapter|section|subsection|subsubsection|paragraph)\*?\s*(?:\[[^\]]*\])?\s*\{")
_LEVELS = {"part": 1, "chapter": 1, "section": 1, "subsection": 2, "subsubsection": 3, "paragraph": 4}
_COMMENT = re.compile(r"(?<!\\)%.*")
_ACCENT = re.compile(r"\\(?:([`'^\"~=.])\s*|([uvHcdbr])(?:\s+|(?={)))\{?\\?([A-Za-z])\}?")
_ACCENTS = dict(
    zip(
        "`'^\"~=.uvHcdbr",
        "\u0300\u0301\u0302\u0308\u0303\u0304\u0307\u0306\u030c\u030b\u0327\u0323\u0331\u030a",
        strict=True,
    )
)
_WITHOUT_TEXT = re.compile(
    r"\\(?:label|ref|eqref|cite\w*|bibliography\w*|includegraphics|usepackage|documentclass|vspace|hspace|input|include"
    r"|pagestyle|thispagestyle|setlength|newcommand|renewcommand)\*?(?:\[[^\]]*\])*(?:\{[^{}]*\})+"
)
_ENVIRONMENT = re.compile(r"\\(begin|end)\{(\w+\*?)\}(?:\[[^\]]*\])?")
_CODE = ("verbatim", "lstlisting", "minted", "Verbatim")
_TABLES = ("tabular", "tabular*", "tabularx", "longtable")
_COMMAND = re.compile(r"\\[A-Za-z]+\*?(?:\[[^\]]*\])?[ ]?")
_SIGNS = {f"\\{sign}": sign for sign in "%&$#_"} | {"~": " ", "---": "—", "--": "–", "``": "“", "''": "”"}


def read_tex(text: str) -> tuple[str, Lines]:
    """Read the text of the document, without comments and commands; formulas stay as they are."""
    lines = [(_COMMENT.sub("", line), number) for line, number in _number(text)]
    title = re.search(r"\\title(?:\[[^\]]*\])?\{([^{}]*)\}", text)
    begins = [index for index, (line, _) in enumerate(lines) if "\\begin{document}" in line]
    return _plain_tex(title[1]) if title else "", [*_read_tex_lines(lines[begins[0] + 1 if begins else 0 :])]


def _read_tex_lines(lines: Lines) -> Iterator[tuple[str, int]]:
    inside = ""
    table: list[tuple[list[str], int]] = []
    for line, number in lines:
        mark = _ENVIRONMENT.search(line)
        if mark and mark[2] == "document":
            return
        if mark and mark[2] in (*_CODE, *_TABLES) and inside in ("", mark[2]):
            inside = mark[2] if mark[1] == "begin" else ""
            if mark[2] in _CODE:
                yield "```", number
            yield from _read_rows(table)
            table = []
        elif inside in _TABLES:
            cells = re.split(r"(?<!\\)&", re.split(r"\\\\", line)[0])
            table.append(([_plain_tex(cell) for cell in cells], number))
        elif inside:
            yield line, number
        elif heading := _SECTION.search(line):
            yield f"{'#' * _LEVELS[heading[1]]} {_plain_tex(line[heading.end() :].partition('}')[0])}", number
        else:
            yield _plain_tex(line), number


def _plain_tex(line: str) -> str:
    """Return a line without its commands; formulas between dollar signs keep theirs."""
    parts = re.split(r"((?<!\\)\$[^$]*\$)", line)
    return "".join(part if index % 2 else _plain_words(part) for index, part in enumerate(parts)).strip()


def _plain_words(words: str) -> str:
    words = _ENVIRONMENT.sub("", _WITHOUT_TEXT.sub("", words)).replace("\\item", "- ")
    words = _ACCENT.sub(lambda sign: unicodedata.normalize("NFC", sign[3] + _ACCENTS[sign[1] or sign[2]]), words)
    for written, shown in _SIGNS.items():
        words = words.replace(written, shown)
    return re.sub(r"[{}]", "", _COMMAND.sub("", words)).replace("\\\\", "")


READERS: dict[str, Callable[[str], tuple[str, Lines]]] = {".rst": read_rst, ".org": read_org, ".tex": read_tex}
"""The reader of each suffix, which returns the title, empty if the text names none, and the lines."""
