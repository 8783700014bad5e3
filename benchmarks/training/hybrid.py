"""Rubric generators in miniature: preferences, a judge's taste, and both, as rewards.

    python benchmarks/training/hybrid.py            prints the figures
    python benchmarks/training/hybrid.py --write    also writes results/training_hybrid.md

The generator is a table: for each topic a score for each of 24 criteria, of which a rubric takes seven by chance. The
reward, the score of a report by a rubric, the advantages and the figures are hira's own; only the language model is not
there. People prefer by a few criteria of the topic, with noise. A judge of rubrics has a taste that is partly (its
alignment, from 0 to 1) that of people.

Expected, stated before the run, in preference accuracy on pairs that were not trained on:
1. hybrid is at least judge-only at every alignment (less than 0.01 under it is chance);
2. where the judge is aligned (0.5 and more), hybrid is at least preference-only;
3. where it is not (0), hybrid is under preference-only, and a judge scaled to a quarter does less harm.
"""

import argparse
from pathlib import Path

import numpy as np

from hira.evaluation.preferences.figures import agreement
from hira.evaluation.statistics import Interval, bootstrap
from hira.rewards.hybrid import Parts, Weights, preference, total
from hira.rewards.rubric import normalised
from hira.trainers.credit.grpo import grpo
from hira.trainers.group import Attempt, Group
from hira.trainers.rows import Row

RESULTS = Path(__file__).parents[1] / "results" / "training_hybrid.md"
TOPICS, CRITERIA, ITEMS = 6, 24, 7
PAIRS, TEST = 20, 100
"""Pairs a topic, in training and in the test."""
UPDATES, GROUP, RATE, SEEDS = 120, 8, 0.5, 6
ALIGNMENTS = (0.0, 0.25, 0.5, 0.75)
REWARDS = {
    "preference only": Weights(quality=0.0),
    "judge only": Weights(preference=0.0),
    "hybrid (the paper's weights)": Weights(),
    "hybrid, judge scaled to a quarter": Weights(judge_scale=0.25),
}


class World:
    """What people care about in each topic, and pairs of reports of which they preferred one."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.cares = np.zeros((TOPICS, CRITERIA))
        for topic in range(TOPICS):
            self.cares[topic, self.chance.choice(CRITERIA, ITEMS, replace=False)] = self.chance.uniform(0.5, 1.5, ITEMS)
        self.other = self.chance.permuted(self.cares, axis=1)
        self.weights = self.chance.integers(1, 6, CRITERIA)
        self.train, self.test = self.pairs(PAIRS), self.pairs(TEST)

    def pairs(self, many: int) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        """For each topic pairs of ratings, 1 to 10 for each criterion, the preferred report first."""
        made = []
        for cares in self.cares:
            own = []
            for _ in range(many):
                one, other = self.chance.integers(1, 11, (2, CRITERIA))
                better = (one - other) @ cares / 9 + self.chance.logistic(0, 0.8) > 0
                own.append((one, other) if better else (other, one))
            made.append(own)
        return made

    def quality(self, topic: int, chosen: np.ndarray, alignment: float) -> float:
        """What the judge gives a rubric, 0 to 4: how much of its taste the rubric has, of the most that seven could."""
        taste = alignment * self.cares[topic] + (1 - alignment) * self.other[topic]
        most = np.sort(taste)[-ITEMS:].sum()
        noisy = 4 * taste[chosen].sum() / most + self.chance.normal(0, 0.3)
        return float(np.clip(noisy, 0, 4))

    def margin(self, chosen: np.ndarray, pair: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
        own = chosen
        first, second = (normalised(self.weights[own], (ratings[own] - 1) / 9) for ratings in pair)
        return float(first), float(second)


def drawn(scores: np.ndarray, many: int, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """So many rubrics: seven criteria each, one after another from the softmax of what is left (which is to take the
    first seven by scores with Gumbel noise), and the gradients of their log-probabilities. Shapes (many, 7), (many, K).
    """
    noisy = scores + chance.gumbel(size=(many, CRITERIA))
    chosen = np.argsort(-noisy, axis=1)[:, :ITEMS]
    left, gradient, rows = (
        np.tile(np.exp(scores - scores.max()), (many, 1)),
        np.zeros((many, CRITERIA)),
        np.arange(many),
    )
    for at in range(ITEMS):
        gradient -= left / left.sum(axis=1, keepdims=True)
        gradient[rows, chosen[:, at]] += 1
        left[rows, chosen[:, at]] = 0.0
    return chosen, gradient


def row(topic: int, number: int) -> Row:
    return Row(str(topic), str(number), "rubric", "rubric", (topic,), (1,), (1,), (0.0,))


def learned(world: World, weights: Weights, alignment: float, seed: int) -> np.ndarray:
    """The table after GRPO with that reward."""
    chance, scores = np.random.default_rng(1000 + seed), np.zeros((TOPICS, CRITERIA))
    for update in range(UPDATES):
        gradients, groups = {}, []
        for topic in range(TOPICS):
            pair = world.train[topic][update % PAIRS]
            attempts = []
            rubrics, gradients[topic] = drawn(scores[topic], GROUP, chance)
            for number, chosen in enumerate(rubrics):
                ordered = preference(*world.margin(chosen, pair))
                parts = Parts(ordered, world.quality(topic, chosen, alignment), 0.0)
                attempts.append(Attempt(number, (row(topic, number),), total(parts, weights)))
            groups.append(Group(str(topic), tuple(attempts)))
        for one in grpo(groups).rows:
            topic = int(one.row.question)
            scores[topic] += RATE * one.advantage * gradients[topic][int(one.row.rollout)] / GROUP
    return scores


def examined(world: World, scores: np.ndarray, seed: int) -> list[float]:
    """Margins on the test's pairs, by rubrics that are drawn anew for each."""
    chance = np.random.default_rng(5000 + seed)
    margins = []
    for topic in range(TOPICS):
        for pair, chosen in zip(world.test[topic], drawn(scores[topic], TEST, chance)[0], strict=True):
            accepted, rejected = world.margin(chosen, pair)
            margins.append(accepted - rejected)
    return margins


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    accuracy: dict[tuple[str, float], Interval] = {}
    effect: dict[tuple[str, float], float] = {}
    for alignment in ALIGNMENTS:
        for name, weights in REWARDS.items():
            shares, effects = [], []
            for seed in range(SEEDS):
                world = World(seed)
                found = agreement(name, examined(world, learned(world, weights, alignment, seed), seed), draws=20)
                assert found.accuracy
                assert found.d
                shares.append(found.accuracy.value)
                effects.append(found.d.value)
            accuracy[name, alignment] = bootstrap(shares)
            effect[name, alignment] = sum(effects) / SEEDS
    untrained = [
        agreement("", examined(World(seed), np.zeros((TOPICS, CRITERIA)), seed), draws=20) for seed in range(SEEDS)
    ]
    before = sum(one.accuracy.value for one in untrained if one.accuracy) / SEEDS
    told = written(accuracy, effect, before)
    print(told)
    if parser.parse_args().write:
        RESULTS.write_text(told, encoding="utf-8")


def written(accuracy: dict[tuple[str, float], Interval], effect: dict[tuple[str, float], float], before: float) -> str:
    preferring, judging, hybrid, scaled = REWARDS
    value = {key: one.value for key, one in accuracy.items()}
    met = {
        "hybrid is at least judge-only at every alignment": all(
            value[hybrid, at] >= value[judging, at] - 0.01 for at in ALIGNMENTS
        ),
        "where the judge is aligned, hybrid is at least preference-only": all(
            value[hybrid, at] >= value[preferring, at] for at in ALIGNMENTS if at >= 0.5
        ),
        "where it is not, hybrid is under preference-only": value[hybrid, 0.0] < value[preferring, 0.0],
        "and a judge scaled to a quarter does less harm": value[scaled, 0.0] > value[hybrid, 0.0],
    }
    about = (
        f"`python benchmarks/training/hybrid.py`: {TOPICS} topics, {PAIRS} pairs each to train on and {TEST} to test, "
        f"{UPDATES} updates of groups of {GROUP}, {SEEDS} seeds. Preference accuracy on the test's pairs, in brackets "
        f"its 95 % interval over seeds, then Cohen's d. Untrained: {100 * before:.1f} %."
    )
    lines = [
        "# The hybrid reward of a rubric generator, in miniature",
        "",
        about,
        "",
        "| reward | " + " | ".join(f"judge aligned {at:g}" for at in ALIGNMENTS) + " |",
        "|---|" + "---|" * len(ALIGNMENTS),
    ]
    for name in REWARDS:
        cells = []
        for at in ALIGNMENTS:
            one = accuracy[name, at]
            cells.append(f"{100 * one.value:.1f} ({100 * one.low:.1f}–{100 * one.high:.1f}), d {effect[name, at]:.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    apart = ", ".join(f"{100 * (value[hybrid, at] - value[judging, at]):+.1f} at {at:g}" for at in ALIGNMENTS)
    lines += ["", f"Hybrid minus judge-only, in points: {apart}."]
    if value[hybrid, ALIGNMENTS[-1]] < value[judging, ALIGNMENTS[-1]]:
        lines += ["Preferences are noisy: a judge who nearly shares the taste of people is the better teacher alone."]
    lines += ["", *(f"- expected and {'found' if good else 'NOT found'}: {name}" for name, good in met.items()), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
