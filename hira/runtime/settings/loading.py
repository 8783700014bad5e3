"""The settings of one run out of all the places that they come from, each value with its origin."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hira.runtime.settings.fields import FILE, JOURNAL, OFF, ORIGINS, Settings, is_secret
from hira.runtime.settings.keys import pair_keys
from hira.runtime.settings.layer import Layer
from hira.runtime.settings.reading import environment, file_layer, named_flags, profile_layers, resolve_paths
from hira.runtime.settings.trust import (
    TRUSTED,
    check_litellm,
    check_trusted,
    documents_alone,
    drop_untrusted,
    placed_by,
)


def load(
    flags: Mapping[str, Any] = MappingProxyType({}),
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    home: Path | None = None,
    names: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of one run. `flags` are named as the fields are; `folder` may hold a hira.toml, and so may the
    user's configuration under `home`. Raises `UsageError` that names the value's origin, never a key itself.

    `names` says what the flags are called in such errors, if they are none of the command line. What is left out is
    that of this process, as for `Hira(…)`: `load({"max_time": 60})` is what holds here, with a limit.
    """
    if environ is None:
        environ, names = os.environ, names or {name: f"load({name}=…)" for name in flags}
    folder, home = folder or Path.cwd(), home or Path.home()
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "hira" / FILE
    closer = [
        Layer("flags", resolve_paths(flags, folder), named_flags(flags, names or {})),
        environment(environ, folder),
    ]
    layers = [
        *closer,
        *profile_layers(closer, folder),
        file_layer("project", folder / FILE),
        file_layer("user", config),
    ]
    layers, refused = drop_untrusted(layers, environ)
    values, origins = merge_layers(layers)
    for layer in layers:
        if layer.kind == "project":
            check_litellm(placed_by(layer, values), folder / FILE)
    check_trusted(layers, values, environ, folder / FILE, config.with_name(TRUSTED))
    if "cache" not in values:
        values["cache"] = Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "hira"
    if "journal" not in values:
        values["journal"] = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "hira" / JOURNAL
    elif Path(values["journal"]).name == OFF:
        values["journal"] = None
    else:
        values["journal"] = folder / Path(values["journal"]).expanduser()
    withheld = [*refused, *pair_keys(layers, values, origins), *documents_alone(layers, values, origins)]
    settings = Settings.model_validate(values, context={ORIGINS: origins})
    secrets = [value for name, value in environ.items() if is_secret(name)]
    return settings.told(origins, withheld, secrets)


def merge_layers(layers: Iterable[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    """The first layer that sets a value wins; tables are merged entry by entry."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in reversed(list(layers)):
        for key, value in layer.values.items():
            if key == "roles":
                known = values.get("roles", {})
                values["roles"] = {**known, **{role: _role(known.get(role, {}), value[role]) for role in value}}
            elif key == "workflows":
                known = values.get(key, {})
                values[key] = {**known, **{name: {**known.get(name, {}), **value[name]} for name in value}}
            elif key in ("search_keys", "mcp", "prices", "keys", "timeout"):
                values[key] = {**values.get(key, {}), **value}
            else:
                values[key] = value
        origins |= layer.origins
    return values, origins


def _role(known: Mapping[str, Any], closer: Mapping[str, Any]) -> dict[str, Any]:
    """A role's settings of two layers. A base URL that is set closer is not given the key of the one it replaces."""
    kept = {key: value for key, value in known.items() if not (key == "api_key" and "base_url" in closer)}
    return {**kept, **closer}
