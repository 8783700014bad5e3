"""MATPO's ablations in miniature (paper 2510.04678, Fig. 6): what each part of it is worth while a policy learns.

    python benchmarks/training/matpo.py                       all variants, prints the figures
    python benchmarks/training/matpo.py --only full --write   some of them; also writes results/training_matpo.md

What it is: the real workflow `MATPO` with its fields `recap` and `summary`, real requests, calls and searches, the
project's rollouts, rows, reward and credit, and a policy of a handful of parameters (`keepers.py`) that samples, and
is improved along the gradient of the loss that credit defines, by Adam. What it is not: language, or the trainer of
weights, which has tests of its own against the same loss. All variants begin alike, have as many rollouts, and are
judged at temperature 1 on towns that nobody asked about in training.

Expected, stated before the first run, for the mean over the seeds:

    full MATPO                    at least 0.75, and above every other by at least MARGIN = 0.15
    no recap of the question      in between: a worker has to guess unless the planner learns to write subtasks in full
    no final summary              in between: either role has to learn not to end with words that say nothing
    credit to the planner only    within 0.15 of where it began: who reads the page learns nothing
    mask of the released code     not below planner only by more than 0.1, and below full by MARGIN

`mask of the released code` is what MATPO's published code does: it broadcasts to the workers an advantage that has been
multiplied by the *planner's* mask, so that a worker's token counts only where the planner had sampled one, too.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import keepers

from hira.evaluation.rewards.answers import ByWords, WithFormat
from hira.evaluation.rewards.match import exact
from hira.runtime.factory import open_session
from hira.runtime.settings import Settings
from hira.trainers.configuration import RolloutConfig
from hira.trainers.credit import Credit, matpo
from hira.trainers.demo.recipe import DAY
from hira.trainers.metrics import summarise_scores
from hira.trainers.rollouts import Rollouts
from hira.trainers.rows import Credited, Group, Row
from hira.workflows.matpo import MATPO

RESULTS = Path(__file__).parents[1] / "results" / "training_matpo.md"
MARGIN = 0.15
SILENT = (
    "With it workers learned no more than with credit to the planner only: the words that decide, in their reports, "
    "all stand where the planner is silent. Longer conversations leave some of them."
)
FULL = MATPO(max_subtasks=3, worker_calls=3)
REWARD = WithFormat(ByWords(exact))


@dataclass(frozen=True)
class Sizes:
    """How much is done: updates of so many rollouts at this rate, and attempts at each question of the exam."""

    updates: int = 24
    questions: int = 4
    attempts: int = 8
    rate: float = 0.1
    exam: int = 8


@dataclass(frozen=True)
class Variant:
    workflow: MATPO = FULL
    credit: Credit = matpo


def planner_only(groups: Sequence[Group]) -> Credited:
    """GRPO on the planner's conversation: what workers said is left as it is."""
    own = [
        replace(
            group,
            attempts=tuple(
                replace(one, rows=tuple(row for row in one.rows if row.role == "planner")) for one in group.attempts
            ),
        )
        for group in groups
    ]
    return matpo(own)


def released_mask(groups: Sequence[Group]) -> Credited:
    """MATPO with the fault of its published code: the advantage of a worker's token stands at the token's place in the
    reply of the *planner*, and is 0 wherever that one had not sampled, or had ended. Weights stay what they were."""
    credited = matpo(groups)
    planners = {one.row.rollout: one.row for one in credited.rows if one.row.role == "planner" and not one.row.part}

    def faulty(row: Row) -> Row:
        over = planners[row.rollout].mask
        return replace(row, mask=tuple(own * (over[at] if at < len(over) else 0) for at, own in enumerate(row.mask)))

    rows = [one if one.row.role == "planner" else replace(one, row=faulty(one.row)) for one in credited.rows]
    kept = sum(one.row.tokens for one in rows if one.row.role != "planner")
    there = sum(one.row.tokens for one in credited.rows if one.row.role != "planner")
    told = {"worker/without_advantage": 1 - kept / there} if there else {}
    return replace(credited, rows=tuple(one for one in rows if one.row.tokens), figures=told)


VARIANTS: dict[str, Variant] = {
    "full": Variant(),
    "no recap": Variant(replace(FULL, recap=False)),
    "no final summary": Variant(replace(FULL, summary=False)),
    "planner only": Variant(credit=planner_only),
    "released mask": Variant(credit=released_mask),
}


def gradient(novice: keepers.Novice, credited: Credited) -> dict[str, float]:
    """The gradient of J = (1/Z) Σ_i Σ_t m_it w_i A_i log π by each weight: that of the loss where ρ = 1, negated."""
    found = dict.fromkeys(novice.weights, 0.0)
    for one in credited.rows:
        for id_, own in zip(one.row.completion, one.row.mask, strict=True):
            if own and id_ in novice.decisions:
                options, taken = novice.decisions[id_]
                for at, (name, chance) in enumerate(zip(options, novice.chances(options), strict=True)):
                    if name:
                        step = one.weight * one.advantage / credited.normaliser
                        found[name] += step * (float(at == taken) - chance)
    return found


@dataclass(frozen=True)
class Learned:
    """Success on what is held out before and after, rewards by update, what credit told last, and the weights."""

    before: float
    after: float
    rewards: list[float]
    told: dict[str, float]
    weights: dict[str, float]
    seconds: float


async def learned(name: str, folder: Path, sizes: Sizes = Sizes(), seed: int = 0) -> Learned:
    import torch

    variant, world, novice = VARIANTS[name], keepers.made(seed), keepers.Novice()
    began = time.perf_counter()
    world.write(folder / "documents")
    settings = Settings(model="offline", docs=(folder / "documents",), workflow="matpo", sandbox="off")
    context = await open_session(settings, policies={"*": novice}, workflow=variant.workflow)
    asked, workflow = context.open_context, variant.workflow
    exam = Rollouts(asked, workflow, world.problems(held_out=True), REWARD, seed=seed, day=DAY)
    rollouts = Rollouts(
        asked,
        workflow,
        world.problems(held_out=False),
        REWARD,
        config=RolloutConfig(questions=sizes.questions, attempts=sizes.attempts, concurrency=256, samples=0),
        seed=seed,
        day=DAY,
    )
    weights = torch.tensor([*novice.weights.values()], dtype=torch.float64)
    adam = torch.optim.Adam([weights], lr=sizes.rate, maximize=True)
    rewards, told = list[float](), dict[str, float]()
    try:
        before = summarise_scores(await exam.examine(sizes.exam), "right")["right"] or 0.0
        for update in range(sizes.updates):
            novice.forget()
            groups = (await rollouts.collect(update)).groups
            credited = variant.credit(groups)
            told = dict(credited.figures)
            weights.grad = torch.tensor([*gradient(novice, credited).values()], dtype=torch.float64)
            adam.step()
            novice.weights.update(zip(novice.weights, weights.tolist(), strict=True))
            rewards.append(statistics.mean(one.reward or 0.0 for group in groups for one in group.counting))
        novice.forget()
        after = summarise_scores(await exam.examine(sizes.exam), "right")["right"] or 0.0
    finally:
        await context.aclose()
    return Learned(before, after, rewards, told, novice.weights, time.perf_counter() - began)


def ran(
    names: Sequence[str], seeds: int, sizes: Sizes = Sizes(), tell: Callable[[str], None] = lambda _: None
) -> dict[str, list[Learned]]:
    found: dict[str, list[Learned]] = {}
    with tempfile.TemporaryDirectory() as place:
        for name in names:
            for seed in range(seeds):
                one = asyncio.run(learned(name, Path(place) / f"{seed}", sizes, seed))
                found.setdefault(name, []).append(one)
                tell(f"{name}, seed {seed}: {one.before:.2f} -> {one.after:.2f} in {one.seconds:.0f} s")
    return found


def mean(found: dict[str, list[Learned]], name: str) -> float:
    return statistics.mean(one.after for one in found[name])


def missed(found: dict[str, list[Learned]]) -> list[str]:
    """What of the expectation was not found."""
    full = mean(found, "full")
    wrong = [f"full reaches {full:.2f}, not 0.75"] if full < 0.75 else []
    wrong += [
        f"full is not {MARGIN} above {name}" for name in found if name != "full" and full < mean(found, name) + MARGIN
    ]
    if "planner only" in found:
        began = statistics.mean(one.before for one in found["planner only"])
        if abs(mean(found, "planner only") - began) > MARGIN:
            wrong.append("planner only does not stay where it began")
        if "released mask" in found and mean(found, "released mask") < mean(found, "planner only") - 0.1:
            wrong.append("the released mask is below planner only")
    return wrong


def report(found: dict[str, list[Learned]], sizes: Sizes) -> str:
    told = (
        f"`python benchmarks/training/matpo.py`: {sizes.updates} updates of {sizes.questions} x {sizes.attempts} "
        f"rollouts of the real workflow by a policy of {len(keepers.HABITS)} parameters, {len(found['full'])} seeds. "
        f"Success at temperature 1 on held-out questions, {sizes.exam} attempts each; in brackets by seed. This shows "
        "what credit and protocol do, and nothing about language."
    )
    lines = [
        "# MATPO's parts in miniature",
        "",
        told,
        "",
        "| variant | before | after | mean reward of the last 4 updates | seconds a run |",
        "|---|---|---|---|---|",
    ]
    for name, runs in found.items():
        before, after = (statistics.mean(getattr(one, when) for one in runs) for when in ("before", "after"))
        each = ", ".join(f"{one.after:.2f}" for one in runs)
        reward = statistics.mean(statistics.mean(one.rewards[-4:]) for one in runs)
        seconds = statistics.mean(one.seconds for one in runs)
        lines.append(f"| {name} | {before:.2f} | {after:.2f} ({each}) | {reward:.2f} | {seconds:.0f} |")
    wrong = missed(found)
    came = f"NOT found: {'; '.join(wrong)}" if wrong else "found"
    lines += ["", f"Expected (in the program, before the first run) and {came}."]
    if "released mask" in found:
        lost = statistics.mean(one.told["worker/without_advantage"] for one in found["released mask"])
        lines.append(f"The fault of the released mask took the advantage from {lost:.0%} of the workers' tokens.")
        if [one.after for one in found["released mask"]] == [one.after for one in found.get("planner only", [])]:
            lines.append(SILENT)
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    names = list(dict.fromkeys(["full", *(given.only or VARIANTS)]))
    found = ran(names, given.seeds, tell=lambda line: print(line, flush=True))
    told = report(found, Sizes())
    print(told)
    if given.write:
        RESULTS.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
