"""Where settings come from (flags, environment, profile, project, user), and the settings of one run out of them."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from hira.core.errors import UsageError, did_you_mean, find_near
from hira.runtime.settings.fields import (
    FILE,
    JOURNAL,
    MCP_CONSENT,
    MEMORY,
    OFF,
    ON,
    ORIGINS,
    PROFILE,
    SEARCH_KEYS,
    SECRET_NAME,
    SERVE_KEY,
    SERVED,
    TRUST,
    TRUSTED,
    KeySettings,
    Layer,
    McpSettings,
    PriceSettings,
    RoleSettings,
    Settings,
    TimeoutSettings,
    invalid,
    list_entries,
    split_list,
)
from hira.runtime.settings.keys import pair_keys

_LONGEST_NUMBER = 63
LONGEST = 64 * 1024
"""Bytes of a `hira.toml`: reading TOML may take time in the square of its length."""
TABLES = ("roles", "workflows", "search_keys", "mcp", "prices", "keys", "timeout")
VARIABLES = {f"HIRA_{name.upper()}": name for name in Settings.model_fields if name not in TABLES}
"""The settings that are not tables, by their environment variables."""
_MERGED = ("search_keys", "mcp", "prices", "keys", "timeout", "experts")
"""Tables that are merged entry by entry."""
_LISTS = {"docs": os.pathsep, "exclude": os.pathsep, "without": ",", "allowed_hosts": ",", "tools": ",", "experts": ","}


def resolve_paths(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The values with the paths of documents, one or several, taken from the folder."""
    resolved_values = dict(values)
    for name in ("docs", "exclude"):
        value = values.get(name, ())
        named = [value] if isinstance(value, str | Path) else value if isinstance(value, list | tuple) else ()
        if any(not str(path).strip() for path in named):
            raise UsageError(
                "a path of the documents is empty", fix="name files or folders; is a variable of the shell unset?"
            )
        if named:
            resolved_values[name] = [folder / Path(str(path)).expanduser() for path in named]
    return resolved_values


def environment(environ: Mapping[str, str], folder: Path) -> Layer:
    """HIRA_<SETTING> for every plain setting, then the names that other programs use as well."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for variable, value in environ.items():
        if value and (name := VARIABLES.get(variable)):
            values[name] = split_list(value, _LISTS[name]) if name in _LISTS else value
            origins[name] = variable
    for name, variable in (
        ("api_key", "OPENAI_API_KEY"),
        ("base_url", "OPENAI_BASE_URL"),
        ("searxng_url", "SEARXNG_BASE_URL"),
        ("otel", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    ):
        if environ.get(variable) and name not in values:
            values[name], origins[name] = environ[variable], variable
    keys = {service: variable for service, variable in SEARCH_KEYS.items() if environ.get(variable)}
    if keys:
        values["search_keys"] = {service: environ[variable] for service, variable in keys.items()}
        origins |= {f"search_keys.{service}": variable for service, variable in keys.items()}
    return Layer("environment", resolve_paths(values, folder), origins)


def find_misspelt(environ: Mapping[str, str]) -> list[str]:
    """A line for each variable whose name is close to one of hira's. It may be another program's, so it is no error."""
    known = {*VARIABLES, MCP_CONSENT, SERVE_KEY, TRUST}
    return [
        f"the environment variable {variable} is not used; did you mean {near[0]}?"
        for variable in environ
        if variable.startswith("HIRA_") and variable not in known and (near := find_near(variable, VARIABLES))
    ]


def read_toml(path: Path) -> dict[str, Any]:
    """The values of a TOML file, none where it is absent. Raises `UsageError` for one that cannot be read."""
    try:
        absent = not path.exists()
    except OSError as error:
        fix = "make it readable, or set HOME and XDG_CONFIG_HOME to folders of your own"
        raise UsageError(f"{FILE} cannot be read: {error.strerror}", where=f"at {path}", fix=fix) from None
    if absent:
        return {}
    if not path.is_file() or path.stat().st_size > LONGEST:
        what = f"{FILE} is no file of at most {LONGEST // 1024} KB"
        raise UsageError(what, where=f"at {path}", fix="correct or remove it")
    import tomllib

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))  # Windows editors write a mark
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}", fix="correct or remove the file") from None
    except (ValueError, RecursionError) as error:  # also of a number with too many digits
        raise UsageError(
            f"{FILE} is not valid TOML: {error}", where=f"in {path}", fix="correct it; texts need quotation marks"
        ) from None
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
    """A hira.toml; relative paths in it start at its folder. An absent file is an empty layer."""
    values = read_toml(path)
    if not values:
        return Layer(kind, {}, {})
    _check_tables(values, path)
    values = resolve_paths(values, path.parent)
    if kind == "project":
        from hira.runtime.settings.trust import check_harmless, check_litellm, places

        check_harmless(values, path)
        check_litellm(places(values), path)
    return Layer(kind, values, dict.fromkeys((*values, *list_entries(values)), str(path)))


def _check_tables(values: Mapping[str, Any], path: Path) -> None:
    """Raise `UsageError` for an unknown key, or a value that is no table, anywhere in the file."""
    _check_keys(values, Settings, path)
    for name in ("roles", "mcp", "keys", "prices"):
        _table(values, name, path)
    try:
        _FILE.validate_python(values)
    except ValidationError as error:
        raise invalid(error, dict.fromkeys(values, str(path))) from None
    _table(values, "search_keys", path)
    _check_keys(_table(values, "timeout", path), TimeoutSettings, path, "timeout")
    experts = values.get("experts")
    for tables in (_table(values, "workflows", path), experts if isinstance(experts, Mapping) else {}):
        for name in tables:
            _table(tables, name, path)
    tables_of: Mapping[str, type[BaseModel]] = {
        "roles": RoleSettings,
        "keys": KeySettings,
        "prices": PriceSettings,
        "mcp": McpSettings,
    }
    for kind, model in tables_of.items():
        for name, table in _table(values, kind, path).items():
            _check_keys(table if isinstance(table, Mapping) else {}, model, path, f"{kind}.{name}")


def profile_layers(closer: Iterable[Layer], folder: Path) -> list[Layer]:
    """The profile that flags or the environment name, with the limits of a project's file: others may have made it.

    Paths in it that begin with `./` start at its folder. Where a server is named closer, it is that of the adapters as
    a server serves them; where a model is, its own adapters are left out.
    """
    set_ = {name: layer.values[name] for layer in reversed(list(closer)) for name in layer.values}
    if not set_.get("profile"):
        return []
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
    return [replace(layer, values=values)]


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


def _check_keys(values: Mapping[str, Any], model: type[BaseModel], path: Path, table: str = "") -> None:
    for key in values:
        if key not in model.model_fields:
            fix = did_you_mean(key, model.model_fields)
            where = f"in {path}, table [{table}]" if table else f"in {path}"
            raise UsageError(f"unknown key {key!r} in {FILE}", where=where, fix=fix)


def _table(values: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    table = values.get(name, {})
    if not isinstance(table, Mapping):
        raise UsageError(f"{name} in {FILE} is not a table", where=f"in {path}", fix=f"write [{name}]")
    return table


def load(
    flags: Mapping[str, Any] = MappingProxyType({}),
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    home: Path | None = None,
    names: Mapping[str, str] | None = None,
    *,
    record: Mapping[str, Any] = MappingProxyType({}),
) -> Settings:
    """Load the settings of one run. `flags` are named like the fields; `folder` may contain a hira.toml, and so may the
    user's configuration under `home`. Raises `UsageError` that names the value's origin, never a key itself.

    `names` gives the flags other names in such errors, if they do not come from the command line; a program's runs are
    recorded only if a journal is named. Arguments that are left out are those of this process, as for `Hira(…)`:
    `load({"max_time": 60})` are the settings here, with a limit. `record` are the settings of a recorded run whose
    journal the project's file names; the flags take precedence over it, and it needs consent as that file does.
    """
    if environ is None:
        environ, names = os.environ, names or {name: f"load({name}=…)" for name in flags}
    folder, home = folder or Path.cwd(), home or Path.home()
    config = find_own_file(environ, home)
    called = {key: (names or {}).get(key) or f"--{key.replace('_', '-')}" for key in flags}
    called |= {name: called[name.partition(".")[0]] for name in list_entries(flags)}
    closer = [Layer("flags", resolve_paths(flags, folder), called), environment(environ, folder)]
    recorded = []
    if record:
        from hira.runtime.settings.trust import record_layer

        recorded = [record_layer(record, folder / FILE)]
    layers = [
        closer[0],
        *recorded,
        closer[1],
        *profile_layers(closer, folder),
        file_layer("project", folder / FILE),
        file_layer("user", config),
    ]
    file, store = folder / FILE, config.with_name(TRUSTED)
    refused: list[str] = []
    doubted = any(layer.values for layer in layers if layer.kind in ("project", "record"))
    if doubted:
        from hira.runtime.settings.trust import check_litellm, check_trusted, drop_untrusted, find_places

        layers, refused = drop_untrusted(layers, environ, file, store)
    values, origins = merge_layers(layers)
    if doubted:
        for layer in layers:
            if layer.kind in ("project", "record"):
                check_litellm(find_places(layer, values), file)
        check_trusted(layers, values, environ, file, store)
    if "cache" not in values:
        values["cache"] = Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "hira"
    values["journal"] = find_kept_file(JOURNAL, values.get("journal", names is None), environ, folder, home)
    values["memory"] = find_kept_file(MEMORY, values.get("memory", False), environ, folder, home)
    withheld = [
        *refused,
        *find_misspelt(environ),
        *pair_keys(layers, values, origins),
        *(documents_alone(layers, values, origins) if values.get("search") else ()),
    ]
    settings = Settings.model_validate(values, context={ORIGINS: origins})
    secrets = [value for name, value in environ.items() if SECRET_NAME.search(name)]
    return settings.with_origins(origins, withheld, secrets)


def documents_alone(layers: Iterable[Layer], values: dict[str, Any], origins: dict[str, str]) -> list[str]:
    """Documents that are named closer to the question than a web search leave it out: `--docs` stays off the web."""
    for layer in layers:
        if "search" in layer.values:
            return []
        if "docs" in layer.values:
            kept, name = origins.pop("search"), values.pop("search")
            where = layer.origins["docs"]
            return [f"search {name!r} from {kept} is off because {where} names documents; --search {name} turns it on"]
    return []


def find_own_file(environ: Mapping[str, str], home: Path) -> Path:
    """The user's own configuration."""
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "hira" / FILE


def find_kept_file(
    name: str,
    value: str | Path | bool | None,  # noqa: FBT001 - a value of a setting
    environ: Mapping[str, str],
    folder: Path,
    home: Path,
) -> Path | None:
    """Return the file of the journal or the memory for the value of its setting; None for none.

    True and "on" are the user's own file, which has this `name`; False and "off" mean none.
    """
    word = str(value).lower()
    if word in ON:
        return Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "hira" / name
    if word in ("", "none", "false", "0", "no") or Path(word).name == OFF:
        return None
    return folder / Path(str(value)).expanduser()


def merge_layers(layers: Iterable[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    """The first layer that sets a value wins; tables are merged entry by entry."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in reversed(list(layers)):
        for key, value in layer.values.items():
            known = values.get(key, {})
            if key == "roles":
                values["roles"] = {**known, **{role: _role(known.get(role, {}), value[role]) for role in value}}
            elif key == "workflows":
                values[key] = {**known, **{name: {**known.get(name, {}), **value[name]} for name in value}}
            elif key in _MERGED and isinstance(value, Mapping) and isinstance(known, Mapping):
                values[key] = {**known, **value}
            else:
                values[key] = value
        origins |= layer.origins
    return values, origins


def _role(known: Mapping[str, Any], closer: Mapping[str, Any]) -> dict[str, Any]:
    """A role's settings of two layers. A base URL that is set closer is not given the key of the one it replaces."""
    kept = {key: value for key, value in known.items() if not (key == "api_key" and "base_url" in closer)}
    return {**kept, **closer}
