"""MARS: what becomes of System 2's share of the update as System 1 speaks more and more often.

    python benchmarks/training/balance.py            prints the figures
    python benchmarks/training/balance.py --write    also writes results/training_balance.md

Expected, stated before the run: with all rows concatenated and every token alike, System 2's share of the loss's weight
falls with every step of n_k; balanced to G samples as MARS does, and with the mean taken by role, it stays at a half.
Balancing draws G of the samples that there are and so has the larger spread from one draw to the next.
The same is measured on gradients: of a small language model whose weights both systems share, where successes say other
words than failures do. System 2's share |g2| / (|g1| + |g2|) falls with every step of n_k where all is concatenated, to
less than half of what it was; balanced and by role it stays within a fifth of what it was.
"""

import argparse
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from hira.trainers.credit import grpo, mars
from hira.trainers.rows import Attempt, Credited, Group, Row

RESULTS = Path(__file__).parents[1] / "results" / "training_balance.md"
QUESTIONS, ATTEMPTS, DRAWS = 32, 16, 10
CHUNKS = (1, 2, 4, 8, 20)
THOUGHT, DISTILLED = 600, 300
SHORTER = 50  # by how much rows are shorter where they go through a model
WORDS = 8  # that successes, or failures, of a system say


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


def spoken(group: Group, chance: random.Random) -> Group:
    """The group with words in its rows, fewer than there are tokens: those of the system, by success and failure."""

    def said(row: Row, reward: float) -> Row:
        size = max(1, row.tokens // SHORTER)
        first = 2 + WORDS * (2 * (row.role == "system2") + int(reward))
        ids = tuple(chance.randrange(first, first + WORDS) for _ in range(size))
        return replace(
            row, prompt=(int(row.role == "system2"),), completion=ids, mask=(1,) * size, logprobs=(0.0,) * size
        )

    attempts = tuple(
        replace(one, rows=tuple(said(row, float(one.reward or 0)) for row in one.rows)) for one in group.attempts
    )
    return replace(group, attempts=attempts)


def model() -> Any:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=2 + 4 * WORDS,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=64,
        )
    )


def gradient(made: Any, credited: Credited, role: str) -> float:
    """The length of the gradient of the loss's part that is the role's, where old and new policy are the same."""
    rows = [one for one in credited.rows if one.row.role == role]
    width = max(one.row.length for one in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    weights = torch.zeros(len(rows), width)
    for at, one in enumerate(rows):
        ids[at, : one.row.length] = torch.tensor((*one.row.prompt, *one.row.completion))
        weights[at, len(one.row.prompt) : one.row.length] = one.weight * one.advantage
    made.zero_grad()
    scores = torch.log_softmax(made(input_ids=ids).logits[:, :-1], dim=-1)
    logps = scores.gather(2, ids[:, 1:, None])[..., 0]
    (-(logps * weights[:, 1:]).sum() / credited.normaliser).backward()
    return float(sum((one.grad**2).sum() for one in made.parameters() if one.grad is not None) ** 0.5)


def share_of_gradient(credited: Credited, made: Any) -> float:
    held = {role: gradient(made, credited, role) for role in ("system1", "system2")}
    return held["system2"] / sum(held.values())


SCHEMES: dict[str, Callable[[Sequence[Group], int], Credited]] = {
    "concatenated, all tokens alike": lambda made, _: grpo(made, norm="dapo"),
    "concatenated, mean by row": lambda made, _: grpo(made),
    "MARS, balanced": lambda made, seed: mars(made, seed=seed),
    "mean by role": lambda made, _: mars(made, balance=False),
}


def shares(schemes: Sequence[str] = tuple(SCHEMES)) -> dict[str, list[list[float]]]:
    """System 2's share of the loss's weight, by scheme, for each n_k the draws."""
    return {
        name: [
            [share(SCHEMES[name](groups(chunks, 7), seed)) for seed in range(DRAWS if "balanced" in name else 1)]
            for chunks in CHUNKS
        ]
        for name in schemes
    }


def shares_of_gradients(questions: int = 8) -> dict[str, list[float]]:
    """System 2's share of the gradient, by scheme, for each n_k; of so many questions."""
    made, chance = model(), random.Random(3)
    said = {chunks: [spoken(one, chance) for one in groups(chunks, 7)[:questions]] for chunks in CHUNKS}
    return {
        name: [share_of_gradient(scheme(said[chunks], 0), made) for chunks in CHUNKS]
        for name, scheme in SCHEMES.items()
    }


def missed(weights: dict[str, list[list[float]]], gradients: dict[str, list[float]]) -> list[str]:
    """What of the expectation was not found."""
    falling = [statistics.mean(draws) for draws in weights["concatenated, all tokens alike"]]
    found = [] if all(a > b for a, b in pairwise(falling)) else ["the share of weights does not fall"]
    held = [statistics.mean(draws) for name in ("MARS, balanced", "mean by role") for draws in weights[name]]
    found += [] if all(0.45 < one < 0.55 for one in held) else ["the share of weights does not stay at a half"]
    for name, row in gradients.items():
        if name.startswith("concatenated"):
            fell = all(a > b for a, b in pairwise(row)) and row[-1] < row[0] / 2
            found += [] if fell else [f"the share of gradients does not fall: {name}"]
        elif not all(abs(one - row[0]) <= row[0] / 5 for one in row):
            found.append(f"the share of gradients does not stay: {name}")
    return found


def report(weights: dict[str, list[list[float]]], gradients: dict[str, list[float]]) -> str:
    told = (
        f"`python benchmarks/training/balance.py`: {QUESTIONS} questions, {ATTEMPTS} rollouts each, {DRAWS} draws; the "
        "share is that of the sum of |advantage| x weight over tokens, in brackets its spread from draw to draw."
    )
    of_gradients = (
        f"The share of the gradient, |g2| / (|g1| + |g2|), of a model of {model().num_parameters():,} parameters that "
        "both systems share:"
    )
    head = ["| conversations of System 1 in a rollout | " + " | ".join(map(str, CHUNKS)) + " |"]
    head.append("|---|" + "---|" * len(CHUNKS))
    lines = [
        "# System 2's share of a MARS update",
        "",
        told,
        "",
        *head,
    ]
    for name, every in weights.items():
        cells = [
            f"{statistics.mean(draws):.2f}" + (f" (±{statistics.pstdev(draws):.3f})" if len(draws) > 1 else "")
            for draws in every
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        of_gradients,
        "",
        *head,
        *(f"| {name} | " + " | ".join(f"{one:.2f}" for one in row) + " |" for name, row in gradients.items()),
    ]
    wrong = missed(weights, gradients)
    came = (
        f"NOT found: {'; '.join(wrong)}."
        if wrong
        else "found: concatenated, both fall; balanced or by role, both stay."
    )
    return "\n".join([*lines, "", f"Expected (in the program) and {came}", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    told = report(shares(), shares_of_gradients())
    print(told)
    if given.write:
        RESULTS.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
