"""Answers and reports in the formats of reference managers, Word and PDF, read back with real parsers."""

import json
import os
import re
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import bibtexparser
import pytest
import rispy
from docx import Document
from pypdf import PdfReader

from hira import Hira
from hira.agents.trajectory import Rollout
from hira.cli.output import text as format_answer
from hira.cli.report_pdf import render_pdf
from hira.cli.report_sources import SourceEntry, find_date, format_bibtex, format_ris
from hira.cli.report_word import render_word
from hira.core.errors import UsageError
from hira.core.sources import Source, Sources
from hira.evidence import Citation, Verdict
from hira.runtime.answer import answer_of
from hira.testing import Endpoint
from hira.tools.documents.own_files import is_own_text
from tests.cli.command import Command

QUESTION = "Who built the mill of Varn?"
HOSTILE = "50 % of {braces} & #tags_ \\end{misc}\n}\n@misc{other,\x07 title = {x}\nER  - \nTY  - GEN"


def make_entry(title: str = "The mill", url: str = "") -> SourceEntry:
    return SourceEntry(1, title, url, "mill.pdf, p. 12", "2026-08-01")


def test_a_title_cannot_end_its_entry_nor_begin_another() -> None:
    assert len(bibtexparser.parse_string(format_bibtex(make_entry(HOSTILE))).entries) == 1
    assert len(rispy.loads(format_ris(make_entry(HOSTILE)))) == 1


def test_a_document_keeps_its_title_and_the_cited_page() -> None:
    (entry,) = bibtexparser.parse_string(format_bibtex(make_entry())).entries
    assert (entry["title"], entry["howpublished"]) == ("{The mill}", "mill.pdf, p. 12")
    (record,) = rispy.loads(format_ris(make_entry()))
    assert (record["title"], record["notes"]) == ("The mill", ["mill.pdf, p. 12"])
    assert "url" not in entry.fields_dict
    assert "urls" not in record


def test_a_document_names_the_cited_pages() -> None:
    entry = SourceEntry(1, "The mill", "", "mill.pdf, p. 3; p. 12", "2026-08-01", (3, 12))
    assert bibtexparser.parse_string(format_bibtex(entry)).entries[0]["pages"] == "3, 12"
    assert rispy.loads(format_ris(entry))[0]["start_page"] == "3, 12"


def test_a_paper_keeps_its_doi_and_the_day_it_was_read() -> None:
    paper = make_entry(url="https://doi.org/10.1000/182")
    (entry,) = bibtexparser.parse_string(format_bibtex(paper)).entries
    assert (entry["doi"], entry["urldate"]) == ("10.1000/182", "2026-08-01")
    (record,) = rispy.loads(format_ris(paper))
    assert (record["doi"], record["access_date"]) == ("10.1000/182", "2026/08/01")


@pytest.mark.parametrize(
    ("source", "date"),
    [
        (Source("http://a.example/", "A", "text", date="2024-05-17T08:00:00Z"), "2024-05-17"),
        (Source("http://a.example/", "A", "text", date="2024-5"), "2024"),
        (Source("http://a.example/", "A", "text", date="Mar 4, 2021"), "2021"),
        (Source("http://a.example/", "A", "text", date="3 days ago"), ""),
        (Source("http://a.example/2019/", "The flood of 1953", "text"), ""),
        (Source("minutes-2025-03.pdf", "Minutes", "text", "file"), "2025-03"),
        (Source("rules-v2.md", "Rules of 2020", "text", "file"), ""),
    ],
)
def test_the_date_of_a_source_is_that_of_its_search_service_or_of_the_name_of_its_file(
    source: Source, date: str
) -> None:
    assert find_date(source) == date
    entry = SourceEntry(1, "A", "", "a", "2026-08-01", date=date)
    fields = bibtexparser.parse_string(format_bibtex(entry)).entries[0].fields_dict
    (record,) = rispy.loads(format_ris(entry))
    assert [fields[name].value if name in fields else "" for name in ("year", "date")] == [date[:4], date]
    assert (record.get("year", ""), record.get("date", "")) == (date[:4], date.replace("-", "/"))
    assert (fields["urldate"].value, record["access_date"]) == ("2026-08-01", "2026/08/01")


def test_a_page_that_a_search_found_keeps_the_date_of_the_search() -> None:
    for first, second in (("hit", "page"), ("page", "hit")):
        read = Sources()
        for kind in (first, second):
            date = "2024-05-17" if kind == "hit" else ""
            read.add(Source("http://a.example/", "A", f"the text of a {kind}", kind, date=date))
        assert [source.date for source in read.read.values()] == ["2024-05-17"]


@pytest.fixture
def place(tmp_path: Path) -> Command:
    (tmp_path / "mill.md").write_text("# The mill of Varn\n\nThe mill of Varn was built in 1742 by Ida Lorn.\n")
    return Command(tmp_path, {"HIRA_MODEL": "offline", "HIRA_JOURNAL": "off", "HIRA_DOCS": "mill.md"})


@pytest.fixture(params=["ask", "report"])
def write(request: pytest.FixtureRequest, place: Command) -> Callable[[str], Path]:
    def write_file(name: str) -> Path:
        ended = place(request.param, QUESTION, "--output", name)
        assert ended.code == 0, ended.err
        return place.folder / name

    return write_file


def read_pdf(file: bytes) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(BytesIO(file)).pages)


def test_the_commands_write_the_cited_sources(write: Callable[[str], Path]) -> None:
    (entry,) = bibtexparser.parse_string(write("sources.bib").read_text(encoding="utf-8")).entries
    (record,) = rispy.loads(write("sources.ris").read_text(encoding="utf-8"))
    assert (entry["howpublished"], record["notes"]) == ("mill.md, line 3", ["mill.md, line 3"])


def test_the_commands_write_plain_text(write: Callable[[str], Path]) -> None:
    assert "Ida Lorn" in write("answer.txt").read_text(encoding="utf-8")


def test_the_commands_write_documents_with_verdicts_and_places(write: Callable[[str], Path]) -> None:
    paragraphs = Document(str(write("answer.docx"))).paragraphs
    assert (paragraphs[0].style.name, paragraphs[0].text) == ("Heading 1", QUESTION)
    texts = ["\n".join(paragraph.text for paragraph in paragraphs), read_pdf(write("answer.pdf").read_bytes())]
    texts.append(re.sub(r"<[^>]*>", "", write("answer.html").read_text(encoding="utf-8")).replace("\u2060", ""))
    for text in texts:
        assert re.search(r"Ida Lorn.*\[s?1\]", text)
        assert "mill.md, line 3" in text
        assert "supported" in text


@pytest.mark.parametrize("command", ["ask", "report"])
def test_a_file_that_hira_wrote_is_no_document(place: Command, command: str) -> None:
    docs = place.folder / "docs"
    docs.mkdir()
    (docs / "mill.md").write_text("# The mill of Varn\n\nThe mill of Varn was built in 1742 by Ida Lorn.\n")
    names = ["a.md", "a.html", "a.json", "a.docx", "a.pdf", *(["a.txt"] if command == "ask" else [])]
    for name in names:
        assert place(command, QUESTION, "--docs", "docs", "--output", f"docs/{name}").code == 0
    (docs / "printed.text").write_text(place("ask", QUESTION, "--docs", "docs", "-q").out)
    (docs / "lines.jsonl").write_text(f"{json.dumps(json.loads((docs / 'a.json').read_text()))}\n" * 2)
    with Hira("offline", docs=docs, workflow="rag") as hira:
        answer = hira.ask_sync(QUESTION)
    assert [source.location for source in answer.sources] == ["mill.md"]
    assert not answer.rollout.unread
    err = place("ask", QUESTION, "--docs", "docs", "-q").err
    assert f"{len(names) + 2} files are left out: hira wrote them, and searches them only where they are named" in err
    assert "a.md, line" in place("ask", QUESTION, "--docs", "docs/a.md").out


@pytest.mark.parametrize("attributed", [False, True])
@pytest.mark.parametrize("verdict", Verdict)
def test_a_printed_answer_is_recognised_with_every_verdict(verdict: Verdict, *, attributed: bool) -> None:
    record = Rollout("run", QUESTION, "rag", answer="Ida Lorn built it [s1].", status="answered")
    record.sources.add(Source("mill.md", "The mill", "Ida Lorn built it."))
    record.citations = [Citation("s1", "Ida Lorn built it", "Ida Lorn built it.", verdict, attributed=attributed)]
    printed = format_answer(answer_of(record, "offline"))
    assert f"({verdict}" in printed
    assert is_own_text(f"{printed}\n", ".txt")


def test_the_name_of_a_document_is_on_one_line(place: Command) -> None:
    (place.folder / "docs").mkdir()
    (place.folder / "mill.md").rename(place.folder / "docs" / "mill\n[s2] of Varn.md")
    out = place("ask", QUESTION, "--docs", "docs", HIRA_DOCS="docs").out
    assert "— mill [s2] of Varn.md, line 3 (supported)" in out


def test_a_page_with_an_answer_of_hira_in_it_is_a_document(place: Command) -> None:
    shown = place("ask", QUESTION, "-q").out
    (place.folder / "guide.md").write_text(f"# A guide\n\n```\n{shown}```\n\nThe mill of Orn was built in 1801.\n")
    assert "in 1801" in place("ask", "When was the mill of Orn built?", "--docs", "guide.md").out


@pytest.mark.parametrize("command", ["ask", "report"])
def test_a_document_is_not_overwritten_by_an_answer_and_an_earlier_answer_is(place: Command, command: str) -> None:
    text = (place.folder / "mill.md").read_text(encoding="utf-8")
    said = place(command, QUESTION, "--docs", ".", "-o", "mill.md")
    assert (said.code, "it is one of the documents" in said.err) == (2, True)
    assert (place.folder / "mill.md").read_text(encoding="utf-8") == text
    for name in ("answer.md", "answer.docx", "answer.html"):
        assert [place(command, QUESTION, "--docs", ".", "-o", name).code for _ in range(2)] == [0, 0], name


def test_a_file_that_cannot_be_written_is_refused_before_the_question(place: Command) -> None:
    (place.folder / "folder.md").mkdir()
    ended = place("ask", QUESTION, "--output", "folder.md")
    assert (ended.code, ended.out) == (2, "")
    assert "--output folder.md: it is a folder" in ended.err
    os.mkfifo(place.folder / "pipe.md")
    assert "--output pipe.md: it is not a regular file" in place("ask", QUESTION, "--output", "pipe.md").err


@pytest.mark.parametrize(("module", "name"), [("docx", "answer.docx"), ("typst", "answer.pdf")])
def test_a_missing_package_is_named_before_a_model_is_asked(
    place: Command, monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with Endpoint([]) as endpoint:
        ended = place("ask", QUESTION, "--base-url", endpoint.base_url, "--output", name)
        assert endpoint.requests == []
    assert ended.code == 2
    assert "pip install 'hira[export]'" in ended.err


def test_a_question_that_no_font_can_show_ends_before_a_model_is_asked(place: Command) -> None:
    with Endpoint([]) as endpoint:
        ended = place("ask", "What is \U0003fffd?", "--base-url", endpoint.base_url, "--output", "answer.pdf")
        assert endpoint.requests == []
    assert ended.code == 2
    assert "install a font that has it" in ended.err


def test_an_answer_that_no_font_can_show_is_printed_before_the_error(place: Command) -> None:
    letter = "\U0003fffd"
    with Endpoint([f"Ida Lorn {letter} [s1]"]) as endpoint:
        flags = ("--base-url", endpoint.base_url, "--model", "scripted", "--workflow", "rag", "--verify", "lexical")
        ended = place("ask", QUESTION, "--output", "answer.pdf", *flags)
    assert (ended.code, letter in ended.out) == (2, True)
    assert "hira replay last -o FILE" in ended.err
    assert not (place.folder / "answer.pdf").exists()


def test_words_of_titles_and_quotations_are_no_markup_in_a_document(place: Command) -> None:
    (place.folder / "mill.md").write_text(
        "# The *old* `mill` of Varn\n\nThe mill of Varn was built by *Ida* Lorn_2_ & <b>.\n"
    )
    ended = place("ask", QUESTION, "--output", "answer.pdf")
    assert ended.code == 0, ended.err
    text = read_pdf((place.folder / "answer.pdf").read_bytes())
    assert "The *old* `mill` of Varn — mill.md" in text
    assert "built by *Ida* Lorn_2_ & <b>." in text


MARKDOWN = """# Mills

The **oldest** one [1] is <b>gone</b>, see [x](https://a.example).

- by name
  - by year

3. the third

| mill | built |
|------|-------|
| Varn | `1742` |

```
code
```
"""


def test_a_word_document_keeps_headings_lists_tables_and_code() -> None:
    document = Document(BytesIO(render_word(MARKDOWN)))
    assert [(paragraph.style.name, paragraph.text) for paragraph in document.paragraphs] == [
        ("Heading 1", "Mills"),
        ("Normal", "The oldest one [1] is <b>gone</b>, see x."),
        ("List Bullet", "by name"),
        ("List Bullet 2", "by year"),
        ("List Continue", "3. the third"),
        ("Normal", "code"),
    ]
    assert [run.text for run in document.paragraphs[1].runs if run.bold] == ["oldest"]
    assert [[cell.text for cell in row.cells] for row in document.tables[0].rows] == [
        ["mill", "built"],
        ["Varn", "1742"],
    ]


def test_characters_that_word_cannot_hold_are_left_out() -> None:
    assert Document(BytesIO(render_word("a\x07b\ufffe"))).paragraphs[0].text == "ab"


def test_a_pdf_keeps_headings_lists_tables_code_and_links_that_show_their_address() -> None:
    file = render_pdf(f"{MARKDOWN}\n1. Mills — <https://b.example/mills>\n")
    text = read_pdf(file)
    for words in ("Mills", "oldest one [1] is <b>gone</b>, see x.", "by year", "3. the third", "mill built", "code"):
        assert words in text
    reader = PdfReader(BytesIO(file))
    assert reader.metadata.title == "Mills"
    assert [link.get_object()["/A"]["/URI"] for link in reader.pages[0]["/Annots"]] == ["https://b.example/mills"]


def test_text_in_a_pdf_is_never_code_of_its_typesetter() -> None:
    hostile = '#panic("x") $x$ @ref <label> \\ ] } " // end'
    assert hostile in read_pdf(render_pdf(hostile.replace("\\", "\\\\")))


def test_a_pdf_keeps_greek_and_cyrillic_letters_and_typographic_quotes() -> None:
    text = "“Zażółć” — Ελληνικά, Русский"
    assert text in read_pdf(render_pdf(text))


def test_a_letter_that_no_font_has_is_an_error_and_not_an_empty_box() -> None:
    with pytest.raises(UsageError, match=r"could not be displayed"):
        render_pdf("a letter of nobody: \U0003fffd")


@pytest.mark.parametrize("lead", ["> ", "- ", "1. ", "> - "])
@pytest.mark.parametrize("depth", [1, 11, 12, 19, 60])
def test_deep_markdown_makes_a_pdf_too(lead: str, depth: int) -> None:
    assert PdfReader(BytesIO(render_pdf(f"{lead * depth}# x {'*a ' * depth}b{'*' * depth}"))).pages
    assert PdfReader(BytesIO(render_pdf(f"{'> ' * depth}|a|b|\n{'> ' * depth}|-|-|"))).pages
