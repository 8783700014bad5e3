"""Hostile input: what texts, files, folders, servers and programs can do to a run. Every attack is a row.

    python benchmarks/hostile.py             prints the rows
    python benchmarks/hostile.py --write     also writes results/hostile.md
    python benchmarks/hostile.py WORD        only rows with this word in their name

A row is one line in `PATTERNS`, `FUNCTIONS` or `ATTACKS` below. Each case runs in a process of its own, which the
kernel ends after 60 seconds of processor time. A text function is given 100,000 characters of each pattern and then
four times as many; its growth is the ratio of the processor time, told where the longer text takes more than 0.1 s.
"""

import argparse
import asyncio
import multiprocessing
import os
import platform
import resource
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from hira.core.errors import HiraError, NotTrusted  # noqa: E402
from hira.core.policy import Completion  # noqa: E402
from hira.core.sanitize import LONGEST_TITLE, clean, presentable, sanitize  # noqa: E402
from hira.evidence import Source, Sources  # noqa: E402
from hira.evidence.verifiers import verify  # noqa: E402
from hira.policies.dialects import DIALECTS  # noqa: E402 - the project's tests make the documents
from hira.runtime.settings import load  # noqa: E402
from hira.tools.browse import read  # noqa: E402
from hira.tools.documents import read_file  # noqa: E402
from hira.tools.fetch import Fetched  # noqa: E402
from hira.tools.mcp.tools import safe  # noqa: E402
from hira.tools.pages import extract  # noqa: E402
from hira.tools.python import PythonSandbox  # noqa: E402
from hira.tools.seen import canonicalise_url, urls  # noqa: E402
from tests.tools.made_documents import rows, xlsx  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "hostile.md"
SECONDS, MEMORY = 60, 4 << 30
SIZE, TIMES, MOST_GROWTH, TELLING = 100_000, 4, 5.0, 0.1
PAGE = """# Hostile input

Made by `python benchmarks/hostile.py --write`: Python {version}, {machine}. Every case in a process of its own. Growth
is the processor time of {times} × the text over that of the text, the worst of all patterns (linear: {times}, at most
{most:g}); memory is the largest resident size of a case, {bare} MB of it the imports. {held} of {rows} rows held.

| | attack | cases | outcome | worst growth | worst case | s, slowest | MB, most |
|---|---|---|---|---|---|---|---|
{told}
"""

# head and unit of a text that is repeated up to its size
PATTERNS = [
    ("http://a/", ")"), ("http://a/", "%2f"), ("", "https://a.b/"), ("", "\\"), ("", "<"), ("", "<|"), ("<", " "),
    ("<a ", "a='b' "), ("<x ", 'a="'), ("", "<think "), ("", "<begin_a"), ("", "[a]("), ("", "](("), ("", "[a]:"),
    ("", "![a]("), ("[x](a", " "), ("[", " "), ("", "word:word"), ("", "`"), ("", "` "), ("", "```\n"),
    ("", '"name": "'),
    ("", "\x1b["), ("", "\u200d"), ("", "| "), ("", "a:"), ("[s1", ", s1"), ("", "<div>"), ("", "<tool_call>{"),
    ("", "1"),
    ("", "{"), ("", '{"a":'), ("", "<|begin_code_call|>"), ("", "</"), ("", "<!--"), ("", "<title>"), ("", "a. "),
]  # fmt: skip


def parse(dialect: str) -> Callable[[str], object]:
    return lambda text: DIALECTS[dialect].parse(Completion(text), ())


def checked(answer: str, read: str) -> object:
    sources = Sources()
    sources.add(Source("https://example.org/", "Alta", read))
    return verify(answer, sources)


FUNCTIONS: dict[tuple[str, str], Callable[[str], object]] = {
    ("pages", "clean"): clean,
    ("pages", "said"): sanitize,
    ("pages", "urls"): urls,
    ("pages", "spelled"): canonicalise_url,
    ("pages", "extract"): extract,
    ("pages", "presentable"): lambda text: presentable(text, ()),
    ("claims", "an answer"): lambda text: checked(f"{text} [s1].", "The tower of Alta is 31 metres high."),
    ("claims", "a source"): lambda text: checked("The tower is 31 metres high [s1].", text),
    **{("dialects", name): parse(name) for name in DIALECTS},
}


class NotHeld(Exception):
    """An attack that came through; its text says how."""


def check(held: object, told: str) -> None:
    if not held:
        raise NotHeld(told)


def diagonal(folder: Path) -> str:
    cells = "".join(f'<row r="{n}"><c r="{"A" * (n % 3 + 1)}{n}"><v>1</v></c></row>' for n in range(1, 200_000))
    return outcome(lambda: read_file(xlsx(folder / "a.xlsx", {"S": cells})).title)


def sheets(folder: Path) -> str:
    return outcome(lambda: read_file(xlsx(folder / "a.xlsx", {f"S{n}": rows(["a", 1]) for n in range(5_000)})).title)


def brackets(folder: Path) -> str:
    (folder / "a.json").write_text("[" * 5_000_000)
    return outcome(lambda: read_file(folder / "a.json").title)


def charset(folder: Path) -> str:
    (folder / "a.py").write_text("# coding: undefined\nx = 1\n")
    return outcome(lambda: read_file(folder / "a.py").text)


def outcome(work: Callable[[], str]) -> str:
    """Text, or one clear line of an error that is hira's own."""
    try:
        return f"read: {work()[:20]!r}"
    except HiraError as error:
        check("\n" not in str(error), "an error of several lines")
        return f"told: {str(error)[:90]}"


def titles(_: Path) -> str:
    page = "<title>" + "word " * 200_000 + "</title>" + "<p>A long and readable sentence about a harbour.</p>" * 20
    reading = read(Fetched("https://example.org/", 200, "text/html", page.encode()))
    check(len(reading.document.title) <= LONGEST_TITLE, "the title is whole")
    return "cut"


def bases(_: Path) -> str:
    page = '<base href="http://[">' + "<p>A long and readable sentence about a harbour.</p>" * 20
    check("harbour" in extract(page, "https://example.org/").text, "nothing was read")
    return "read"


def halves(_: Path) -> str:
    return f"spelled: {len(canonicalise_url('https://example.org/' + chr(0xD800))) > 0}"


def endpoint(folder: Path) -> str:
    (folder / "hira.toml").write_text('base_url = "http://192.0.2.1/v1"\n[keys.a]\nkey = "known"')
    try:
        load({}, {"HIRA_API_KEY": "sk-secret"}, folder, folder)
    except NotTrusted:
        settings = load({}, {"HIRA_API_KEY": "sk-secret", "HIRA_TRUST": "http://192.0.2.1/v1"}, folder, folder)
        check(not settings.api_key.get_secret_value() and not settings.keys, "a key is sent, or a server's is believed")
        return "asked first, no key"
    raise NotHeld("nobody was asked")


def schemas(_: Path) -> str:
    check(safe({"type": "object", "description": "d" * 1_000_000}) is None, "the schema is whole")
    return "left out"


def headers(_: Path) -> str:
    async def attack() -> str:
        import uvicorn

        from hira.server.connections import Connection as Limited

        class Small(Limited):
            header_seconds, most = 0.5, 8

        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"ok"})

        listening = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, http=Small, log_level="critical", lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        address = listening.getsockname()
        held = [await asyncio.open_connection(*address) for _ in range(50)]
        for _, writer in held:
            writer.write(b"GET / HT")
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 10)
        with suppress(ConnectionError):
            check(await asyncio.wait_for(held[-1][0].read(), 10) == b"", "an unfinished request is kept")
        server.should_exit = True
        await serving
        check(answer.startswith(b"HTTP/1.1 200"), "a whole request was not answered")
        return "closed, others answered"

    return asyncio.run(attack())


def sandboxed(code: str) -> Callable[[Path], str]:
    def attack(folder: Path) -> str:
        async def run() -> str:
            async with PythonSandbox(folder / "work") as sandbox:
                found = await sandbox.run(code)
            taken = sum(path.stat().st_blocks * 512 for path in (folder / "work").rglob("*"))
            check(taken < 300 << 20 and "REACHED" not in found.output, f"it took {taken} bytes, {found.output[:80]}")
            return found.status

        return asyncio.run(run())

    return attack


FILL = """
import ctypes, os
libc = ctypes.CDLL(None)
for n in range(90):
    if not libc.fallocate(os.open(f"f{n}", os.O_CREAT | os.O_RDWR), 0, ctypes.c_long(0), ctypes.c_long(60 << 20)):
        print("REACHED")
"""
ATTACKS: dict[tuple[str, str], Callable[[Path], str]] = {
    ("documents", "200,000 cells apart"): diagonal,
    ("documents", "5,000 sheets"): sheets,
    ("documents", "5,000,000 brackets"): brackets,
    ("documents", "a charset that is none"): charset,
    ("pages", "1 MB of title"): titles,
    ("pages", "a broken base"): bases,
    ("pages", "half a character in a URL"): halves,
    ("config", "a project's endpoint and keys"): endpoint,
    ("MCP", "1 MB of schema"): schemas,
    ("server", "50 unfinished headers"): headers,
    ("sandbox", "fallocate of 5 GB"): sandboxed(FILL),
    ("sandbox", "a file of the host"): sandboxed("print('REACHED', open('/etc/passwd').read())"),
    ("sandbox", "the network"): sandboxed("import socket\nsocket.socket()\nprint('REACHED')"),
}


class Case(NamedTuple):
    """How one case ended: in words, with processor seconds and the most MB resident; `held` if nothing came through."""

    told: str
    held: bool
    seconds: float = 0.0
    megabytes: int = 0


def apart(work: Callable[[], str]) -> Case:
    """The case in a process of its own, with its limits."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_child, args=(work, there))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(2 * SECONDS) else Case("never ended", held=False)
    except EOFError:
        return Case(f"ended by the kernel after {SECONDS} s", held=False)
    finally:
        process.kill()
        process.join()


def _child(work: Callable[[], str], there: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        told, held = work(), True
    except Exception as error:  # noqa: BLE001 - whatever it is, the attack came through
        told, held = f"{type(error).__name__}: {str(error)[:80]}", False
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    there.send(Case(told, held, seconds, max(one.ru_maxrss for one in used) // 1024))


def texts(area: str, name: str, function: Callable[[str], object]) -> str:
    """The row of a text function."""
    cases: list[Case] = []
    growths: dict[str, float] = {}
    for head, unit in PATTERNS:
        short, long = (apart(partial(_fed, function, head, unit, size)) for size in (SIZE, TIMES * SIZE))
        cases += [short, long]
        if short.held and long.seconds > TELLING:
            growths[repr(f"{head}{unit}…")] = long.seconds / short.seconds
    worst = max(growths, key=lambda pattern: growths[pattern], default="")
    broken = next((one.told for one in cases if not one.held), "")
    grown = f"{growths[worst]:.1f}" if worst else "–"
    slow = f"grows {grown} ×" if worst and growths[worst] > MOST_GROWTH else ""
    return row(area, name, cases, broken or slow, grown, worst.replace("|", "\\|"))


def _fed(function: Callable[[str], object], head: str, unit: str, size: int) -> str:
    function((head + unit * (size // len(unit)))[:size])
    return "ended"


def row(area: str, name: str, cases: list[Case], broken: str, grown: str = "–", worst: str = "") -> str:
    told = f"NOT HELD: {broken}" if broken else "held" if len(cases) > 1 else f"held: {cases[0].told}"
    seconds, megabytes = max(one.seconds for one in cases), max(one.megabytes for one in cases)
    return f"| {area} | {name} | {len(cases)} | {told} | {grown} | {worst} | {seconds:.2f} | {megabytes} |"


def attacked(area: str, name: str, attack: Callable[[Path], str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        case = apart(lambda: attack(Path(folder)))
    return row(area, name, [case], "" if case.held else case.told)


def measured(word: str) -> Iterator[str]:
    for (area, name), function in FUNCTIONS.items():
        if word in f"{area} {name}":
            yield texts(area, name, function)
    for (area, name), attack in ATTACKS.items():
        if word in f"{area} {name}":
            yield attacked(area, name, attack)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only rows with this word in their name")
    parser.add_argument("--write", action="store_true", help="also write results/hostile.md")
    arguments = parser.parse_args()
    bare = apart(lambda: "").megabytes
    told = []
    for line in measured(arguments.word):
        print(line, flush=True)
        told.append(line)
    held = sum("NOT HELD" not in line for line in told)
    if arguments.write:
        named = {
            "version": platform.python_version(),
            "machine": platform.machine(),
            "times": TIMES,
            "most": MOST_GROWTH,
        }
        page = PAGE.format(**named, bare=bare, held=held, rows=len(told), told="\n".join(told))
        RESULTS.write_text(page, encoding="utf-8")
    sys.exit(held < len(told))


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
