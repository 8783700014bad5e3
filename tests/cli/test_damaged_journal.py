"""Journals that are damaged, of another version or somebody else's: every command ends with the rest, or with one line
that names the place."""

# ruff: noqa: S608 - the names of tables are those of this file

import json
import random
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import Command, Said

from hira.journal import Journal
from hira.journal.encoding import MOST_LINES, DamagedRecord, read_json
from hira.runtime.trace import read

QUESTION = "When was the mill of Skerra built?"
WORKFLOWS = ("hira", "react", "mars")
DEEP = 100_000


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a journal of a run of each of several workflows."""
    folder = tmp_path_factory.mktemp("recorded")
    hira = Command(folder, {"HIRA_MODEL": "offline"})
    hira.write(mill="The mill of Skerra was built in 1742 by Ida Lorn. It is 31 metres high.")
    for name in WORKFLOWS:
        assert hira("ask", "-q", QUESTION, "--docs", "docs", "--workflow", name, "--journal", "j.sqlite").code == 0
    with closing(sqlite3.connect(folder / "j.sqlite")) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    return folder


@pytest.fixture
def hira(recorded: Path, tmp_path: Path) -> Command:
    shutil.copytree(recorded, tmp_path / "copy")
    return Command(tmp_path / "copy", {"HIRA_MODEL": "offline"})


def change(hira: Command, *statements: str, values: tuple[Any, ...] = ()) -> None:
    with closing(sqlite3.connect(hira.folder / "j.sqlite")) as db, db:
        for statement in statements:
            db.execute(statement, values)


def list_commands(run: str) -> list[tuple[str, ...]]:
    """Every command that reads a journal; the one that deletes comes last."""
    return [
        ("runs",),
        ("runs", "--json"),
        ("runs", "export", "-o", "-"),
        ("runs", "export", run, "-o", "lines.jsonl"),
        ("show", run),
        ("show", run, "--json"),
        ("trace", run, "-o", "page.html"),
        ("verify", run, "--verify", "lexical"),
        ("replay", run, "-q"),
        ("replay", run, "--events"),
        ("resume", run, "-q"),
        ("ask", "-q", "--continue", run, "And how high is it?"),
        ("runs", "delete", run),
    ]


def check_said(said: Said, about: object) -> None:
    """A command ends with an answer or a clear refusal, never with a fault of hira's own."""
    assert said.code != 1, (about, said.err)
    assert "Traceback" not in said.err, (about, said.err)
    assert "a fault in hira" not in said.err, (about, said.err)


def test_one_damaged_run_is_a_line_and_the_others_are_listed(hira: Command) -> None:
    change(hira, "update runs set began = 1e300 where workflow = 'react'")
    said = hira("runs", "--journal", "j.sqlite")
    assert (said.code, len(said.out.splitlines())) == (0, len(WORKFLOWS) - 1)
    (line,) = said.err.splitlines()
    assert line.startswith("hira: run ")
    assert line.endswith("cannot be read: began: input should be less than or equal to 100000000000")


def test_one_damaged_call_is_a_line_and_the_rest_of_the_run_is_shown(hira: Command) -> None:
    change(hira, "update calls set result = '{' where rowid = (select min(rowid) from calls where kind = 'policy')")
    said = Journal(hira.folder / "j.sqlite")
    run = said.runs()[-1].id
    said.close()
    shown = hira("show", run, "--journal", "j.sqlite")
    assert (shown.code, "1742" in shown.out) == (0, True)
    assert [line for line in shown.err.splitlines() if "the result of the call 1 of" in line]


HOSTILE: dict[str, object] = {
    "nothing": None,
    "a number": 5,
    "a time of 1e300": 1e300,
    "a text": "x",
    "a list": [],
    "an object": {},
    "a list of lists": [[1], [2]],
    "an unknown field": {"colour": "red"},
    "a number of 4,000 digits": 10**4_000,
}
PLACES = [
    *(("runs", column) for column in ("settings", "files", "versions", "tools", "usage")),
    *(("calls", column) for column in ("request", "result")),
    ("events", "event"),
]


KINDS = [*HOSTILE, "100,000 levels", "no UTF-8", "a bomb"]


@pytest.mark.parametrize(
    "kind",
    [
        "an unknown field",
        *(pytest.param(kind, marks=pytest.mark.heavy) for kind in KINDS if kind != "an unknown field"),
    ],
)
def test_records_of_another_type_end_no_command_with_a_fault(kind: str, hira: Command) -> None:
    raw = {
        "100,000 levels": b"[" * DEEP + b"]" * DEEP,
        "no UTF-8": b'"\xff\xfe"',
        "a bomb": zlib.compress(b" " * 300 * 2**20),
    }.get(kind) or json.dumps(HOSTILE.get(kind)).encode()
    for table, column in PLACES if kind in HOSTILE else [("calls", "result"), ("events", "event")]:
        change(hira, f"update {table} set {column} = ? where rowid % 2", values=(raw,))
        change(hira, f"update runs set {column} = cast({column} as text)") if table == "runs" else None
    journal = Journal(hira.folder / "j.sqlite")
    runs = [entry.id for entry in journal.runs()]
    journal.close()
    for command in list_commands(runs[0] if runs else "last"):
        check_said(hira(*command, "--journal", "j.sqlite"), command)


def mutate(value: Any, dice: random.Random) -> Any:
    """Replace, rename or remove one part of a JSON value."""
    if not isinstance(value, dict | list) or not value or dice.random() < 0.1:
        return dice.choice([*HOSTILE.values(), "\ud800", "\0", True, -1, 10**400])
    key = dice.choice([*value] if isinstance(value, dict) else [*range(len(value))])
    changed: Any = value.copy()
    if isinstance(value, dict) and dice.random() < 0.2:
        changed[f"unknown {key}"] = changed.pop(key)
    else:
        changed[key] = mutate(value[key], dice)
    return changed


def damage_records(path: Path, dice: random.Random) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for _ in range(dice.choice([1, 10, 60])):
            table, column = dice.choice(PLACES)
            rows = db.execute(f"select rowid, {column} from {table} where {column} is not null").fetchall()
            row, raw = dice.choice(rows)
            text = json.dumps(mutate(read_json(raw), dice), ensure_ascii=False).encode("utf-8", "surrogatepass")
            stored = text.decode("utf-8", "replace") if table == "runs" else text
            db.execute(f"update {table} set {column} = ? where rowid = ?", (stored, row))


def damage_columns(path: Path, dice: random.Random) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for _ in range(dice.choice([1, 10])):
            table = dice.choice(["runs", "calls", "events", "sources"])
            column = dice.choice([row[1] for row in db.execute(f"pragma table_info({table})")])
            value = dice.choice([5, -5, 1e300, float("inf"), 2**62, "text", "\x1b[31m", b"\xff\xfe", "running", ""])
            change = f"update or ignore {table} set {column} = ? where rowid = abs(random()) % 9 + 1"
            db.execute(change, (value,))


def damage_bytes(path: Path, dice: random.Random) -> None:
    raw = bytearray(path.read_bytes())
    for _ in range(dice.choice([1, 3, 10, 50])):
        raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
    path.write_bytes(raw)


DAMAGES: list[Callable[[Path, random.Random], None]] = [damage_records, damage_columns, damage_bytes]


@pytest.mark.heavy
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_at_any_place_ends_no_command_with_a_fault(
    damage: Callable[[Path, random.Random], None], hira: Command
) -> None:
    path = hira.folder / "j.sqlite"
    whole = path.read_bytes()
    with closing(sqlite3.connect(path)) as db:
        runs = [run for (run,) in db.execute("select id from runs")]
    for seed in range(12):
        dice = random.Random(seed)
        path.write_bytes(whole)
        damage(path, dice)
        if damage is not damage_bytes and seed % 3 == 0:
            change(hira, "update runs set status = 'interrupted', answer = ''")
        damaged = path.read_bytes()
        for command in list_commands(dice.choice(runs)):
            path.write_bytes(damaged)
            for ahead in ("j.sqlite-wal", "j.sqlite-shm"):
                (hira.folder / ahead).unlink(missing_ok=True)
            check_said(hira(*command, "--journal", "j.sqlite"), (damage.__name__, seed, command))


ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n)"
SCHEMAS = {
    "a view": ["alter table runs rename to kept", f"create view runs as {ENDLESS} select kept.* from n, kept"],
    "a trigger": ["create trigger t after update on runs begin delete from calls; end"],
    "a virtual table": ["drop table events", "create virtual table events using fts5(run, number, event)"],
}  # fmt: skip


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_file_whose_tables_are_not_plain_is_refused_before_it_is_read(kind: str, hira: Command) -> None:
    change(hira, *SCHEMAS[kind])
    said = hira("runs", "--journal", "j.sqlite")
    assert (said.code, said.out) == (2, "")
    assert "in it is not a plain table" in said.err


def test_events_without_end_are_read_up_to_a_bound(hira: Command) -> None:
    journal = Journal(hira.folder / "j.sqlite")
    run = journal.runs()[0].id
    whole = len(journal.events(run))
    long = zlib.compress(json.dumps([{"event": "Notice", "text": "x" * 20 * 2**20}]).encode())
    for number in range(1_000, 1_050):  # 50 rows of 20 MB
        change(hira, f"insert into events values (?, {number}, ?)", values=(run, long))
    assert whole < len(journal.events(run)) < whole + 5
    assert list(journal.damage.lines) == [f"run {run} has more than 64 MB of records; the rest is left out"]
    assert read(journal, run).answer.text
    journal.close()


def test_a_million_damaged_records_are_a_few_lines(hira: Command) -> None:
    journal = Journal(hira.folder / "j.sqlite")
    run = journal.runs()[0].id
    for number in range(1_000, 1_100):
        change(hira, f"insert into events values (?, {number}, '{{')", values=(run,))
    journal.events(run)
    assert len(journal.damage.lines) == MOST_LINES + 1
    journal.close()


def test_a_result_that_cannot_be_read_is_made_again_on_resume_and_reported(hira: Command) -> None:
    change(hira, "update runs set status = 'interrupted', answer = ''", "update calls set result = '[]'")
    said = hira("resume", "last", "-q", "--journal", "j.sqlite")
    assert (said.code, "1742" in said.out) == (0, True)


def test_deep_json_and_large_numbers_are_refused_in_one_line() -> None:
    for raw in (b"[" * DEEP + b"]" * DEEP, b"1" * 5_000, b'{"a": "\xed\xa0\x80", "b":' + b"[" * DEEP, b"\x78\x9cno", 5):
        with pytest.raises(DamagedRecord):
            read_json(raw)
    assert read_json('"\ud800"'.encode("utf-8", "surrogatepass")) == "\ud800"


def test_settings_with_numbers_and_paths_of_every_kind_are_refused_in_one_line(tmp_path: Path) -> None:
    hira = Command(tmp_path, {})
    for text in (
        f"seed = {'9' * 5_000}",
        f"max_tokens = 0x{'f' * 5_000}",
        "max_time = 1e300",
        "max_time = nan",
        "max_cost = inf",
        'docs = ["a\\u0000b"]',
        'journal = "a\\u0000b"',
        'cache = "a\\u0000b"',
        'model = "a\\u0000b"',
        'base_url = "http://["',
        "docs = 5",
        "tools = 5",
        "experts = {}",
        "mcp = 5",
        "mcp.a = 5",
        "mcp.a.args = 5",
        "roles = 5",
        "roles.planner = 5",
        "keys.a = 5",
        "workflows.mars = 5",
        f"model = {'[' * 20_000}",
        "journal = 5",
        "search = 5",
    ):
        (tmp_path / "hira.toml").write_text(text, encoding="utf-8")
        for command in (("ask", "-q", "What is 2 + 3?"), ("runs",)):
            check_said(hira(*command, HIRA_MODEL="offline", HIRA_MCP="a"), (text[:40], command))
