"""MARS: what becomes of System 2's share of the update as System 1 speaks more and more often.

    python benchmarks/training/balance.py            prints the figures
    python benchmarks/training/balance.py --write    also writes results/training_balance.md

Expected, stated before the run: with all rows concatenated and every token alike, System 2's share of the loss's weight
falls with every step of n_k; balanced to G samples as MARS does, and with the mean taken by role, it stays at a half.
Balancing draws G of the samples that there are and so has the larger spread from one draw to the next.
"""

import argparse
import random
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from hira.trainers.credit import grpo, mars
from hira.trainers.group import Attempt, Credited, Group
from hira.trainers.rows import Row

RESULTS = Path(__file__).parents[1] / "results" / "training_balance.md"
QUESTIONS, ATTEMPTS, DRAWS = 32, 16, 10
CHUNKS = (1, 2, 4, 8, 20)
THOUGHT, DISTILLED = 600, 300


def row(role: str, name: str, tokens: int, chance: random.Random) -> Row:
    """A row of about so many sampled tokens. All of a role began with the same input, as concatenation has it."""
    size = max(1, round(chance.gauss(tokens, tokens / 4)))
    return Row("q", name, role, name, (1,), (2,) * size, (1,) * size, (-1.0,) * size)


def groups(chunks: int, seed: int) -> list[Group]:
    """Questions whose failures make System 1 speak about twice as often as successes do."""
    chance = random.Random(seed)
    made = []
    for question in range(QUESTIONS):
        attempts = []
        for number in range(ATTEMPTS):
            reward = float(chance.random() < 0.4)
            many = max(1, round(chance.gauss(chunks * (0.7 if reward else 1.3), chunks / 4)))
            rows = [row("system2", f"{number}", THOUGHT, chance)]
            rows += [row("system1", f"{number}.{at}", DISTILLED, chance) for at in range(many)]
            attempts.append(Attempt(number, tuple(rows), reward))
        made.append(Group(str(question), tuple(attempts)))
    return made


def share(credited: Credited) -> float:
    """System 2's part of the sum of |A| · w over all trained tokens."""
    held = {"system1": 0.0, "system2": 0.0}
    for one in credited.rows:
        held[one.row.role] += abs(one.advantage) * one.weight * one.row.tokens
    return held["system2"] / sum(held.values())


SCHEMES: dict[str, Callable[[Sequence[Group], int], Credited]] = {
    "concatenated, all tokens alike": lambda made, _: grpo(made, norm="dapo"),
    "concatenated, mean by row": lambda made, _: grpo(made),
    "MARS, balanced": lambda made, seed: mars(made, seed=seed),
    "mean by role": lambda made, _: mars(made, balance=False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    told = (
        f"`python benchmarks/training/balance.py`: {QUESTIONS} questions, {ATTEMPTS} rollouts each, {DRAWS} draws; the "
        "share is that of the sum of |advantage| x weight over tokens, in brackets its spread from draw to draw."
    )
    lines = [
        "# System 2's share of a MARS update",
        "",
        told,
        "",
        "| conversations of System 1 in a rollout | " + " | ".join(map(str, CHUNKS)) + " |",
        "|---|" + "---|" * len(CHUNKS),
    ]
    found: dict[str, list[float]] = {}
    for name, scheme in SCHEMES.items():
        cells = []
        for chunks in CHUNKS:
            draws = [share(scheme(groups(chunks, 7), seed)) for seed in range(DRAWS if "balanced" in name else 1)]
            found.setdefault(name, []).append(statistics.mean(draws))
            spread = f" (±{statistics.pstdev(draws):.3f})" if len(draws) > 1 else ""
            cells.append(f"{statistics.mean(draws):.2f}{spread}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    falling = found["concatenated, all tokens alike"]
    held = [one for name in ("MARS, balanced", "mean by role") for one in found[name]]
    met = all(a > b for a, b in pairwise(falling)) and all(0.45 < one < 0.55 for one in held)
    lines += [
        "",
        f"Expected and {'found' if met else 'NOT found'}: the first row falls, the last two stay at a half.",
        "",
    ]
    print("\n".join(lines))
    if parser.parse_args().write:
        RESULTS.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
