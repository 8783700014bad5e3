"""Install size: what `pip install .` puts into an empty virtual environment, by distribution.

    python benchmarks/size.py              makes an environment and prints the figures
    python benchmarks/size.py --write      also writes results/size.md
    python benchmarks/size.py --check      ends with 1 where a goal is missed

Counted are the bytes of the files that each distribution lists as its own, pip and setuptools aside, and with them the
bytecode that pip writes beside every module; uv writes none until a module is first imported. Packages come from where
pip is set up to find them.
"""

import json
import platform
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results" / "size.md"
MOST_MEGABYTES, MOST_DISTRIBUTIONS = 40.0, 18
LISTED = 12
SPARED = ("rich",)
# run by the Python of the environment that is measured
COUNT = """
import importlib.metadata, json, pathlib, re
found = []
for one in importlib.metadata.distributions():
    if one.metadata["Name"] not in ("pip", "setuptools"):
        paths = [pathlib.Path(one.locate_file(file)) for file in one.files or ()]
        sizes = [(path.suffix, path.stat().st_size) for path in paths if path.exists()]
        code = sum(size for suffix, size in sizes if suffix == ".pyc")
        needs = [re.match(r"[\\w.-]+", line)[0] for line in one.requires or () if "extra ==" not in line]
        found.append((one.metadata["Name"], one.version, sum(size for _, size in sizes), code, needs))
print(json.dumps(found))
"""

PAGE = """# Install size

Made by `python benchmarks/size.py --write`: Python {version}, {machine}. MB are millions of bytes of the files that
each distribution lists, in an environment with nothing else in it. Bytecode is what pip writes beside every module
when it installs; uv and `pip install --no-compile` write none.

| distributions besides hira | MB with bytecode | MB without |
|---|---|---|
{totals}

The goals are {most} MB and {count} distributions.
What else could be left out, and what then remains, by what the distributions say they need:

| without | and what it alone brings | distributions besides hira | MB with bytecode | MB without |
|---|---|---|---|---|
{spared}

rich draws the progress at a terminal and tables, and brings Pygments, which hira uses nowhere. tiktoken is an extra.

| distribution | version | MB with bytecode | of which bytecode |
|---|---|---|---|
{rows}
"""


class Installed(NamedTuple):
    """A distribution and its bytes."""

    name: str
    version: str
    size: int
    bytecode: int
    needs: tuple[str, ...]


def installed(folder: Path) -> list[Installed]:
    """What the core of this checkout brings with it, the largest first."""
    venv.create(folder, with_pip=True)
    python = str(folder / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(ROOT)], check=True)
    told = subprocess.run([python, "-c", COUNT], capture_output=True, text=True, check=True).stdout
    return sorted((Installed(*one) for one in json.loads(told)), key=lambda one: -one.size)


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f}"


def totals(found: list[Installed]) -> tuple[int, float, float]:
    """Distributions besides hira, MB with bytecode and without."""
    whole, bytecode = sum(one.size for one in found), sum(one.bytecode for one in found)
    return len(found) - 1, whole / 1e6, (whole - bytecode) / 1e6


def named(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def without(found: list[Installed], left_out: str) -> list[Installed]:
    """What would be installed if hira did not need one of its distributions."""
    needs = {named(one.name): [named(need) for need in one.needs] for one in found}
    reached, waiting = {"hira"}, [need for need in needs["hira"] if need != left_out]
    while waiting:
        name = waiting.pop()
        if name in needs and name not in reached:
            reached.add(name)
            waiting += needs[name]
    return [one for one in found if named(one.name) in reached]


def spared(found: list[Installed]) -> str:
    rows = []
    for name in SPARED:
        kept = without(found, name)
        count, whole, bare = totals(kept)
        gone = sorted({named(one.name) for one in found} - {named(one.name) for one in kept} - {name})
        rows.append(f"| {name} | {', '.join(gone)} | {count} | {whole:.1f} | {bare:.1f} |")
    return "\n".join(rows)


def page(found: list[Installed]) -> str:
    count, whole, bare = totals(found)
    rows = [
        f"| {one.name} | {one.version} | {megabytes(one.size)} | {megabytes(one.bytecode)} |" for one in found[:LISTED]
    ]
    rest = found[LISTED:]
    size, bytecode = sum(one.size for one in rest), sum(one.bytecode for one in rest)
    rows.append(f"| {len(rest)} others | | {megabytes(size)} | {megabytes(bytecode)} |")
    return PAGE.format(
        version=platform.python_version(),
        machine=platform.machine(),
        totals=f"| {count} | {whole:.1f} | {bare:.1f} |",
        rows="\n".join(rows),
        spared=spared(found),
        most=f"{MOST_MEGABYTES:.0f}",
        count=MOST_DISTRIBUTIONS,
    )


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        found = installed(Path(folder))
    written = page(found)
    print(written)
    if "--write" in sys.argv:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(written, encoding="utf-8")
    count, whole, _ = totals(found)
    missed = count > MOST_DISTRIBUTIONS or whole > MOST_MEGABYTES
    if missed:
        print(f"missed: {count} distributions, {whole:.1f} MB")
    return 1 if missed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
