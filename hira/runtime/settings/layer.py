"""One place that settings come from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Layer:
    """One place that settings come from. `origins` names it for each key."""

    kind: Literal["flags", "environment", "project", "user"]
    values: Mapping[str, Any]
    origins: Mapping[str, str]


def split_list(value: str, separator: str) -> list[str]:
    return [part.strip() for part in value.split(separator) if part.strip()]
