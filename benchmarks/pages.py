"""How well pages are read: `python benchmarks/pages.py CHECKOUT`.

CHECKOUT is a clone of the public article-extraction-benchmark of scrapinghub. Its measure is used: the overlap of runs
of four words with the article as people marked it, averaged over the pages. trafilatura is measured beside it where it
is installed.
"""

import argparse
import gzip
import json
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from hira.tools.charsets import decode
from hira.tools.pages import extract

WORD = re.compile(r"\w+")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--worst", type=int, default=0, help="also list the N pages read worst")
    arguments = parser.parse_args()
    truth = json.loads((arguments.checkout / "ground-truth.json").read_text(encoding="utf-8"))
    pages = {
        key: decode(gzip.decompress((arguments.checkout / "html" / f"{key}.html.gz").read_bytes())) for key in truth
    }
    print(f"{'':<12} {'F1':>6} {'P':>6} {'R':>6} {'ms median':>10} {'ms p95':>8}   {len(pages)} pages")
    for name, read in readers().items():
        measure(name, read, pages, truth, arguments.worst)


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
) -> None:
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
    print(
        f"{name:<12} {2 * p * r / (p + r):6.3f} {p:6.3f} {r:6.3f} "
        f"{statistics.median(times):10.1f} {times[int(0.95 * len(times))]:8.1f}"
    )
    for _, precision, recall, url in sorted(scores)[:worst]:
        print(f"  P {precision:.2f} R {recall:.2f} {url}")


def shingles(text: str) -> Counter[tuple[str, ...]]:
    tokens = WORD.findall(text)
    return Counter(tuple(tokens[at : at + 4]) for at in range(max(1, len(tokens) - 3)) if tokens)


if __name__ == "__main__":
    main()
