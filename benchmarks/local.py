"""New tokens a second of many agents that ask one model in this process: batched as they come, one at a time, in waves.

    python benchmarks/local.py [--agents 32 64] [--shape tiny|0.5B] [--device cpu|cuda] [--rounds 3] [--write]

Every agent asks `turns` times, one after another, with a prompt that grows. "even": all replies have the same length;
"ragged": lengths differ tenfold, as those of agents do. The contender is `generate` of transformers, which decodes one
batch from its beginning to its end: alone, or in waves of all who wait when it becomes free. Nothing but its length
ends a reply, so that all ways sample the same number of tokens; the model is random. Ways take turns; medians. On a
CPU seconds are those of this process, so that a busy machine tells the same.

Goal: at least 1.5 times the tokens of `generate` in waves with 32 agents whose replies are ragged.
"""

import argparse
import asyncio
import platform
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import torch
import transformers
from tiny_hf import tiny_model, tiny_tokenizer

from hira.core.policy import Sampling
from hira.policies.local.batching import BatchingEngine
from hira.policies.local.engine import SampleRequest
from hira.policies.local.template import Template

SHAPES: dict[str, dict[str, Any]] = {
    "tiny": {},
    # as Qwen2.5 0.5B
    "0.5B": {
        "vocab_size": 151_936,
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "initializer_range": 0.02,
    },
}
Ask = Callable[[list[int], int], Awaitable[int]]


class Waves:
    """`generate` for all who wait, again and again. `most` is how many at once."""

    def __init__(self, model: Any, most: int) -> None:
        self.model = model
        self.most = most
        self.waiting: list[tuple[list[int], int, asyncio.Future[int]]] = []
        self.running: asyncio.Task[None] | None = None

    async def ask(self, prompt: list[int], length: int) -> int:
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.waiting.append((prompt, length, done))
        if self.running is None or self.running.done():
            self.running = asyncio.create_task(self._run())
        return await done

    async def _run(self) -> None:
        await asyncio.sleep(0.003)
        while self.waiting:
            wave, self.waiting = self.waiting[: self.most], self.waiting[self.most :]
            await asyncio.to_thread(self._generate, wave)
            for _, length, done in wave:
                done.set_result(length)
            await asyncio.sleep(0.003)

    def _generate(self, wave: list[tuple[list[int], int, Any]]) -> None:
        width = max(len(prompt) for prompt, _, _ in wave)
        ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt, _, _ in wave], device=self.model.device)
        mask = torch.tensor(
            [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt, _, _ in wave], device=self.model.device
        )
        length = max(length for _, length, _ in wave)
        with torch.no_grad():
            self.model.generate(
                ids, attention_mask=mask, do_sample=True, top_k=0, max_new_tokens=length, min_new_tokens=length,
                eos_token_id=None, output_scores=False,
            )  # fmt: skip


async def agents(ask: Ask, number: int, turns: int, lengths: list[list[int]]) -> None:
    async def agent(at: int) -> None:
        prompt = [3 + at % 90] * (20 + at % 30)
        for turn in range(turns):
            length = await ask(prompt, lengths[at][turn])
            prompt = [*prompt, *([4 + turn] * length), *([5] * 20)]

    await asyncio.gather(*(agent(at) for at in range(number)))


def ways(model: Any, template: Template) -> dict[str, tuple[Ask, int]]:
    """Each way with how many agents it is measured on at most: those that take turns need no more."""
    engine = BatchingEngine(model, template)
    alone = asyncio.Semaphore(1)

    async def batched(prompt: list[int], length: int) -> int:
        return len((await engine.sample(SampleRequest(tuple(prompt), Sampling(1.0, max_tokens=length)))).ids)

    async def single(prompt: list[int], length: int) -> int:
        async with alone:
            return await batched(prompt, length)

    return {
        "hira, batched as they come": (batched, 1 << 20),
        "hira, one at a time": (single, 4),
        "generate, in waves": (Waves(model, 1 << 20).ask, 1 << 20),
        "generate, one at a time": (Waves(model, 1).ask, 4),
    }


def measured(model: Any, template: Template, number: int, rounds: int) -> dict[str, dict[str, float]]:
    chance = random.Random(1)
    clock = time.perf_counter if model.device.type == "cuda" else time.process_time
    turns = 3
    cases = {
        "even": [[64] * turns for _ in range(number)],
        "ragged": [[min(240, int(24 + chance.expovariate(1 / 40))) for _ in range(turns)] for _ in range(number)],
    }
    found: dict[str, dict[str, list[float]]] = {}
    for case, lengths in cases.items():
        for _ in range(rounds):
            for way, (ask, most) in ways(model, template).items():
                count = min(number, most)
                began = clock()
                asyncio.run(agents(ask, count, turns, lengths))
                spent = clock() - began
                told = sum(sum(one) for one in lengths[:count]) / spent
                found.setdefault(way, {}).setdefault(case, []).append(told)
    return {way: {case: statistics.median(all_) for case, all_ in told.items()} for way, told in found.items()}


def table(found: dict[str, dict[str, float]], number: int) -> str:
    base = found["generate, in waves"]
    lines = [f"| new tokens a second, {number} agents | even | ragged |", "|---|---|---|"]
    for way, told in found.items():
        cells = [f"{value:,.0f} ({value / base[case]:.2f} ×)" for case, value in told.items()]
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="write results/local.md too")
    chosen = parser.parse_args()
    if chosen.device == "cpu":
        torch.set_num_threads(1)
    tokenizer = tiny_tokenizer()
    template = Template(tokenizer)
    template.ends = frozenset()
    model = tiny_model(tokenizer, **SHAPES[chosen.shape])
    model.generation_config.eos_token_id = None
    model = model.to(chosen.device, dtype=torch.bfloat16 if chosen.device == "cuda" else torch.float32)
    made = "\n\n".join(table(measured(model, template, many, chosen.rounds), many) for many in chosen.agents)
    print(made)
    where = torch.cuda.get_device_name() if chosen.device == "cuda" else f"{platform.machine()}, one thread"
    about = f"torch {torch.__version__}, transformers {transformers.__version__}, {where}, shape {chosen.shape}"
    print(about)
    if chosen.write:
        head = f"# Many agents, one model in this process\n\nMade by `python benchmarks/local.py --write`: {about}."
        text = f"{head}\n\n{made}\n"
        Path(__file__).with_name("results").joinpath("local.md").write_text(text)


if __name__ == "__main__":
    main()
