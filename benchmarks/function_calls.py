"""Function calls a model call, Python's and built-in ones: the same on every machine, unlike time.

python benchmarks/function_calls.py [--write]
"""

import argparse
import asyncio
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from contenders import CONTENDERS, about, serving

TURNS = (5, 20, 100)


async def count(name: str, turns: int) -> float:
    made = 0

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal made
        made += event in {"call", "c_call"}

    with serving(turns=turns) as base_url:
        async with CONTENDERS[name](base_url, 1) as ask:
            await ask(turns)
            sys.setprofile(note)
            await ask(turns)
            sys.setprofile(None)
    return made / (turns + 1)


def table() -> str:
    lines = ["| function calls a model call | " + " | ".join(f"{turns} tool turns" for turns in TURNS) + " |"]
    lines.append("|---" * (len(TURNS) + 1) + "|")
    for name in CONTENDERS:
        cells = [f"{asyncio.run(count(name, turns)):,.0f}" for turns in TURNS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write results/function_calls.md too")
    chosen = parser.parse_args()
    made = table()
    print(made)
    if chosen.write:
        made_by = f"Made by `python benchmarks/function_calls.py --write`: {about()}."
        text = f"# Function calls a model call\n\n{made_by}\n\n{made}\n"
        Path(__file__).with_name("results").joinpath("function_calls.md").write_text(text)


if __name__ == "__main__":
    main()
