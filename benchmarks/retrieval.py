"""How many of the passages that a question needs are among the first that one search finds.

    python benchmarks/retrieval.py PASSAGES QUESTIONS             prints the figures
    python benchmarks/retrieval.py PASSAGES QUESTIONS --write     also writes results/retrieval.md
    ... --embed MODEL --base-url URL                              also with an encoder

PASSAGES has a JSON object a line with `title` and `text`; QUESTIONS one with `set`, `question` and `gold`, a list of
such passages. Every passage becomes a Markdown file of a folder, which hira indexes as it does any folder. bm25s ranks
the same passages in the same run. The questions with an odd number (the second, the fourth, …) were not looked at while
the ranking was chosen.
"""

import argparse
import asyncio
import json
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hira.tools.documents import RELEVANT, Index

RESULTS = Path(__file__).parent / "results" / "retrieval.md"
TOP = 10
PAGE = """# Retrieval

Made by `python benchmarks/retrieval.py {passages} {questions} --write`: {made_with}. One run on a shared machine.

{count:,} passages, one file each; {asked} questions, searched as they are. A question counts if all passages that it
needs are among the first {top}. "Kept aside" are the questions that were not looked at while the ranking was chosen.

| ranking | questions | all among ten | recall | kept aside: all | recall | a search, median | 95th percentile |
|---|---|---|---|---|---|---|---|
{rows}
"""

Search = Callable[[str], Awaitable[list[str]]]
Question = dict[str, Any]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def write_files(folder: Path, passages: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Write a file for each passage; return their names by title and text."""
    names: dict[tuple[str, str], str] = {}
    for number, passage in enumerate(passages):
        name = names.setdefault((passage["title"], passage["text"]), f"{number}.md")
        (folder / name).write_text(f"# {passage['title']}\n\n{passage['text']}\n", encoding="utf-8")
    return names


def search_with_bm25s(passages: list[dict[str, Any]], names: dict[tuple[str, str], str]) -> Search:
    import bm25s

    def tokenize(texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en", show_progress=False)

    ranking = bm25s.BM25()
    ranking.index(tokenize([f"{one['title']}\n{one['text']}" for one in passages]), show_progress=False)
    files = [names[one["title"], one["text"]] for one in passages]

    async def search(question: str) -> list[str]:
        found, _ = ranking.retrieve(tokenize([question]), k=2 * TOP, show_progress=False)
        return [files[number] for number in found[0]]

    return search


def search_with_hira(index: Index) -> Search:
    async def search(question: str) -> list[str]:
        return [hit.name for hit in await index.search(question, TOP, RELEVANT)]

    return search


async def measure(label: str, search: Search, questions: list[Question]) -> list[str]:
    """Return a row of the table for every set of questions."""
    found: dict[str, list[tuple[int, float]]] = {}
    times: list[float] = []
    for number, question in enumerate(questions):
        began = time.perf_counter()
        names = list(dict.fromkeys(await search(question["question"])))[:TOP]
        times.append((time.perf_counter() - began) * 1000)
        share = sum(name in names for name in question["files"]) / len(question["files"])
        found.setdefault(question["set"], []).append((number, share))
    rows = []
    for name, shares in found.items():
        halves = [[share for _, share in shares], [share for number, share in shares if number % 2]]
        figures = [f"{statistics.mean(map(int, half)):.2f} | {statistics.mean(half):.2f}" for half in halves]
        speed = f"{statistics.median(times):.1f} ms | {statistics.quantiles(times, n=20)[-1]:.1f} ms"
        rows.append(f"| {label} | {len(shares)} of {name} | {' | '.join(figures)} | {speed} |")
    return rows


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passages", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--write", action="store_true", help="also write results/retrieval.md")
    arguments = parser.parse_args()
    passages, questions = read(arguments.passages), read(arguments.questions)
    with tempfile.TemporaryDirectory() as folder:
        names = write_files(Path(folder), passages)
        for question in questions:
            question["files"] = [names[one["title"], one["text"]] for one in question["gold"]]
        index = Index([Path(folder)])
        await index.refresh()
        rows = await measure("bm25s", search_with_bm25s(passages, names), questions)
        rows += await measure("hira", search_with_hira(index), questions)
        index.close()
    page = PAGE.format(
        passages=arguments.passages.name,
        questions=arguments.questions.name,
        made_with=f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}",
        count=len(names),
        asked=len(questions),
        top=TOP,
        rows="\n".join(rows),
    )
    print(page)
    if arguments.write:
        RESULTS.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
