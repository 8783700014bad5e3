"""Where settings come from (flags, environment, profile, project, user), and the settings of one run out of them."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from hira.core.errors import UsageError, find_near
from hira.runtime.settings.fields import (
    FILE,
    JOURNAL,
    MCP_CONSENT,
    MEMORY,
    OFF,
    ON,
    ORIGINS,
    SEARCH_KEYS,
    SECRET_NAME,
    SERVE_KEY,
    TRUST,
    TRUSTED,
    Layer,
    Settings,
    list_entries,
    resolve_paths,
    split_list,
)
from hira.runtime.settings.keys import pair_keys

TABLES = ("roles", "workflows", "search_keys", "mcp", "prices", "keys", "timeout")
VARIABLES = {f"HIRA_{name.upper()}": name for name in Settings.model_fields if name not in TABLES}
"""The settings that are not tables, by their environment variables."""
_MERGED = ("search_keys", "mcp", "prices", "keys", "timeout", "experts")
"""Tables that are merged entry by entry."""
_LISTS = {"docs": os.pathsep, "exclude": os.pathsep, "without": ",", "allowed_hosts": ",", "tools": ",", "experts": ","}


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
    file, store = folder / FILE, config.with_name(TRUSTED)
    closer = [Layer("flags", resolve_paths(flags, folder), called), environment(environ, folder)]
    layers = closer[:1]
    if record:
        from hira.runtime.settings.trust import record_layer

        layers.append(record_layer(record, file))
    layers.append(closer[1])
    if next((layer.values["profile"] for layer in closer if "profile" in layer.values), ""):
        from hira.runtime.settings.files import profile_layer

        layers.append(profile_layer(closer, folder))
    layers += [_read_file("project", file), _read_file("user", config)]
    refused: list[str] = []
    doubted = any(layer.values for layer in layers if layer.kind in ("project", "record"))
    if doubted:
        from hira.runtime.settings.trust import check_trusted, drop_untrusted

        layers, refused = drop_untrusted(layers, environ, file, store)
    values, origins = merge_layers(layers)
    if doubted:
        check_trusted(layers, values, environ, file, store)
    if "cache" not in values:
        values["cache"] = Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "hira"
    values["journal"] = find_kept_file(JOURNAL, values.get("journal", names is None), environ, folder, home)
    values["memory"] = find_kept_file(MEMORY, values.get("memory", False), environ, folder, home)
    known = {*VARIABLES, MCP_CONSENT, SERVE_KEY, TRUST}
    misspelt = [  # it may be another program's, so it is not an error
        f"the environment variable {variable} is not used; did you mean {near[0]}?"
        for variable in environ
        if variable.startswith("HIRA_") and variable not in known and (near := find_near(variable, VARIABLES))
    ]
    withheld = [
        *refused,
        *misspelt,
        *pair_keys(layers, values, origins),
        *(documents_alone(layers, values, origins) if values.get("search") else ()),
    ]
    settings = Settings.model_validate(values, context={ORIGINS: origins})
    secrets = [value for name, value in environ.items() if SECRET_NAME.search(name)]
    return settings.with_origins(origins, withheld, secrets)


def _read_file(kind: Literal["project", "user"], path: Path) -> Layer:
    """Return the layer of a hira.toml, an empty one if it is absent."""
    try:
        absent = not path.exists()
    except OSError as error:
        fix = "make it readable, or set HOME and XDG_CONFIG_HOME to folders of your own"
        raise UsageError(f"{FILE} cannot be read: {error.strerror}", where=f"at {path}", fix=fix) from None
    if absent:
        return Layer(kind, {}, {})
    from hira.runtime.settings.files import file_layer

    return file_layer(kind, path)


def documents_alone(layers: Iterable[Layer], values: dict[str, Any], origins: dict[str, str]) -> list[str]:
    """Documents that are named closer to the question than a web search leave it out: `--docs` stays off the web."""
    for layer in layers:
        if "search" in layer.values:
            return []
        if "docs" in layer.values:
            kept, name = origins.pop("search"), values.pop("search")
            where = layer.origins["docs"]
            on = f"search= or --search {name} turns it on"
            return [f"search {name!r} from {kept} is off because {where} names documents; {on}"]
    return []


def find_own_file(environ: Mapping[str, str], home: Path) -> Path:
    """The user configuration."""
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
            elif key == "experts" and isinstance(known, Mapping) and not isinstance(value, Mapping):
                named = {table["object"]: name for name, table in known.items() if isinstance(table.get("object"), str)}
                places = [value] if isinstance(value, str) else value  # a list keeps the options of a farther table
                values[key] = {
                    named.get(place, place): known.get(named.get(place), {"object": place}) for place in places
                }
            else:
                values[key] = value
        origins |= layer.origins
    return values, origins


def _role(known: Mapping[str, Any], closer: Mapping[str, Any]) -> dict[str, Any]:
    """A role's settings of two layers. A base URL that is set closer is not given the key of the one it replaces."""
    kept = {key: value for key, value in known.items() if not (key == "api_key" and "base_url" in closer)}
    return {**kept, **closer}
