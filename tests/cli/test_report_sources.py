"""Reports in the formats of reference managers and of Word, read back with real parsers."""

import subprocess
import sys
from io import BytesIO
from pathlib import Path

import bibtexparser
import rispy
from docx import Document

from hira.cli.report_sources import SourceEntry, format_bibtex, format_ris
from hira.cli.report_word import render_word

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


def test_a_paper_keeps_its_doi_and_the_day_it_was_read() -> None:
    paper = make_entry(url="https://doi.org/10.1000/182")
    (entry,) = bibtexparser.parse_string(format_bibtex(paper)).entries
    assert (entry["doi"], entry["urldate"]) == ("10.1000/182", "2026-08-01")
    (record,) = rispy.loads(format_ris(paper))
    assert (record["doi"], record["access_date"]) == ("10.1000/182", "2026/08/01")


def write_report(folder: Path, name: str) -> Path:
    (folder / "mill.md").write_text("# The mill of Varn\n\nThe mill of Varn was built in 1742 by Ida Lorn.\n")
    command = [sys.executable, "-m", "hira", "report", "Who built the mill of Varn?", "--docs", "mill.md"]
    environ = {"HOME": str(folder), "PATH": ""}
    ended = subprocess.run(
        [*command, "--model", "offline", "--quiet", "-o", name],
        check=False, cwd=folder, env=environ, capture_output=True, text=True,
    )  # fmt: skip
    assert (folder / name).exists(), ended.stderr
    return folder / name


def test_the_command_writes_the_references_of_a_report(tmp_path: Path) -> None:
    (entry,) = bibtexparser.parse_string(write_report(tmp_path, "sources.bib").read_text(encoding="utf-8")).entries
    (record,) = rispy.loads(write_report(tmp_path, "sources.ris").read_text(encoding="utf-8"))
    assert (entry["howpublished"], record["notes"]) == ("mill.md, line 3", ["mill.md, line 3"])


def test_the_command_writes_a_report_as_a_word_document(tmp_path: Path) -> None:
    paragraphs = Document(str(write_report(tmp_path, "report.docx"))).paragraphs
    assert paragraphs[0].style.name == "Heading 1"
    assert any("1742" in paragraph.text and "[1]" in paragraph.text for paragraph in paragraphs)
    assert "mill.md" in paragraphs[-1].text


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
