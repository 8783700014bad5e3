"""Files of settings: a hira.toml, of a project or of the user, and a profile that a training run wrote."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from hira.core.errors import UsageError, did_you_mean, find_near
from hira.core.wrong_values import explain_wrong_values, list_wrong_values
from hira.runtime.settings.fields import (
    FILE,
    PROFILE,
    SERVED,
    KeySettings,
    Layer,
    McpSettings,
    PriceSettings,
    RoleSettings,
    Settings,
    TimeoutSettings,
    list_entries,
    resolve_paths,
)

_LONGEST_NUMBER = 63
LONGEST = 64 * 1024
"""Bytes of a `hira.toml`: reading TOML may take time in the square of its length."""


def read_toml(path: Path) -> dict[str, Any]:
    """The values of a TOML file. Raises `UsageError` for one that cannot be read."""
    if not path.is_file() or path.stat().st_size > LONGEST:
        what = f"{FILE} is not a file of at most {LONGEST // 1024} KB"
        raise UsageError(what, where=f"at {path}", fix="correct or remove it")
    import tomllib

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))  # Windows editors write a mark
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}", fix="correct or remove the file") from None
    except (ValueError, RecursionError) as error:  # also of a number with too many digits
        advice = {
            "Invalid value": "; texts need quotation marks, and true and false are in lower case",
            "Cannot": '; name each key and table once: beside [experts.NAME] write object = "module:Object" in it',
        }
        more = next((more for start, more in advice.items() if str(error).startswith(start)), "")
        raise UsageError(f"{FILE} is not valid TOML: {error}", where=f"in {path}", fix=f"correct it{more}") from None
    for key, value in values.items():
        _check_value(key, value, path)
    return values


def _check_value(key: str, value: Any, path: Path) -> None:
    """Raise `UsageError` for a number or a text in a file that no setting can have."""
    problem = ""
    if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
        problem = f"a number of more than {_LONGEST_NUMBER} bits"
    elif isinstance(value, str) and "\0" in value:
        problem = "a null character"
    if problem:
        raise UsageError(f"{key!r:.80} in {FILE} contains {problem}", where=f"in {path}", fix="correct it")
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_value(key, entry, path)


class _FileValues(TypedDict, total=False):
    """The values of a file that are used before they are validated as settings."""

    __pydantic_config__ = ConfigDict(extra="allow", defer_build=True)  # type: ignore[misc]

    profile: str
    model: str
    base_url: str
    workflow: str
    verifier: str
    journal: str | bool
    cache: str
    search: str
    docs: str | list[str]
    exclude: str | list[str]
    tools: str | list[str]
    experts: str | list[str] | dict[str, dict[str, Any]]
    roles: dict[str, dict[str, Any]]
    mcp: dict[str, dict[str, Any]]
    keys: dict[str, dict[str, Any]]
    prices: dict[str, dict[str, Any]]


_FILE = TypeAdapter(_FileValues)


def file_layer(kind: Literal["project", "user"], path: Path) -> Layer:
    """A hira.toml; relative paths in it start at its folder."""
    values = read_toml(path)
    _check_tables(values, path)
    values = resolve_paths(values, path.parent)
    if kind == "project":
        from hira.runtime.settings.trust import check_harmless, check_litellm, places

        check_harmless(values, path)
        check_litellm(places(values), path)
    return Layer(kind, values, dict.fromkeys((*values, *list_entries(values)), str(path)))


def _check_tables(values: Mapping[str, Any], path: Path) -> None:
    """Raise `UsageError` for the unknown keys, or a value that is no table, anywhere in the file."""
    if unknown := _list_unknown(values):
        table = next((key for _, key, _ in unknown if isinstance(values.get(key), Mapping)), "")
        if table and not values[table].keys().isdisjoint(Settings.model_fields):
            fix = f"move its keys to the beginning of the file, and remove [{table}]"
            raise UsageError(f"unknown table [{table}] in {FILE}", where=f"in {path}", fix=fix)
        raise _explain_unknown_keys(unknown, path)
    for name, value in values.items():
        if isinstance(value, Mapping) and name in ("role", "workflow", "expert"):
            entry = next((key for key, table in value.items() if isinstance(table, Mapping)), "NAME")
            raise UsageError(f"{name} in {FILE} is not a table", where=f"in {path}", fix=f"write [{name}s.{entry}]")
    for name in ("roles", "mcp", "keys", "prices"):
        _table(values, name, path)
    try:
        _FILE.validate_python(values)
    except ValidationError as error:
        raise explain_wrong_values(list_wrong_values(error, values), dict.fromkeys(values, str(path))) from None
    for name in ("search_keys", "timeout"):
        _table(values, name, path)
    experts = values.get("experts")
    for tables in (_table(values, "workflows", path), experts if isinstance(experts, Mapping) else {}):
        for name in tables:
            _table(tables, name, path)


_TABLES: Mapping[str, type[BaseModel]] = {
    "roles": RoleSettings,
    "keys": KeySettings,
    "prices": PriceSettings,
    "mcp": McpSettings,
}
"""The settings that are tables of tables, with the settings in each."""


def _list_unknown(values: Mapping[str, Any]) -> list[tuple[str, str, Collection[str]]]:
    """Return each unknown key with its table, empty for none, and the keys that are known there."""
    tables: list[tuple[str, Any, type[BaseModel]]] = [("", values, Settings)]
    tables.append(("timeout", values.get("timeout"), TimeoutSettings))
    for kind, model in _TABLES.items():
        if isinstance(entries := values.get(kind), Mapping):
            tables += [(f"{kind}.{name}", table, model) for name, table in entries.items()]
    return [
        (name, key, model.model_fields.keys())
        for name, table, model in tables
        if isinstance(table, Mapping)
        for key in table
        if key not in model.model_fields
    ]


def _explain_unknown_keys(unknown: Sequence[tuple[str, str, Collection[str]]], path: Path) -> UsageError:
    """Explain the unknown keys of a file, all in one error."""
    if len(unknown) == 1:
        (table, key, known), *_ = unknown
        where = f"in {path}, table [{table}]" if table else f"in {path}"
        return UsageError(f"unknown key {key!r} in {FILE}", where=where, fix=did_you_mean(key, known))
    named = ", ".join(f"{key!r} in [{table}]" if table else repr(key) for table, key, _ in unknown)
    near = {key: find_near(key, known) for _, key, known in unknown}
    fixes = [f"{meant[0]!r} for {key!r}" for key, meant in near.items() if meant]
    useless = [repr(key) for key, meant in near.items() if not meant]
    advice = [f"write {', '.join(fixes)}" if fixes else "", f"remove {', '.join(useless)}" if useless else ""]
    return UsageError(f"unknown keys in {FILE}: {named}", where=f"in {path}", fix="; ".join(filter(None, advice)))


def profile_layer(closer: Iterable[Layer], folder: Path) -> Layer:
    """The profile that flags or the environment name, with the limits of a project's file: others may have made it.

    Paths in it that begin with `./` start at its folder. Where a server is named closer, it is that of the adapters as
    a server serves them; where a model is, its own adapters are left out.
    """
    set_ = {name: layer.values[name] for layer in reversed(list(closer)) for name in layer.values}
    place = folder / Path(str(set_["profile"])).expanduser()
    if place.is_dir():
        served = "base_url" in set_ and (place / SERVED).is_file()
        place /= SERVED if served else PROFILE
    if not place.is_file():
        fix = "name the output folder of a hira-train run, or a settings file"
        raise UsageError("the profile does not exist", where=str(place), fix=fix)
    layer = file_layer("project", place)
    values = _beside(layer.values, place.parent)
    if "model" in set_:
        values = {name: value for name, value in values.items() if name != "adapter"}
        values["roles"] = {
            role: {name: value for name, value in table.items() if name not in ("model", "adapter")}
            for role, table in values.get("roles", {}).items()
        }
    return replace(layer, values=values)


def _beside(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The values, and those of roles, with models and adapters at `./` as absolute paths."""
    placed = dict(values)
    for name in ("model", "adapter"):
        text = str(placed.get(name, ""))
        path = text.removeprefix("hf:")
        if path.startswith("./"):
            placed[name] = text.removesuffix(path) + str(folder.resolve() / path)
    if "roles" in placed:
        placed["roles"] = {role: _beside(table, folder) for role, table in placed["roles"].items()}
    return placed


def _table(values: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    table = values.get(name, {})
    if not isinstance(table, Mapping):
        raise UsageError(f"{name} in {FILE} is not a table", where=f"in {path}", fix=f"write [{name}]")
    return table
