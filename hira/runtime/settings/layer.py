"""One place that settings come from, and what is said of names and values that are wrong there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from hira.core.errors import UsageError, did_you_mean, uncapitalise

LONGEST_SHOWN = 100
_SECRETS = ("api_key", "search_keys", "mcp", "keys")
_ALLOWED = re.compile(r"'([^']*)'")


def invalid(error: ValidationError, origins: Mapping[str, str]) -> UsageError:
    """The first wrong value: its name, what it was unless it may be a secret, what it takes, and who set it."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    where = origins.get(".".join(path[:2])) or origins.get(path[0], "") if path else ""
    says = uncapitalise(first["msg"]).removeprefix("value error, ")
    if first["type"] != "value_error" and _is_shown(path, first["input"]):
        said = repr(first["input"])
        says += f", got {said if len(said) <= LONGEST_SHOWN else said[:LONGEST_SHOWN] + '…'}"
    fix = "correct it, or leave it out"
    if first["type"] == "literal_error":
        fix = did_you_mean(str(first["input"]), _ALLOWED.findall(first["ctx"]["expected"]))
    return UsageError(f"{'.'.join(path[:3])}: {says}", where=f"set by {where}" if where else "", fix=fix)


def _is_shown(path: list[str], value: Any) -> bool:
    return isinstance(value, str | int | float) and bool(path) and path[0] not in _SECRETS and path[-1] != "api_key"


@dataclass(frozen=True, slots=True)
class Layer:
    """One place that settings come from. `origins` names it for each key."""

    kind: Literal["flags", "record", "environment", "project", "user"]
    values: Mapping[str, Any]
    origins: Mapping[str, str]


def split_list(value: str, separator: str) -> list[str]:
    return [part.strip() for part in value.split(separator) if part.strip()]
