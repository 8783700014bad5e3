"""Local documents: how long an index takes, how long a query takes, how good the ranking is.

    python benchmarks/documents.py            prints the figures
    python benchmarks/documents.py --write    also writes results/documents.md

The ranking is measured on Python's own library, which is on every machine that runs this: a document is all docstrings
of a module but its first line, the query is that first line without the module's name, and the answer is the module.
"""

import ast
import asyncio
import platform
import random
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

from hira.tools.documents import Index

FILES = 1_000
WORDS = 300
QUERIES = 200
RESULTS = Path(__file__).parent / "results" / "documents.md"

PAGE = """# Local documents

Made by `python benchmarks/documents.py --write`: {made_with}. One run on a shared machine: read the ratios.

{files} Markdown files of {words} words, read and indexed, with one search; {queries} queries of six words.

| index | made | refreshed, nothing changed | a query, median | 95th percentile |
|---|---|---|---|---|
{speed}

Ranking, over the modules of Python's library by the first line of their documentation, which is taken out of the text
(the module's name is taken out of the query too):

| ranking | queries | MRR@10 | first | among ten |
|---|---|---|---|---|
{quality}

Words of titles and headings weigh no more than others. Nine weightings were tried once, on these same queries: MRR@10
was 0.593 to 0.615, equal weights highest, all of it within what a hundred queries can tell apart. So the figure above
is of the best of nine by the measure that it reports; the choice rests on there being no reason for another.
"""


def write_files(folder: Path, random_: random.Random) -> list[str]:
    """A thousand files of words drawn as words are in language, the n-th with a chance of 1/n; returns queries."""
    vocabulary = [
        "".join(random_.choices("bcdfghklmnprstvw" + "aeiou" * 3, k=random_.randint(3, 9))) for _ in range(20_000)
    ]
    chances = [1 / rank for rank in range(1, len(vocabulary) + 1)]
    for at in range(FILES):
        words = random_.choices(vocabulary, chances, k=WORDS)
        paragraphs = [" ".join(words[first : first + 60]) + "." for first in range(0, WORDS, 60)]
        (folder / f"{at}.md").write_text("# " + " ".join(words[:4]) + "\n\n" + "\n\n".join(paragraphs))
    return [" ".join(random_.choices(vocabulary, chances, k=6)) for _ in range(QUERIES)]


async def seconds(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def speed() -> list[str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "documents"
        folder.mkdir()
        queries = write_files(folder, random.Random(7))
        await asyncio.sleep(2.1)  # files younger than two seconds are read again to be sure
        lines = []
        for label, cache in (("in a file", Path(name) / "cache"), ("in memory", None)):
            index = Index([folder], cache)
            first = await seconds(index.refresh()) + await seconds(index.search(queries[0]))
            again = await seconds(index.refresh())
            times = [await seconds(index.search(query)) for query in queries]
            lines.append(
                f"| {label} | {first:.2f} s | {again * 1000:.0f} ms | {statistics.median(times) * 1000:.2f} ms"
                f" | {statistics.quantiles(times, n=20)[-1] * 1000:.2f} ms |"
            )
        return lines


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
    made_with = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}"
    text = PAGE.format(
        made_with=made_with,
        speed="\n".join(await speed()),
        quality=await quality(),
        files=FILES,
        words=WORDS,
        queries=QUERIES,
    )
    print(text)
    if "--write" in sys.argv:
        RESULTS.write_text(text)


if __name__ == "__main__":
    asyncio.run(main())
