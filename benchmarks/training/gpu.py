"""LoRA training with a model of 0.5 billion random weights on one GPU. MATPO: memory against the plan, speed against
plain TRL. MarsRL: the agentic pipeline against the synchronous schedule.

    python benchmarks/training/gpu.py            prints the figures; needs a GPU with 40 GiB
    python benchmarks/training/gpu.py --write    also writes results/training_gpu.md and .json, after each part
    python benchmarks/training/gpu.py --only one updates      some of the parts: one, two, updates, sampling,
                                                              synchronous, pipeline, segments (MarsRL, two minutes each)
    python benchmarks/training/gpu.py --with FILE             takes the parts over that another run wrote, as .json
    python benchmarks/training/gpu.py --minutes 9             begins no part after so many minutes
    python benchmarks/training/gpu.py --tiny     a dry run of all that with a tiny model, on a CPU too

The command first lists what is missing on the machine (`ready.py`). If a part fails, it prints the error and continues
with the other parts; the exit code is then 1.

Goals, stated before the run: the peak of CUDA's allocator within 10 % of `hira.trainers.plan`; tokens a second of
rollouts and of updates at least 0.9 times those of TRL's GRPOTrainer with the same rows. Those of MarsRL stand in
`gpu_marsrl.py`.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the model is made here: nothing is to be looked for anywhere

import ready  # noqa: E402

if __name__ == "__main__":  # before the imports below, which would tell of the first package that is missing alone
    ready.check(gib=0 if {"--tiny", "--help", "-h"} & {*sys.argv} else 40)

import gpu_marsrl  # noqa: E402
import torch  # noqa: E402
from gpu_table import table  # noqa: E402
from plain import Plain, plain_batch, plain_config  # noqa: E402
from workload import DATA, QWEN_05B, TINY, Thinking, contexts, every_other, model, problems, tokenizer  # noqa: E402

from hira.core.policy import Sampling  # noqa: E402
from hira.policies.local import LocalPolicy  # noqa: E402
from hira.policies.local.batching import BatchingEngine  # noqa: E402
from hira.policies.local.engine import SampleRequest  # noqa: E402
from hira.policies.local.loading import hide_renaming_warnings  # noqa: E402
from hira.policies.local.template import Template  # noqa: E402
from hira.tools.documents import Index  # noqa: E402
from hira.trainers import records  # noqa: E402
from hira.trainers.configuration import Configuration, ModelConfig, RolloutConfig, TrainConfig  # noqa: E402
from hira.trainers.credit import matpo  # noqa: E402
from hira.trainers.grpo import RoleTrainer  # noqa: E402
from hira.trainers.plan import GIB, DecoderShape, TrainingWork, sheet  # noqa: E402
from hira.trainers.rollouts import Collector, Rollouts  # noqa: E402
from hira.trainers.rows import (  # noqa: E402
    Collected,
    Credited,
    Weighted,
)
from hira.workflows.matpo import MATPO  # noqa: E402

RESULTS = Path(os.environ.get("OUT") or Path(__file__).parents[1] / "results")
RANK = 16


@dataclass(frozen=True)
class Size:
    """How large everything is."""

    shape: DecoderShape
    questions: int
    attempts: int
    subtasks: int
    calls: int
    thought: int
    steps: int
    budget: int
    prompts: int
    prompt: int
    reply: int
    compared: int = 10_000
    marsrl: gpu_marsrl.Load = gpu_marsrl.FULL


FULL = Size(QWEN_05B, 4, 8, 2, 3, 48, 3, 32_768, prompts=64, prompt=512, reply=128)
SMALL = Size(TINY, 1, 4, 1, 1, 2, 2, 4_096, prompts=4, prompt=32, reply=8, compared=2, marsrl=gpu_marsrl.SMALL)


@dataclass
class Measured:
    """What came out of one training run; `rows` are those of its last update, with their credit."""

    metrics: list[dict[str, Any]] = field(default_factory=list)
    rows: tuple[Weighted, ...] = ()
    longest: int = 0
    sampled: int = 0
    seconds: float = 0.0


def trained(size: Size, adapters: dict[str, str], folder: Path, words: Any) -> Measured:
    """Some updates of MATPO: real rollouts of the real workflow, every other one right, bf16 LoRA."""
    weights = model(size.shape, sorted(set(adapters.values())), rank=RANK)
    template = Template(words)
    engine = BatchingEngine(weights, template)
    thinking = Thinking(engine, words, size.thought)
    found = Measured()

    def credit(groups: Any) -> Credited:
        credited = matpo(groups)
        found.rows = credited.rows or found.rows
        found.longest = max((row.length for one in groups for each in one.attempts for row in each.rows), default=0)
        return credited

    with asyncio.Runner() as runner, tempfile.TemporaryDirectory() as cache:
        index = Index([DATA / "docs"], Path(cache))
        live = LocalPolicy("random", template, thinking, adapters, versioned=True)
        rollouts = Rollouts(
            contexts(live, index),
            MATPO(max_subtasks=size.subtasks, worker_calls=size.calls),
            problems(),
            every_other,
            config=RolloutConfig(questions=size.questions, attempts=size.attempts),
            tell=lambda told: print(f"  {told}", flush=True),
        )
        updates = Configuration(
            model=ModelConfig(adapters=adapters),
            train=TrainConfig(steps=size.steps, lr=1e-4, budget=size.budget, save_every=1000),
        )
        trainer = RoleTrainer(
            weights,
            words,
            updates,
            Collector(runner, rollouts.collect, engine.pause),
            credit,
            folder,
            on_update=engine.record_update,
        )
        began = time.perf_counter()
        trainer.run()
        found.seconds = time.perf_counter() - began
        print(f"  {size.steps} updates in {found.seconds:.0f} s", flush=True)
        index.close()
    found.metrics = [one for one in records.read(folder / records.METRICS) if "update_seconds" in one]
    found.sampled = thinking.sampled
    return found


def speed_of_updates(size: Size, rows: Sequence[Weighted], words: Any, folder: Path) -> dict[str, float]:
    """Tokens a second of the update alone, ours and plain TRL's, with the same rows in micro-batches of one memory."""
    rows = rows[: size.compared]
    at_once = min(len(rows), max(1, size.budget // plain_batch(rows, words.pad_token_id, 1.0)["whole"]))
    rows = rows[: len(rows) // at_once * at_once] or rows
    real = sum(one.row.length for one in rows)
    steps = size.steps + 1
    seconds = {}
    ours = RoleTrainer(
        model(size.shape, ["default"], rank=RANK),
        words,
        Configuration(train=TrainConfig(steps=steps, budget=size.budget, save_every=1000)),
        lambda _: Collected(()),
        lambda _: Credited(tuple(rows), float(len(rows))),
        folder / "ours",
    )
    ours.run()
    told = [one["update_seconds"] for one in records.read(folder / "ours" / records.METRICS) if "update_seconds" in one]
    seconds["hira"] = statistics.median(told[1:])
    del ours
    _free()
    weights = model(size.shape, ["default"], rank=RANK)
    plain = Plain(weights, words, rows, plain_config(folder / "plain", len(rows), at_once, steps))
    plain.train()
    seconds["trl"] = statistics.median(plain.seconds[1:])
    del plain, weights
    _free()
    return {name: real / took for name, took in seconds.items()} | {"rows": len(rows), "rows_at_once_of_trl": at_once}


async def speed_of_engine(size: Size, words: Any) -> dict[str, float]:
    """Sampled tokens a second for many prompts at once: our engine, and `generate`, which TRL uses."""
    weights = model(size.shape, ["default"], rank=RANK).eval()
    device = next(weights.parameters()).device
    made = torch.Generator().manual_seed(1)
    ids = torch.randint(300, size.shape.words, (size.prompts, size.prompt), generator=made)
    engine = BatchingEngine(weights, Template(words))
    how = Sampling(temperature=1.0, top_p=1.0, max_tokens=size.reply)
    speeds: dict[str, list[float]] = {"hira": [], "trl": []}
    for _ in range(3):
        began = time.perf_counter()
        found = await asyncio.gather(
            *(engine.sample(SampleRequest(tuple(one), how, (), "default")) for one in ids.tolist())
        )
        speeds["hira"].append(sum(len(one.ids) for one in found) / (time.perf_counter() - began))
        began = time.perf_counter()
        with torch.no_grad():
            given = ids.to(device)
            said = weights.generate(
                input_ids=given,
                attention_mask=torch.ones_like(given),
                max_new_tokens=size.reply,
                min_new_tokens=size.reply,
                do_sample=True,
                temperature=1.0,
                top_p=1.0,
                top_k=0,
                pad_token_id=words.pad_token_id,
            )
        speeds["trl"].append(float(said[:, size.prompt :].numel()) / (time.perf_counter() - began))
    drift = _drift(weights, ids.tolist(), found)
    await engine.aclose()
    return {name: statistics.median(told[1:]) for name, told in speeds.items()} | {"drift": drift}


@torch.no_grad()
def _drift(weights: Any, prompts: Sequence[list[int]], found: Sequence[Any]) -> float:
    """The mean distance of the sampler's log-probabilities from those of a trainer's forward pass."""
    device = next(weights.parameters()).device
    apart: list[float] = []
    for prompt, one in list(zip(prompts, found, strict=True))[:8]:
        ids = torch.tensor([[*prompt, *one.ids]], device=device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = weights(input_ids=ids).logits[0, len(prompt) - 1 : -1]
        scores = torch.log_softmax(logits.float(), dim=-1).gather(1, ids[0, len(prompt) :, None])[:, 0]
        apart.append(float((scores - torch.tensor(one.logprobs, device=device)).abs().mean()))
    return statistics.mean(apart)


def planned(size: Size, found: Measured, many: int) -> dict[str, float]:
    """The plan for what was really done: the largest micro-batch, the longest row, the rollouts at once."""
    largest = int(max(one["largest_micro_batch"] for one in found.metrics))
    scored = sum(one.row.tokens for one in found.rows) / max(1, sum(one.row.length for one in found.rows))
    work = TrainingWork(
        adapters=many,
        rank=RANK,
        budget=largest,
        longest=found.longest,
        at_once=size.questions * size.attempts,
        scored=scored,
    )
    made = sheet(size.shape, work)
    return {name: sum(lines.values()) / GIB for name, lines in (("rollout", made.rollout), ("update", made.update))}


def _free() -> None:
    import gc

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@dataclass
class Parts:
    """The parts of the benchmark. `rows` are those of the first training run: updates are timed with them."""

    size: Size
    folder: Path
    words: Any
    rows: tuple[Weighted, ...] = ()

    def one(self) -> dict[str, Any]:
        return self._run("one adapter", {"*": "default"})

    def two(self) -> dict[str, Any]:
        return self._run("two adapters", {"planner": "planner", "*": "worker"})

    def updates(self) -> dict[str, Any]:
        if not self.rows:
            made = trained(replace(self.size, steps=1), {"*": "default"}, self.folder / "rows", self.words)
            self.rows = made.rows
            _free()
        return speed_of_updates(self.size, self.rows, self.words, self.folder)

    def sampling(self) -> dict[str, Any]:
        return asyncio.run(speed_of_engine(self.size, self.words))

    def synchronous(self) -> dict[str, Any]:
        return self._marsrl("synchronous")

    def pipeline(self) -> dict[str, Any]:
        return self._marsrl("pipeline")

    def segments(self) -> dict[str, Any]:
        return self._marsrl("segments")

    def _marsrl(self, way: str) -> dict[str, Any]:
        own = self.size
        return gpu_marsrl.measured(way, own.marsrl, own.shape, self.words, self.folder / way, own.budget, RANK)

    def _run(self, name: str, adapters: dict[str, str]) -> dict[str, Any]:
        found = trained(self.size, adapters, self.folder / name.replace(" ", "-"), self.words)
        self.rows = self.rows or found.rows
        steady = found.metrics[1:] or found.metrics

        def median(name: str) -> float:
            return statistics.median(one.get(name, 0.0) for one in steady)

        def most(name: str) -> float:
            return max(one.get(name, 0.0) for one in steady)

        return {
            "name": name,
            "seconds": found.seconds,
            "steps": len(found.metrics),
            "plan_gib": planned(self.size, found, len(set(adapters.values()))),
            **{told: most(told) for told in ("rollout_peak_gib", "update_peak_gib", "row_breaks", "infra_failed")},
            **{told: median(told) for told in MEDIANS},
            "sampled_tokens_per_second": found.sampled / sum(one["rollout_seconds"] for one in found.metrics),
            "longest_row": found.longest,
            "worker_share": median("worker/share"),
        }


PARTS = ("one", "two", "updates", "sampling", "synchronous", "pipeline", "segments")
MEDIANS = ("rollout_seconds", "update_seconds", "update_tokens_per_second", "rows", "padding")


def begun(size: Size, before: Sequence[Path]) -> dict[str, Any]:
    """A report with the parts of earlier ones. Ends the process if one of those is of another machine or model."""
    device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else platform.processor() or "CPU"
    own = {"device": device, "torch": torch.__version__, "parameters": size.shape.parameters, "rank": RANK}
    parts: dict[str, Any] = {}
    for path in before:
        told = json.loads(path.read_text(encoding="utf-8"))
        if other := [name for name, value in own.items() if told[name] != value]:
            sys.exit(f"{path} has another {other[0]}: {told[other[0]]} and not {own[other[0]]}")
        parts |= told["parts"]
    return {**own, "parts": parts, "failed": {}}


def run(
    size: Size,
    only: Sequence[str],
    minutes: float,
    save: Callable[[dict[str, Any]], None],
    before: Sequence[Path] = (),
) -> dict[str, Any]:
    """The parts one after another; what there is, is saved after each, also after one that failed."""
    began = time.monotonic()
    report = begun(size, before)
    with tempfile.TemporaryDirectory() as folder:
        parts = Parts(size, Path(folder), tokenizer(size.shape.words))
        for name in only:
            if time.monotonic() - began > 60 * minutes:
                report["failed"][name] = f"not begun: {minutes:g} minutes were over"
            else:
                print(f"{name} …", flush=True)
                try:
                    report["parts"][name] = getattr(parts, name)()
                    print(json.dumps(report["parts"][name], indent=1), flush=True)
                except Exception as error:  # noqa: BLE001 - the time of the machine is for the other parts then
                    traceback.print_exc()
                    report["failed"][name] = str(error).partition("\n")[0] or type(error).__name__
            save(report)
            _free()
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--steps", type=int, default=0, help="updates of each run; the first is not counted")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no part after so many")
    parser.add_argument("--with", nargs="+", type=Path, default=(), dest="before", help="reports (.json) to go on from")
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        torch.set_num_threads(1)
    hide_renaming_warnings()
    write = asked.write or bool(os.environ.get("OUT"))

    def save(report: dict[str, Any]) -> None:
        """What there is so far: a run that is cut short has told something."""
        if write:
            RESULTS.mkdir(parents=True, exist_ok=True)
            (RESULTS / "training_gpu.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
            (RESULTS / "training_gpu.md").write_text(table(report), encoding="utf-8")

    size = SMALL if asked.tiny else FULL
    if asked.steps:
        size = replace(size, steps=asked.steps, marsrl=replace(size.marsrl, steps=asked.steps))
    report = run(size, asked.only, asked.minutes, save, asked.before)
    print(table(report))
    return int(bool(report["failed"]))


if __name__ == "__main__":
    sys.exit(main())
