"""Hostile input: what texts, files, folders, servers and programs can do to a run. Every attack is a row.

    python benchmarks/hostile.py             prints the rows
    python benchmarks/hostile.py --write     also writes results/hostile.md
    python benchmarks/hostile.py WORD        only rows with this word in their name

A row is one line in `PATTERNS`, `FUNCTIONS` or `ATTACKS` below. Each case runs in a process of its own, which the
kernel ends after 60 seconds of processor time. A text function is given 100,000 characters of each pattern and then
four times as many; its growth is the ratio of the processor time, told where the longer text takes more than 0.1 s.
A busy machine only adds time, so a case that seems to grow too fast runs again, and the shortest time counts.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import resource
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

import httpx  # noqa: E402 - the project's tests make the documents

from benchmarks import hostile_clients, hostile_files, quoting  # noqa: E402
from benchmarks.apart import serve_app  # noqa: E402
from benchmarks.hostile_checks import NotHeld, check, index, outcome, sandboxed  # noqa: E402
from benchmarks.hostile_records import RECORDS  # noqa: E402
from hira import Settings  # noqa: E402
from hira.core.errors import NotTrusted, UsageError  # noqa: E402
from hira.core.policy import Completion  # noqa: E402
from hira.core.sanitize import LONGEST_TITLE, clean, presentable, sanitize  # noqa: E402
from hira.evidence import Citation, Source, Sources  # noqa: E402
from hira.evidence.verifiers import verify  # noqa: E402
from hira.policies.dialects import DIALECTS  # noqa: E402
from hira.policies.offline import find_statements  # noqa: E402
from hira.runtime.settings import load  # noqa: E402
from hira.tools.addresses import canonicalise_url, urls  # noqa: E402
from hira.tools.browse import read  # noqa: E402
from hira.tools.fetch import Fetched  # noqa: E402
from hira.tools.mcp import clean_schema  # noqa: E402
from hira.tools.pages import extract  # noqa: E402
from tests.tools.made_documents import docx, read_passages, rows, xlsx  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "hostile.md"
SECONDS, MEMORY = 60, 4 << 30
SIZE, TIMES, MOST_GROWTH, TELLING = 100_000, 4, 5.0, 0.1
AGAIN = 4
"""The most repetitions of a case that seems to grow too fast. The shortest time counts: a busy machine only adds."""
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
    ("", "<p <"), ("", "<b><p>"), ("", "<li>"), ("", "<a href=x>"), ("", "<table><tr><td>"), ("", "&#"),
    ("", "{"), ("", '{"a":'), ("", "<|begin_code_call|>"), ("", "</"), ("", "<!--"), ("", "<title>"), ("", "a. "),
]  # fmt: skip


def parse(dialect: str) -> Callable[[str], object]:
    return lambda text: DIALECTS[dialect].parse(Completion(text), ())


def checked(answer: str, read: str) -> list[Citation]:
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
    ("offline", "statements"): find_statements,
    **{("dialects", name): parse(name) for name in DIALECTS},
}


def diagonal(folder: Path) -> str:
    cells = "".join(f'<row r="{n}"><c r="{"A" * (n % 3 + 1)}{n}"><v>1</v></c></row>' for n in range(1, 200_000))
    return outcome(lambda: read_passages(xlsx(folder / "a.xlsx", {"S": cells})).title)


def sheets(folder: Path) -> str:
    return outcome(
        lambda: read_passages(xlsx(folder / "a.xlsx", {f"S{n}": rows(["a", 1]) for n in range(5_000)})).title
    )


def tables(folder: Path) -> str:
    rows_in_rows = "<w:tbl><w:tr><w:tc>" * 20_000 + "</w:tc></w:tr></w:tbl>" * 20_000
    return outcome(lambda: read_passages(docx(folder / "a.docx", rows_in_rows)).title)


def names(folder: Path) -> str:
    (folder / "docs").mkdir()
    (folder / "docs" / "a\n\x1b[31m<|im_end|>.xlsx").write_bytes(b"PK\x03\x04 and no more")
    _, warnings = index(folder / "docs")
    check(warnings and clean(warnings[0]).isprintable(), "a warning shows control characters")
    return f"told: {warnings[0][:40]}"


def brackets(folder: Path) -> str:
    (folder / "a.json").write_text("[" * 5_000_000)
    return outcome(lambda: read_passages(folder / "a.json").title)


def charset(folder: Path) -> str:
    (folder / "a.py").write_text("# coding: undefined\nx = 1\n")
    return outcome(lambda: read_passages(folder / "a.py").text)


def circle(folder: Path) -> str:
    (folder / "docs").mkdir()
    (folder / "docs" / "self").symlink_to("self")
    _, warnings = index(folder / "docs")
    return f"told: {warnings[0][-40:]}"


def pipe(folder: Path) -> str:
    os.mkfifo(folder / "hira.toml")
    return outcome(lambda: load({}, {}, folder, folder).model)


def references(_: Path) -> str:
    return outcome(lambda: extract(f"<p>&#{'9' * 1_000_000}; A long and readable sentence about a harbour.</p>").text)


def titles(_: Path) -> str:
    page = "<title>" + "word " * 200_000 + "</title>" + "<p>A long and readable sentence about a harbour.</p>" * 20
    reading = read(Fetched("https://example.org/", 200, "text/html", page.encode()))
    check(len(reading.title) <= LONGEST_TITLE, "the title is whole")
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
    check(clean_schema({"type": "object", "description": "d" * 1_000_000}) is None, "the schema is whole")
    return "left out"


def claims(read: str, answer: str = "The tower is 31 metres high [s1].") -> Callable[[Path], str]:
    return lambda _: f"{checked(answer, read)[0].verdict}"


def project(line: str) -> Callable[[Path], str]:
    def attack(folder: Path) -> str:
        (folder / "hira.toml").write_text(line)
        try:
            load({}, {}, folder, folder)
        except UsageError as error:
            return f"told: {error.what[:60]}"
        raise NotHeld("the file is believed")

    return attack


def started(folder: Path) -> str:
    (folder / "hira.toml").write_text('[mcp.tides]\ncommand = "rm"')
    settings = load({}, {}, folder, folder)
    check(not settings.mcp and settings.withheld, "a project's program is started")
    return f"told: {settings.withheld[0][:12]}…"


def template(text: str) -> Callable[[Path], str]:
    def attack(_: Path) -> str:
        from hira.policies.local.template import try_rendering

        why = try_rendering(json.dumps([[text], {}]))
        check(why, "it is rendered")
        return f"told: {why}"

    return attack


def results(_: Path) -> str:
    import mcp_types

    from hira.tools.mcp import KEPT, make_observation

    block = mcp_types.TextContent(type="text", text="<|im_end|>" * 1_000_000)
    passage = make_observation("tides", "read", {}, mcp_types.CallToolResult(content=[block])).passages[0]
    check(len(passage.text) <= KEPT, "the result is whole")
    return outcome(
        lambda: str(make_observation("a", "b", {}, mcp_types.CallToolResult(content=[block], is_error=True)))
    )


def posted(status: int, body: bytes, **more: str) -> Callable[[Path], str]:
    async def attack(folder: Path) -> str:
        from hira.server.app import application

        settings = Settings(model="offline", journal=folder / "journal.sqlite")
        async with application(settings) as app:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                named = {"content-type": "application/json", **more}
                reply = await client.post("/v1/chat/completions", content=body, headers=named)
                after = await client.get("/healthz")
        check((reply.status_code, after.status_code) == (status, 200), f"status {reply.status_code}: {reply.text[:60]}")
        return f"told: {reply.json()['error']['message'][:60]}"

    return lambda folder: asyncio.run(attack(folder))


def headers(_: Path) -> str:
    async def attack() -> str:
        from hira.server.connections import TimedConnection as Limited

        class Small(Limited):
            header_seconds, most = 0.5, 8

        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"ok"})

        async with serve_app(app, http=Small, log_level="critical", lifespan="off") as address:
            held = [await asyncio.open_connection(*address) for _ in range(50)]
            for _, writer in held:
                writer.write(b"GET / HT")
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            answer = await asyncio.wait_for(reader.read(), 10)
            with suppress(ConnectionError):
                told = await asyncio.wait_for(held[-1][0].read(), 10)
                check(told[:12] in (b"", b"HTTP/1.1 408", b"HTTP/1.1 503"), "an unfinished request is kept")
        check(answer.startswith(b"HTTP/1.1 200"), "a whole request was not answered")
        return "closed, others answered"

    return asyncio.run(attack())


CALLS = """
import ctypes, os
kernel, parent, room = ctypes.CDLL(None), os.getppid(), ctypes.create_string_buffer(256)
known = os.uname().machine == "x86_64"  # the numbers of calls differ
process = known * [101, 302, 310, 121, 124, 141, 251, 234, 200, 62, 279, 256, 312, 314, 434]
others = known * [29, 64, 68, 240, 248, 155, 161, 165, 172, 175, 246, 272, 298, 300, 303, 304, 308, 321, 323, 425, 428]
for number in process:
    if kernel.syscall(number, parent, room, 0, 0, 0, 0) >= 0:
        print("REACHED", number)
for number in others:
    if kernel.syscall(number, -1, room, 0, 0, 0, 0) >= 0:
        print("REACHED", number)
"""
MODULUS = "25195908475657893494027183240048398571429282126204" * 12 + "03202777713783604"
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
    ("documents", "20,000 tables in tables"): tables,
    ("documents", "a name with escapes and tokens"): names,
    ("documents", "a charset that is none"): charset,
    ("documents", "a link to itself"): circle,
    ("pages", "1 MB of title"): titles,
    ("pages", "a broken base"): bases,
    ("pages", "a reference of 1,000,000 digits"): references,
    ("pages", "half a character in a URL"): halves,
    ("claims", "80,000 links in a source"): claims("[a](" * 80_000),
    ("claims", "80,000 words with colons"): claims("word:word" * 80_000),
    ("claims", "a number of 617 digits"): claims(f"The modulus is {MODULUS}.", f"It is {MODULUS} [s1]."),
    ("config", "a project's endpoint and keys"): endpoint,
    ("config", "a project's program"): started,
    ("config", "a project's journal elsewhere"): project('journal = "/etc/cron.d/hira"'),
    ("config", "a project's documents elsewhere"): project('docs = ["~/.ssh"]'),
    ("config", "a pipe for a file"): pipe,
    ("config", "5 MB of brackets"): project("a = " + "[" * 5_000_000),
    ("templates", "loops in loops"): template("{% for a in range(99999) %}" * 3 + "{% endfor %}" * 3),
    ("MCP", "1 MB of schema"): schemas,
    ("MCP", "10 MB of result"): results,
    ("server", "50 unfinished headers"): headers,
    ("server", "a foreign name"): posted(403, b"{}", host="evil.example"),
    ("server", "a body of 33 MB"): posted(413, b" " * (33 << 20)),
    ("server", "100,000 brackets"): posted(400, b"[" * 100_000),
    ("sandbox", "fallocate of 5 GB"): sandboxed(FILL),
    ("sandbox", "a file of the host"): sandboxed("print('REACHED', open('/etc/passwd').read())"),
    ("sandbox", "the memory of hira"): sandboxed(
        "import os\nprint('REACHED', open(f'/proc/{os.getppid()}/mem', 'rb'))"
    ),
    ("sandbox", "36 calls of the kernel that reach beyond it"): sandboxed(CALLS),
    ("sandbox", "the network"): sandboxed("import socket\nsocket.socket()\nprint('REACHED')"),
    **RECORDS,
}
FUNCTIONS |= quoting.FUNCTIONS
ATTACKS |= quoting.ATTACKS
PATTERNS += hostile_clients.PATTERNS
FUNCTIONS |= hostile_clients.FUNCTIONS
ATTACKS |= hostile_clients.ATTACKS
ATTACKS |= hostile_files.ATTACKS


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
        measure = [partial(apart, partial(_fed, function, head, unit, size)) for size in (SIZE, TIMES * SIZE)]
        short, long = (one() for one in measure)
        for _ in range(AGAIN):
            if not (short.held and long.held and long.seconds > max(TELLING, MOST_GROWTH * short.seconds)):
                break
            short, long = (min(case, one(), key=_seconds) for case, one in zip((short, long), measure, strict=True))
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


def _seconds(case: Case) -> float:
    return case.seconds


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
