"""Your own workflow, tools and experts: as `module:Object`, or by the entry points of an installed package."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from command import Command, at

from hira.testing import Endpoint

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

class Diver:
    name, ability, cost, needs = "diver", "diving", 1, frozenset()
    description = "Dives for an answer."

    async def work(self, task, context):
        raise NotImplementedError

number = 5
'''
POINTS = """
[hira.tools]
depth = own_code_of_a_test:depth
other_search = own_code_of_a_test:other_search
search = own_code_of_a_test:other_search
broken = own_code_of_a_test:gone

[hira.workflows]
echo-of-lakes = own_code_of_a_test:Echo
mars = own_code_of_a_test:Echo
"""
OWN = "own_code_of_a_test"
ASK = ("ask", "-q", "--verify", "off", "Hello?")


def install(site: Path, package: str, points: str) -> None:
    folder = site / f"{package}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text(points, encoding="utf-8")


@pytest.fixture
def hira(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    site, work = tmp_path / "site", tmp_path / "work"
    install(site, "lakes", POINTS)
    (site / f"{OWN}.py").write_text(CODE, encoding="utf-8")
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    yield Command(work, {"HIRA_MODEL": "offline"})
    sys.modules.pop(OWN, None)


def write(hira: Command, text: str) -> None:
    (hira.folder / "hira.toml").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(("workflow", "tool"), [(f"{OWN}:Echo", f"{OWN}:depth"), ("echo-of-lakes", "depth")])
def test_a_workflow_and_a_tool_run_by_name_and_those_that_a_projects_file_names_once_they_are_allowed(
    hira: Command, workflow: str, tool: str
) -> None:
    said = hira(*ASK, "--workflow", workflow, "--tools", tool)
    assert said.out == "Hello? depth\n"
    assert hira("replay", "last", "-q").out == hira("resume", "last", "-q").out == said.out
    write(hira, f'workflow = "{workflow}"\ntools = ["{tool}"]\nexperts = ["{OWN}:Diver"]\n')
    refused = hira(*ASK)
    assert (refused.code, tool in refused.err, "with your rights" in refused.err) == (2, True, True)
    assert hira(*ASK, HIRA_TRUST=f"{workflow},{tool},{OWN}:Diver").out == "Hello? depth\n"


def test_what_cannot_be_loaded_is_one_line(hira: Command) -> None:
    for flags, environ, says in (
        (["--tools", "broken"], {}, "'broken' of the package 'lakes' cannot be loaded: AttributeError"),
        (
            ["--tools", "shallow"],
            {},
            "'shallow' is not among the hira.tools of installed packages: depth, other_search",
        ),
        (["--workflow", "echo-of-lake"], {}, "unknown workflow 'echo-of-lake'"),
        (["--workflow", f"{OWN}:Echo", "--set", "echo.depth=3"], {}, "a workflow of your own takes no --set"),
        ([], {"HIRA_TOOLS": f"{OWN}:number"}, "`tools` must contain only tools, got 5"),
        ([], {"HIRA_EXPERTS": f"{OWN}:number"}, "has no name"),
        ([], {"HIRA_WORKFLOW": f"{OWN}:number"}, "workflow has no name: 5"),
        ([], {"HIRA_WORKFLOW": f"{OWN}:absent"}, f"'{OWN}:absent' cannot be loaded"),
    ):
        said = hira(*ASK, *flags, **environ)
        assert (said.code, said.out) == (2, "")
        assert says in said.err
        assert "Traceback" not in said.err


def test_hiras_own_names_win(hira: Command) -> None:
    (hira.folder / "a.txt").write_text("The lake is 251 metres deep.\n", encoding="utf-8")
    for flags, says in (
        (["--tools", "search"], "the tool 'search' is hira's own; an installed one of this name is not used"),
        (["--tools", "other_search"], "the installed tool 'other_search' is not used: hira has its own tool 'search'"),
        (["--workflow", "mars"], "'mars' is hira's own workflow; that of the package 'lakes' is not used"),
    ):
        said = hira("ask", "How deep is the lake?", "--docs", "a.txt", *flags)
        assert says in said.err
        assert "251 metres" in said.out


def test_a_name_of_two_packages_is_not_guessed(hira: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "more", "ponds", "[hira.tools]\ndepth = ponds:depth\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "more")])
    said = hira(*ASK, "--tools", "depth")
    assert "several packages have 'depth' among their hira.tools" in said.err


@pytest.mark.parametrize("command", [("replay", "last"), ("resume", "last"), ("ask", "--continue", "last", "Hi?")])
def test_a_journal_that_came_with_a_folder_runs_no_code_until_it_is_allowed(
    hira: Command, command: tuple[str, ...]
) -> None:
    named = f"{OWN}:Echo"
    hira(*ASK, "--workflow", named, "--journal", "j.sqlite")
    with closing(sqlite3.connect(hira.folder / "j.sqlite")) as db, db:
        db.execute("UPDATE runs SET status = 'interrupted'")
    sys.modules.pop(OWN)
    write(hira, 'journal = "j.sqlite"\n')

    refused = hira(*command, "-q")

    assert refused.code == 2
    assert OWN not in sys.modules
    assert f"HIRA_TRUST={named}" in refused.err
    assert OWN not in hira(*command, "-q", HIRA_TRUST=named).err
    assert OWN in sys.modules


def test_a_journal_that_came_with_a_folder_names_no_endpoint_and_gets_no_key(hira: Command) -> None:
    with Endpoint(["Hello."] * 4) as endpoint:
        hira(*ASK, "--workflow", "direct", *at(endpoint), "--journal", "j.sqlite")
        write(hira, 'journal = "j.sqlite"\n')
        before = len(endpoint.requests)
        refused = hira("ask", "-q", "--continue", "last", "Hi?", HIRA_MODEL="", HIRA_API_KEY="of-the-user")
        unasked = len(endpoint.requests)
        trust = {"HIRA_TRUST": endpoint.base_url, "HIRA_API_KEY": "of-the-user", "HIRA_MODEL": ""}
        hira("ask", "-q", "--continue", "last", "Hi?", **trust)
        sent = endpoint.requests[unasked:]

    assert (refused.code, unasked) == (2, before)
    assert sent
    assert "of-the-user" not in str(sent)


def test_replies_recorded_in_a_folder_answer_only_with_consent(tmp_path: Path) -> None:
    hira, ask = Command(tmp_path, {"HIRA_MODEL": "offline"}), ("ask", "-q", "What is 2 + 3?")
    (tmp_path / "hira.toml").write_text('journal = "runs.sqlite"\n', encoding="utf-8")
    assert hira(*ask).code == 0
    for refused in (hira(*ask, "--cache"), hira(*ask, HIRA_CACHE_RESPONSES="1")):
        assert (refused.code, "answers with replies recorded in its journal" in refused.err) == (2, True)
    assert hira(*ask, "--cache", HIRA_TRUST="replies-of-runs.sqlite").code == 0
    assert hira(*ask, "--cache", "--journal", str(tmp_path / "runs.sqlite")).code == 0


def test_files_that_a_journal_of_the_folder_names_elsewhere_are_read_only_with_consent(tmp_path: Path) -> None:
    clone, secret = tmp_path / "clone", tmp_path / "secret.txt"
    clone.mkdir()
    secret.write_text("The password of the tower of Alta is swordfish.\n", encoding="utf-8")
    hira = Command(clone, {"HIRA_MODEL": "offline"})
    question = "What is the password of the tower of Alta?"
    hira("ask", "-q", question, "--file", str(secret), "--journal", str(clone / "runs.sqlite"))
    with closing(sqlite3.connect(clone / "runs.sqlite")) as db, db:
        db.execute("update runs set status = 'interrupted', answer = ''")
        db.execute("delete from calls")
    (clone / "hira.toml").write_text('journal = "runs.sqlite"\n', encoding="utf-8")
    refused = hira("resume", "last", "-q")
    assert (refused.code, refused.out, f"reads {secret}" in refused.err) == (2, "", True)
    assert "swordfish" in hira("resume", "last", "-q", HIRA_TRUST=str(secret)).out


SHOP = '''
import sqlite3
from hira import expert
from hira.agents.expert import Task
from hira.agents.run_context import RunContext
from hira.evidence import Source

@expert(ability="data")
async def database(task: Task, context: RunContext, *, url: str, most: int = 5) -> str:
    """Answers questions about orders from the shop's database."""
    with sqlite3.connect(url.rpartition("@")[2]) as connection:
        rows = connection.execute("select buyer, total from orders limit ?", (most,)).fetchall()
    text = " ".join(f"{buyer} ordered goods for {total} euros." for buyer, total in rows)
    source = context.read(Source("shop", "Orders", text))
    return f"{text} [{source.id}]"

number = 5

class Warehouse:
    name, ability, cost, needs = "warehouse", "data", 9, frozenset()
    description = "Knows what is in store."

    def __init__(self, place: str) -> None:
        self.place = place

    async def work(self, task, context):
        raise NotImplementedError
'''
ORDERS = "How much did Ida Lorn order goods for?"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """A shop with a database and a module of experts."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("create table orders (buyer text, total integer)")
        connection.executemany("insert into orders values (?, ?)", [("Ida Lorn", 120), ("Ove Berg", 35)])
    (tmp_path / "shop_of_a_test.py").write_text(SHOP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield Command(tmp_path, {"HIRA_MODEL": "offline"})
    sys.modules.pop("shop_of_a_test", None)


def configure(shop: Command, text: str) -> None:
    """Write the user's own configuration, which needs no consent."""
    own = shop.folder / "home" / ".config" / "hira"
    own.mkdir(parents=True, exist_ok=True)
    (own / "hira.toml").write_text(text, encoding="utf-8")


def test_a_table_of_the_configuration_gives_an_expert_its_name_and_its_options(shop: Command) -> None:
    url = f"sqlite://keeper:hunter2-hunter2@{shop.folder / 'shop.db'}"
    configure(shop, f'[experts.sql]\nobject = "shop_of_a_test:database"\nurl = "{url}"\nmost = 1\n')
    said = shop("ask", "-q", ORDERS)
    assert said.out.startswith("Ida Lorn ordered goods for 120 euros. [s1]"), said.err
    assert "Ove Berg" not in said.out, "the option `most` did not reach the expert"
    assert "sql" in shop("show", "last").out
    assert b"hunter2" not in shop.journal.read_bytes(), "the password in the URL was recorded"
    assert shop("replay", "last", "-q").out.startswith("Ida Lorn ordered goods for 120 euros.")


def test_options_of_an_expert_that_a_projects_file_names_need_consent_of_their_own(shop: Command) -> None:
    table = '[experts.sql]\nobject = "shop_of_a_test:database"\nurl = "{}"\n'
    write(shop, table.format(shop.folder / "shop.db"))
    refused = shop("ask", "-q", ORDERS)
    assert refused.code == 2
    assert "sets options of the experts sql" in refused.err
    consent = refused.err.partition("HIRA_TRUST=")[2].split()[0]
    assert shop("ask", "-q", ORDERS, HIRA_TRUST=consent).out.startswith("Ida Lorn ordered goods for 120 euros.")
    write(shop, table.format(shop.folder / "other.db"))
    changed = shop("ask", "-q", ORDERS, HIRA_TRUST=consent)
    assert (changed.code, "sets options of the experts sql" in changed.err) == (2, True)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('[experts.sql]\nobject = "shop_of_a_test:database"\nurl = "x"\nmots = 3\n', "did you mean 'most'?"),
        (
            '[experts.sql]\nobject = "shop_of_a_test:database"\nurl = 3\n',
            "option 'url' of the expert 'database' must be text\n",
        ),
        ('[experts.sql]\nobject = "shop_of_a_test:database"\n', "the expert 'sql' lacks the option 'url'"),
        ('[experts.sql]\nurl = "x"\n', "experts.sql.object is missing"),
        ('[experts.store]\nobject = "shop_of_a_test:Warehouse"\nplace = "x"\n', "write [experts.warehouse]"),
        ('[experts.warehouse]\nobject = "shop_of_a_test:Warehouse"\nshelf = "x"\n', "unexpected keyword argument"),
        ('[experts.x]\nobject = "shop_of_a_test:number"\nurl = "x"\n', "takes no options"),
    ],
)
def test_a_wrong_table_of_an_expert_is_refused_before_any_call(shop: Command, table: str, says: str) -> None:
    configure(shop, table)
    said = shop("ask", "-q", ORDERS)
    assert (said.code, said.out) == (2, "")
    assert says in said.err
    assert "hira/hira.toml" in said.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('tools = ["shop_of_a_test:gone"]', "'shop_of_a_test:gone' cannot be loaded"),
        ('tools = ["shop_of_a_test:number"]', "`tools` must contain only tools, got "),
        ('verifier = "shop_of_a_test:number"', "is not a verifier"),
        ('search = "shop_of_a_test:number"', "`search` must be a string or a function of a query, got 5"),
        ('workflow = "shop_of_a_test:number"', "workflow has no name"),
        ('[mcp.shelf]\nurl = "http://127.0.0.1:9/mcp"\nroles = ["coder"]', "`roles` of [mcp.shelf]: role 'coder'"),
    ],
)
def test_an_error_in_what_a_file_names_says_which_file(shop: Command, text: str, says: str) -> None:
    configure(shop, text)
    said = shop("ask", "-q", ORDERS)
    assert (said.code, said.out) == (2, "")
    assert says in said.err
    assert f"in {shop.folder}/home/.config/hira/hira.toml" in said.err
