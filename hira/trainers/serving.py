"""The command that serves a run's adapters with vLLM, each under its name, on one base."""

import json
import shlex
from pathlib import Path

from hira.trainers.profile import BASE, adapters_of


def command(run: Path, port: int) -> list[str]:
    """`vllm serve` with the run's base and adapters."""
    adapters = adapters_of(run)
    configs = [json.loads((place / "adapter_config.json").read_text(encoding="utf-8")) for place in adapters.values()]
    base = str(configs[0]["base_model_name_or_path"])
    rank = max(int(config["r"]) for config in configs)
    first = next(iter(adapters.values()))
    return ["vllm", "serve", base, "--served-model-name", BASE, "--tokenizer", str(first), "--enable-lora",
            "--max-loras", str(len(adapters)), "--max-lora-rank", str(allowed(rank)), "--port", str(port),
            "--lora-modules", *(f"{name}={place}" for name, place in adapters.items())]  # fmt: skip


def allowed(rank: int) -> int:
    """The least rank that vLLM can be told of which is enough."""
    return next((one for one in (8, 16, 32, 64, 128, 256, 320, 512) if one >= rank), rank)


def spelled(words: list[str]) -> str:
    return shlex.join(words)
