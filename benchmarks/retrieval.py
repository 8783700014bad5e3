"""How many of the passages that a question needs are among the first that one search finds.

    python benchmarks/retrieval.py PASSAGES QUESTIONS             prints the figures
    python benchmarks/retrieval.py PASSAGES QUESTIONS --write     also writes results/retrieval.md
    ... --embed MODEL --base-url URL                              also with an encoder, behind URL/embeddings
    ... --rewrite MODEL --limit N                                 also with queries that a model writes
    ... --work FOLDER                                             keeps the index: an interrupted encoding continues
    ... --company FOLDER                                          also eleven questions about a folder of vintages

PASSAGES has a JSON object a line with `title` and `text`; QUESTIONS one with `set`, `question` and `gold`, a list of
such passages. Every passage becomes a Markdown file of a folder, which hira indexes as it does any folder. bm25s ranks
the same passages in the same run. The questions with an odd number (the second, the fourth, …) were not looked at while
the ranking was chosen. A model takes seconds for each, so `--limit` has it write queries for the first N of these of
each set. FOLDER is `internal_docs` of gpt-researcher's examples: data/company.jsonl has its questions, the right
answers and the outdated ones; a right answer counts if it stands in a passage before every outdated one.
"""

import argparse
import asyncio
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from real.sets import read_lines

from hira.agents.queries import merge, plan_queries, search_rewritten
from hira.agents.run_context import RunContext
from hira.core.messages import Filled
from hira.runtime.encoding import open_models
from hira.runtime.factory import configure_roles
from hira.runtime.registry import EMBED
from hira.runtime.settings import RoleSettings, Settings
from hira.tools import Tool
from hira.tools.documents import RELEVANT, Index, search_documents
from hira.tools.documents.encoder import Encoder
from hira.tools.documents.vectors import Vectors

RESULTS = Path(__file__).parent / "results" / "retrieval.md"
TOP = 10
LONGEST = 200
"""Tokens of its reply."""
KEPT = "questions kept aside"
COMPANY = """
{count} questions about a company, whose folder also has outdated vintages: {among} find a right answer among ten
passages, {first} of them before every outdated one.
"""
PAGE = """# Retrieval

Made by `python benchmarks/retrieval.py {passages} {questions} --write`: {made_with}. One run on a shared machine.

{count:,} passages, one file each; {asked} questions, searched as they are. A question counts if all passages that it
needs are among the first {top}. "Kept aside" are the questions that were not looked at while the ranking was chosen.

| ranking | questions | all among ten | recall | kept aside: all | recall | a search, median | 95th percentile |
|---|---|---|---|---|---|---|---|
{rows}

{models}
{company}"""

Search = Callable[[str], Awaitable[list[str]]]
Question = dict[str, Any]


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
        aside = KEPT in label
        halves = [[share for _, share in shares], [share for number, share in shares if aside or number % 2]]
        figures = [f"{statistics.mean(map(int, half)):.2f} | {statistics.mean(half):.2f}" for half in halves]
        speed = f"{statistics.median(times):.1f} ms | {statistics.quantiles(times, n=20)[-1]:.1f} ms"
        rows.append(f"| {label} | {len(shares)} of {name} | {' | '.join(figures)} | {speed} |")
    return rows


async def measure_encoder(index: Index, encoder: Encoder, questions: list[Question]) -> list[str]:
    """Return the rows with the encoder alone, and with the words of the documents."""
    await index.encode(lambda done, total: print(f"{done:,} of {total:,} passages", end="\r", file=sys.stderr))
    vectors = Vectors(index._store, encoder)  # noqa: SLF001 - the encoder alone is no search of hira's

    async def search_near(question: str) -> list[str]:
        near = await vectors.find_near(question, None)
        return [hit.name for hit in index._store.choose(near, "", TOP)]  # noqa: SLF001

    rows = await measure("the encoder alone", search_near, questions)
    return rows + await measure("hira with the encoder", search_with_hira(index), questions)


def search_with_queries(tool: Tool, context: RunContext, *, after: bool) -> Search:
    """Search with the question and with queries of a model, which has read the first passages if it writes `after`
    the first search."""

    async def search(question: str) -> list[str]:
        asked, conversation = {"query": question}, context.conversation("searcher")
        if after:
            result = await search_rewritten(conversation, asked, tool.call)
        else:
            queries = await plan_queries(conversation, question, Filled(""), Filled(""))
            result = merge(await tool.call(asked), [await tool.call({"query": query}) for query in queries])
        return [passage.source.location for passage in result.passages]

    return search


async def measure_rewriting(index: Index, model: str, questions: list[Question], limit: int) -> list[str]:
    """Return the rows of the first questions kept aside of each set, with and without queries of the model."""
    kept: list[Question] = []
    for question in questions[1::2]:
        if sum(other["set"] == question["set"] for other in kept) < limit:
            kept.append(question)
    roles, policies = configure_roles(Settings(model=model, temperature=0.0, max_reply_tokens=LONGEST), {})
    context = RunContext(roles)
    rows = await measure(f"hira, {KEPT}", search_with_hira(index), kept)
    tool = search_documents(index)
    for when, after in (("before", False), ("after", True)):
        label = f"with queries that the model writes {when} the search, {KEPT}"
        rows += await measure(label, search_with_queries(tool, context, after=after), kept)
    for policy in policies:
        await policy.aclose()
    return rows


async def measure_company(folder: Path) -> str:
    """Return how many of the questions find a right answer among the ten passages of hira's tool, and before every
    outdated one."""
    index = Index([folder])
    tool = search_documents(index)
    questions = list(read_lines(Path(__file__).parent / "data" / "company.jsonl"))
    among = first = 0
    for question in questions:
        texts = [passage.text for passage in (await tool.call({"query": question["question"]})).passages]
        right = [any(answer in text for answer in question["answers"]) for text in texts]
        outdated = [any(answer in text for answer in question["outdated"]) for text in texts]
        among += any(right)
        first += any(right) and True not in outdated[: right.index(True)]
    index.close()
    return COMPANY.format(count=len(questions), among=among, first=first)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("passages", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--embed", metavar="MODEL", help="an encoder behind --base-url")
    parser.add_argument("--base-url", default="", help="the address of its server")
    parser.add_argument("--rewrite", metavar="MODEL", help="a model that writes queries, gguf:FILE for example")
    parser.add_argument("--limit", type=int, default=25, help="questions of each set for which it does (25)")
    parser.add_argument("--company", type=Path, metavar="FOLDER", help="the folder with vintages")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="where the passages and their index are kept")
    parser.add_argument("--write", action="store_true", help="also write results/retrieval.md")
    arguments = parser.parse_args()
    passages, questions = list(read_lines(arguments.passages)), list(read_lines(arguments.questions))
    encoder = None
    if arguments.embed:
        own = RoleSettings(base_url=arguments.base_url)
        encoder, _ = open_models(Settings(embed=arguments.embed, roles={EMBED: own}))
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.work or Path(temporary)) / "files"
        folder.mkdir(parents=True, exist_ok=True)
        names = write_files(folder, passages)
        for question in questions:
            question["files"] = [names[one["title"], one["text"]] for one in question["gold"]]
        index = Index([folder])
        await index.refresh()
        rows = await measure("bm25s", search_with_bm25s(passages, names), questions)
        rows += await measure("hira", search_with_hira(index), questions)
        if arguments.rewrite:
            rows += await measure_rewriting(index, arguments.rewrite, questions, arguments.limit)
        index.close()
        if encoder:
            index = Index([folder], arguments.work and arguments.work / "cache", encoder=encoder)
            await index.refresh()
            rows += await measure_encoder(index, encoder, questions)
            index.close()
    page = PAGE.format(
        passages=arguments.passages.name,
        questions=arguments.questions.name,
        made_with=f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {platform.machine()}",
        count=len(names),
        asked=len(questions),
        top=TOP,
        rows="\n".join(rows),
        models="".join(
            f"The {what} is {name}. "
            for what, name in (("encoder", arguments.embed), ("model", arguments.rewrite))
            if name
        ),
        company=await measure_company(arguments.company) if arguments.company else "",
    )
    print(page)
    if arguments.write:
        RESULTS.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
