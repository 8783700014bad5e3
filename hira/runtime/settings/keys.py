"""Which key goes to which endpoint. Nothing else decides it; docs/security.md has the table.

A key that the user gave (an argument, the environment, the user configuration) goes to endpoints that the user named,
and to OpenAI's own. An endpoint that another file names, a project's or a profile, is given no key but one of that
file: whoever wrote it would receive the key.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hira.core.sanitize import without_userinfo
from hira.policies.names import GGUF, IN_PROCESS, LITELLM, OFFLINE, names_of, place_of, resolve_name
from hira.runtime.settings.fields import FILE, Layer, RoleSettings, Settings


def endpoints_of(values: Mapping[str, Any]) -> dict[str, None]:
    """The addresses that these values send questions, documents or searches to, in order and without passwords."""
    roles = values.get("roles", {})
    role_tables = [role for role in roles.values() if isinstance(role, Mapping)] if isinstance(roles, Mapping) else []
    urls = [values.get("searxng_url")]
    for table in (values, *role_tables):
        urls += [table.get("base_url"), *(place_of(name)[1] for name in names_of(str(table.get("model") or "")))]
    return dict.fromkeys(map(endpoint, filter(None, urls)))


def endpoint(url: object) -> str:
    """A base URL as it is compared and shown."""
    return without_userinfo(str(url)).rstrip("/")


def pair_keys(layers: Sequence[Layer], values: dict[str, Any], origins: dict[str, str]) -> Iterator[str]:
    """Take out of the values every key that was not given for the endpoint that it would be sent to; a line for each.

    The key of a file goes with the base URL of that file, unless an argument or HIRA_API_KEY gives another. The
    first layer is that of the arguments.
    """
    roles = dict(values.get("roles", {}))
    if "api_key" not in values and not any("api_key" in table for table in roles.values()):
        return
    users = [layer for layer in layers if layer.kind not in ("project", "record")]
    mine = {url for layer in users for url in endpoints_of(layer.values)}
    general = values.get("base_url", "")
    file = next((layer for layer in layers if "base_url" in layer.values), None)
    foreign = bool(general) and endpoint(general) not in mine
    closer = origins.get("api_key") == "HIRA_API_KEY" or "api_key" in layers[0].values
    if file and file.kind in ("project", "record", "user") and "api_key" in file.values and (foreign or not closer):
        values["api_key"], origins["api_key"] = file.values["api_key"], file.origins["api_key"]
    elif file and foreign and "api_key" in values:
        del values["api_key"]
        key = origins.pop("api_key")
        yield f"the key from {key} is not sent to the base URL of {file.origins['base_url']}; {_NAME}"
    for name, table in roles.items():
        url = table.get("base_url") or general
        theirs = [layer.values.get("roles", {}) for layer in layers if endpoint(url) in endpoints_of(layer.values)]
        given = table.get("api_key") and table["api_key"] not in [
            their.get(name, {}).get("api_key") for their in theirs
        ]
        if url and endpoint(url) not in mine and given:
            roles[name] = {key: value for key, value in table.items() if key != "api_key"}
            yield f"the key of role {name!r} is not sent to {endpoint(url)}, which a file names; {_NAME}"
    if roles:
        values["roles"] = roles


_NAME = "name that endpoint yourself (--base-url, base_url=, HIRA_BASE_URL, your user configuration) to send it"


class EndpointPlace(NamedTuple):
    """A model, where it is asked, with which key, and where that came from."""

    model: str
    base_url: str
    secret: str
    key_origin: str
    adapter: str = ""


def find_place(name: str, role: str, role_settings: RoleSettings, settings: Settings) -> EndpointPlace:
    """Return the endpoint of one model of a role, and the key that was given for that place, if any.

    Without a named endpoint, the model's name may name its provider (`resolve_name`). A model with an address of its
    own gets no key, and a role with its own base URL gets only its own key, because the general key was meant for the
    general endpoint. A litellm model has its provider's address and keys, unless others were given for it.
    """
    if name.startswith(IN_PROCESS):
        adapter = settings.adapter if role_settings.adapter is None else role_settings.adapter
        return EndpointPlace(name, "", "", "", adapter)
    if name == OFFLINE or name.startswith(GGUF):
        return EndpointPlace(name, "", "", "")
    base_url, key = role_settings.base_url or settings.base_url, role_settings.api_key.get_secret_value()
    model, elsewhere = place_of(name.removeprefix("openai:") if base_url else resolve_name(name))
    if elsewhere or model.startswith(GGUF):
        return EndpointPlace(model, elsewhere, "", "")
    origin = f"role {role}" if key else settings.origin("api_key")
    if model.startswith(LITELLM) and not role_settings.base_url and not _is_meant_for(model, "base_url", settings):
        base_url = ""
    general = role_settings.base_url in ("", settings.base_url)
    if not key and general and (not model.startswith(LITELLM) or _is_meant_for(model, "api_key", settings)):
        key = settings.api_key.get_secret_value()
    return EndpointPlace(model, base_url, key, origin if key else "")


def _is_meant_for(model: str, setting: str, settings: Settings) -> bool:
    """Return whether the general key or base URL was given for this litellm model: for hira and for that provider.

    A variable that other programs read too is for OpenAI's API, and a value in a file is for the model of that file.
    """
    first = resolve_name(next(iter(names_of(settings.model)), ""))
    if first.split("/")[:2] != model.split("/")[:2]:
        return False
    origin = settings.origin(setting)
    return origin == settings.origin("model") or not (origin.startswith("OPENAI_") or origin.endswith(FILE))
