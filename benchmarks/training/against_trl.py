"""Updates of hira's trainer against those of plain TRL: the same model, the same ragged rows, one run.

    python benchmarks/training/against_trl.py [--layers 30] [--rows 24] [--updates 3] [--write]

The model has SmolLM2-135M's shape, or fewer layers of it, with random weights and LoRA of rank 16. Rows are as agents
leave them: lengths that differ tenfold, and tokens of tools between those that were sampled. TRL pads all rows to one
length; hira divides them into micro-batches by length. An update counts whole, from the rows to the end of the step,
hira's packing and checks included; seconds are CPU seconds of this process with one thread, so that a busy machine
tells much the same. The first update of each warms up; medians of the others.

Goals, stated before the run: hira's tokens a second at least TRL's; padding at most 10 %; the checks of the weights
(fingerprints at both ends of a run, a canary after each step) at most 3 % of an update.
"""

import argparse
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
import trl
from plain import Plain, plain_batch, plain_config
from transformers import TrainerCallback
from workload import model, tokenizer

from hira.trainers import records
from hira.trainers.batches import CANARY
from hira.trainers.configuration import Configuration, TrainConfig
from hira.trainers.grpo import RoleTrainer
from hira.trainers.plan import DecoderShape
from hira.trainers.rows import Collected, Credited, Key, Row, Weighted
from hira.trainers.weights import check_sound, fingerprint

RESULTS = Path(__file__).parents[1] / "results" / "training_against_trl.md"
RANK, WORDS, BUDGET = 16, 49_152, 16_384


class Timed(TrainerCallback):
    """CPU seconds of each step."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.began = time.process_time()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.seconds.append(time.process_time() - self.began)


def shape(layers: int) -> DecoderShape:
    """SmolLM2-135M's, with so many layers."""
    return DecoderShape(layers, 576, 9, 3, 64, 1536, WORDS, tied=True, small=2 * 576)


def ragged(many: int) -> list[Weighted]:
    """Rows of one role, a third of each prompt, the rest sampled in turns with what tools brought between them."""
    chance = random.Random("rows")
    rows = []
    for at in range(many):
        length = min(600, max(40, round(chance.lognormvariate(4.9, 0.7))))
        ids = [chance.randrange(300, WORDS) for _ in range(length)]
        prompt, said = ids[: length // 3], ids[length // 3 :]
        mask = [int(place // 20 % 3 < 2) for place in range(len(said))]
        logprobs = tuple(-10.8 * own for own in mask)
        row = Row("q", str(at), "worker", "worker", tuple(prompt), tuple(said), tuple(mask), logprobs)
        rows.append(Weighted(row, Key("q", "worker"), float(at % 2), 2.0 * (at % 2) - 1, 1.0))
    return rows


def of_hira(rows: Sequence[Weighted], layers: int, updates: int, folder: Path) -> dict[str, float]:
    words, timed = tokenizer(WORDS), Timed()
    credited = Credited(tuple(rows), float(sum(one.row.tokens for one in rows)))
    trainer = RoleTrainer(
        model(shape(layers), ["default"], rank=RANK),
        words,
        Configuration(train=TrainConfig(steps=updates + 1, budget=BUDGET, save_every=1000)),
        lambda _: Collected(()),
        lambda _: credited,
        folder,
    )
    trainer.add_callback(timed)
    trainer.run()
    told = [one for one in records.read(folder / records.METRICS) if "padding" in one][-1]
    bare = trainer.model
    began = time.process_time()
    fingerprint(bare)
    once = time.process_time() - began
    check_sound(bare, [300] * CANARY, "default", bare.device, 0)
    each = time.process_time() - began - once
    update = statistics.median(timed.seconds[1:])
    return {
        "seconds": update,
        "padding": told["padding"],
        "micro_batches": told["micro_batches"],
        "fingerprint": once,
        "canary": each,
        "checks": (2 * once + updates * each) / (updates * update),
    }


def of_trl(rows: Sequence[Weighted], layers: int, updates: int, folder: Path) -> dict[str, float]:
    words, timed = tokenizer(WORDS), Timed()
    whole = plain_batch(rows, 0, 1.0)["whole"]
    config = plain_config(folder, len(rows), len(rows), updates + 1)
    trainer = Plain(model(shape(layers), ["default"], rank=RANK), words, rows, config)
    trainer.add_callback(timed)
    trainer.train()
    real = sum(one.row.length for one in rows)
    return {
        "seconds": statistics.median(timed.seconds[1:]),
        "padding": 1 - real / (whole * len(rows)),
        "micro_batches": 1,
    }


def table(args: argparse.Namespace, real: int, hira: dict[str, float], trl_: dict[str, float]) -> str:
    options = f"--layers {args.layers} --rows {args.rows} --updates {args.updates}"
    made = (
        f"`python benchmarks/training/against_trl.py {options} --write`: torch {torch.__version__}, transformers "
        f"{transformers.__version__}, TRL {trl.__version__}, {platform.machine()}, one thread, CPU seconds; "
        f"{shape(args.layers).parameters:,} random weights, LoRA of rank {RANK}; {args.rows} rows, {real:,} tokens."
    )
    lines = [
        "# Updates: hira against plain TRL",
        "",
        made,
        "",
        "| | CPU s an update | tokens a second | padding | micro-batches |",
        "|---|---|---|---|---|",
    ]
    for name, found in (("hira", hira), ("TRL", trl_)):
        lines.append(
            f"| {name} | {found['seconds']:.1f} | {real / found['seconds']:,.0f} | {found['padding']:.0%} "
            f"| {found['micro_batches']:.0f} |"
        )
    ratio = trl_["seconds"] / hira["seconds"]
    checks = (
        f"Checks of the weights: {hira['checks']:.1%} of {args.updates} updates (goal ≤ 3 %), "
        f"{hira['fingerprint']:.2f} s a fingerprint, {hira['canary']:.2f} s a canary."
    )
    return "\n".join([*lines, "", f"hira ÷ TRL in tokens a second: {ratio:.2f} (goal ≥ 1.0). {checks}", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--rows", type=int, default=24)
    parser.add_argument("--updates", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = ragged(args.rows)
    with tempfile.TemporaryDirectory() as place:
        hira = of_hira(rows, args.layers, args.updates, Path(place) / "hira")
        plain = of_trl(rows, args.layers, args.updates, Path(place) / "trl")
    told = table(args, sum(one.row.length for one in rows), hira, plain)
    print(told)
    if args.write:
        RESULTS.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
