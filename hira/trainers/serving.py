"""The command that serves a run's adapters with vLLM, each under its name, on one base."""

import json
import shlex
from pathlib import Path

from hira.trainers.profile import BASE, adapters_of

PARSERS = {"[TOOL_CALLS]": "mistral", "<tool_call>": "hermes", "<|python_tag|>": "llama3_json"}
"""What vLLM calls its call parsers, by the marks in a chat template."""


def command(run: Path, port: int) -> list[str]:
    """`vllm serve` with the run's base and adapters. Without a parser it would refuse whatever comes with tools."""
    adapters = adapters_of(run)
    configs = [json.loads((place / "adapter_config.json").read_text(encoding="utf-8")) for place in adapters.values()]
    base = str(configs[0]["base_model_name_or_path"])
    rank = max(int(config["r"]) for config in configs)
    first = next(iter(adapters.values()))
    return ["vllm", "serve", base, "--served-model-name", BASE, "--tokenizer", str(first), "--enable-lora",
            "--max-loras", str(len(adapters)), "--max-lora-rank", str(allowed(rank)), "--port", str(port),
            *_calls(first), "--lora-modules", *(f"{name}={place}" for name, place in adapters.items())]  # fmt: skip


def _calls(tokenizer: Path) -> list[str]:
    """Flags by which native calls are read as in training; none where the chat template writes none that are known."""
    template = "".join(
        path.read_text(encoding="utf-8")
        for path in (tokenizer / "chat_template.jinja", tokenizer / "tokenizer_config.json")
        if path.is_file()
    )
    found = next((parser for mark, parser in PARSERS.items() if mark in template), None)
    return ["--enable-auto-tool-choice", "--tool-call-parser", found] if found else []


def allowed(rank: int) -> int:
    """The least rank that vLLM can be told of which is enough."""
    return next((one for one in (8, 16, 32, 64, 128, 256, 320, 512) if one >= rank), rank)


def spelled(words: list[str]) -> str:
    return shlex.join(words)
