"""The table of what real models do, made of recordings.

    python benchmarks/real/table.py RECORDING... [--set held|mini] [--write] [--evidence FILE]

RECORDING is a file that benchmarks/real/record.py wrote. `--write` writes benchmarks/results/real_models.md,
`--evidence` the answers with what was read, one JSON object a line, labelled by whether they hold the known one.
"""

import argparse
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from hira.evidence import find_cited

RESULTS = Path(__file__).parent.parent / "results" / "real_models.md"
HEADS = (
    "system",
    "right",
    "accepted",
    "refused",
    "prompt",
    "reply",
    "model calls",
    "tool calls",
    "unreadable",
    "seconds",
)
Row = dict[str, Any]


def read(paths: Sequence[Path]) -> list[Row]:
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


def line(model: str, system: str, rows: Sequence[Row]) -> str:
    """A system's line; tokens, calls and seconds are means a question."""
    answerable = [row for row in rows if row["right"] is not None]
    right = [row for row in answerable if row["right"]]
    own = all("status" in row for row in rows)
    accepted = sum(row["status"] == "answered" and bool(row["citations"]) for row in right) if own else None
    others = [row for row in rows if row["right"] is None]
    refused = sum(row["status"] != "answered" for row in others) if own else None
    turns = [turn for row in rows for turn in row["turns"]]
    unreadable = sum(row["unreadable"] for row in rows) if own else None
    cells = [
        system,
        f"{len(right)} of {len(answerable)}",
        "–" if accepted is None else f"{accepted} of {len(right)}",
        "–" if refused is None else f"{refused} of {len(others)}",
        f"{sum(turn['prompt_tokens'] for turn in turns) / len(rows):,.0f}",
        f"{sum(turn['reply_tokens'] for turn in turns) / len(rows):,.0f}",
        f"{len(turns) / len(rows):.1f}",
        f"{mean(row.get('calls', 0) for row in rows):.1f}",
        "–" if unreadable is None else f"{unreadable} of {len(turns)}",
        f"{mean(row['seconds'] for row in rows):.0f}",
    ]
    return f"| {model} | {' | '.join(cells)} |"


def page(rows: Sequence[Row], name: str) -> str:
    keys = dict.fromkeys((row["model"], row["system"]) for row in rows)
    groups = {key: [row for row in rows if (row["model"], row["system"]) == key] for key in keys}
    table = [
        f"| model | {' | '.join(HEADS)} |",
        f"|{'---|' * (len(HEADS) + 1)}",
        *(line(model, system, group) for (model, system), group in groups.items()),
    ]
    return f"""# Real models

Made by `python benchmarks/real/record.py MODEL OUT --set {name} --peers VENV_PYTHON`, then
`python benchmarks/real/table.py OUT --set {name} --write`: Python {platform.python_version()}, {platform.machine()},
llama.cpp on one thread, temperature 0, at most 400 tokens a reply. Every system asks the same server the same questions
of the same documents. `plain` is one chat call written by hand with the best five paragraphs by BM25; `plain-hira` the
same with the passages that hira's search finds, of 120 to 200 words. openai-agents and smolagents (`CodeAgent`) have
one search tool that returns the paragraphs of `plain`; what takes longer than eight minutes counts as not answered.

`right` counts answers that hold the known answer; `accepted` those of them that hira accepts with a citation; `refused`
questions whose answer the documents do not hold and that hira did not answer. Tokens, calls and seconds are means a
question; `unreadable` counts turns whose call could not be read. A system that was asked fewer questions was asked the
first ones of the set. The tokens of a reply that hira stops reading count as well. Seconds were measured on a busy
machine and only compare within the table.

{chr(10).join(table)}
"""


def evidence(rows: Sequence[Row]) -> list[str]:
    """Claims for the evidence benchmark: each answer of hira, and what it cites or else was read."""
    told = []
    for row in rows:
        if row["right"] is None or not row.get("sources") or not row["answer"].strip():
            continue
        ids = [one for one in find_cited(row["answer"]) if one in row["sources"]] or list(row["sources"])
        text = "\n\n".join(row["sources"][one] for one in ids)
        label = "supported" if row["right"] else "unsupported"
        entry = {"question": row["question"], "claim": row["answer"], "evidence": text, "label": label}
        told.append(json.dumps(entry, ensure_ascii=False))
    return list(dict.fromkeys(told))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", type=Path, nargs="+")
    parser.add_argument("--set", choices=["mini", "held"], default="held")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--evidence", type=Path)
    options = parser.parse_args()
    rows = read(options.recordings)
    text = page([row for row in rows if row["set"] == options.set], options.set)
    print(text)
    if options.write:
        RESULTS.write_text(text, encoding="utf-8")
    if options.evidence:
        options.evidence.write_text("\n".join(evidence(rows)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
