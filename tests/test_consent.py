"""Consent to what a project's file names is bound to its content: changed code, commands and models are asked about
again."""

import os
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hira.core.errors import NotTrusted
from hira.core.loading import load_object
from hira.runtime.settings import load

CODE = "consented_tools"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose hira.toml names a tool, with modules that the tool's module imports in several ways."""
    folder = tmp_path / "project"
    (folder / "plugins").mkdir(parents=True)
    monkeypatch.chdir(folder)
    texts = {
        "hira.toml": f'model = "offline"\ntools = ["{CODE}:depth"]\n',
        f"{CODE}.py": "import importlib\nfrom plugins import tables\n\nimportlib.import_module('plugins.named')\n"
        "depth = tables.depth\n",
        "plugins/__init__.py": "",
        "plugins/tables.py": "from .numbers import depth\nfrom .more import *\n",
        "plugins/more.py": "",
        "plugins/numbers.py": "depth = 251\n",
        "plugins/named.py": "",
        "unused.py": "",
    }
    for name, text in texts.items():
        Path(name).write_text(text, encoding="utf-8")
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] in (CODE, "plugins")]:
        del sys.modules[name]


def allow(project: Path) -> str:
    """Give consent as a person at the terminal does; returns the text of HIRA_TRUST that would have given it."""
    with pytest.raises(NotTrusted) as raised:
        load({}, {}, project, project)
    raised.value.allow()
    load({}, {}, project, project)
    return raised.value.fix.partition("HIRA_TRUST=")[2]


@pytest.mark.parametrize("name", [f"{CODE}.py", "plugins/__init__.py", "plugins/tables.py", "plugins/numbers.py",
                                  "plugins/more.py", "plugins/named.py"])  # fmt: skip
def test_code_that_changed_since_it_was_allowed_is_asked_about_again(name: str, project: Path) -> None:
    trust = allow(project)
    (project / name).write_text((project / name).read_text() + "changed = 1\n", encoding="utf-8")
    with pytest.raises(NotTrusted, match=f"runs {CODE}:depth with your rights; you have not allowed it as it is now"):
        load({}, {}, project, project)
    with pytest.raises(NotTrusted):
        load({}, {"HIRA_TRUST": trust}, project, project)


def test_a_change_of_code_that_is_not_used_asks_nothing(project: Path) -> None:
    allow(project)
    (project / "unused.py").write_text("changed = 1\n", encoding="utf-8")
    load({}, {}, project, project)


def test_the_name_of_code_alone_allows_no_code_of_the_folder(project: Path) -> None:
    with pytest.raises(NotTrusted):
        load({}, {"HIRA_TRUST": f"{CODE}:depth"}, project, project)
    load({"tools": f"{CODE}:depth"}, {}, project, project)  # the user's own words need no consent


def test_code_is_read_from_its_source_even_if_a_compiled_file_differs(project: Path) -> None:
    source = project / "plugins" / "numbers.py"
    source.write_text("depth = 666\n", encoding="utf-8")
    compiled = py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert compiled is not None
    assert os.path.exists(compiled)  # noqa: PTH110 - Python takes this file without a look at the source
    source.write_text("depth = 251\n", encoding="utf-8")
    assert load_object(f"{CODE}:depth") == 251


def test_code_that_cannot_be_parsed_is_covered_by_consent(project: Path) -> None:
    (project / f"{CODE}.py").write_text("(" * 100_000, encoding="utf-8")
    allow(project)
    (project / f"{CODE}.py").write_text("((", encoding="utf-8")
    with pytest.raises(NotTrusted):
        load({}, {}, project, project)


@pytest.mark.parametrize(
    "text",
    [
        'model = "hf:somebody/weights"',
        'model = "gpt-5, hf:somebody/weights"',
        'model = "gguf:/models/weights.gguf"',
        'embed = "gguf:/models/weights.gguf"',
        '[roles.embed]\nmodel = "gguf:/models/weights.gguf"',
        '[roles.planner]\nmodel = "hf:somebody/weights"',
        'model = "hf:somebody/weights"\nadapter = "somebody/adapter"',
    ],
)
def test_a_model_that_hira_itself_would_load_needs_consent(text: str, tmp_path: Path) -> None:
    (tmp_path / "hira.toml").write_text(text, encoding="utf-8")
    with pytest.raises(NotTrusted, match=r"loads the models .*weights") as raised:
        load({}, {}, tmp_path, tmp_path)
    raised.value.allow()
    load({}, {}, tmp_path, tmp_path)
    (tmp_path / "hira.toml").write_text(text.replace("weights", "others"), encoding="utf-8")
    with pytest.raises(NotTrusted):
        load({}, {}, tmp_path, tmp_path)


def test_a_model_that_the_user_names_is_loaded_without_a_question(tmp_path: Path) -> None:
    (tmp_path / "hira.toml").write_text('model = "hf:somebody/weights"\nadapter = "a/b"', encoding="utf-8")
    for flags in ({"model": "offline"}, {"model": "hf:somebody/weights", "adapter": "a/b"}):
        load(flags, {}, tmp_path, tmp_path)


def write_servers(project: Path, home: Path, notes: str = 'command = "theirs"') -> None:
    (home / ".config" / "hira").mkdir(parents=True, exist_ok=True)
    project.mkdir(exist_ok=True)
    (home / ".config" / "hira" / "hira.toml").write_text('[mcp.notes]\ncommand = "mine"')
    (project / "hira.toml").write_text(f'[mcp.notes]\n{notes}\n[mcp.other]\nurl = "https://example.org/mcp"')


def test_servers_of_a_projects_file_are_not_started_unless_the_user_names_and_allows_them(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    write_servers(project, home)
    settings = load({}, {}, project, home)
    assert {name: server.command for name, server in settings.mcp.items()} == {"notes": "mine"}
    assert settings.origin("mcp.notes") == str(home / ".config" / "hira" / "hira.toml")
    (line,) = settings.withheld
    assert "not started: notes, other; with HIRA_MCP=notes,other hira asks whether it may" in line
    with pytest.raises(NotTrusted, match=r"starts the MCP servers notes \(theirs\) with your rights") as raised:
        load({}, {"HIRA_MCP": "notes"}, project, home)
    trust = raised.value.fix.partition("HIRA_TRUST=")[2]
    allowed = load({}, {"HIRA_MCP": "notes", "HIRA_TRUST": trust}, project, home)
    assert {name: server.command for name, server in allowed.mcp.items()} == {"notes": "theirs"}
    raised.value.allow()
    assert load({}, {}, project, home).mcp["notes"].command == "theirs"  # allowed for this folder from now on


@pytest.mark.parametrize(
    "changed", ['command = "theirs"\nenv = {A = "b"}', 'command = "theirs"\nargs = ["-v"]', 'command = "others"']
)
def test_consent_to_a_server_ends_when_its_settings_change(changed: str, tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    write_servers(project, home)
    with pytest.raises(NotTrusted) as raised:
        load({}, {"HIRA_MCP": "notes"}, project, home)
    raised.value.allow()
    write_servers(project, home, changed)
    assert load({}, {}, project, home).mcp["notes"].command == "mine"
    with pytest.raises(NotTrusted):
        load({}, {"HIRA_MCP": "notes"}, project, home)


def test_a_server_that_another_project_was_allowed_is_asked_about_here(tmp_path: Path) -> None:
    first, second, home = tmp_path / "first", tmp_path / "second", tmp_path / "home"
    for project in (first, second):
        write_servers(project, home)
    with pytest.raises(NotTrusted) as raised:
        load({}, {"HIRA_MCP": "notes"}, first, home)
    raised.value.allow()
    with pytest.raises(NotTrusted):
        load({}, {"HIRA_MCP": "notes"}, second, home)


def test_consent_to_a_server_ends_when_a_file_of_its_command_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    write_servers(project, home, 'command = "python"\nargs = ["server.py", "--config=rules.json"]')
    monkeypatch.chdir(project)
    for name, text in {"server.py": "import shelf", "shelf.py": "a = 1", "rules.json": "{}"}.items():
        Path(name).write_text(text)
    for name in ("server.py", "shelf.py", "rules.json"):
        with pytest.raises(NotTrusted) as raised:
            load({}, {"HIRA_MCP": "notes"}, project, home)
        raised.value.allow()
        assert load({}, {}, project, home).mcp["notes"].command == "python"
        Path(name).write_text(Path(name).read_text() + "\n")
    with pytest.raises(NotTrusted):
        load({}, {"HIRA_MCP": "notes"}, project, home)


def test_a_server_of_a_profile_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('[mcp.notes]\ncommand = "theirs"')
    with pytest.raises(NotTrusted):
        load({"profile": "run.toml"}, {"HIRA_MCP": "notes"}, tmp_path, tmp_path / "home")
