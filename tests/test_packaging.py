"""What is installed: the wheel and the sdist hold what hira reads at run time, the core is small, and 3.11 is
enough."""

import ast
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

import hira

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

from links import find_repository, link_to_repository  # noqa: E402 - found by the line above

PACKAGE = ROOT / "hira"


def committed(*under: str) -> set[str]:
    """The files below these folders that belong to the project, by their paths from its root."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", *under]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    return {name for name in listed if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist of this working tree."""
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("built")
    for form in ("wheel", "sdist"):
        done = subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", form, "-d", str(out)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert not done.returncode, done.stderr
    return out


@pytest.mark.heavy
def test_the_wheel_holds_every_module_prompt_page_and_set_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if not name.partition("/")[0].endswith(".dist-info")}
        (metadata,) = [archive.read(name).decode() for name in archive.namelist() if name.endswith("METADATA")]
        entry = next(archive.read(name).decode() for name in archive.namelist() if name.endswith("entry_points.txt"))
    left_out = committed("hira") - held
    assert not left_out
    assert {name.partition("/")[0] for name in held} == {"hira"}
    assert not [name for name in held if name.endswith((".pyc", ".sqlite", ".log")) or "__pycache__" in name]
    assert "hira = hira.__main__:start" in entry
    for line in ("Requires-Python: >=3.11", "License-Expression: Apache-2.0", "Project-URL: ", "Author: "):
        assert line in metadata
    description = metadata.partition("\n\n")[2]
    assert "# hira" in description
    assert not re.findall(r"\]\((?!https?://|#)[^)]*\)", description)


@pytest.mark.heavy
def test_the_sdist_holds_what_the_tests_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    left_out = committed("hira", "tests", "examples") - held
    assert not left_out
    assert {
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "SECURITY.md",
        "hatch_build.py",
        "pyproject.toml",
    } <= held


@pytest.mark.heavy
def test_the_wheel_answers_a_question_without_the_repository(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")  # noqa: S202 - the wheel that was just built
    (tmp_path / "towers.txt").write_text("The tower of Alta is 31 metres high.\n", encoding="utf-8")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import hira, hira.cli; assert hira.__file__.startswith(sys.argv[1]);"
        "sys.exit(hira.cli.main(['ask', 'How high is the tower of Alta?', '--docs', 'towers.txt', '--quiet']))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(tmp_path / "installed")],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"HIRA_MODEL": "offline", "HOME": str(tmp_path), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "31 metres" in done.stdout


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert hira.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", changes, re.MULTILINE)[0] in (version, "Unreleased")


def test_links_of_the_long_description_lead_to_the_repository() -> None:
    text = "[![a page](docs/a.png)](docs/a.md), [licence](LICENSE), [here](#limits), [elsewhere](https://example.org/)"
    assert link_to_repository(text, "https://host.example/hira") == (
        "[![a page](https://host.example/hira/raw/HEAD/docs/a.png)](https://host.example/hira/blob/HEAD/docs/a.md), "
        "[licence](https://host.example/hira/blob/HEAD/LICENSE), [here](#limits), [elsewhere](https://example.org/)"
    )
    assert link_to_repository(text, "") == ", licence, [here](#limits), [elsewhere](https://example.org/)"


@pytest.mark.parametrize("origin", ["git@host.example:group/hira.git", "https://host.example/group/hira.git"])
def test_the_repository_is_where_it_was_cloned_from(origin: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    assert find_repository(tmp_path) == ""
    for command in (["git", "init", "-q"], ["git", "remote", "add", "origin", origin]):
        subprocess.run(command, cwd=tmp_path, check=True)
    assert find_repository(tmp_path) == "https://host.example/group/hira"


def test_the_core_brings_at_most_18_distributions_with_it() -> None:
    requirements = pytest.importorskip("packaging.requirements")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [requirements.Requirement(line) for line in project["dependencies"]]
    found: set[tuple[str, str]] = set()
    while waiting:
        needed = waiting.pop()
        name = re.sub(r"[-_.]+", "-", needed.name).lower()
        for extra in {"", *needed.extras}:
            if (name, extra) not in found:
                found.add((name, extra))
                lines = map(requirements.Requirement, metadata.requires(needed.name) or ())
                waiting += [one for one in lines if one.marker is None or one.marker.evaluate({"extra": extra})]
    core = {name for name, _ in found}
    assert 10 < len(core) <= 18, sorted(core)


@cache
def modules() -> list[ast.Module]:
    """Each module of the package, read with the syntax of the oldest Python that is named."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = tuple(map(int, project["project"]["requires-python"].removeprefix(">=").split(".")))
    return [
        ast.parse(path.read_text(encoding="utf-8"), filename=str(path), feature_version=version)
        for path in PACKAGE.rglob("*.py")
    ]


@pytest.mark.heavy(seconds=2)
def test_every_module_is_written_in_the_oldest_python_that_is_named() -> None:
    """Syntax only; that no newer part of the standard library is used is for the linter's target and for 3.11
    itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = project["project"]["requires-python"].removeprefix(">=")
    assert project["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    assert project["tool"]["mypy"]["python_version"] == oldest
    named = {line.rpartition(" ")[2] for line in project["project"]["classifiers"] if " :: 3." in line}
    assert {oldest, "3.12", "3.13"} <= named
    assert len(modules()) > 100


# Modules that Python 3.12 and 3.13 removed (PEP 594, PEP 632): hira runs there because it uses none of them.
REMOVED = frozenset(
    "aifc asynchat asyncore audioop cgi cgitb chunk crypt distutils imghdr imp lib2to3 mailcap msilib nis nntplib "
    "ossaudiodev pipes smtpd sndhdr spwd sunau telnetlib uu xdrlib".split()
)


@pytest.mark.heavy(seconds=2)
def test_no_module_uses_what_a_later_python_removed() -> None:
    used = {
        name.partition(".")[0]
        for module in modules()
        for node in ast.walk(module)
        for name in (
            [one.name for one in node.names] if isinstance(node, ast.Import)
            else [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        )
    }  # fmt: skip
    assert not used & REMOVED
