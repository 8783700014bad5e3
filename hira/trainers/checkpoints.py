"""Checkpoints of a run: which one is whole, and of which step."""

from pathlib import Path

COMPLETE = "complete.json"
"""The file that is written last: without it, a checkpoint was cut short."""


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint that was written to its end, None if there is none."""
    return max((path.parent for path in folder.glob(f"checkpoint-*/{COMPLETE}")), key=step_of, default=None)


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])
