"""The references of a report in the formats of reference managers, read back with real parsers."""

import subprocess
import sys
from pathlib import Path

import bibtexparser
import pytest
import rispy

from hira.cli.report_sources import SourceEntry, format_bibtex, format_ris

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


@pytest.mark.parametrize(
    ("suffix", "load"), [("bib", lambda text: bibtexparser.parse_string(text).entries), ("ris", rispy.loads)]
)
def test_the_command_writes_the_references_of_a_report(tmp_path: Path, suffix: str, load) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "mill.md").write_text("# The mill of Varn\n\nThe mill of Varn was built in 1742 by Ida Lorn.\n")
    written = tmp_path / f"sources.{suffix}"
    command = [sys.executable, "-m", "hira", "report", "Who built the mill of Varn?", "--docs", "mill.md"]
    ended = subprocess.run(
        [*command, "--model", "offline", "--quiet", "-o", str(written)],
        check=False, cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": ""}, capture_output=True, text=True,
    )  # fmt: skip
    assert written.exists(), ended.stderr
    assert "mill.md" in str(load(written.read_text(encoding="utf-8")))
