"""The options that workflows share, the parts of HiRA that can be left out, and durations as people write them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

Part = Literal["reasoning-transfer", "memory", "search", "code", "multimodal"]
"""A mechanism of HiRA, or an ability of its experts (HiRA, Table 2)."""
PARTS: tuple[Part, ...] = get_args(Part)


@dataclass(frozen=True)
class SubtaskOptions:
    """The numbers that are options of every workflow whose planner hands out subtasks, each with its help."""

    max_subtasks: int = field(default=10, metadata={"help": "maximum number of subtasks"})
    parallel: int = field(
        default=1, metadata={"help": "maximum number of subtasks that the planner hands out in one turn"}
    )


COUNTS: Mapping[str, str] = {option.name: option.metadata["help"] for option in fields(SubtaskOptions)}
SHARED = {"without": "leave out: " + ", ".join(PARTS), **COUNTS}
"""Options that mean the same in every workflow that has them, with their help; without a value the workflow's own
holds."""

LIMITS = ("max_tokens", "max_cost", "max_time", "max_calls")
"""The settings that limit a run."""


def read_duration(value: object) -> object:
    """Return the seconds of a duration such as "90", "90s", "5m" or "1.5h"; a value other than a string unchanged.
    Raises `ValueError` for a string that is not a duration.

    >>> read_duration("5m"), read_duration(60)
    (300.0, 60)
    """
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*([smh]?)", value.strip())
    if match is None:
        raise ValueError(f"{value!r} is not a duration; write 90, 90s, 5m or 1h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]
