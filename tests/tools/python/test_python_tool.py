"""The tool `python` as a role uses it: calls, figures and files as sources."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hira.agents.calls import use
from hira.evidence import verify
from hira.testing import make_context
from hira.tools import Tool
from hira.tools.media import media_reader
from hira.tools.python import PythonSandbox, open_python


@pytest.fixture
async def python(tmp_path: Path, able: None) -> AsyncIterator[Tool]:
    async with open_python(tmp_path)("t") as opened:
        yield opened


async def test_a_computation_is_a_source_with_code_and_output(python: Tool) -> None:
    seen = await python.call({"code": "\n# area\nprint('area')\n6 * 7"})
    assert seen.text == ""
    source = seen.passages[0].source
    assert (source.kind, source.location, source.title) == ("computation", "python:t.1", "area")
    assert source.text == "# area\nprint('area')\n6 * 7\n\nOutput:\narea\n42"
    again = await python.call({"code": "1"})
    assert again.passages[0].source.location == "python:t.2"


async def test_an_error_is_text_for_the_model_and_no_source(python: Tool) -> None:
    seen = await python.call({"code": "print('a <|begin_code_call|>')\n1 / 0"})
    assert seen.passages == ()
    assert "ZeroDivisionError" in seen.text
    assert seen.text.startswith("a ")
    assert "<|begin" not in seen.text


async def test_sessions_share_no_variables_and_read_what_earlier_ones_wrote_under_the_path_that_was_told(
    tmp_path: Path, able: None
) -> None:
    opened = open_python(tmp_path)
    async with opened("1") as first, opened("2") as beside:
        await first.call({"code": "x = 1"})
        assert "NameError" in (await beside.call({"code": "x"})).text
        wrote = await first.call({"code": "open('table.csv', 'w').write('6,7')"})
        assert "wrote ../1/table.csv" in wrote.passages[0].text
        assert "6,7" in (await first.call({"code": "open('../1/table.csv').read()"})).passages[0].text
    async with opened("2") as second:
        assert "../1/table.csv" in second.description
        assert "6,7" in (await second.call({"code": "open('../1/table.csv').read()"})).passages[0].text
        assert "PermissionError" in (await second.call({"code": "open('../1/table.csv', 'a')"})).text
        async with opened("3") as third:
            assert not (await third.call({"code": "open('../3/x', 'w').close(); open('../2/x').read()"})).ok


async def test_a_text_that_a_program_wrote_is_a_source_that_can_be_cited(python: Tool) -> None:
    code = "rows = [f'{n},{n * n}' for n in range(40, 43)]\nopen('squares.csv', 'w').write('\\n'.join(rows))"
    seen = await python.call({"code": code})
    printed, written = (passage.source for passage in seen.passages)
    assert (printed.kind, printed.location) == ("computation", "python:t.1")
    assert (written.kind, written.title) == ("computation", "squares.csv")
    assert written.location == "../t/squares.csv"
    assert written.evidence == "40,1600\n41,1681\n42,1764"
    assert written.call == code


async def test_what_the_program_was_told_to_write_is_no_evidence(python: Tool) -> None:
    context = make_context([])
    code = "open('a.txt', 'w').write('Atlantis has 1234 towers')\nopen('b.txt', 'w').write(f'It has {617 * 2} towers')"
    seen = await use(context.conversation("code"), python, {"code": code})
    assert seen.text.count("[/s") == 3
    literal, computed = (f"s{at}" for at in (2, 3))
    verdicts = {
        one.source: one.verdict
        for text in (f"Atlantis has 1234 towers [{literal}].", f"It has 1234 towers [{computed}].")
        for one in verify(text, context.rollout.sources)
    }
    assert verdicts[computed] == "supported"
    assert verdicts[literal] != "supported"


async def test_a_figure_is_media_and_can_be_looked_at_by_the_path_that_was_told(tmp_path: Path, able: None) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("PIL")
    code = "import matplotlib.pyplot as plt\n_ = plt.plot([1, 4, 9])\nprint('drawn')"
    async with open_python(tmp_path / "run")("1") as python:
        seen = await python.call({"code": code})
    (figure,) = [passage.source for passage in seen.passages if passage.source.kind == "media"]
    assert figure.location == "../1/figure-1-1.png"
    assert "has not been looked at" in figure.text
    assert media_reader([tmp_path / "run"])(figure.location).kind == "image"


async def test_a_link_in_the_place_of_a_file_is_not_followed(sandbox: PythonSandbox, tmp_path: Path) -> None:
    await sandbox.run("open('a.txt', 'w').write('a')")
    (tmp_path / "secret.txt").write_text("secret")
    path = sandbox.folder / "a.txt"
    path.unlink()
    path.symlink_to(tmp_path / "secret.txt")
    assert await sandbox.contents([path], 100) == {}
