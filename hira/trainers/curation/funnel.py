"""What a curation came to, as tables: how many questions each stage kept, and how often those of the last stage were
answered (MARS, Figures 4 and 5)."""

from collections import Counter
from collections.abc import Mapping, Sequence

from hira.trainers.curation.filters import Challenge, Decision
from hira.trainers.curation.pipeline import Curation, Passed

TABLE = "funnel.md"
NAMES = {
    "level": "academic level",
    "duplicates": "no near-duplicate",
    "clarity": "clear",
    "expert": "for experts",
    "challenge": "answered at times",
}


def write(curation: Curation) -> str:
    """Write `funnel.md` into the folder, and return its tables."""
    came = len(curation.curating.items)
    told = table(came, curation.passed)
    challenge = list(curation.decisions.of("challenge").values())
    if challenge:
        kind = curation.curating.challenge
        told += "\n" + distribution(histogram(challenge, kind), kind)
    (curation.folder / TABLE).write_text(f"# {curation.curating.data}: curation\n\n{told}", encoding="utf-8")
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
