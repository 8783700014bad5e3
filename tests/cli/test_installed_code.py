"""Tools and workflows of an installed package, named by its entry points (`hira.tools`, `hira.workflows`)."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Command

CODE = '''
from hira import tool

@tool
def depth(lake: str) -> str:
    """The depth of a lake in metres."""
    return f"{lake} is 251 metres deep."

@tool(name="search")
def other_search(query: str) -> str:
    """Searches."""
    return ""

class Echo:
    name = "echo"

    async def run(self, question, context):
        return " ".join([question, *(tool.name for tool in context.tools.extra_for("deep_search"))])
'''
POINTS = """
[hira.tools]
depth = lakes_of_a_test:depth
other_search = lakes_of_a_test:other_search
search = lakes_of_a_test:other_search
broken = lakes_of_a_test:gone

[hira.workflows]
echo-of-lakes = lakes_of_a_test:Echo
mars = lakes_of_a_test:Echo
"""


def install(site: Path, package: str, points: str) -> None:
    folder = site / f"{package}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text(points, encoding="utf-8")


@pytest.fixture
def hira(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    site = tmp_path / "site"
    install(site, "lakes", POINTS)
    (site / "lakes_of_a_test.py").write_text(CODE, encoding="utf-8")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    yield Command(work, {"HIRA_MODEL": "offline"})
    sys.modules.pop("lakes_of_a_test", None)


ASK = ("ask", "-q", "--verify", "off", "Hello?")


def test_the_command_takes_a_workflow_and_a_tool_by_the_names_of_a_package(hira: Command) -> None:
    said = hira(*ASK, "--workflow", "echo-of-lakes", "--tools", "depth")
    assert said.out == "Hello? depth\n"
    assert hira("replay", "last", "-q").out == hira("resume", "last", "-q").out == said.out


def test_a_projects_file_names_code_of_a_package_only_with_consent(hira: Command) -> None:
    (hira.folder / "hira.toml").write_text('workflow = "echo-of-lakes"\ntools = ["depth"]\n', encoding="utf-8")
    refused = hira(*ASK)
    assert (refused.code, "runs depth, echo-of-lakes with your rights" in refused.err) == (2, True)
    assert hira(*ASK, HIRA_TRUST="depth,echo-of-lakes").out == "Hello? depth\n"


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--tools", "broken"], "'broken' of the package 'lakes' cannot be loaded: AttributeError"),
        (["--tools", "shallow"], "'shallow' is not among the hira.tools of installed packages: depth, other_search"),
        (["--workflow", "echo-of-lake"], "unknown workflow 'echo-of-lake'"),
    ],
)
def test_what_cannot_be_loaded_is_one_line(hira: Command, flags: list[str], says: str) -> None:
    said = hira(*ASK, *flags)
    assert (said.code, said.out) == (2, "")
    assert says in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--tools", "search"], "the tool 'search' is hira's own; an installed one of this name is not used"),
        (["--tools", "other_search"], "the installed tool 'other_search' is not used: hira has its own tool 'search'"),
        (["--workflow", "mars"], "'mars' is hira's own workflow; that of the package 'lakes' is not used"),
    ],
)
def test_hiras_own_names_win(hira: Command, flags: list[str], says: str) -> None:
    (hira.folder / "a.txt").write_text("The lake is 251 metres deep.\n", encoding="utf-8")
    said = hira("ask", "How deep is the lake?", "--docs", "a.txt", *flags)
    assert says in said.err
    assert "251 metres" in said.out


def test_a_name_of_two_packages_is_not_guessed(hira: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "more", "ponds", "[hira.tools]\ndepth = ponds:depth\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "more")])
    said = hira(*ASK, "--tools", "depth")
    assert "several packages have 'depth' among their hira.tools" in said.err
