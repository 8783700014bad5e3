"""Configurations of accelerate for several GPUs on one machine: `ddp`, `zero2` (DeepSpeed), and `fsdp`, with which no
rollouts can be made."""

from pathlib import Path


def path_of(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.yaml")
