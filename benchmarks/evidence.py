"""How well claims are told apart that a source holds and does not hold, and what the check costs.

    python benchmarks/evidence.py [--write] [--wrong] [--half tuned|held]

Every row of benchmarks/data/evidence is a claim, a question and a source of our own making, and whether the claim
should be accepted. A false accept is a claim that should be rejected and is `supported`; a false reject is one that
should be accepted and is `contradicted` or `not found`. `unchecked` is neither, and counted by itself.
"""

import argparse
import json
import platform
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from hira.evidence import Source, Sources, Verdict, check, verify

HERE = Path(__file__).parent
DATA = HERE / "data" / "evidence"
RESULTS = HERE / "results" / "evidence.md"
HALVES = ("tuned", "held")
LONG = 610_000
CLAIMS = 10


@dataclass(frozen=True, slots=True)
class Row:
    half: str
    expected: str
    form: str
    claim: str
    question: str
    verdict: Verdict
    quote: str

    @property
    def wrong(self) -> bool:
        if self.expected == "reject":
            return self.verdict == "supported"
        return self.verdict in ("contradicted", "not found")


def rows(half: str) -> list[Row]:
    """Every claim of one half, checked."""
    found = []
    for line in (DATA / f"{half}.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        source = Source(entry["title"], entry["title"], entry["text"], entry["kind"], "s1")
        for one in entry["claims"]:
            told = check(one["claim"], source, one["question"])
            expected = (one["expected"], one["form"], one["claim"], one["question"])
            found.append(Row(half, *expected, told.verdict, told.quote))
    return found


def table(checked: Sequence[Row]) -> str:
    lines = [
        "| half | false claims | accepted wrongly | true claims | rejected wrongly | unchecked | false: contradicted |",
        "|---|---|---|---|---|---|---|",
    ]
    for half in HALVES:
        false = [one for one in checked if one.half == half and one.expected == "reject"]
        true = [one for one in checked if one.half == half and one.expected == "accept"]
        if not false:
            continue
        accepted, rejected = sum(one.wrong for one in false), sum(one.wrong for one in true)
        unchecked = sum(one.verdict == "unchecked" for one in (*false, *true))
        told = sum(one.verdict == "contradicted" for one in false)
        lines.append(
            f"| {half} | {len(false)} | {accepted} ({accepted / len(false):.1%}) | {len(true)} "
            f"| {rejected} ({rejected / len(true):.1%}) | {unchecked} | {told / len(false):.0%} |"
        )
    return "\n".join(lines)


def seconds(characters: int) -> float:
    """The median of three checks of ten claims against one source of so many characters, reading it included."""
    draw = random.Random(7)
    letters = "aeioulnrst"
    words = ["".join(draw.choices(letters, k=draw.randint(3, 9))) for _ in range(20_000)]
    sentences, size = [], 0
    while size < characters:
        name, number = draw.choice(words).title(), draw.randint(2, 9999)
        sentences.append(f"The {' '.join(draw.choices(words, k=9))} of {name} has {number} {draw.choice(words)}.")
        size += len(sentences[-1]) + 1
    sources = Sources()
    sources.add(Source("long", "Long", "\n".join(sentences)))
    chosen = draw.sample(sentences, CLAIMS)
    answer = " ".join(f"{one.replace(' has ', ' has about ')[:-1]} [s1]." for one in chosen)
    took = []
    for _ in range(3):
        began = time.perf_counter()
        assert len(verify(answer, sources)) == CLAIMS
        took.append(time.perf_counter() - began)
    return median(took)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the check of claims.")
    parser.add_argument("--write", action="store_true", help=f"write the figures to {RESULTS.relative_to(HERE.parent)}")
    parser.add_argument("--wrong", action="store_true", help="show the rows that were told wrongly")
    parser.add_argument("--half", choices=HALVES, help="only this half; and no time")
    args = parser.parse_args()
    checked = [row for half in ([args.half] if args.half else HALVES) for row in rows(half)]
    shown = table(checked)
    print(shown)
    for one in checked if args.wrong else ():
        if one.wrong:
            print(f"{one.expected} {one.form}: {one.claim!r} {one.question!r}\n  {one.verdict}: {one.quote!r}")
    if args.half:
        return
    times = [f"| {CLAIMS} | {size:,} | {seconds(size):.2f} |" for size in (LONG, 5_000_000)]
    speed = "\n".join(["| claims | characters | seconds |", "|---|---|---|", *times])
    print(f"\n{speed}")
    if args.write:
        where = f"Python {platform.python_version()} on {platform.system()}"
        note = (HERE / "data" / "evidence" / "README.md").read_text(encoding="utf-8").partition("\n\n")[2]
        command = f"`python benchmarks/evidence.py --write`, {where}."
        text = f"# The check of claims\n\n{command}\n\n{shown}\n\n{speed}\n\n{note}"
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
