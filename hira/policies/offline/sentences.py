"""The sentences of passages that were read, each with the words of what stands around it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from hira.policies.offline import plain
from hira.policies.offline.passages import Passage
from hira.policies.offline.wording import words

ROW = " | "
_END = re.compile(r"(?<=[.!?])[\"”’)\]]*\s+(?=[\"“(\[]?[A-Z0-9À-Þ])|(?<=[。！？；])")
_ABBREVIATED = re.compile(
    r"(?:\b[A-Z]|\b(?:e\.g|i\.e|al|Dr|Mr|Mrs|Ms|Prof|St|Figs?|Eqs?|No|vs|cf|Sec|ca|approx|Jr|Sr))\.$"
)
_OPEN = re.compile(r"[\w,;(–-]$")
_ITEM = re.compile(r"^\s*(?:[-*•‣#>]|\d{1,3}[.)]\s|\[)")
_LISTED = re.compile(r"^\s*(?:[-*•‣+]\s|\d{1,3}[.)]\s)")
_MARKED = ("#", "**", "Q:", "Q.")
"""What a line may begin with that asks what those below it answer."""
_HEADING = re.compile(r"^#|›|\|")
_WRAPPED = 60
_BLANK = re.compile(r"\n[ \t]*\n+")
_ENDED = re.compile(r"[.!?:;。！？；][\"”’)\]]*$")
_BACK = re.compile(r"(?:It|He|She|They|This|These|Its|His|Her|Their|Er|Sie|Es|Sein|Seine|Ihr|Ihre|Dies\w*)\b|[它他她]")
ASKS = re.compile(r"[?？][\"”’)\]`*]*$")
PAIR = 2
_RULE = re.compile(r"^\|?(?:\s*:?-{2,}:?\s*\|)+\s*(?::?-{2,}:?\s*)?$")
_SAID_CELL = re.compile(r"[.。]$|(?:\S+\s+){5}")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence or a row of a table, and the `passage` and `paragraph` it stands in.

    The words that say what it is about, nearest first: its `own` (in `order`), those of the `earlier` sentences of its
    paragraph and of the heading, those of the title, those `around` it in its passage. `beside` are its neighbours'.
    `asked` are those of the question that stands above it, in a list of questions and answers; `section` its heading.
    """

    text: str
    raw: str
    before: str
    passage: Passage
    paragraph: str
    order: tuple[str, ...]
    own: frozenset[str]
    beside: frozenset[str]
    earlier: frozenset[str]
    title: frozenset[str]
    around: frozenset[str]
    asked: frozenset[str]
    section: str

    @property
    def listed(self) -> bool:
        """Whether it is an item of a list."""
        return bool(_LISTED.match(self.raw))


def quoted(one: Sentence) -> str:
    """The sentence with its id; with the one before it, if it points back there."""
    mark = f" [{one.passage.id}]" if one.passage.id else ""
    lead = f"{one.before}{mark} " if points_back(one.text) and _ENDED.search(one.before) else ""
    return f"{lead}{plain.row(one.text) if ROW in one.text else one.text}{mark}"


def points_back(text: str) -> bool:
    """Whether a sentence begins with a word that stands for something said before it."""
    return bool(_BACK.match(text))


def split(text: str) -> list[str]:
    """The sentences of a text; a row of a table, an item and a heading stand alone, broken lines are joined."""
    lines: list[str] = []
    for line in (line.strip() for line in text.splitlines()):
        wrapped = lines and len(lines[-1]) >= _WRAPPED and _OPEN.search(lines[-1]) and not _HEADING.search(lines[-1])
        if wrapped and line and ROW not in line and not _ITEM.match(line):
            lines[-1] = f"{lines[-1]} {line}"
        else:
            lines.append(line)
    found: list[str] = []
    for line in filter(None, lines):
        parts = [line] if ROW in line else [part.strip() for part in _END.split(line) if part and part.strip()]
        for at, part in enumerate(parts):
            if at and _ABBREVIATED.search(found[-1]):
                found[-1] = f"{found[-1]} {part}"
            else:
                found.append(part)
    return found


def sentences(read: Sequence[Passage]) -> list[Sentence]:
    """Every sentence of the passages once, in order."""
    found: dict[tuple[str, str], Sentence] = {}
    for passage in read:
        for one in _sentences(passage):
            found.setdefault((passage.id, one.text), one)
    return list(found.values())


@lru_cache(maxsize=512)
def _sentences(passage: Passage) -> tuple[Sentence, ...]:
    """The sentences of one passage; remembered, since a conversation shows the same passages at every turn."""
    found: list[Sentence] = []
    title, around = frozenset(words(passage.title)), frozenset(words(passage.text))
    heading: frozenset[str] = frozenset()
    asked, until, section = frozenset[str](), 0, ""
    for at, paragraph in enumerate(_BLANK.split(plain.prose(passage.text))):
        raws = split(paragraph)
        texts = _with_columns(raws, [plain.sentence(raw) for raw in raws])
        orders = [tuple(words(text)) for text in texts]
        held = [
            frozenset() if ASKS.search(text) else frozenset(order) for text, order in zip(texts, orders, strict=True)
        ]
        if at == 0 and texts and not _ENDED.search(texts[0]):
            heading = held[0]
        for place, (raw, text, order) in enumerate(zip(raws, texts, orders, strict=True)):
            if raw.startswith("#") or "›" in text:
                section = text.rpartition("›")[2].strip()
            if (place == 0 or raw.startswith(_MARKED)) and ASKS.search(text):
                asked, until = frozenset(order), at + (place + 1 == len(raws))
            elif raw.startswith(_MARKED) or at > until:
                asked = frozenset()
            subject = asked | title if asked else asked  # what answers a question is about what its document is about
            beside = frozenset().union(heading, subject, *_lending(raws, held, place))
            earlier = frozenset().union(heading, asked, *held[:place])
            before = texts[place - 1] if place else ""
            one = Sentence(
                text,
                raw,
                before,
                passage,
                paragraph,
                order,
                held[place],
                beside,
                earlier,
                title,
                around,
                asked,
                section,
            )
            if (held[place] or ASKS.search(text)) and not _heads(raws, place):
                found.append(one)
    return tuple(found)


def _lending(raws: Sequence[str], held: Sequence[frozenset[str]], at: int) -> list[frozenset[str]]:
    """The stems beside a sentence, its own included: its neighbours', or of a list's item those of the list's lead."""
    if not _LISTED.match(raws[at]):
        return list(held[max(0, at - 1) : at + 2])
    lead = next((place for place in range(at, -1, -1) if not _LISTED.match(raws[place])), at)
    return [held[lead], held[at]]


def _heads(raws: Sequence[str], at: int) -> bool:
    """Whether a line holds the names of a table's columns, and so answers nothing."""
    return bool(_RULE.match("".join(raws[at + 1 : at + 2]))) and ROW in raws[at]


def _with_columns(raws: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The texts, with each cell of a table in Markdown behind the name of its column, as rows of other files are."""
    told, names = list(texts), list[str]()
    for at, raw in enumerate(raws):
        cells = [plain.sentence(cell.strip()) for cell in raw.strip().strip("|").split("|")]
        if not raw.startswith("|"):
            names = []
        elif _heads(raws, at):
            names = cells
        elif len(cells) == len(names) > PAIR and not _RULE.match(raw) and not any(map(_SAID_CELL.search, cells)):
            pairs = [f"{name}: {cell}" for name, cell in zip(names, cells, strict=True) if name and cell]
            told[at] = ROW.join(pairs)
    return told
