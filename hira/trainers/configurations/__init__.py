"""Configurations of accelerate for several GPUs on one machine: `ddp`, and `zero2` (DeepSpeed)."""

from pathlib import Path


def path_of(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.yaml")
