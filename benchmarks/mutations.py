"""Does the test that each row of docs/papers.md names hold what the row says? A change to the code, and the test.

    python benchmarks/mutations.py                # all rows whose tests are fast
    python benchmarks/mutations.py --heavy        # the others as well
    python benchmarks/mutations.py --row "eq. 5"  # rows that hold these words

benchmarks/data/mutations.jsonl has a line for each change: the beginning of the row's first cell, the text to replace,
which stands once in the package, and what to put in its place (`file` says where it stands if not in the package;
`heavy` says that only a heavy test of the row can tell). The changes are made to a temporary copy of the tree, never to
the tree itself. A change is killed if every test passes without it and one of the row's fails with it. Exits with 1 if
a row has no change, or one of them survives.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
ROWS, TABLE = ROOT / "docs" / "papers.md", ROOT / "benchmarks" / "data" / "mutations.jsonl"
COPIED = ("hira", "tests", "docs", "benchmarks", "examples", "pyproject.toml", "README.md", "CHANGELOG.md")
TEST = re.compile(r"`(tests/[^`]+)`")
SECONDS = 300
NONE_COLLECTED = 5
TIMED_OUT = -1
OUTCOMES = {0: "SURVIVED", 1: "killed", NONE_COLLECTED: "heavy", TIMED_OUT: "timed out"}


@dataclass(frozen=True)
class Mutation:
    row: str
    old: str
    new: str
    file: str = ""
    heavy: bool = False


def read_rows() -> dict[str, list[str]]:
    """The tests that each row of docs/papers.md names, by its first cell; rows of two papers may be called alike."""
    rows: dict[str, list[str]] = {}
    paper = ""
    for line in ROWS.read_text(encoding="utf-8").splitlines():
        paper = line.removeprefix("## ") if line.startswith("## ") else paper
        if paper and line.startswith("| ") and not line.startswith("| in the paper"):
            rows[f"{paper}: {line.split(' | ')[0].removeprefix('| ')}"] = TEST.findall(line)
    return rows


def row_of(mutation: Mutation, rows: dict[str, list[str]]) -> str:
    found = [row for row in rows if row.startswith(mutation.row)]
    if len(found) != 1:
        sys.exit(f"{mutation.row!r} begins {len(found)} rows of {ROWS.name}")
    return found[0]


def place_of(mutation: Mutation, tree: Path) -> Path:
    """The file in which the text stands, once."""
    searched = [tree / mutation.file] if mutation.file else list_package(tree)
    found = [(path, path.read_text(encoding="utf-8").count(mutation.old)) for path in searched]
    places = [(path, count) for path, count in found if count]
    if len(places) != 1 or places[0][1] != 1:
        where = ", ".join(f"{path.relative_to(tree)} ({count})" for path, count in places)
        raise LookupError(f"{mutation.old!r} stands in {where or 'no file'}")
    return places[0][0]


@cache
def list_package(tree: Path) -> list[Path]:
    return [path for kind in ("*.py", "*.md") for path in (tree / "hira").rglob(kind)]


def copy_tree() -> Path:
    tree = Path(tempfile.mkdtemp(prefix="mutations-"))
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
        elif source.is_file():
            shutil.copy(source, tree / name)
    return tree


def run_tests(tree: Path, tests: list[str], *, heavy: bool) -> int:
    """The exit status of pytest: 1 if a test failed, 5 if all of these tests are heavy and none was asked for; -1 if
    they did not end in time."""
    environ = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    command += ["-m", ""] if heavy else []
    try:
        ran = subprocess.run(command, cwd=tree, env=environ, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    return ran.returncode


def try_mutation(mutation: Mutation, tests: list[str], trees: "SimpleQueue[Path]", *, heavy: bool) -> str:
    if mutation.heavy and not heavy:
        return "heavy"
    tree = trees.get()
    try:
        path = place_of(mutation, tree)
        before = path.read_text(encoding="utf-8")
        path.write_text(before.replace(mutation.old, mutation.new), encoding="utf-8")
        try:
            status = run_tests(tree, tests, heavy=heavy)
        finally:
            path.write_text(before, encoding="utf-8")
    except LookupError as error:
        return f"not applied: {error}"
    finally:
        trees.put(tree)
    return OUTCOMES.get(status, "broken")  # a change that cannot even be imported proves nothing


def find_failing(tree: Path, tests: list[str], *, heavy: bool) -> list[str]:
    """The tests that fail, or do not end in time, before anything is changed."""
    if run_tests(tree, tests, heavy=heavy) in (0, NONE_COLLECTED):
        return []
    return [test for test in tests if run_tests(tree, [test], heavy=heavy) not in (0, NONE_COLLECTED)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", default="", help="only rows that hold these words")
    parser.add_argument("--heavy", action="store_true", help="run heavy tests, too")
    parser.add_argument("--at-once", type=int, default=2, help="changes that are tried side by side (2)")
    args = parser.parse_args()
    rows = {row: tests for row, tests in read_rows().items() if args.row in row}
    table = [Mutation(**json.loads(line)) for line in TABLE.read_text(encoding="utf-8").splitlines() if line]
    every = read_rows()
    chosen = [(row_of(one, every), one) for one in table]
    chosen = [(row, one) for row, one in chosen if row in rows]
    began = time.monotonic()
    trees: SimpleQueue[Path] = SimpleQueue()
    copies = [copy_tree() for _ in range(args.at_once)]
    for tree in copies:
        trees.put(tree)
    try:
        tests = sorted({test for row, _ in chosen for test in rows[row]})
        failing = find_failing(copies[0], tests, heavy=args.heavy)
        if failing:
            sys.exit(f"these fail without any change: {' '.join(failing)}")
        with ThreadPoolExecutor(args.at_once) as pool:
            trying = pool.map(lambda one: try_mutation(one[1], rows[one[0]], trees, heavy=args.heavy), chosen)
            outcomes = []
            for (row, mutation), outcome in zip(chosen, trying, strict=True):
                outcomes.append(outcome)
                print(f"{outcome:<9} {row}: {mutation.old!r} -> {mutation.new!r}", flush=True)
    finally:
        for tree in copies:
            shutil.rmtree(tree)
    without = [row for row in rows if row not in {one for one, _ in chosen}]
    for row in without:
        print(f"no change {row}")
    counts = {outcome: outcomes.count(outcome) for outcome in dict.fromkeys(outcomes)}
    told = ", ".join(f"{outcome} {count}" for outcome, count in counts.items())
    print(f"{len(rows)} rows, {len(chosen)} changes: {told}; {time.monotonic() - began:.0f} s")
    return int(bool(without) or any(outcome not in ("killed", "heavy") for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
