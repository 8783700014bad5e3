"""Start-up: how long `import hira` and `hira --help` take beside bare Python and the bare openai SDK.

    python benchmarks/startup.py              prints the figures
    python benchmarks/startup.py --write      also writes results/startup.md
    python benchmarks/startup.py --check      ends with 1 where a goal is missed (meant for a quiet machine)

Each command is a process of its own. The commands take turns, so that a busy moment of the machine meets all of them.
"""

import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROUNDS = 11
RESULTS = Path(__file__).parent / "results" / "startup.md"
HIRA = ("-m", "hira")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    'python -c ""': ("-c", ""),
    'python -c "import hira"': ("-c", "import hira"),
    "hira --help": (*HIRA, "--help"),
    "hira ask, offline, to the answer": (
        *HIRA,
        "ask",
        "When was the tower built?",
        "--docs",
        "{docs}",
        "--model",
        "offline",
    ),
    'python -c "import openai"': ("-c", "import openai"),
}
# seconds of wall, on a quiet machine
GOALS: Mapping[str, float] = {'python -c "import hira"': 0.1, "hira --help": 0.3}

PAGE = """# Start-up

Made by `python benchmarks/startup.py --write`: Python {version}, {machine}. Medians of {rounds} processes each, which
take turns. One run on a shared machine: read the ratios.

| command | wall | CPU | CPU over bare Python | goal (wall) |
|---|---|---|---|---|
{rows}
"""


class Taken(NamedTuple):
    """Seconds of one process."""

    wall: float
    cpu: float


def run(arguments: tuple[str, ...], docs: str, home: str) -> Taken:
    """One process, from its start to its end."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, *(argument.format(docs=docs) for argument in arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=home,
        env={"HOME": home, "PATH": "/usr/bin:/bin"},
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(time.perf_counter() - began, cpu)


def measure() -> dict[str, Taken]:
    """The median of each command; a first round, which fills the caches, is not counted."""
    taken: dict[str, list[Taken]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as home:
        docs = Path(home) / "docs"
        docs.mkdir()
        (docs / "tower.txt").write_text("The tower was built in 1889.\n", encoding="utf-8")
        for _ in range(ROUNDS + 1):
            for name, arguments in COMMANDS.items():
                taken[name].append(run(arguments, str(docs), home))
    return {
        name: Taken(*(statistics.median(column) for column in zip(*runs[1:], strict=True)))
        for name, runs in taken.items()
    }


def page(medians: Mapping[str, Taken]) -> str:
    bare = next(iter(medians.values()))
    rows = [
        f"| `{name}` | {one.wall:.3f} s | {one.cpu:.3f} s | {one.cpu - bare.cpu:.3f} s | "
        + (f"{GOALS[name]} s |" if name in GOALS else "|")
        for name, one in medians.items()
    ]
    return PAGE.format(
        version=platform.python_version(), machine=platform.machine(), rounds=ROUNDS, rows="\n".join(rows)
    )


def main() -> int:
    medians = measure()
    written = page(medians)
    print(written)
    if "--write" in sys.argv:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(written, encoding="utf-8")
    missed = [name for name, goal in GOALS.items() if medians[name].wall > goal]
    for name in missed:
        print(f"missed: {name} took {medians[name].wall:.3f} s, the goal is {GOALS[name]} s")
    return 1 if missed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
