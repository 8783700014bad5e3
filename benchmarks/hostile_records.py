"""Rows of hostile.py: consent that is bound to content, journals and data from elsewhere, and silent clients of
`hira serve`."""

import asyncio
import io
import os
import random
import sqlite3
import zlib
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.apart import serve_app
from benchmarks.hostile_checks import NotHeld, check
from hira.cli import main
from hira.cli.shell import Shell
from hira.core.errors import NotTrusted
from hira.runtime.settings import load

QUESTION = "When was the mill of Skerra built?"
READERS = (("runs",), ("runs", "export", "-o", "-"), ("show", "last"), ("replay", "last"), ("resume", "last"),
           ("verify", "last", "--verify", "lexical"), ("trace", "last", "-o", "page.html"))  # fmt: skip
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select kept.* from n, kept"


def run(folder: Path, *words: str) -> str:
    """Run a command; returns its error stream. Raises if it ends with a fault of hira's own."""
    out, err = io.StringIO(), io.StringIO()
    code = main([*words], Shell(io.StringIO(), out, err, {"HIRA_MODEL": "offline"}, folder, folder / "home"))
    check(code != 1 and "Traceback" not in err.getvalue(), f"{' '.join(words)}: {err.getvalue()[:80]}")
    return " ".join(err.getvalue().split())


def record_run(folder: Path) -> Path:
    (folder / "docs").mkdir()
    (folder / "docs" / "mill.txt").write_text("The mill of Skerra was built in 1742.\n", encoding="utf-8")
    run(folder, "ask", "-q", QUESTION, "--docs", "docs", "--journal", "j.sqlite")
    with closing(sqlite3.connect(folder / "j.sqlite")) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    return folder / "j.sqlite"


def ask_again(change: str, name: str, text: str, environ: Mapping[str, str] | None = None) -> Callable[[Path], str]:
    """Consent to a hira.toml with this text, then change one file: the next run has to ask."""

    def attack(folder: Path) -> str:
        os.chdir(folder)
        (folder / "tables.py").write_text("depth = 251\n", encoding="utf-8")
        (folder / "lake.py").write_text("from tables import depth\n", encoding="utf-8")
        (folder / "stars.py").write_text("from tables import *\n", encoding="utf-8")
        (folder / "hira.toml").write_text(text, encoding="utf-8")
        for step in ("the first run", "the changed file"):
            try:
                load({}, environ or {}, folder, folder)
            except NotTrusted as error:
                error.allow()
            else:
                raise NotHeld(f"{step} was not asked about")
            load({}, environ or {}, folder, folder)
            path = folder / name
            path.write_text(path.read_text(encoding="utf-8") + change, encoding="utf-8")
        return "asked again"

    return attack


def make_bomb() -> bytes:
    """Compress 1 GB of text into 1 MB."""
    made = zlib.compressobj()
    parts = [made.compress(b'["'), *(made.compress(b"x" * 2**20) for _ in range(1024)), made.compress(b'"]')]
    return b"".join(parts) + made.flush()


def damaged(statements: list[str], make_value: Callable[[], object] = bytes) -> Callable[[Path], str]:
    """Change the records of a run, then read them with every command."""

    def attack(folder: Path) -> str:
        with closing(sqlite3.connect(record_run(folder))) as db, db:
            for statement in statements:
                db.execute(statement, (make_value(),) if "?" in statement else ())
        told = [run(folder, *words, "--journal", "j.sqlite") for words in READERS]
        return f"told: {next(filter(None, told), 'nothing')[:70].strip()}"

    return attack


def flipped(folder: Path) -> str:
    path = record_run(folder)
    whole = path.read_bytes()
    for seed in range(20):
        dice, raw = random.Random(seed), bytearray(whole)
        for _ in range(10):
            raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
        for words in READERS:
            path.write_bytes(raw)
            for ahead in ("j.sqlite-wal", "j.sqlite-shm"):
                (folder / ahead).unlink(missing_ok=True)
            run(folder, *words, "--journal", "j.sqlite")
    return f"{20 * len(READERS)} commands"


def questions(line: bytes) -> Callable[[Path], str]:
    def attack(folder: Path) -> str:
        (folder / "q.jsonl").write_bytes(line)
        run(folder, "ask", "--batch", "q.jsonl", "-o", "a.jsonl")
        return f"told: {run(folder, 'eval', 'q.jsonl', '--output', 'e')[:70].strip()}"

    return attack


def silent(sent: bytes, expected: bytes) -> Callable[[Path], str]:
    """Send the beginning of 600 requests; another client has to be answered, and nothing is answered twice."""

    async def attack() -> str:
        from hira.server.connections import limit_connections

        async def app(_scope: Any, receive: Any, send: Any) -> None:
            while (await receive()).get("more_body"):
                pass
            await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
            await send({"type": "http.response.body", "body": b"ok"})

        quiet = {"log_level": "critical", "lifespan": "off", "timeout_graceful_shutdown": 1}
        async with serve_app(app, **limit_connections(), **quiet) as address:
            held = [await asyncio.open_connection(*address) for _ in range(600 if expected else 1)]
            for _, writer in held:
                writer.write(sent)
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            answer = await asyncio.wait_for(reader.read(), 10)
            twice = b"" if expected else await asyncio.wait_for(held[0][0].read(), 10)
            for _, each in held:
                each.transport.abort()
        check(answer.startswith(b"HTTP/1.1 200"), f"another client got {answer[:20]!r}")
        check(expected or (twice.startswith(b"HTTP/1.1 400") and twice.count(b"HTTP/1.1") == 1), f"{twice[:60]!r}")
        return "others answered" if expected else "refused once"

    return lambda _: asyncio.run(attack())


def fill_memory(_: Path) -> str:
    async def attack() -> str:
        from starlette.requests import Request

        from hira.server.keys import RejectedRequest
        from hira.server.state import LARGEST, MOST, body_of

        bodies: dict[int, int] = {}

        async def send() -> dict[str, Any]:
            return {"type": "http.request", "body": bytes(LARGEST), "more_body": False}

        requests = [Request({"type": "http", "method": "POST", "headers": []}, send) for _ in range(10)]
        read = await asyncio.gather(*(body_of(one, bodies) for one in requests), return_exceptions=True)
        refused = [one for one in read if isinstance(one, RejectedRequest)]
        check(len(refused) == 10 - MOST // LARGEST and refused[0].status == 503, f"{len(refused)} were refused")
        return f"told: {refused[0]}"

    return asyncio.run(attack())


POST = b"POST / HTTP/1.1\r\nhost: a\r\n"
DEEP = b"[" * 100_000 + b"]" * 100_000
RECORDS: dict[tuple[str, str], Callable[[Path], str]] = {
    ("consent", "code that changed"): ask_again("x = 1\n", "lake.py", 'tools = ["lake:depth"]'),
    ("consent", "an imported module that changed"): ask_again("x = 1\n", "tables.py", 'tools = ["lake:depth"]'),
    ("consent", "a module that changed and is imported with a star"): ask_again(
        "x = 1\n", "tables.py", 'tools = ["stars:depth"]'
    ),
    ("consent", "a server's command that changed"): ask_again(
        'args = ["-v"]\n', "hira.toml", '[mcp.files]\ncommand = "a"\n', {"HIRA_MCP": "files"}
    ),
    ("consent", "a model of the folder"): ask_again(
        'roles.planner.model = "gguf:x"\n', "hira.toml", 'model = "hf:a/b"\n'
    ),
    ("journal", "a view without an end"): damaged(
        ["alter table runs rename to kept", f"create view runs as {ENDLESS}"]
    ),
    ("journal", "100,000 levels"): damaged([f"update {name} where rowid % 2" for name in
                                            ("calls set result = ?", "events set event = ?")], lambda: DEEP),
    ("journal", "a time of 1e300"): damaged(["update runs set began = 1e300", "update calls set began = 1e300"]),
    ("journal", "bombs of 1 GB"): damaged(["update events set event = ?"], make_bomb),
    ("journal", "flipped bytes"): flipped,
    ("data", "questions of 100,000 levels"): questions(b'{"question": ' + DEEP + b"}"),
    ("data", "questions of another shape"): questions(b'{"question": {"a": [1]}, "id": [1], "files": {"a": 1}}'),
    ("serve", "600 bodies that do not come"): silent(POST + b"content-length: 9\r\n\r\n{", b"200"),
    ("serve", "600 unfinished headers"): silent(b"GET / HT", b"200"),
    ("serve", "ten bodies of 32 MB at once"): fill_memory,
    ("serve", "two lengths"): silent(
        POST + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n", b""
    ),
}  # fmt: skip
