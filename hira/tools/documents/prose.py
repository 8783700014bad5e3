"""Text that was broken into lines of one width, put back into paragraphs, so that a sentence is one piece."""

import re

_ITEM = re.compile(r"\s*(?:[-*•‣▪–+|#>=~`]|\d{1,3}[.)]\s|\(?[a-zA-Z0-9]{1,3}\)\s|\[\^?\w+\])")
_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*%?")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_FULL = 0.8
_SHORTEST = 40
_FIGURES = 4


def reflow(text: str) -> str:
    """Join lines that were broken because they were full. Lists, tables, headings, code and verse keep their lines."""
    lines = text.split("\n")
    lengths = sorted(len(line) for line in lines if len(line) >= _SHORTEST)
    if not lengths:
        return text
    full = max(_SHORTEST, _FULL * lengths[(len(lengths) - 1) * 9 // 10])
    paragraphs: list[list[str]] = []
    fenced = open_ = False
    for line in lines:
        if _FENCE.match(line):
            fenced, open_ = not fenced, False
            paragraphs.append([line])
            continue
        if open_ and line.strip() and not _ITEM.match(line) and not _figures(line):
            paragraphs[-1][-1] = paragraphs[-1][-1].rstrip()
            paragraphs[-1].append(line.strip())
        else:
            paragraphs.append([line])
        open_ = not fenced and len(line.rstrip()) >= full and not line.startswith(("    ", "\t", "|", "#"))
    return "\n".join(" ".join(lines) for lines in paragraphs)


def _figures(line: str) -> bool:
    """A row of numbers: at least four, and a third of the words."""
    return len(_NUMBERS.findall(line)) >= max(_FIGURES, len(line.split()) / 3)
