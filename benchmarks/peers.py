"""hira through `Hira.ask`, journal on and off, against httpx, aiohttp, the openai SDK and three other frameworks.

    python benchmarks/peers.py [--only cpu --only stream …] [--cache FOLDER] [--rounds 5] [--write]

One agent, one tool, a scripted endpoint in a process of its own. Each contender is a script of benchmarks/contenders,
and runs in an environment of its own, which this command makes with pip in the cache folder. The contenders take turns,
so that a busy machine disturbs them alike; figures are medians, with ratios to httpx (of many questions at once, to
aiohttp). CPU is that of the contender's process with all its threads, until everything is recorded. With `--only`, the
parts are measured one by one; `--write` renews the sections of results/peers.md that were measured, and its figures
in docs/performance.md and README.md.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from apart import apart, serve

from hira.core.policy import Completion, Request
from hira.testing import Endpoint
from hira.testing import endpoint as scripted

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results" / "peers.md"
TURNS = 5
WORDS = 2000
DELAY = 0.2
A_TURN = 8
"""Questions of one turn of a contender, where CPU is measured."""


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    script: str
    packages: tuple[str, ...]
    environment: str


CONTENDERS = (
    Contender("hira, journal on", "by_hira:journal", (str(ROOT),), "hira"),
    Contender("hira, journal off", "by_hira", (str(ROOT),), "hira"),
    Contender("httpx", "by_httpx", ("httpx", "aiohttp"), "plain"),
    Contender("aiohttp", "by_aiohttp", ("httpx", "aiohttp"), "plain"),
    Contender("openai SDK", "by_openai", ("openai",), "openai"),
    Contender("pydantic-ai", "by_pydantic_ai", ("pydantic-ai-slim[openai]",), "pydantic-ai"),
    Contender("openai-agents", "by_openai_agents", ("openai-agents",), "openai-agents"),
    Contender("langgraph", "by_langgraph", ("langgraph", "langchain-openai"), "langgraph"),
)


class Bench:
    """Starts contenders in their environments, which are made in the `cache` folder when they are first needed."""

    def __init__(self, cache: Path, work: Path) -> None:
        self._cache = cache
        self._work = work

    def python(self, contender: Contender) -> str:
        """The interpreter of the contender's environment."""
        folder = self._cache / contender.environment
        python = folder / "bin" / "python"
        done = folder / "installed.txt"
        if not done.exists():
            print(f"making the environment {contender.environment}", file=sys.stderr)
            venv.create(folder, with_pip=True, clear=True)
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *contender.packages], check=True)
            frozen = subprocess.run([str(python), "-m", "pip", "freeze"], check=True, capture_output=True, text=True)
            done.write_text(frozen.stdout, encoding="utf-8")
        return str(python)

    def start(self, contender: Contender, *arguments: str) -> "subprocess.Popen[str]":
        """The contender's process. hira itself is that of this checkout, in the environment of its dependencies."""
        environ = {"PATH": os.environ["PATH"], "HOME": str(self._work), "PYTHONPATH": str(ROOT)}
        command = [self.python(contender), str(HERE / "contenders" / "measure.py"), contender.script, *arguments]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen(command, cwd=self._work, env=environ, text=True, **pipes)

    @contextmanager
    def running(self, contender: Contender, base_url: str, many: int = 1) -> Iterator[Callable[[str, int], object]]:
        """Yields a function that has the contender measure one thing so many times."""
        with self.start(contender, base_url, "serve", str(many)) as process:
            assert process.stdin
            assert process.stdout

            def measure(part: str, number: int) -> object:
                print(part, number, file=process.stdin, flush=True)
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError(f"{contender.name} ended while {part} was measured")
                return json.loads(line)

            try:
                yield measure
            finally:
                process.kill()

    def versions(self, contenders: Sequence[Contender]) -> str:
        """The packages that are compared, with their versions."""
        frozen = "\n".join((self._cache / one.environment / "installed.txt").read_text() for one in contenders)
        names = ("aiohttp", "httpx", "openai", "pydantic-ai-slim", "openai-agents", "langgraph")
        found = [re.search(rf"^{name}==(.+)$", frozen, re.MULTILINE) for name in names]
        return ", ".join(one[0].replace("==", " ") for one in found if one)


def serving(*, turns: int = 0, delay: float = 0.0, words: int = 0) -> AbstractContextManager[str]:
    """The scripted endpoint, in a process of its own; yields its base URL."""
    return apart(__file__, "--serve", str(turns), str(delay), str(words))


def make_endpoint(turns: int, delay: float, words: int) -> Endpoint:
    """The endpoint: `turns` calls of `lookup` and the answer, or a text of so many words, each of them new."""
    text = " ".join(f"word{at}" + "." * (at % 12 == 11) for at in range(words))
    reply = scripted.turns(turns)

    def script(request: Request) -> Completion:
        ours = [tool for tool in request.tools if tool["function"]["name"] == "lookup"]  # hira offers Python, too
        return Completion(text) if words else reply(replace(request, tools=tuple(ours)))

    return Endpoint(script, delay=delay, keep=False)


Row = tuple[str, dict[str, float], str, str]
"""What was measured, the figure of each contender by name, the name of the one that it is compared with, and how a
figure is printed."""


def in_turns(
    bench: Bench, contenders: Sequence[Contender], base_url: str, part: str, number: int, rounds: int
) -> dict[str, float]:
    """Medians of what the contenders measure in turn; a first round warms them up and is not counted."""
    with ExitStack() as stack:
        measures = {one.name: stack.enter_context(bench.running(one, base_url)) for one in contenders}
        found: dict[str, list[float]] = {name: [] for name in measures}
        for at in range(rounds + 1):
            order = list(measures) if at % 2 else list(reversed(measures))
            for name in order:
                found[name].append(float(measures[name](part, number)))  # type: ignore[arg-type]
    return {name: statistics.median(values[1:]) for name, values in found.items()}


def cpu(bench: Bench, contenders: Sequence[Contender], rounds: int) -> list[Row]:
    with serving(turns=TURNS) as base_url:
        found = in_turns(bench, contenders, base_url, "cpu", A_TURN, 4 * rounds)  # they take little and differ a lot
    calls = A_TURN * (TURNS + 1)
    return [(f"CPU a call, {TURNS} tool turns", {name: one / calls for name, one in found.items()}, "httpx", "ms")]


def stream(bench: Bench, contenders: Sequence[Contender], rounds: int) -> list[Row]:
    with serving(words=WORDS) as base_url:
        found = in_turns(bench, contenders, base_url, "chunks", 2, rounds)
    return [("CPU a streamed chunk", found, "httpx", "µs")]


def memory(bench: Bench, contenders: Sequence[Contender], rounds: int) -> list[Row]:
    del rounds  # what a process was given once it keeps: each is a new one
    found = {}
    with serving(turns=1, delay=4.0) as base_url:
        for one in contenders:
            with bench.running(one, base_url, 1000) as measure:
                found[one.name] = float(measure("memory", 500))  # type: ignore[arg-type]
    return [("RSS a waiting question, of 500", found, "", "kB")]


def startup(bench: Bench, contenders: Sequence[Contender], rounds: int) -> list[Row]:
    walls: dict[str, list[float]] = {one.name: [] for one in contenders}
    used: dict[str, list[float]] = {one.name: [] for one in contenders}
    with serving(words=5) as base_url:
        for _ in range(rounds + 1):
            for one in contenders:
                bench.python(one)
                began = time.perf_counter()
                with bench.start(one, base_url, "first") as process:
                    assert process.stdout
                    line = process.stdout.readline()
                    walls[one.name].append(time.perf_counter() - began)
                    used[one.name].append(float(line))
    pairs = (("exec to the first streamed text", walls), ("the same, CPU", used))
    return [
        (what, {name: statistics.median(some[1:]) for name, some in found.items()}, "httpx", "ms")
        for what, found in pairs
    ]


def concurrency(bench: Bench, contenders: Sequence[Contender], rounds: int) -> list[Row]:
    rows: list[Row] = []
    for many in (256, 1000):
        able = [one for one in contenders if many == 256 or one.name.startswith(("hira", "aiohttp"))]
        walls: dict[str, list[float]] = {one.name: [] for one in able}
        used: dict[str, list[float]] = {one.name: [] for one in able}
        with serving(turns=TURNS - 1, delay=DELAY) as base_url:
            for _ in range(min(rounds, 3)):
                for one in able:
                    with bench.running(one, base_url, many) as measure:
                        measure("cpu", 1)
                        wall, spent = measure("wall", many)  # type: ignore[misc]
                        walls[one.name].append(wall / (TURNS * DELAY))
                        used[one.name].append(spent / (many * TURNS))
        what = f"{many} questions of {TURNS} × {DELAY * 1000:.0f} ms"
        median = [{name: statistics.median(some) for name, some in found.items()} for found in (walls, used)]
        rows.append((f"{what}: wall / critical path", median[0], "aiohttp", ""))
        rows.append((f"{what}: CPU a call", median[1], "aiohttp", "ms"))
    return rows


PARTS: dict[str, Callable[[Bench, Sequence[Contender], int], list[Row]]] = {
    "cpu": cpu,
    "concurrency": concurrency,
    "startup": startup,
    "stream": stream,
    "memory": memory,
}
UNITS = {"ms": 1000.0, "µs": 1e6, "kB": 1.0, "": 1.0}


NAMES = [one.name for one in CONTENDERS]
HEAD = ["| | " + " | ".join(NAMES) + " |", "|---" * (len(NAMES) + 1) + "|"]


def table(rows: Sequence[Row]) -> str:
    lines = list(HEAD)
    for what, found, against, unit in rows:
        base = found.get(against)
        cells = []
        for name in NAMES:
            if name not in found:
                cells.append("–")
                continue
            value = found[name] * UNITS[unit]
            shown = f"{value:.0f}" if value >= 100 else f"{value:.2f}" if value < 10 else f"{value:.1f}"
            cells.append(shown + (f" ({found[name] / base:.2f} ×)" if base else ""))
        head = what + (f", {unit}" if unit else "") + (f" (× {against})" if base else "")
        lines.append(f"| {head} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


GOALS = (
    ("CPU a call, 5 tool turns, journal on, against httpx", "CPU a call", 1.15, True),
    (
        "256 questions of 5 × 200 ms, journal on, against the critical path",
        "256 questions of 5 × 200 ms: wall",
        2.0,
        False,
    ),
    ("1000 questions of 5 × 200 ms, journal on, against aiohttp", "1000 questions of 5 × 200 ms: wall", 3.0, True),
    ("exec to the first streamed text, journal on, against httpx", "exec to the first streamed text", 1.4, True),
    ("CPU a streamed chunk, journal on, against httpx", "CPU a streamed chunk", 1.5, True),
    ("memory of a waiting question, journal on, kB", "RSS a waiting question", 48.0, False),
)
"""What is aimed at: its name, how the row begins that shows it, the most that is good, and whether as a ratio."""
COPIES = (ROOT / "docs" / "performance.md", ROOT / "README.md")


def write_section(part: str, text: str) -> None:
    """Put the section into the page, in the place of the one that it had, and its figures into their copies."""
    page = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else "# hira and its peers\n"
    head, *old = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    sections = {one.splitlines()[0].removeprefix("## "): one.strip() for one in old}
    sections[part] = f"## {part}\n\n{text}"
    ordered = [sections[name] for name in PARTS if name in sections]
    page = "\n\n".join([head.strip(), *ordered]) + "\n"
    RESULTS.write_text(page, encoding="utf-8")
    for copy in COPIES:
        copy.write_text(with_figures(copy.read_text(encoding="utf-8"), page), encoding="utf-8")


def with_figures(text: str, page: str) -> str:
    """The text with the page's table between the marks `peers`, and the goals between the marks `peers-goals`."""
    rows = [line for line in page.splitlines() if line.startswith("| ") and line not in HEAD]
    figures = {"peers": "\n".join(HEAD + rows), "peers-goals": "\n".join(goals_of(rows))}
    for name, figure in figures.items():
        text = re.sub(rf"(<!-- {name} -->\n).*?(?=<!-- /{name} -->)", rf"\g<1>{figure}\n", text, flags=re.DOTALL)
    return text


def goals_of(rows: Sequence[str]) -> list[str]:
    """The goals as lines of a table, each with what the rows show of hira with its journal on."""
    lines = ["| goal | aimed at | measured | page | |", "|---|---|---|---|---|"]
    for goal, begins, most, ratio in GOALS:
        cell = next((row.split(" | ")[1] for row in rows if row.startswith(f"| {begins}")), "")
        if found := re.findall(r"[\d.]+", cell):
            measured = found[1 if ratio else 0]
            verdict = "met" if float(measured) <= most else "**missed**"
            lines.append(f"| {goal} | ≤ {most:g} | {measured} | `peers.md` | {verdict} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=PARTS, action="append", help="measure only this; may be repeated")
    parser.add_argument("--contender", action="append", help="only contenders whose name begins so; may be repeated")
    parser.add_argument("--cache", type=Path, help="keep the contenders' environments in this folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="renew the sections of results/peers.md")
    parser.add_argument("--serve", nargs=3, type=float, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        turns, delay, words = chosen.serve
        serve(make_endpoint(int(turns), delay, int(words)))
        return
    contenders = [one for one in CONTENDERS if one.name.startswith(tuple(chosen.contender or [""]))]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench((chosen.cache or Path(folder)).resolve(), Path(folder))
        for part in chosen.only or PARTS:
            made = table(PARTS[part](bench, contenders, chosen.rounds))
            load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
            about = f"Python {platform.python_version()}, {platform.machine()}, {load}; {bench.versions(contenders)}"
            text = f"Made by `python benchmarks/peers.py --only {part} --write`: {about}.\n\n{made}"
            print(f"{text}\n", flush=True)
            if chosen.write:
                write_section(part, text)


if __name__ == "__main__":
    main()
