"""What a curation came to: how many questions each stage kept, as a table and as a plot, and how often those of the
last stage were answered (MARS, Figures 4 and 5)."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from hira.core.page_policy import add_palette, digest
from hira.evaluation import page as evaluation
from hira.evaluation.page.plots import bars
from hira.trainers.curation.decisions import Decision
from hira.trainers.curation.filters import Challenge
from hira.trainers.curation.pipeline import Curation, Passed

TABLE, PAGE = "funnel.md", "funnel.html"
_SLOT = re.compile(r"\{\{(\w+)\}\}")
NAMES = {
    "level": "academic level",
    "duplicates": "no near-duplicate",
    "clarity": "clear",
    "expert": "for experts",
    "challenge": "answered at times",
}


def write(curation: Curation) -> str:
    """Write `funnel.md` and `funnel.html` into the folder; the table is returned."""
    came = len(curation.curating.items)
    told = table(came, curation.passed)
    challenge = list(curation.decisions.of("challenge").values())
    counts = histogram(challenge, curation.curating.challenge)
    if challenge:
        told += "\n" + distribution(counts, curation.curating.challenge)
    (curation.folder / TABLE).write_text(f"# {curation.curating.data}: curation\n\n{told}", encoding="utf-8")
    drawn = _page(curation, came, counts if challenge else {})
    (curation.folder / PAGE).write_text(drawn, encoding="utf-8")
    return told


def table(came: int, passed: Sequence[Passed]) -> str:
    """The funnel in Markdown, a row a stage; shares are of what came to the stage."""
    lines = ["| stage | came | removed | undecided | kept | share |", "|---|---|---|---|---|---|"]
    lines.append(f"| all questions | {came:,} | | | {came:,} | |")
    for one in passed:
        share = f"{100 * len(one.kept) / len(one.came):.0f} %" if one.came else "–"
        cells = (NAMES[one.stage], len(one.came), one.removed, len(one.undecided), len(one.kept))
        lines.append(
            "| " + " | ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in cells) + f" | {share} |"
        )
    return "\n".join(lines) + "\n"


def histogram(decisions: Sequence[Decision], challenge: Challenge) -> dict[int, int]:
    """How many questions were answered rightly so many times."""
    counted = Counter(int(one.told["right"]) for one in decisions if one.told["known"] == challenge.attempts)
    return {right: counted[right] for right in range(challenge.attempts + 1)}


def distribution(counts: Mapping[int, int], challenge: Challenge) -> str:
    lines = [f"| right of {challenge.attempts} | questions | |", "|---|---|---|"]
    for right, many in counts.items():
        fate = "kept" if challenge.fewest <= right <= challenge.most else "removed"
        lines.append(f"| {right} | {many:,} | {fate} |")
    return "\n".join(lines) + "\n"


def _page(curation: Curation, came: int, counts: Mapping[int, int]) -> str:
    stages: list[tuple[str, float | None, None]] = [("all questions", float(came), None)]
    stages += [(NAMES[one.stage], float(len(one.kept)), None) for one in curation.passed]
    sections = _section("Funnel", "questions that each stage keeps", bars(stages, "questions"))
    if counts:
        drawn = bars([(f"{right} right", float(many), None) for right, many in counts.items()], "questions")
        sections += _section("Best of N", "how often questions were answered rightly", drawn)
    style = add_palette(Path(evaluation.__file__).with_name("page.css").read_text(encoding="utf-8"))
    values = {
        "title": escape(f"{curation.curating.data}: curation"),
        "policy": escape(f"default-src 'none'; style-src {digest(style)}; base-uri 'none'; form-action 'none'"),
        "style": style,
        "sections": sections,
    }
    form = Path(__file__).with_name("funnel.html").read_text(encoding="utf-8")
    return _SLOT.sub(lambda slot: values[slot[1]], form)


def _section(heading: str, about: str, inner: str) -> str:
    return f'<section><h2>{escape(heading)} <span>{escape(about)}</span></h2><div class="card">{inner}</div></section>'
