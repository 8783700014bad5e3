"""The cited sources of an answer as entries of a reference manager: BibTeX and RIS."""

import re
from dataclasses import dataclass
from pathlib import PurePath
from urllib.parse import quote

from hira.evidence import Source
from hira.evidence.citations import find_page, find_places, locate
from hira.runtime.answer import Answer
from hira.tools.documents.ranking import read_vintage

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_DOI = re.compile(r"https?://(?:dx\.)?doi\.org/(10\.\S+)", re.IGNORECASE)

_DATE = re.compile(r"(?:1[5-9]|20)\d\d(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?(?!\d)")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")


def find_url(source: Source) -> str:
    """The address of a source on the web, empty for any other."""
    if not re.match(r"https?://[^\s/]", source.location):
        return ""
    return quote(source.location, safe="%/:@!$&'()*+,;=~?#[]-._")


def find_date(source: Source) -> str:
    """The date that a search service or the name of a file gives, or its year, empty without one."""
    written = source.date
    if not written and source.kind == "file":
        written = read_vintage(PurePath(source.location).name, "").date
    found = _DATE.match(written) or _YEAR.search(written)
    return found[0] if found else ""


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A cited source: its number in the report, `url` on the web or empty, its location with the cited places, the
    cited `pages`, the day on which it was read, as `YYYY-MM-DD`, and its `date`, as `YYYY`, `YYYY-MM` or `YYYY-MM-DD`,
    empty if it is unknown."""

    number: int
    title: str
    url: str
    location: str
    day: str
    pages: tuple[int, ...] = ()
    date: str = ""

    @property
    def doi(self) -> str:
        """The DOI that the address names, empty if it names none."""
        match = _DOI.fullmatch(self.url)
        return match[1] if match else ""


def format_bibtex(entry: SourceEntry) -> str:
    """Format an entry of type `@misc`; its title keeps its capitals, and characters of LaTeX are escaped."""
    fields = {
        "title": f"{{{_escape_latex(entry.title)}}}",
        "url": entry.url,
        "doi": entry.doi,
        "date": entry.date,
        "year": entry.date[:4],
        "howpublished": _escape_latex(entry.location),
        "pages": ", ".join(map(str, entry.pages)),
        "urldate": entry.day,
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@misc{{source{entry.number},", *lines, "}"])


def format_ris(entry: SourceEntry) -> str:
    """Format an entry of type `ELEC`, or `GEN` for a source that is not on the web."""
    fields = [
        ("TY", "ELEC" if entry.url else "GEN"),
        ("ID", f"source{entry.number}"),
        ("TI", _join_lines(entry.title)),
        ("UR", entry.url),
        ("DO", entry.doi),
        ("PY", entry.date[:4]),
        ("DA", entry.date.replace("-", "/")),
        ("Y2", entry.day.replace("-", "/")),
        ("SP", ", ".join(map(str, entry.pages))),
        ("N1", _join_lines(entry.location)),
    ]
    return "\n".join([f"{tag}  - {value}" for tag, value in fields if value] + ["ER  - "])


def list_entries(answer: Answer) -> list[SourceEntry]:
    entries = []
    for number, source in enumerate(answer.cited, 1):
        pages = [find_page(place) for place in find_places(source.id, answer.citations)]
        entries.append(
            SourceEntry(
                number=number,
                title=source.title or source.location,
                url=find_url(source),
                location=locate(source, answer.citations),
                day=answer.rollout.today,
                pages=tuple(sorted({page for page in pages if page is not None})),
                date=find_date(source),
            )
        )
    return entries


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in _join_lines(text))


def _join_lines(text: str) -> str:
    """Return the text on one line, without control characters, which would end an entry."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
