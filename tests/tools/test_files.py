import os
from pathlib import Path

import pytest
from made_documents import docx, paragraph, pdf, rows, xlsx

from hira.core.errors import ToolError
from hira.tools.files import files_tool
from hira.tools.media import how_to_see

LIBRARY = Path(__file__).parent.parent / "data" / "library"


async def test_a_short_attached_file_is_read_whole():
    path = LIBRARY / "tides.txt"
    observation = await files_tool([path]).call({"path": "Tides.TXT"})
    (passage,) = observation.passages
    assert (passage.source.location, passage.source.title, passage.source.kind) == (str(path), "tides", "file")
    assert "Bay of Fundy" in passage.text


@pytest.mark.parametrize("path", ["/etc/passwd", "../library/bread.md"])
async def test_only_attached_files_are_read(path):
    with pytest.raises(ToolError, match=r"not among the attached files: .*tides\.txt"):
        await files_tool([LIBRARY / "tides.txt"]).call({"path": path})


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


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("../1/sums.xlsx", "Perm"),
        ("'sums.xlsx'", "42"),
        ("letter.docx", "The mill was sold."),
        ("WORK/1/page.pdf", "three wheels"),
    ],
)
async def test_what_a_program_wrote_is_read_by_the_path_that_was_told(written, path, text):
    made = files_tool([LIBRARY / "tides.txt"], written)
    (passage,) = (await made.call({"path": path.replace("WORK", str(written))})).passages
    assert text in passage.text
    assert passage.source.location.startswith("../1/")
    assert passage.source.kind == "computation"
    assert text in passage.source.evidence
    assert "attached files: " in made.description


@pytest.mark.parametrize(
    "path",
    [
        "../../secret.txt",
        "../1/../../secret.txt",
        "../1/link.txt",
        "../1/linked/secret.txt",
        "../1/pipe",
        "../1/none.xlsx",
        "page.pdf",
        "/etc/passwd",
        "\x00",
    ],
)
async def test_nothing_but_what_programs_wrote_is_read_there(written, path):
    (written.parent / "secret.txt").write_text("SECRET")
    (written / "1" / "link.txt").symlink_to(written.parent / "secret.txt")
    (written / "1" / "linked").symlink_to(written.parent)
    os.mkfifo(written / "1" / "pipe")
    with pytest.raises(ToolError, match="not among the attached files"):
        await files_tool([LIBRARY / "tides.txt"], written).call({"path": path})


async def test_the_parts_of_a_long_file_are_listed_and_read_by_name_number_and_range(tmp_path):
    pages = [f"Page number {at} tells of it. " + "again and again " * 80 for at in range(1, 31)]
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


async def test_words_instead_of_a_part_bring_the_passages_that_have_to_do_with_them(tmp_path):
    pages = ["again and again " * 80] * 30
    pages[20] = "The walrus weighs 1200 kilograms."
    made = files_tool([pdf(tmp_path / "long.pdf", pages)])
    assert "1200 kilograms" in (await made.call({"path": "long.pdf", "part": "weight of the walrus"})).passages[0].text
    with pytest.raises(ToolError, match="no part 'zeppelin'; the parts are: page 1, page 2"):
        await made.call({"path": "long.pdf", "part": "zeppelin"})


async def test_pages_without_text_are_named_for_the_multimodal_expert(tmp_path):
    made = files_tool([pdf(tmp_path / "a.pdf", ["words", ""]), pdf(tmp_path / "b.pdf", [""])])
    assert (await made.call({"path": "a.pdf"})).text == f"no text in page 2; {how_to_see('a.pdf')}"
    with pytest.raises(ToolError, match="holds no text; no text in page 1"):
        await made.call({"path": "b.pdf"})
