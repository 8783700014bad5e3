"""What a Verifier learns from which reward, and from which solutions: two experiments in miniature.

    python benchmarks/training/verdicts.py [--seeds 8] [--write]

Rewards, sampling and credit are hira's own (`hira.evaluation.rewards.answers`, `hira.trainers.agentic`,
`hira.trainers.credit.marsrl`); what is small is the policy. A Verifier sees of a solution one number, drawn around +1
if the solution is right and around -1 if it is wrong, with a deviation of 1.2, and flags it with the probability
σ(a - b·number); a and b are learned. Problems are of several difficulties. As in MarsRL there are 8 solutions of each
problem, 2 of them are picked, and 8 verdicts are sampled of each.

1. Reward of the agent against reward of the trajectory. The Solver is right in about 65 %, the Corrector mends half of
   the wrong solutions that are flagged, and spoils a tenth of the right ones. The reward of the trajectory is whether
   the answer at its end is right; that of the agent, whether the verdict is true (MarsRL, section 3.2).
   Expected before the run: the Verifier's accuracy is higher by 0.04 or more, its false alarms are 0.6 times or fewer.
   Recall may well be lower: the reward of the trajectory pays for flagging too much where a Corrector rarely spoils.

2. Sampling (section 3.4). The Solver is right in about 86 %.
   Expected before the run: the recall of errors is highest with adaptive sampling, then balanced, then random. The
   accuracy on solutions as they come, not as they are picked, may well go the other way; it is shown beside it.
"""

import argparse
import math
import platform
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from hira.evaluation.rewards.answers import of_verdict
from hira.trainers.agentic import Strategy, picks
from hira.trainers.calls import seed_of
from hira.trainers.credit import marsrl
from hira.trainers.rows import Attempt, Group, Row

RESULTS = Path(__file__).parents[1] / "results" / "verdicts.md"
PROBLEMS, SIZE, PICKS, UPDATES, RATE = 16, 8, 2, 300, 0.3
NOISE, MENDED, SPOILED = 1.2, 0.5, 0.1
EXAMINED = 20_000
MORE, FEWER = 0.04, 0.6


@dataclass(slots=True)
class Verifier:
    a: float = 0.0
    b: float = 0.2

    def flags(self, seen: float) -> float:
        """The probability that it flags what it has seen."""
        return 1 / (1 + math.exp(-(self.a - self.b * seen)))


@dataclass(frozen=True, slots=True)
class Shown:
    """A solution: whether it is right, and what the Verifier sees of it."""

    right: bool
    seen: float


Paid = Callable[[bool, bool, random.Random], float]
"""The reward of a verdict: whether it flags, whether the solution is right."""


def by_agent(flagged: bool, right: bool, chance: random.Random) -> float:  # noqa: FBT001
    del chance
    return of_verdict(accepts=not flagged, right=right)


def by_trajectory(flagged: bool, right: bool, chance: random.Random) -> float:  # noqa: FBT001
    """Whether the answer is right in the end: the solution if it was accepted, else what the Corrector makes of it."""
    if not flagged:
        return float(right)
    return float(chance.random() >= SPOILED) if right else float(chance.random() < MENDED)


def solutions(level: float, many: int, chance: random.Random) -> list[Shown]:
    """Solutions of one problem. `level` is about the share of right ones over problems; some are harder."""
    ease = 1 / (1 + math.exp(-(math.log(level / (1 - level)) * 1.3 + chance.gauss(0, 1.5))))
    made = []
    for _ in range(many):
        right = chance.random() < ease
        made.append(Shown(right, chance.gauss(1 if right else -1, NOISE)))
    return made


def trained(level: float, paid: Paid, strategy: Strategy, seed: int) -> Verifier:
    verifier, chance = Verifier(), random.Random(seed)
    for update in range(UPDATES):
        groups: list[Group] = []
        shown: dict[str, Shown] = {}
        flagged: dict[str, bool] = {}
        for problem in range(PROBLEMS):
            made = solutions(level, SIZE, chance)
            taken = picks(
                [float(one.right) for one in made], strategy, first=0, seed=seed_of(seed, update, problem), most=PICKS
            )
            for at in taken:
                attempts = []
                for number in range(SIZE):
                    name = f"{problem}/{at}/{number}"
                    shown[name], flagged[name] = made[at], chance.random() < verifier.flags(made[at].seen)
                    row = Row("", name, "verifier", "2/verifier1/verifier", (problem, at), (0,), (1,), (-1.0,))
                    attempts.append(Attempt(number, (row,), paid(flagged[name], made[at].right, chance)))
                groups.append(Group(f"{problem}.2.{at}", tuple(attempts)))
        credited = marsrl(groups)
        steps = [0.0, 0.0]
        for one in credited.rows:
            solution = shown[one.row.rollout]
            pull = one.advantage * one.weight * (flagged[one.row.rollout] - verifier.flags(solution.seen))
            steps[0] += pull / credited.normaliser
            steps[1] -= pull * solution.seen / credited.normaliser
        verifier = Verifier(verifier.a + RATE * steps[0], verifier.b + RATE * steps[1])
    return verifier


@dataclass(frozen=True, slots=True)
class Exam:
    accuracy: float
    recall: float
    alarms: float
    precision: float

    @property
    def balanced(self) -> float:
        return (self.recall + 1 - self.alarms) / 2


def examined(verifier: Verifier, level: float, seed: int) -> Exam:
    """On solutions as they come."""
    chance = random.Random(f"exam {seed}")
    right = wrong = alarms = found = 0.0
    for _ in range(EXAMINED):
        (one,) = solutions(level, 1, chance)
        flag = verifier.flags(one.seen)
        right, wrong = right + one.right, wrong + (not one.right)
        alarms, found = alarms + flag * one.right, found + flag * (not one.right)
    return Exam((right - alarms + found) / (right + wrong), found / wrong, alarms / right, found / (found + alarms))


def rewards(seeds: Sequence[int]) -> dict[str, list[Exam]]:
    return {
        name: [examined(trained(0.65, paid, "random", seed), 0.65, seed) for seed in seeds]
        for name, paid in (("the trajectory's", by_trajectory), ("the agent's", by_agent))
    }


def strategies(seeds: Sequence[int]) -> dict[str, list[Exam]]:
    kinds: tuple[Strategy, ...] = ("random", "balanced", "adaptive")
    return {kind: [examined(trained(0.86, by_agent, kind, seed), 0.86, seed) for seed in seeds] for kind in kinds}


COLUMNS = ("accuracy", "recall", "alarms", "precision", "balanced")
HEAD = (
    "| {0} | accuracy as they come | recall of errors | false alarms | precision | balanced accuracy |\n"
    "|---|---|---|---|---|---|"
)


def table(first: str, found: dict[str, list[Exam]]) -> str:
    lines = [HEAD.format(first)]
    for name, exams in found.items():
        cells = []
        for column in COLUMNS:
            values = [float(getattr(one, column)) for one in exams]
            cells.append(f"{mean(values):.3f} ± {stdev(values):.3f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=8)
    options.add_argument("--write", action="store_true")
    asked = options.parse_args()
    seeds = range(asked.seeds)
    first, second = rewards(seeds), strategies(seeds)
    text = f"""# What a Verifier learns

Made by `python benchmarks/training/verdicts.py --seeds {asked.seeds} --write`: Python {platform.python_version()}, mean
and deviation over seeds. A policy of two parameters; rewards, sampling and credit are hira's. What was expected before
the run stands in the file.

## From which reward

{table("reward", first)}

{gap(first)}

## From which solutions

{table("sampling", second)}

{order(second)} MarsRL reports more accuracy and more recall with adaptive sampling
(Fig. 5), without saying of which solutions; as they come, a Verifier that has learned to expect errors is right less
often here. `verifier1/recall`, `false_alarms` and `natural` show both in a training run.
"""
    print(text)
    if asked.write:
        RESULTS.write_text(text, encoding="utf-8")


def gap(found: dict[str, list[Exam]]) -> str:
    whole, own = found["the trajectory's"], found["the agent's"]
    gained = mean(one.accuracy for one in own) - mean(one.accuracy for one in whole)
    alarms = mean(one.alarms for one in own) / mean(one.alarms for one in whole)
    recall = mean(one.recall for one in own) - mean(one.recall for one in whole)
    return (
        f"Expected and {verdict(gained >= MORE and alarms <= FEWER)}: accuracy higher by {MORE} or more, false alarms "
        f"{FEWER} times or fewer. It is {gained:+.3f}, and {alarms:.2f} times; recall {recall:+.3f}."
    )


def order(found: dict[str, list[Exam]]) -> str:
    recall = {kind: mean(one.recall for one in exams) for kind, exams in found.items()}
    rises = recall["adaptive"] > recall["balanced"] > recall["random"]
    told = " > ".join(f"{recall[kind]:.3f}" for kind in ("adaptive", "balanced", "random"))
    return f"Expected and {verdict(rises)}: recall adaptive > balanced > random{f' ({told})' if rises else ''}."


def verdict(holds: bool) -> str:  # noqa: FBT001
    return "found" if holds else "NOT found"


if __name__ == "__main__":
    main()
