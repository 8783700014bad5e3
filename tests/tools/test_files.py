import os
from pathlib import Path

import pytest
from made_documents import docx, paragraph, pdf, rows, xlsx

from hira.core.errors import ToolError
from hira.tools.file_kinds import how_to_see
from hira.tools.files import files_tool

LIBRARY = Path(__file__).parent.parent / "data" / "library"


async def test_a_short_attached_file_is_read_whole_and_no_other_file():
    path = LIBRARY / "tides.txt"
    made = files_tool([path])
    (passage,) = (await made.call({"path": "Tides.TXT"})).passages
    assert (passage.source.location, passage.source.title, passage.source.kind) == (str(path), "tides", "file")
    assert "Bay of Fundy" in passage.text
    for other in ("/etc/passwd", "../library/bread.md"):
        with pytest.raises(ToolError, match=r"not among the attached files: .*tides\.txt"):
            await made.call({"path": other})


@pytest.fixture
def written(tmp_path):
    """A run's work folder in which the programs of two subtasks wrote."""
    for session in ("1", "2"):
        (tmp_path / "work" / session / "out").mkdir(parents=True)
    one = tmp_path / "work" / "1"
    xlsx(one / "sums.xlsx", {"Sums": rows(["town", "sum"], ["Perm", 42])})
    docx(one / "out" / "letter.docx", paragraph("The mill was sold."))
    pdf(one / "page.pdf", ["The mill has three wheels."])
    (tmp_path / "work" / "2" / "page.pdf").write_bytes(b"%PDF-1.4 broken")
    return tmp_path / "work"


async def test_what_a_program_wrote_is_read_by_the_path_that_was_told(written):
    made = files_tool([LIBRARY / "tides.txt"], written)
    for path, text in (
        ("../1/sums.xlsx", "Perm"),
        ("'sums.xlsx'", "42"),
        ("letter.docx", "The mill was sold."),
        (f"{written}/1/page.pdf", "three wheels"),
    ):
        (passage,) = (await made.call({"path": path})).passages
        assert text in passage.text
        assert passage.source.location.startswith("../1/")
        assert passage.source.kind == "computation"
        assert text in passage.source.evidence


async def test_nothing_but_what_programs_wrote_is_read_there(written):
    (written.parent / "secret.txt").write_text("SECRET")
    (written / "1" / "link.txt").symlink_to(written.parent / "secret.txt")
    (written / "1" / "linked").symlink_to(written.parent)
    os.mkfifo(written / "1" / "pipe")
    made = files_tool([LIBRARY / "tides.txt"], written)
    links = ("../1/link.txt", "../1/linked/secret.txt", "../1/pipe", "../1/none.xlsx", "page.pdf")
    for path in (*links, "../../secret.txt", "../1/../../secret.txt", "/etc/passwd", "\x00"):
        with pytest.raises(ToolError, match="not among the attached files"):
            await made.call({"path": path})


async def test_the_parts_of_a_long_file_are_listed_and_read_by_name_number_range_and_words(tmp_path):
    pages = [f"Page number {at} tells of it. " + "again and again " * 80 for at in range(1, 31)]
    pages[20] = "The walrus weighs 1200 kilograms."
    made = files_tool([pdf(tmp_path / "long.pdf", pages)])
    listing = (await made.call({"path": "long.pdf"})).text
    assert "Ask for one of its 30 parts:" in listing
    assert "- page 7: Page number 7 tells of it." in listing
    for part in ("page 7", "Page 7", "7"):
        observation = await made.call({"path": "long.pdf", "part": part})
        assert observation.passages[0].text.startswith("[page 7]\nPage number 7")
    both = (await made.call({"path": "long.pdf", "part": "pages 3-4"})).passages[0].text
    assert "Page number 3 tells" in both
    assert "Page number 4 tells" in both
    assert "Page number 5 tells" not in both
    with pytest.raises(ToolError, match="too long to read at once"):
        await made.call({"path": "long.pdf", "part": "1-30"})
    words = await made.call({"path": "long.pdf", "part": "weight of the walrus"})
    assert "The walrus weighs 1200 kilograms." in words.passages[0].text
    with pytest.raises(ToolError, match="no part 'zeppelin'; the parts are: page 1, page 2"):
        await made.call({"path": "long.pdf", "part": "zeppelin"})


async def test_pages_without_text_are_named_for_the_multimodal_expert(tmp_path):
    made = files_tool([pdf(tmp_path / "a.pdf", ["words", ""]), pdf(tmp_path / "b.pdf", [""])])
    assert (await made.call({"path": "a.pdf"})).text == f"no text in page 2; {how_to_see('a.pdf')}"
    with pytest.raises(ToolError, match="holds no text; no text in page 1"):
        await made.call({"path": "b.pdf"})
