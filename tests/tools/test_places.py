"""Citations name where in a document the quoted passage is: the page, the section, the row, the slide, the line."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_documents import docx, paragraph, pdf, pptx, rows, shape, slide_xml, written, xlsx

from hira.core.sources import Source, Sources
from hira.evidence import check, verify
from hira.journal.encoding import pack, validate
from hira.tools.documents import Index, browse_documents, search_documents
from hira.tools.documents.document import Document, Part, cut
from hira.tools.files import files_tool
from tests.cli.command import Command

PAGES = [
    f"Chapter {number} tells of the town of Vard{number}. The mill of Vard{number} has {number + 30} wheels."
    for number in range(1, 61)
]
SHEET = {"Sales": rows(("Region", "Sold"), ("North", 120), ("South", 95))}


async def read(folder: Path, question: str) -> Source:
    """Return the source of the first passages that a search finds."""
    sources = Sources()
    for passage in (await search_documents(Index([folder])).call({"query": question})).passages:
        sources.add(passage.source)
    return sources.read["s1"]


async def test_a_citation_names_the_page_of_a_pdf_that_its_quotation_is_on(tmp_path: Path) -> None:
    pdf(tmp_path / "book.pdf", PAGES)
    sources = Sources()
    for passage in (
        await search_documents(Index([tmp_path])).call({"query": "mill of Vard12, mill of Vard40"})
    ).passages:
        sources.add(passage.source)
    first, second = verify("The mill of Vard40 has 70 wheels [s1]. The mill of Vard12 has 42 wheels [s1].", sources)
    assert (first.verdict, first.place) == ("supported", "p. 40")
    assert (second.verdict, second.place) == ("supported", "p. 12")


async def test_printed_page_numbers_are_named_beside_those_of_the_file(tmp_path: Path) -> None:
    pdf(tmp_path / "book.pdf", PAGES[:4], labels="0 << /S /r >> 2 << /S /D >>")
    source = await read(tmp_path, "mill of Vard2")
    assert source.find_place("The mill of Vard2 has 32 wheels.") == "p. ii (page 2 of the file)"
    assert source.find_place("The mill of Vard3 has 33 wheels.") == "p. 1 (page 3 of the file)"


async def test_damaged_page_labels_leave_the_numbers_of_the_file(tmp_path: Path) -> None:
    pdf(tmp_path / "book.pdf", PAGES[:4], labels="(no) /number")
    assert (await read(tmp_path, "mill of Vard2")).find_place("The mill of Vard2 has 32 wheels.") == "p. 2"


@pytest.mark.parametrize(
    ("name", "text", "question", "quote", "place"),
    [
        (
            "mill.md",
            "# Mill\n\nIt turns.\n\n## Wheel\n\nOak.\nThe wheel is red.",
            "red wheel",
            "The wheel is red.",
            "section Wheel, line 8",
        ),
        ("mill.txt", "The mill is old.\n\nThe wheel is red.\n", "red wheel", "The wheel is red.", "line 3"),
        ("mill.py", "import os\n\n\n\nWHEEL = 'red'\n", "red wheel", "WHEEL = 'red'", "lines 1–5"),
        ("mill.csv", "Part,Colour\nroof,grey\n,\nwheel,red\n", "wheel red", "Part: wheel | Colour: red", "rows 2–4"),
        ("mill.csv", "Part,Colour\nroof,grey\nwheel,red\n", "wheel red", "Part: wheel | Colour: red", "row 3"),
        (
            "mill.jsonl",
            '{"part": "roof"}\n{"part": "wheel", "colour": "red"}\n',
            "wheel red",
            "part: wheel | colour: red",
            "line 2",
        ),
    ],
)
async def test_a_place_is_a_section_a_line_or_a_row(
    tmp_path: Path, name: str, text: str, question: str, quote: str, place: str
) -> None:
    (tmp_path / name).write_text(text)
    assert (await read(tmp_path, question)).find_place(quote) == place


async def test_a_place_is_a_row_of_a_sheet_a_slide_or_a_heading_of_a_word_file(tmp_path: Path) -> None:
    xlsx(tmp_path / "sales.xlsx", SHEET)
    source = await read(tmp_path / "sales.xlsx", "sold in the South")
    assert check("The South sold 95.", source).place == "sheet Sales, row 3"
    pptx(tmp_path / "talk.pptx", [slide_xml("sld", shape("Wheels", "title") + shape("The wheel is red."))])
    assert (await read(tmp_path / "talk.pptx", "red wheel")).find_place("The wheel is red.") == "slide 1"
    docx(
        tmp_path / "mill.docx", paragraph("Mill", "Titel") + paragraph("Wheel", "berschrift1") + paragraph("It is red.")
    )
    assert (await read(tmp_path / "mill.docx", "red wheel")).find_place("It is red.") == "section Wheel"


async def test_the_first_heading_of_a_word_file_is_the_section_of_its_passages(tmp_path: Path) -> None:
    text = paragraph("Oats", "berschrift1") + paragraph("The horses eat at six.")
    text += paragraph("Oats and hay", "berschrift1") + paragraph("The barn is dry.")
    docx(tmp_path / "stable.docx", text)
    assert (await read(tmp_path, "horses eat")).find_place("The horses eat at six.") == "section Oats"
    assert (await read(tmp_path, "dry barn")).find_place("The barn is dry.") == "section Oats and hay"


async def test_opening_a_document_and_reading_an_attached_file_keep_the_places(tmp_path: Path) -> None:
    book = pdf(tmp_path / "book.pdf", PAGES)
    opened = await browse_documents(Index([tmp_path])).call({"url": "book.pdf", "intent": "mill of Vard33"})
    assert opened.passages[0].source.find_place("The mill of Vard33 has 63 wheels.") == "p. 33"
    attached = await files_tool([book]).call({"path": "book.pdf", "part": "pages 3-5"})
    assert attached.passages[0].source.find_place("The mill of Vard4 has 34 wheels.") == "p. 4"
    short = written(tmp_path / "note.txt", "The mill is old.\nThe wheel is red.\n")
    attached = await files_tool([short]).call({"path": "note.txt"})
    assert attached.passages[0].source.find_place("The wheel is red.") == "line 2"


def test_texts_that_are_added_to_a_source_bring_their_places() -> None:
    sources = Sources()
    sources.add(Source("a.pdf", "A", "One.\n\nTwo.", "file", places=((0, "p. 1"), (6, "p. 2"))))
    sources.add(Source("a.pdf", "A", "Three.", "file"))
    added = sources.add(Source("a.pdf", "A", "Four.", "file", places=((0, "p. 4"),)))
    assert [added.find_place(quote) for quote in ("One.", "two", "Three.", "Four.", "Five.")] == [
        "p. 1",
        "p. 2",
        "",
        "p. 4",
        "",
    ]
    whole = sources.add(Source("a.pdf", "A", f"Zero.\n\n{added.text}", "file"))
    assert [whole.find_place(quote) for quote in ("One.", "Four.")] == ["p. 1", "p. 4"]


def test_places_move_with_a_text_that_is_masked() -> None:
    source = Source("a.pdf", "A", "Ada knows.\n\nTwo.", "file", places=((0, "p. 1"), (12, "p. 2")))
    masked = source.change_text(lambda text: text.replace("Ada", "[a person]"))
    assert masked.find_place("Two.") == "p. 2"
    assert source.change_text(lambda text: text.replace("knows.\n\nTwo", "x")).places == ()


def test_places_survive_the_journal() -> None:
    source = Source("a.pdf", "A", "One.", "file", "s1", ((0, "p. 1"),))
    stored = {name: getattr(source, name) for name in source.__dataclass_fields__}
    assert validate(Source, json.loads(pack(stored))) == source
    del stored["places"]
    assert validate(Source, json.loads(pack(stored))).find_place("One.") == ""


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["word ", "w. ", "x" * 900, "\n", "\n\n\n", "# h\n", "  ", "```\n", "\t", "中。"]), max_size=60
    )
)
def test_the_lines_of_passages_are_where_the_passages_are(parts: list[str]) -> None:
    text = "".join(parts)
    lines = text.split("\n")
    for piece in cut(Document("a", (Part(text, lines=range(1, len(lines) + 1)),))):
        if piece.span and piece.text:
            first, last = re.search(r"(\d+)(?:–(\d+))?$", piece.span).groups()  # type: ignore[union-attr]
            held = " ".join("\n".join(lines[int(first) - 1 : int(last or first)]).split())
            assert "".join(piece.text.split()) in "".join(held.split())


def test_the_terminal_a_record_and_a_report_name_the_page(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    pdf(tmp_path / "docs" / "book.pdf", PAGES, title="A book of mills")
    hira = Command(tmp_path, {"HIRA_MODEL": "offline"})
    asked = ("How many wheels has the mill of Vard12?", "--docs", "docs", "-q")
    assert "A book of mills — book.pdf, p. 12 (" in hira("ask", *asked).out
    told = json.loads(hira("ask", *asked, "--json").out)
    assert (told["citations"][0]["place"], told["citations"][0]["page"]) == ("p. 12", 12)
    assert told["sources"][0]["places"] == ["p. 12"]
    assert "book.pdf, p. 12" in hira("show", told["run_id"]).out
    hira("report", "wheels of the mill of Vard12", "--docs", "docs", "-q", "-o", "report.html")
    page = (tmp_path / "report.html").read_text()
    assert re.search(r'<a href="docs/book.pdf#page=12" [^>]*>p. 12</a>', page)
