"""Which key goes to which endpoint, and what a project's file may send anywhere: the table in docs/security.md."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from hira import Hira
from hira.cli import main
from hira.cli.shell import Shell
from hira.core.errors import NotTrusted
from hira.runtime.settings import TRUST, RoleSettings, Settings, load
from hira.runtime.settings.keys import find_place
from hira.testing import Endpoint

SECURITY = Path(__file__).parent.parent / "docs" / "security.md"
KEY, URL = "sk-of-the-user-0001", "https://named.example/v1"
FILES = {
    "your configuration": "home/.config/hira/hira.toml",
    "the project's file": "hira.toml",
    "the profile": "run.toml",
}


def table() -> tuple[list[str], list[list[str]]]:
    rows = [line for line in SECURITY.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    at = next(at for at, line in enumerate(rows) if "the endpoint is named by" in line)
    head, _, *body = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[at : at + 8]]
    return [cell.removeprefix("key: ").strip("`") for cell in head], body


HEAD, ROWS = table()


def loaded(folder: Path, named: dict[str, dict[str, str]], role: str) -> Settings:
    """Settings whose values are set, for all or for a role, at the places that the table speaks of."""
    flags: dict[str, Any] = {}
    environ = {TRUST: URL}
    for place, values in named.items():
        if place == "argument":
            flags |= {"roles": {role: values}} if role else values
        elif place in FILES:
            path = folder / FILES[place]
            path.parent.mkdir(parents=True, exist_ok=True)
            head = [f"[roles.{role}]"] if role else []
            path.write_text("\n".join([*head, *(f'{name} = "{value}"' for name, value in values.items())]))
            flags |= {"profile": "run.toml"} if place == "the profile" else {}
        else:
            environ |= {f"HIRA_{name.upper()}" if place != "OPENAI_API_KEY" else place: v for name, v in values.items()}
    return load(flags, environ, folder, folder / "home")


def place_name(cell: str) -> str:
    return {"an argument": "argument", "HIRA_BASE_URL": "HIRA_API_KEY"}.get(cell.strip("`"), cell)


@pytest.mark.parametrize("role", ["", "planner"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_each_cell_of_the_table_is_what_happens(row: list[str], role: str, tmp_path: Path) -> None:
    endpoint = place_name(row[0])
    for at, (key, cell) in enumerate(zip(HEAD[2:], row[2:], strict=True)):
        if (role and "HIRA_API_KEY" in (endpoint, key)) or (role and key == "OPENAI_API_KEY"):
            continue  # the environment has no names for roles
        folder = tmp_path / str(at)
        folder.mkdir()
        named: dict[str, dict[str, str]] = {key: {"api_key": KEY}}
        if not endpoint.startswith("nobody"):
            named[endpoint] = {"base_url": URL, **named.get(endpoint, {})}
        settings = loaded(folder, named, role)
        place = find_place("m", role, settings.roles.get(role, RoleSettings()), settings)
        assert place.base_url == ("" if endpoint.startswith("nobody") else URL)
        kept_back = role and endpoint == "argument" and key in FILES  # a role's key goes with the base URL of its file
        assert place.secret == (KEY if cell == "sent" and not kept_back else ""), (row[0], key)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_asks_first_is_what_the_table_says(row: list[str], tmp_path: Path) -> None:
    endpoint = place_name(row[0])
    named = {} if endpoint.startswith("nobody") else {endpoint: {"base_url": URL}}
    loaded(tmp_path, named, "")
    flags: dict[str, Any] = {"base_url": URL} if endpoint == "argument" else {}
    flags |= {"profile": "run.toml"} if endpoint == "the profile" else {}
    environ = {"HIRA_BASE_URL": URL} if endpoint == "HIRA_API_KEY" else {}
    if row[1] == "no":
        load(flags, environ, tmp_path, tmp_path / "home")
        return
    with pytest.raises(NotTrusted) as raised:
        load(flags, environ, tmp_path, tmp_path / "home")
    assert URL in raised.value.what
    assert f"{TRUST}={URL}" in raised.value.fix
    assert raised.value.where == f"in {tmp_path / 'hira.toml'}"


@pytest.mark.parametrize(
    "text",
    [
        f'base_url = "{URL}"',
        f'model = "first, m@{URL}"',
        f'searxng_url = "{URL}"',
        f'[roles.look]\nmodel = "m@{URL}"',
        f'base_url = "https://me:hidden@{URL.removeprefix("https://")}/"',
    ],
)
def test_every_address_in_a_projects_file_needs_consent_and_is_shown_without_its_password(
    text: str, tmp_path: Path
) -> None:
    (tmp_path / "hira.toml").write_text(text)
    with pytest.raises(NotTrusted) as raised:
        load({}, {}, tmp_path, tmp_path)
    assert f"to {URL};" in raised.value.what
    load({}, {TRUST: f"https://other.example, {URL}"}, tmp_path, tmp_path)
    raised.value.allow()
    load({}, {}, tmp_path, tmp_path)
    (tmp_path / "hira.toml").write_text(text.replace("named.", "renamed."))
    with pytest.raises(NotTrusted):
        load({}, {}, tmp_path, tmp_path)


def test_consent_holds_for_its_folder_alone_and_can_be_read_by_the_user_alone(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "hira.toml").write_text(f'base_url = "{URL}"')
    with pytest.raises(NotTrusted) as raised:
        load({}, {}, tmp_path / "one", tmp_path)
    raised.value.allow()
    load({}, {}, tmp_path / "one", tmp_path)
    with pytest.raises(NotTrusted):
        load({}, {}, tmp_path / "other", tmp_path)
    store = tmp_path / ".config" / "hira" / "trusted.json"
    assert store.stat().st_mode & 0o077 == 0
    assert json.loads(store.read_text()) == {str(tmp_path / "one" / "hira.toml"): [URL]}


async def test_a_verifier_in_a_projects_file_runs_once_the_user_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hira.toml").write_text('verifier = "trusted_checks:Wary"\nmodel = "offline"\njournal = "off"\n')
    (tmp_path / "trusted_checks.py").write_text(
        "from pathlib import Path\nfrom hira.evidence import Judgement\n\nPath('ran').touch()\n\n\nclass Wary:\n"
        "    name = 'wary'\n\n    async def verify(self, claims, question):\n"
        "        return [Judgement('unsupported') for _ in claims]\n"
    )
    with pytest.raises(NotTrusted, match="runs trusted_checks:Wary with your rights") as raised:
        load({}, {}, tmp_path, tmp_path)
    trust = raised.value.fix.partition(f"{TRUST}=")[2]
    assert not (tmp_path / "ran").exists()
    assert load({}, {TRUST: trust}, tmp_path, tmp_path).verifier == "trusted_checks:Wary"
    assert load({}, {"HIRA_VERIFIER": "mine:Own"}, tmp_path, tmp_path).verifier == "mine:Own"
    raised.value.allow()
    (tmp_path / "mill.md").write_text("The mill of Skerra was built in 1742.")
    async with Hira(settings=load({"docs": ["mill.md"], "workflow": "rag"}, {}, tmp_path, tmp_path)) as hira:
        answer = await hira.ask("When was the mill of Skerra built?")
    assert [one.by for one in answer.citations] == ["wary"]


def test_a_key_of_a_role_given_as_an_argument_does_not_go_to_a_projects_endpoint(tmp_path: Path) -> None:
    named = {"the project's file": {"base_url": URL}, "argument": {"api_key": KEY}}
    settings = loaded(tmp_path, named, "planner")
    assert find_place("m", "planner", settings.roles["planner"], settings).secret == ""
    assert f"the key of role 'planner' is not sent to {URL}" in settings.withheld[0]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(folder: Path, *words: str, typed: str | None = None, **environ: str) -> tuple[int, str]:
    made = io.StringIO if typed is None else Terminal
    err = made()
    code = main(words, Shell(made(typed or ""), io.StringIO(), err, environ, folder, folder / "home"))
    return code, err.getvalue()


@pytest.mark.parametrize("words", [("doctor",), ("ask", "Who?", "--docs", "hira.toml", "--quiet")], ids=lambda w: w[0])
def test_nothing_is_sent_to_a_projects_endpoint_before_the_person_at_the_terminal_says_yes(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    with Endpoint(["No."] * 9) as endpoint:
        (tmp_path / "hira.toml").write_text(f'base_url = "{endpoint.base_url}"\nmodel = "scripted"\njournal = "off"')
        code, err = run(tmp_path, *words, HIRA_API_KEY=KEY)
        assert (code, len(err.splitlines())) == (2, 3)
        assert endpoint.base_url in err
        assert f"{TRUST}={endpoint.base_url}" in err
        code, err = run(tmp_path, *words, typed="n\n", HIRA_API_KEY=KEY)
        assert (code, "allow it for this folder" in err) == (2, True)
        assert not endpoint.requests
        code, err = run(tmp_path, *words, typed="yes\n", HIRA_API_KEY=KEY, OPENAI_API_KEY=KEY)
        assert code != 2, err
        asked = len(endpoint.requests)
        assert asked
        code, err = run(tmp_path, *words, typed="", HIRA_API_KEY=KEY, OPENAI_API_KEY=KEY)
        assert "allow it for this folder" not in err
        assert len(endpoint.requests) > asked
        assert KEY not in str([request.headers for request in endpoint.requests])


def test_the_key_of_a_server_can_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("\n")
    serve = ("serve", "--host", "0.0.0.0", "--port", "70000")
    assert (
        "--api-key nowhere: there is no such file"
        in run(tmp_path, *serve, "--api-key", "@nowhere", HIRA_MODEL="offline")[1]
    )
    assert "--api-key key is empty" in run(tmp_path, *serve, "--api-key", "@key", HIRA_MODEL="offline")[1]
    (tmp_path / "key").write_text("a long random text\n")
    assert "there is no port 70000" in run(tmp_path, *serve, "--api-key", "@key", HIRA_MODEL="offline")[1]


def test_the_key_of_a_server_comes_from_the_environment_and_an_argument_is_warned_about(tmp_path: Path) -> None:
    serve = ("serve", "--host", "0.0.0.0", "--port", "70000")
    assert "no key protects it" in run(tmp_path, *serve[:3], HIRA_MODEL="offline")[1]
    hidden = run(tmp_path, *serve, HIRA_MODEL="offline", HIRA_SERVE_KEY="a long random text")[1]
    shown = run(tmp_path, *serve, "--api-key", "a long random text", HIRA_MODEL="offline")[1]
    assert ("there is no port 70000" in hidden, "list of processes" in hidden) == (True, False)
    assert "others on this machine see the key in the list of processes" in shown
    assert "a long random text" not in shown


def test_a_projects_keys_protect_no_server_and_a_notice_says_so(tmp_path: Path) -> None:
    (tmp_path / "hira.toml").write_text('[keys.ada]\nkey = "known-to-its-author"\n')
    settings = load({}, {}, tmp_path, tmp_path)
    assert not settings.keys
    assert re.match(r"\[keys\] of .*hira\.toml are not used", settings.withheld[0])
    code, err = run(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0", HIRA_MODEL="offline")
    assert (code, "no key protects it" in err) == (2, True)
