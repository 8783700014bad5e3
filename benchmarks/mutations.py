"""Does the test that each row of docs/papers.md names hold what the row says? A change to the code, and the test.

    python benchmarks/mutations.py                # all rows whose tests are fast
    python benchmarks/mutations.py --heavy        # the others as well
    python benchmarks/mutations.py --row "eq. 5"  # rows that hold these words
    python benchmarks/mutations.py --random 100 --seed 7  # random changes to the files that the rows name

benchmarks/data/mutations.jsonl has a line for each change: the beginning of the row's first cell, the text to replace,
which stands once in the package, and what to put in its place (`file` says where it stands if not in the package;
`heavy` says that only a heavy test of the row can tell). The changes are made to a temporary copy of the tree, never to
the tree itself. A change is killed if every test passes without it and one of the row's fails with it. Exits with 1 if
a row has no change, or one of them survives.

A row that is `missing` has nothing to break, and needs no change.

A random change (benchmarks/mutants.py) runs against the fast tests of the rows that name its file, then those of every
file that names its module, or its package if that passes its names on, then those of the folders of tests that have the
name of its package, then the heavy tests of the rows. The names of survivors and their share are printed.
"""

import argparse
import compileall
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import papers  # noqa: E402
from benchmarks.mutants import Mutant, draw_mutants, find_prompts  # noqa: E402
from benchmarks.warm import TIMED_OUT, WarmTests  # noqa: E402

ROWS, TABLE = ROOT / "docs" / "papers.md", ROOT / "benchmarks" / "data" / "mutations.jsonl"
COPIED = ("hira", "tests", "docs", "benchmarks", "examples", "pyproject.toml", "README.md", "CHANGELOG.md")
SECONDS, HEAVY_SECONDS = 600, 1_200
FAST, HEAVY, ALL = "not heavy", "heavy", ""
"""The marks of the tests that run."""
PROMPTS = "tests/papers/test_prompt_contents.py"
DEFAULTS = "tests/papers/test_defaults.py::test_every_number_and_switch_is_the_one_in_the_table"
IN_FOLDER = "killed in folder"
GOAL = 0.1
"""The largest share of random changes that may survive."""
NONE_COLLECTED = 5
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
    return {f"{row.paper}: {row.what}": [*row.tests] for row in papers.read_rows(ROWS.read_text(encoding="utf-8"))}


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
    compileall.compile_dir(tree / "hira", quiet=1)
    environ = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": ""}
    collect = ["-m", "pytest", "--collect-only", "-q", "-m", ALL, "-p", "no:cacheprovider", "tests"]
    subprocess.run([sys.executable, *collect], cwd=tree, env=environ, stdout=subprocess.DEVNULL, check=False)
    return tree  # pytest keeps the tests as it has rewritten them: each run would take seconds for that


def run_tests(tree: Path, tests: list[str], marks: str = FAST) -> int:
    """The exit status of pytest: 1 if a test failed, 5 if no test has the marks; -1 if they did not end in time."""
    seconds = SECONDS if marks == FAST else HEAVY_SECONDS
    return _warm(tree).run(["-x", "-q", "-p", "no:cacheprovider", *tests, "-m", marks], seconds)


@cache
def _warm(tree: Path) -> WarmTests:
    return WarmTests(tree)


def try_mutation(mutation: Mutation, tests: list[str], trees: "SimpleQueue[Path]", *, heavy: bool) -> str:
    if mutation.heavy and not heavy:
        return "heavy"
    tree = trees.get()
    try:
        path = place_of(mutation, tree)
        before = path.read_text(encoding="utf-8")
        path.write_text(before.replace(mutation.old, mutation.new), encoding="utf-8")
        try:
            status = run_tests(tree, tests, ALL if heavy else FAST)
        finally:
            path.write_text(before, encoding="utf-8")
    except LookupError as error:
        return f"not applied: {error}"
    finally:
        trees.put(tree)
    return OUTCOMES.get(status, "broken")  # a change that cannot even be imported proves nothing


def find_failing(tree: Path, tests: list[str], marks: str = FAST) -> list[str]:
    """The tests that fail, or do not end in time, before anything is changed."""
    if run_tests(tree, tests, marks) in (0, NONE_COLLECTED):
        return []
    return [test for test in tests if run_tests(tree, [test], marks) not in (0, NONE_COLLECTED)]


@contextmanager
def copy_trees(many: int) -> "Iterator[SimpleQueue[Path]]":
    copies = [copy_tree() for _ in range(many)]
    trees: SimpleQueue[Path] = SimpleQueue()
    for tree in copies:
        trees.put(tree)
    try:
        yield trees
    finally:
        for tree in copies:
            _warm(tree).close()
            shutil.rmtree(tree)


def find_tests() -> dict[str, list[str]]:
    """The tests of the rows that name a file of the package and of its defaults, and those of a prompt's module for the
    prompt."""
    tests: dict[str, list[str]] = {}
    for row in papers.read_rows(ROWS.read_text(encoding="utf-8")):
        for file in row.files:
            if file.startswith("hira/") and (ROOT / file).is_file():
                tests[file] = list(dict.fromkeys([*tests.get(file, []), *row.tests]))
    held = tomllib.loads((ROOT / "tests" / "papers" / "defaults.toml").read_text(encoding="utf-8"))
    for file, named in tests.items():
        if (module := name_module(file)) in held:
            named.append(f"{DEFAULTS}[{module}]")
    for prompt, file in find_prompts(ROOT, list(tests)).items():
        tests[prompt] = list(dict.fromkeys([PROMPTS, *tests.get(prompt, []), *tests[file]]))
    return tests


def name_module(file: str) -> str:
    return str(Path(file).with_suffix("")).removesuffix("/__init__").replace("/", ".")


def find_wider(file: str) -> list[str]:
    """The test files that name a file's module, or its package if that passes the module's names on; those of a
    paper's workflow and of a prompt name the package. First come those whose own name has the module's words, because
    they notice a change soonest."""
    module = name_module(file)
    package = ROOT / Path(file).parent / "__init__.py"
    passed_on = package.is_file() and f"{module} " in package.read_text(encoding="utf-8")
    wide = passed_on or file.endswith(".md") or "/workflows/" in file
    names = {module, module.rpartition(".")[0]} if wide else {module}
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    pattern = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names))
    words = module.replace("_", ".").split(".")[1:]
    wider = [path for path, text in texts.items() if pattern.search(text)]
    wider.sort(key=lambda path: -sum(word in path.stem for word in words))
    return [str(path.relative_to(ROOT)) for path in wider]


def find_folders(file: str) -> list[str]:
    """The folders of tests that have the name of a package in which the file is, such as `tests/agents`; without one,
    as for `hira.core`, the tests that are in no folder."""
    folders = [f"tests/{name}" for name in Path(file).parent.parts[1:] if (ROOT / "tests" / name).is_dir()]
    return folders or [f"tests/{path.name}" for path in sorted((ROOT / "tests").glob("test_*.py"))]


def try_mutant(mutant: Mutant, tests: list[str], trees: "SimpleQueue[Path]") -> str:
    tree = trees.get()
    path = tree / mutant.file
    before = path.read_bytes()
    path.write_bytes(mutant.apply(before))
    folders = find_folders(mutant.file)
    runs = [("killed", tests, FAST), ("killed elsewhere", find_wider(mutant.file), FAST), (IN_FOLDER, folders, FAST),
            ("killed", tests, HEAVY)]  # fmt: skip
    try:
        outcome = next(
            (outcome for outcome, run, marks in runs if run and run_tests(tree, run, marks) not in (0, NONE_COLLECTED)),
            "SURVIVED",
        )
        path.write_bytes(before)
        if outcome == IN_FOLDER and run_tests(tree, folders) != 0:
            return "SURVIVED"  # a folder that fails without the change, too, says nothing of it
        return outcome
    finally:
        path.write_bytes(before)
        trees.put(tree)


def run_random(many: int, seed: int, words: str, at_once: int) -> int:
    """Try random changes, in the files of the rows that hold these words; a change that breaks off is one that tests
    notice."""
    tests = find_tests()
    chosen = {
        file
        for row in papers.read_rows(ROWS.read_text(encoding="utf-8"))
        for file in row.files
        if words in f"{row.paper}: {row.what}"
    }
    mutants = draw_mutants(ROOT, sorted(chosen & tests.keys()), many, seed)
    with copy_trees(at_once) as trees, ThreadPoolExecutor(at_once) as pool:
        tree = trees.get()
        failing = find_failing(tree, sorted({test for one in mutants for test in tests[one.file]}))
        trees.put(tree)
        if failing:
            sys.exit(f"these fail without any change: {' '.join(failing)}")
        outcomes = []
        trying = pool.map(lambda one: try_mutant(one, tests[one.file], trees), mutants)
        for mutant, outcome in zip(mutants, trying, strict=True):
            outcomes.append(outcome)
            print(f"{outcome:<16} {mutant.name}", flush=True)
    counts = {name: outcomes.count(name) for name in ("killed", "killed elsewhere", IN_FOLDER, "SURVIVED")}
    share = counts["SURVIVED"] / len(outcomes)
    print(f"seed {seed}: {', '.join(f'{name} {count}' for name, count in counts.items())}; {share:.0%} survive")
    return int(share > GOAL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", default="", help="only rows that hold these words")
    parser.add_argument("--heavy", action="store_true", help="run heavy tests, too")
    parser.add_argument("--at-once", type=int, default=2, help="changes that are tried side by side (2)")
    parser.add_argument("--random", type=int, default=0, help="so many random changes, in place of those of the list")
    parser.add_argument("--seed", type=int, default=0, help="the seed of random changes (0)")
    args = parser.parse_args()
    if args.random:
        return run_random(args.random, args.seed, args.row, args.at_once)
    rows = {row: tests for row, tests in read_rows().items() if args.row in row}
    table = [Mutation(**json.loads(line)) for line in TABLE.read_text(encoding="utf-8").splitlines() if line]
    every = read_rows()
    chosen = [(row_of(one, every), one) for one in table]
    chosen = [(row, one) for row, one in chosen if row in rows]
    began = time.monotonic()
    with copy_trees(args.at_once) as trees:
        tests = sorted({test for row, _ in chosen for test in rows[row]})
        tree = trees.get()
        failing = find_failing(tree, tests, ALL if args.heavy else FAST)
        trees.put(tree)
        if failing:
            sys.exit(f"these fail without any change: {' '.join(failing)}")
        with ThreadPoolExecutor(args.at_once) as pool:
            trying = pool.map(lambda one: try_mutation(one[1], rows[one[0]], trees, heavy=args.heavy), chosen)
            outcomes = []
            for (row, mutation), outcome in zip(chosen, trying, strict=True):
                outcomes.append(outcome)
                print(f"{outcome:<9} {row}: {mutation.old!r} -> {mutation.new!r}", flush=True)
    built = {f"{row.paper}: {row.what}" for row in papers.read_rows(ROWS.read_text("utf-8")) if row.status != "missing"}
    without = [row for row in rows if row in built and row not in {one for one, _ in chosen}]
    for row in without:
        print(f"no change {row}")
    counts = {outcome: outcomes.count(outcome) for outcome in dict.fromkeys(outcomes)}
    told = ", ".join(f"{outcome} {count}" for outcome, count in counts.items())
    print(f"{len(rows)} rows, {len(chosen)} changes: {told}; {time.monotonic() - began:.0f} s")
    return int(bool(without) or any(outcome not in ("killed", "heavy") for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
