"""The faults that pydantic finds in a value, in plain English for the person who wrote it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from hira.core.errors import UsageError, did_you_mean, uncapitalise
from hira.core.sanitize import without_userinfo

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

LONGEST_SHOWN = 100
_SECRETS = ("api_key", "search_keys", "mcp", "keys", "experts")
"""The settings whose values are not shown, because they may be keys or passwords."""
MUST_BE, MISSING = "must be ", "is missing"
_TAKES = {
    "bool": "true or false", "int": "a whole number", "float": "a number", "finite": "a number", "string": "text",
    "path": "a path", "tuple": "a list", "list": "a list", "set": "a list", "frozen": "a list",
    "mapping": "a table", "dict": "a table", "model": "a table",
}  # fmt: skip
"""The right kind of value by the first word of the fault's type, in the order in which an error names several."""
_BOUNDS = {
    "greater_than": ("more than", "gt"), "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"), "less_than_equal": ("at most", "le"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WrongValue:
    """A wrong value: its `keys`, from the outermost table on, and `what` it should be, such as "must be a number"."""

    keys: tuple[str | int, ...]
    value: Any
    what: str

    def explain(self, name: str, *, secret: bool = False) -> str:
        """Say what the value of this name should be, and what it is unless it is `secret`."""
        if not self.what.startswith((MUST_BE, MISSING)):
            return f"{name}: {self.what}"
        got = "" if secret or self.what == MISSING else f", got {_show(self.value)}"
        return f"{name} {self.what}{got}"

    @property
    def fix(self) -> str:
        if self.what == MISSING:
            return "add it"
        choices = re.findall(r"'([^']*)'", self.what) if self.what.startswith(MUST_BE) else []
        known = choices and isinstance(self.value, str)
        return did_you_mean(str(self.value), choices) if known else "correct it, or leave it out"


def explain_wrong_values(wrong: Sequence[WrongValue], origins: Mapping[str, str]) -> UsageError:
    """Explain wrong settings in one error: what they take, what they are if that is no secret, and who set them."""
    paths = [[str(key) for key in value.keys] for value in wrong if value.keys]
    places = [origins.get(".".join(path[:2])) or origins.get(path[0], "") for path in paths]
    named = " and ".join(dict.fromkeys(filter(None, places)))
    fix = wrong[0].fix if len(wrong) == 1 else "correct them, or leave them out"
    lines = []
    for value in wrong:
        name = ".".join(key for key in value.keys if isinstance(key, str))
        secret = not name or value.keys[0] in _SECRETS or value.keys[-1] == "api_key"
        lines.append(value.explain(name, secret=secret))
    return UsageError("; ".join(lines), where=f"set by {named}" if named else "", fix=fix)


def list_wrong_values(error: ValidationError, values: object) -> list[WrongValue]:
    """Return the wrong values among those that were validated, each once, whatever the number of types it may have."""
    faults: dict[tuple[str | int, ...], list[ErrorDetails]] = {}
    for details in error.errors():
        faults.setdefault(_find_keys(details, values), []).append(details)
    return [
        WrongValue(keys, of_value[0]["input"], _say_what(of_value))
        for keys, of_value in faults.items()
        if not any(len(keys) < len(other) and other[: len(keys)] == keys for other in faults)
    ]


def read_value(kind: Any, value: Any, name: str, *, where: str = "", secret: bool = False) -> Any:
    """Return the value of this name as a type. Raises `UsageError` that says what it should be."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        wrong = list_wrong_values(error, value)[0]
        raise UsageError(wrong.explain(name, secret=secret), where=where, fix=wrong.fix) from None


def _find_keys(details: "ErrorDetails", value: Any) -> tuple[str | int, ...]:
    """Return the place of a fault, without the names of types that pydantic adds where several are allowed."""
    keys: list[str | int] = []
    for part in details["loc"]:
        if isinstance(value, Mapping) and (part in value or details["type"] == "missing"):
            value = value.get(part)
        elif isinstance(value, list | tuple) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            continue
        keys.append(part)
    return tuple(keys)


def _say_what(faults: "Iterable[ErrorDetails]") -> str:
    kinds = [_say_kind(details) for details in faults]
    if other := next((kind for kind in kinds if not kind.startswith(MUST_BE)), ""):
        return other
    takes = {kind.removeprefix(MUST_BE) for kind in kinds}
    if "a number" in takes:
        takes.discard("a whole number")
    known = [name for name in dict.fromkeys(_TAKES.values()) if name in takes]
    named = [*known, *sorted(takes.difference(known))]
    return MUST_BE + " or ".join(filter(None, [", ".join(named[:-1]), named[-1]]))


def _say_kind(details: "ErrorDetails") -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "missing":
        return MISSING
    if kind == "literal_error":
        return MUST_BE + str(context["expected"])
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"{MUST_BE}{words} {context[bound]:g}"
    if kind == "string_pattern_mismatch":
        return f"{MUST_BE}text of the form {context['pattern']}"
    if (takes := _TAKES.get(kind.partition("_")[0])) and "too_" not in kind:
        return MUST_BE + takes
    return uncapitalise(details["msg"].removeprefix("Value error, "))


def _show(value: Any) -> str:
    """Show a value as a file of settings has it; of a long one the beginning."""
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return "a table" if isinstance(value, Mapping) else "a list"
    value = without_userinfo(value) if isinstance(value, str) else value
    text = repr(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
