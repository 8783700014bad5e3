"""Curation on a made set: what each filter finds of what was planted for it.

    python benchmarks/training/curation.py            prints the figures
    python benchmarks/training/curation.py --write    also writes results/training_curation.md

400 questions: good ones, near-duplicates of some (other case, punctuation and small words; two words exchanged; a
rewording), ambiguous ones, trivial and impossible ones. Two filters are measured as they are: near-duplicates, on the
texts, and best of 16, over real workflows and real HTTP, by a solver that is right with a chance that is hidden from
the filter (trivial .97, good .1 to .7, impossible 0). The third, clarity, is a model's judgement: it is asked through
the real prompt, and answered by a judge who is wrong about one in twenty, so that what is measured is the pipeline
around it.

Expected, stated before the run: near-duplicates by surface precision ≥ 0.98 and recall ≥ 0.95, by rewording recall
under 0.3 (finding these takes their meaning, not their surface); trivial and impossible recall ≥ 0.95, and no more than
a tenth of good questions lost; clarity precision and recall ≥ 0.8."""

import argparse
import asyncio
import json
import random
import tempfile
from collections import Counter
from pathlib import Path

from hira.agents.run_context import RoleConfig, RunContext
from hira.core.policy import Request
from hira.evaluation.files import Item
from hira.evaluation.scorers import match
from hira.policies.dialects import NATIVE
from hira.runtime.settings import Settings
from hira.testing import Endpoint, ScriptedPolicy
from hira.trainers.curation.filters import Challenge, find_duplicates
from hira.trainers.curation.pipeline import Curating, Curation

RESULTS = Path(__file__).parents[1] / "results" / "training_curation.md"
SEED, GOOD, PLANTED, WRONG = 11, 200, 40, 0.05
THINGS = """enzyme alloy river treaty theorem catalyst isotope sonata glacier
parser virus orbit polymer tribunal lattice""".split()
DEEDS = """regulates dissolves bounds precedes ratifies oxidises inhibits
factorises erodes refracts stabilises converges""".split()
OTHERS = """membrane harbour kernel crystal province spectrum ligament estuary
manifold ledger plasma archive cortex""".split()
WAYS = (
    "under high pressure",
    "in the second century",
    "for sparse inputs",
    "at low temperature",
    "without a solvent",
    "near the boundary",
)
BASE_RATE = """The precision of clarity is that of its judge and of what comes to it: one who errs in a twentieth has
{expected:.2f} where {ambiguous} of {every} questions are ambiguous, whatever the filter does. Expecting 0.8 of the
pipeline was an error of arithmetic: with such a judge it takes a set of which 17.4 % are ambiguous. It says that a
judge's false alarms have to be looked at where good questions are rare; `decisions.jsonl` holds each with its why.
How often a real model errs by the prompt is not measured here: the stand-in reads what was planted, not the prompt."""
ASKED = "Which {thing} {deed} the {other} {way}, and by what mechanism number {at}?"
VAGUE = "What about the {thing} mentioned above, is it better or worse than number {at}?"


def planted(chance: random.Random) -> tuple[list[Item], dict[str, str], dict[str, float]]:
    """Items in a shuffled order, what each was planted as, and how often its solver is right."""
    items, kinds, chances = [], {}, {}

    def add(name: str, kind: str, question: str, right: float) -> None:
        items.append(Item(name, question, (f"answer {name}",)))
        kinds[name], chances[name] = kind, right

    def asked(at: int, form: str = ASKED) -> str:
        words = {"thing": THINGS, "deed": DEEDS, "other": OTHERS, "way": WAYS}
        return form.format(at=at, **{name: chance.choice(own) for name, own in words.items()})

    good = [asked(at) for at in range(GOOD)]
    for at, question in enumerate(good):
        add(f"good-{at}", "good", question, chance.uniform(0.1, 0.7))
    for at in range(PLANTED):
        add(f"surface-{at}", "surface", surface(good[at], chance), 0.4)
        add(f"reworded-{at}", "reworded", reworded(good[at + PLANTED]), 0.4)
        add(f"vague-{at}", "ambiguous", asked(1000 + at, VAGUE), 0.4)
        add(f"trivial-{at}", "trivial", asked(2000 + at), 0.97)
        add(f"impossible-{at}", "impossible", asked(3000 + at), 0.0)
    originals = items[:GOOD]
    rest = items[GOOD:]
    chance.shuffle(rest)
    return originals + rest, kinds, chances


def surface(question: str, chance: random.Random) -> str:
    changes = [str.lower, str.upper, lambda text: text.replace(", and", " and"), lambda text: f"  {text[:-1]} ?!"]
    told = chance.choice(changes)(question)
    return told.replace("the ", "that ", 1) if chance.random() < 0.5 else told


def reworded(question: str) -> str:
    number = question.rpartition(" ")[2].rstrip("?")
    thing, deed, other = question.split()[1], question.split()[2], question.split()[4]
    return f"Name a {thing} of which it is known that the {other} is what it {deed}; explain how ({number})."


def figures(found: set[str], wanted: set[str]) -> tuple[float, float]:
    hit = len(found & wanted)
    return hit / len(found) if found else 1.0, hit / len(wanted) if wanted else 1.0


async def clear(items: list[Item], kinds: dict[str, str], folder: Path) -> tuple[set[str], set[str]]:
    """What the filter removes, and what its judge called unclear."""
    chance, by, called = random.Random(SEED), {item.question: item.id for item in items}, set[str]()

    def judge(request: Request) -> str:
        name = by[str(request.messages[0].values["question"])]
        unclear = (kinds[name] == "ambiguous") != (chance.random() < WRONG)
        called.update([name] if unclear else [])
        return json.dumps({"reason": "so", "clear": "no" if unclear else "yes"})

    context = RunContext({"*": RoleConfig(ScriptedPolicy(judge), dialect=NATIVE)})
    kept = await Curation(Curating("made", tuple(items), ("clarity",)), folder, context).run()
    return {item.id for item in items} - {item.id for item in kept}, called


async def challenged(items: list[Item], chances: dict[str, float], folder: Path) -> tuple[set[str], Curation]:
    asked, by = Counter[str](), {item.question: item.id for item in items}

    def solver(request: Request) -> str:
        question = request.messages[-1].text.rpartition("Question:")[2].strip()
        name = by[question]
        asked[name] += 1
        lucky = random.Random(f"{SEED} {name} {asked[name]}").random()  # whichever question comes first
        return f"\\boxed{{{'answer ' + name if lucky < chances[name] else 'something else'}}}"

    with Endpoint({"*": solver}, keep=False) as endpoint:
        general = Settings(
            model=endpoint.model, base_url=endpoint.base_url, api_key="k", cache=folder / "cache", verify="lexical"
        )
        curating = Curating(
            "made", tuple(items), ("challenge",), challenge=Challenge(workflow="direct", concurrency=32)
        )
        curation = Curation(curating, folder / "out", settings=general, score=match)
        kept = await curation.run()
    return {item.id for item in items} - {item.id for item in kept}, curation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    items, kinds, chances = planted(random.Random(SEED))
    of = {kind: {name for name, own in kinds.items() if own == kind} for kind in set(kinds.values())}
    with tempfile.TemporaryDirectory() as place:
        same = {one.id for one in find_duplicates(items) if not one.kept}
        unclear, called = asyncio.run(clear(items, kinds, Path(place) / "clarity"))
        some = [item for item in items if kinds[item.id] in ("good", "trivial", "impossible")]
        gone, curation = asyncio.run(challenged(some, chances, Path(place)))
    decisions = curation.decisions_of("challenge")
    easy = {name for name in gone if decisions[name].told["right"]}
    rows = [
        ("near-duplicate, surface", *figures(same - of["reworded"], of["surface"]), len(of["surface"])),
        ("near-duplicate, reworded", *figures(same - of["surface"], of["reworded"]), len(of["reworded"])),
        ("ambiguous (judge wrong about 1 in 20)", *figures(unclear, of["ambiguous"]), len(of["ambiguous"])),
        ("trivial: over 12 of 16", *figures(easy, of["trivial"]), len(of["trivial"])),
        ("impossible: 0 of 16", *figures(gone - easy, of["impossible"]), len(of["impossible"])),
    ]
    lost = len(gone & of["good"]) / GOOD
    told = written(rows, lost, Counter(kinds.values()), thrown(unclear, called, kinds))
    print(told)
    if parser.parse_args().write:
        RESULTS.write_text(told, encoding="utf-8")


def thrown(unclear: set[str], called: set[str], kinds: dict[str, str]) -> str:
    """Which clear questions the filter of clarity removes, and at whose word."""
    by = Counter(kinds[name] for name in unclear if kinds[name] != "ambiguous")
    listed = ", ".join(f"{many} {kind}" for kind, many in sorted(by.items()))
    removed = len(unclear & called)
    return (
        f"Clear questions that clarity removes: {by.total()} ({listed}). Its judge had called {len(called)} questions "
        f"unclear, and {removed} of these and {len(unclear - called)} others were removed: what is lost is the judge's "
        "twentieth, spread over all kinds, and nothing of it the filter's own."
        if unclear == called
        else f"The filter removes other questions than its judge called unclear: {sorted(unclear ^ called)}."
    )


def written(rows: list[tuple[str, float, float, int]], lost: float, counts: Counter[str], false_alarms: str) -> str:
    value = {name: (precision, recall) for name, precision, recall, _ in rows}
    (surface_, rewording, vague, easy, hard) = value.values()
    met = {
        "near-duplicates by surface: precision ≥ 0.98, recall ≥ 0.95": surface_[0] >= 0.98 and surface_[1] >= 0.95,
        "by rewording: recall under 0.3": rewording[1] < 0.3,
        "clarity: precision and recall ≥ 0.8": min(vague) >= 0.8,
        "trivial and impossible: recall ≥ 0.95": easy[1] >= 0.95 and hard[1] >= 0.95,
        "no more than a tenth of good questions lost by best of 16": lost <= 0.1,
    }
    hits, alarms = (1 - WRONG) * counts["ambiguous"], WRONG * (counts.total() - counts["ambiguous"])
    expected = hits / (hits + alarms)
    held = ", ".join(f"{many} {kind}" for kind, many in sorted(counts.items()))
    lines = [
        "# What the filters of the curation find of what was planted",
        "",
        f"`python benchmarks/training/curation.py`: {held}. Best of 16 by the workflow `direct` over HTTP.",
        "",
        "| planted | questions | precision of the filter | recall |",
        "|---|---|---|---|",
        *(f"| {name} | {many} | {precision:.3f} | {recall:.3f} |" for name, precision, recall, many in rows),
        "",
        f"Good questions that best of 16 removes: {100 * lost:.1f} %.",
        "",
        false_alarms,
        "",
        BASE_RATE.format(expected=expected, ambiguous=counts["ambiguous"], every=counts.total()),
        "",
        *(f"- expected and {'found' if good else 'NOT found'}: {name}" for name, good in met.items()),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
