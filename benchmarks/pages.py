"""How well pages are read.

    python benchmarks/pages.py CHECKOUT              prints the figures
    python benchmarks/pages.py CHECKOUT --write      also writes results/pages.md

CHECKOUT is a clone of the public article-extraction-benchmark of scrapinghub. Its measure is used: the overlap of runs
of four words with the article as people marked it, averaged over the pages. trafilatura is measured beside it where it
is installed.
"""

import argparse
import gzip
import json
import platform
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from hira.tools.charsets import decode_page
from hira.tools.pages import extract

RESULTS = Path(__file__).parent / "results" / "pages.md"
PAGE = """# Reading web pages

Made by `python benchmarks/pages.py CHECKOUT --write`: Python {version}, {machine}{others}. {pages} pages that people
marked, of the public article-extraction-benchmark; its measure. One run on a shared machine.

| | F1 | precision | recall | ms a page, median | ms, 95 of 100 |
|---|---|---|---|---|---|
{rows}
| goal | 0.93 | | | | |
"""
WORD = re.compile(r"\w+")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--worst", type=int, default=0, help="also list the N pages read worst")
    parser.add_argument("--write", action="store_true", help="also write results/pages.md")
    arguments = parser.parse_args()
    truth = json.loads((arguments.checkout / "ground-truth.json").read_text(encoding="utf-8"))
    pages = {
        key: decode_page(gzip.decompress((arguments.checkout / "html" / f"{key}.html.gz").read_bytes()))
        for key in truth
    }
    rows = [measure(name, read, pages, truth, arguments.worst) for name, read in readers().items()]
    others = "".join(f", {name} {version(name)}" for name in readers() if name != "hira")
    told = PAGE.format(
        version=platform.python_version(),
        machine=platform.machine(),
        others=others,
        pages=len(pages),
        rows="\n".join(rows),
    )
    print(told)
    if arguments.write:
        RESULTS.write_text(told, encoding="utf-8")


def readers() -> dict[str, Callable[[str], str]]:
    found: dict[str, Callable[[str], str]] = {"hira": lambda html: extract(html).text}
    try:
        import trafilatura
    except ImportError:
        return found
    found["trafilatura"] = lambda html: trafilatura.extract(html) or ""
    return found


def measure(
    name: str, read: Callable[[str], str], pages: dict[str, str], truth: dict[str, dict[str, str]], worst: int
) -> str:
    """The row of one reader."""
    precisions, recalls, times, scores = [], [], [], []
    for key, html in pages.items():
        began = time.perf_counter()
        text = read(html)
        times.append((time.perf_counter() - began) * 1000)
        wanted, got = shingles(truth[key]["articleBody"]), shingles(text)
        common = (wanted & got).total()
        precision, recall = common / max(got.total(), 1), common / max(wanted.total(), 1)
        if got:
            precisions.append(precision)
        recalls.append(recall)
        scores.append((precision + recall, precision, recall, truth[key]["url"]))
    p, r = statistics.mean(precisions), statistics.mean(recalls)
    times.sort()
    for _, precision, recall, url in sorted(scores)[:worst]:
        print(f"{name}: P {precision:.2f} R {recall:.2f} {url}")
    slow = times[int(0.95 * len(times))]
    return f"| {name} | {2 * p * r / (p + r):.3f} | {p:.3f} | {r:.3f} | {statistics.median(times):.1f} | {slow:.1f} |"


def shingles(text: str) -> Counter[tuple[str, ...]]:
    tokens = WORD.findall(text)
    return Counter(tuple(tokens[at : at + 4]) for at in range(max(1, len(tokens) - 3)) if tokens)


if __name__ == "__main__":
    main()
