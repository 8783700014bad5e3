"""Markdown as plain words, so that what is shown reads as a sentence; the words stay those of the stored text."""

import re

_FENCE = re.compile(r"^\s*(?:```|~~~)(?P<language>\s*\w*)")
_LEAD = re.compile(r"^\s*(?:>\s*)*(?:#{1,6}\s+|[-*+•‣▪]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+)?(?:>\s*)*")
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^()]*\)")
_LINK = re.compile(r"\[([^\]]+)\](?:\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)|\[[^\]]*\])")
_STRONG = re.compile(r"(\*\*\*|\*\*|___|__)(?=\S)(.+?)(?<=\S)\1")
_WEAK = re.compile(r"(?<![\w*_])([*_])(?=\S)([^*_]+?)(?<=\S)\1(?![\w*_])")
_TICKS = re.compile(r"(`+)([^`]+)\1")
_QUOTED = re.compile(r"[\"“«]([^\"”»]{8,})[\"”»]")
_SENTENCE = 4
_SAID = re.compile(r"[.。]$|^[A-Z].*\b(?:is|are|was|were)\b")
_CODE = re.compile(
    r"^\s*(?:[$%>#]\s+[\w./-]+ [-\w\"'./]|>>>|\.\.\. |#!|import \w|from [\w.]+ import |(?:async )?def \w+\("
    r"|class \w+[:(]|(?:return|await|yield|const|let|var|print|export|sudo|pip|git|cd|npm|curl)"
    r" ?[\w(\"'./$-]+[ (=].*[\"'(){}=;-]"
    r"|[\w.\[\]]+ ?[-+*/]?= ?\S|[\w.]+\(.*\)\s*;?$|[{}\[\]();,\s]+$|</?\w+[^>]*>$)"
)
_COMMAND = re.compile(r"^\s*[a-z][\w.-]* (?:[a-z][\w-]* )*(?:[\"'].*[\"']|--?\w[\w-]*)(?:\s.*)?(?<![.!?。])$")


def prose(text: str) -> str:
    """The text without fenced code. A passage may begin inside of a fence, or end in one."""
    lines, kept = text.split("\n"), []
    marks = [match for line in lines if (match := _FENCE.match(line))]
    inside = len(marks) % 2 == 1 and not marks[0]["language"].strip() and not text.lstrip().startswith(("#", ">"))
    inside = inside and is_code(lines[0])
    for line in lines:
        if _FENCE.match(line):
            inside = not inside
            kept.append("")
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def sentence(raw: str) -> str:
    """A sentence without list number, emphasis, link targets and heading marks; rows of a table as they are."""
    if " | " in raw or is_code(raw):
        return raw
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", _LEAD.sub("", raw, count=1)))
    for _ in range(2):
        text = _WEAK.sub(r"\2", _STRONG.sub(r"\2", text))
    text = " ".join(_TICKS.sub(r"\2", text).split())
    # quotation marks promise the very words: they go where markup stood inside of them
    return _QUOTED.sub(lambda quoted: quoted[0] if quoted[1] in raw else quoted[1], text) or raw


def row(text: str) -> str:
    """A row of a table as words: the one cell that is a sentence, else all of it."""
    cells = [sentence(cell.strip()) for cell in re.sub(r"^row \d+: ", "", text).strip("| ").split(" | ")]
    said = [cell for cell in cells if len(cell.split()) > _SENTENCE and _SAID.search(cell)]
    told = said[0] if len(said) == 1 else ", ".join(cell for cell in cells if cell)
    return told if told.endswith((".", "。")) else f"{told}."


def is_code(line: str) -> bool:
    """Whether a line is a program's or a shell's rather than a sentence."""
    return bool(_CODE.match(line) or _COMMAND.match(line))
