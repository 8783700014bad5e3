"""Rubric generators in miniature: preferences, a judge's taste, and both, as rewards.

    python benchmarks/training/hybrid.py            prints the figures
    python benchmarks/training/hybrid.py --write    also writes results/training_hybrid.md

The generator is a table: for each topic a score for each of 24 criteria, of which a rubric takes seven by chance. The
reward, the score of a report by a rubric, the advantages and the figures are hira's own; only the language model is not
there. People prefer by seven criteria of the topic, with noise. A judge of rubrics likes seven criteria, too: of those
of people as many as its alignment says (0, 2, 4, 5 and all 7 of 7), the others as chance has it.

Differences are paired by seed, each with its 95 % interval. An expectation "at least" is found if the mean difference
is not negative, not decided if the interval holds 0, and not found if it lies under 0. Expected, stated before the
run, in preference accuracy on pairs that were not trained on:
1. hybrid is at least judge-only at every alignment under 1;
2. where the judge is aligned (0.5 and more), hybrid is at least preference-only;
3. where it is not (0), hybrid is under preference-only, and a judge scaled to a quarter does less harm;
4. at 1 hybrid is under judge-only: such a judge is right without noise, and preferences have some.
"""

import argparse
from pathlib import Path

import numpy as np

from hira.evaluation.preferences import agreement
from hira.evaluation.rewards.rubrics import RewardParts, RewardWeights, preference, total
from hira.evaluation.statistics import Interval, bootstrap
from hira.trainers.credit.grpo import grpo
from hira.trainers.rows import Attempt, Group, Row
from hira.workflows.mams.rubrics import normalise_score

RESULTS = Path(__file__).parents[1] / "results" / "training_hybrid.md"
TOPICS, CRITERIA, ITEMS = 6, 24, 7
PAIRS, TEST = 20, 100
"""Pairs a topic, in training and in the test."""
UPDATES, GROUP, RATE, SEEDS = 120, 8, 0.5, 24
ALIGNMENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
PREFERRING, JUDGING, HYBRID, SCALED = (
    "preference only",
    "judge only",
    "hybrid (the paper's weights)",
    "hybrid, judge scaled to a quarter",
)
REWARDS = {
    PREFERRING: RewardWeights(quality=0.0),
    JUDGING: RewardWeights(preference=0.0),
    HYBRID: RewardWeights(),
    SCALED: RewardWeights(judge_scale=0.25),
}
EARLIER = "## Until the judge was mended"
"""Begins what the page tells of figures that a program before this one made; it is kept as it is."""
Found = dict[tuple[str, float], list[float]]
"""A figure of each seed, by reward and alignment."""


class World:
    """What people care about in each topic, and pairs of reports of which they preferred one."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.cares = np.zeros((TOPICS, CRITERIA))
        for topic in range(TOPICS):
            self.cares[topic, self.chance.choice(CRITERIA, ITEMS, replace=False)] = self.chance.uniform(0.5, 1.5, ITEMS)
        self.orders = [self.chance.permutation(np.flatnonzero(cares)) for cares in self.cares]
        self.others = [self.chance.permutation(CRITERIA) for _ in self.cares]
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
        taste = self.taste(topic, alignment)
        most = np.sort(taste)[-ITEMS:].sum()
        noisy = 4 * taste[chosen].sum() / most + self.chance.normal(0, 0.3)
        return float(np.clip(noisy, 0, 4))

    def taste(self, topic: int, alignment: float) -> np.ndarray:
        """What the judge likes, (K,): some of what people care for, and for each of the rest a criterion by chance."""
        order = self.orders[topic]
        kept = order[: round(alignment * ITEMS)]
        moved = [one for one in self.others[topic] if one not in kept][: ITEMS - len(kept)]
        taste = np.zeros(CRITERIA)
        taste[[*kept, *moved]] = self.cares[topic][order]
        return taste

    def favourites(self, alignment: float) -> float:
        """The accuracy on the test's pairs of the rubrics that the judge likes best."""
        chosen = [np.argsort(-self.taste(topic, alignment))[:ITEMS] for topic in range(TOPICS)]
        scores = [self.margin(own, pair) for own, pairs in zip(chosen, self.test, strict=True) for pair in pairs]
        return sum(accepted > rejected for accepted, rejected in scores) / len(scores)

    def margin(self, chosen: np.ndarray, pair: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
        first, second = (normalise_score(self.weights[chosen], (ratings[chosen] - 1) / 9) for ratings in pair)
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


def learned(world: World, weights: RewardWeights, alignment: float, seed: int) -> np.ndarray:
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
                parts = RewardParts(ordered, world.quality(topic, chosen, alignment), 0.0)
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


def measured() -> tuple[Found, Found]:
    """Accuracy and Cohen's d of every reward at every alignment; preferences alone do not hang on the judge's."""
    accuracy: Found = {}
    effect: Found = {}
    for name, weights in REWARDS.items():
        for alignment in ALIGNMENTS:
            if name == PREFERRING and alignment != ALIGNMENTS[0]:
                for figures in (accuracy, effect):
                    figures[name, alignment] = figures[name, ALIGNMENTS[0]]
                continue
            accuracy[name, alignment], effect[name, alignment] = [], []
            for seed in range(SEEDS):
                world = World(seed)
                found = agreement(name, examined(world, learned(world, weights, alignment, seed), seed), draws=20)
                assert found.accuracy
                assert found.d
                accuracy[name, alignment].append(found.accuracy.value)
                effect[name, alignment].append(found.d.value)
    return accuracy, effect


def untrained() -> float:
    found = [
        agreement("", examined(World(seed), np.zeros((TOPICS, CRITERIA)), seed), draws=20) for seed in range(SEEDS)
    ]
    return sum(one.accuracy.value for one in found if one.accuracy) / SEEDS


def apart(accuracy: Found, one: str, other: str, alignment: float) -> Interval:
    """How much more accurate one reward is than another, in points, paired by seed."""
    both = zip(accuracy[one, alignment], accuracy[other, alignment], strict=True)
    return bootstrap([100 * (mine - its) for mine, its in both])


def at_least(differences: list[Interval]) -> str:
    if any(one.high < 0 for one in differences):
        return "NOT found"
    return "found" if all(one.value >= 0 for one in differences) else "not decided (an interval holds 0)"


def under(difference: Interval) -> str:
    if difference.low > 0:
        return "NOT found"
    return "found" if difference.high < 0 else "not decided (the interval holds 0)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    told = written(*measured())
    print(told)
    if asked.write:
        _, begun, earlier = RESULTS.read_text(encoding="utf-8").partition(EARLIER)
        RESULTS.write_text(f"{told}\n{begun}{earlier}" if begun else told, encoding="utf-8")


def written(accuracy: Found, effect: Found) -> str:
    best = [sum(World(seed).favourites(at) for seed in range(SEEDS)) / SEEDS for at in ALIGNMENTS]
    about = (
        f"`python benchmarks/training/hybrid.py`: {TOPICS} topics, {PAIRS} pairs each to train on and {TEST} to test, "
        f"{UPDATES} updates of groups of {GROUP}, {SEEDS} seeds. Preference accuracy on the test's pairs, in brackets "
        f"its 95 % interval over seeds, then Cohen's d. Untrained: {100 * untrained():.1f} %."
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
            one, d = bootstrap(accuracy[name, at]), sum(effect[name, at]) / SEEDS
            cells.append(f"{100 * one.value:.1f} ({100 * one.low:.1f}–{100 * one.high:.1f}), d {d:.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines.append("| *the rubrics that the judge likes best* | " + " | ".join(f"{100 * one:.1f}" for one in best) + " |")
    lines += ["", *differences(accuracy), "", alike(accuracy), "", *verdicts(accuracy), ""]
    return "\n".join(lines)


def differences(accuracy: Found) -> list[str]:
    lines = ["| difference in points, paired by seed | " + " | ".join(f"{at:g}" for at in ALIGNMENTS) + " |"]
    lines.append("|---|" + "---|" * len(ALIGNMENTS))
    for one, other in ((HYBRID, JUDGING), (HYBRID, PREFERRING), (SCALED, HYBRID), (SCALED, JUDGING)):
        found = [apart(accuracy, one, other, at) for at in ALIGNMENTS]
        cells = [f"{each.value:+.1f} ({each.low:+.1f} to {each.high:+.1f})" for each in found]
        lines.append(f"| {one} − {other} | " + " | ".join(cells) + " |")
    return lines


def alike(accuracy: Found) -> str:
    """Where the expectation that matters most is found by less than can be told from chance."""
    found = {at: apart(accuracy, HYBRID, JUDGING, at) for at in ALIGNMENTS}
    held = ", ".join(f"{at:g}" for at, one in found.items() if one.low <= 0 <= one.high)
    return (
        f"Hybrid and judge-only cannot be told apart (the interval of their difference holds 0) at: {held or 'none'}."
    )


def verdicts(accuracy: Found) -> list[str]:
    worst, best = ALIGNMENTS[0], ALIGNMENTS[-1]
    judged = [apart(accuracy, HYBRID, JUDGING, at) for at in ALIGNMENTS if at < best]
    preferred = [apart(accuracy, HYBRID, PREFERRING, at) for at in ALIGNMENTS if at >= 0.5]
    found = {
        "hybrid is at least judge-only at every alignment under 1": at_least(judged),
        "where the judge is aligned (0.5 and more), hybrid is at least preference-only": at_least(preferred),
        "where it is not (0), hybrid is under preference-only": under(apart(accuracy, HYBRID, PREFERRING, worst)),
        "and a judge scaled to a quarter does less harm": under(apart(accuracy, HYBRID, SCALED, worst)),
        "at 1 hybrid is under judge-only": under(apart(accuracy, HYBRID, JUDGING, best)),
    }
    return [f"- expected and {verdict}: {name}" for name, verdict in found.items()]


if __name__ == "__main__":
    main()
