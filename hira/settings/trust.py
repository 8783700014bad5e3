"""What a project's file may not decide, and which key goes to which endpoint: others may have written that file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hira.errors import UsageError
from hira.policies.names import LITELLM
from hira.redaction import without_userinfo
from hira.settings.layer import Layer, listed

# The servers of a project's file that may be started, by name: its command would run with the user's rights.
MCP_CONSENT = "HIRA_MCP"
# What only the user may loosen: a project's hira.toml may have been written by anyone.
_GUARDS = ("sandbox", "sandbox_image", "allow", "otel", "verifier")


def check_harmless(values: Mapping[str, Any], path: Path) -> None:
    """Raise `UsageError` for what a project's file may not decide: it can come with a folder that someone else made,
    and it names the endpoint that sees the documents."""
    if guard := next((name for name in _GUARDS if name in values), ""):
        fix = f"set HIRA_{guard.upper()} or write it into your own configuration"
        raise UsageError(f"{guard!r} may not be set by a project's file", where=f"in {path}", fix=fix)
    for one in values.get("docs", ()):
        if not one.resolve().is_relative_to(path.parent.resolve()):
            fix = "name them with --docs, HIRA_DOCS or in your own configuration"
            raise UsageError(f"a project's file may not name documents elsewhere: {one}", where=f"in {path}", fix=fix)


def check_litellm(places: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Raise `UsageError` if a project's file gives a model of litellm an address: litellm takes keys from the
    environment by itself, and whoever wrote that file would receive them."""
    for place in places:
        names = (name.strip() for name in str(place.get("model") or "").split(","))
        for name in names:
            if name.startswith(LITELLM) and (place.get("base_url") or "://" in name):
                what = f"a project's file may not name a base URL for {without_userinfo(name)!r}, which litellm asks"
                fix = "name the base URL with --base-url, HIRA_BASE_URL or in your own configuration"
                raise UsageError(what, where=f"in {path}", fix=fix)


def places(values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Model and base URL of all roles and of each, as one file's values alone say."""
    yield values
    for own in values.get("roles", {}).values():
        if isinstance(own, Mapping):
            yield {name: own.get(name) or values.get(name) for name in ("model", "base_url")}


def placed_by(layer: Layer, values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Model and base URL, as they are in the end, of the roles that have their base URL from this layer."""
    for name, own in layer.values.get("roles", {}).items():
        role = values["roles"][name]
        if own.get("base_url") and role["base_url"] == own["base_url"]:
            yield {"model": role.get("model") or values.get("model"), "base_url": role["base_url"]}


def consented(layers: Iterable[Layer], environ: Mapping[str, str]) -> tuple[list[Layer], list[str]]:
    """The layers without those MCP servers of a project's file that the user has not named, and what to say of them."""
    named = listed(environ.get(MCP_CONSENT, ""), ",")
    kept: list[Layer] = []
    refused: list[str] = []
    for layer in layers:
        servers = layer.values.get("mcp", {})
        allowed = {name: server for name, server in servers.items() if layer.kind != "project" or name in named}
        held = [name for name in servers if name not in allowed]
        origins = {name: origin for name, origin in layer.origins.items() if name.removeprefix("mcp.") not in held}
        kept.append(replace(layer, values={**layer.values, "mcp": allowed}, origins=origins) if servers else layer)
        if held:
            fix = f"{MCP_CONSENT}={','.join(servers)} allows it"
            refused.append(f"MCP servers of {layer.origins['mcp']} are not started: {', '.join(held)}; {fix}")
    return kept, refused


def paired_key(layers: Iterable[Layer], values: dict[str, Any], origins: dict[str, str]) -> list[str]:
    """A key belongs to an endpoint: see that it is sent to no other.

    The key of a file goes with that file's base URL. A base URL that a project's file names is given no key that was
    meant for another endpoint, because whoever wrote that file would receive it; HIRA_API_KEY is meant for hira.
    """
    file = next((layer for layer in layers if "base_url" in layer.values), None)
    withheld = _paired_keys_of_roles(file, values) if file and file.kind == "project" else []
    if file is None or file.kind not in ("project", "user") or origins.get("api_key") == "HIRA_API_KEY":
        return withheld
    if "api_key" in file.values:
        values["api_key"], origins["api_key"] = file.values["api_key"], file.origins["api_key"]
    elif file.kind == "project" and "api_key" in values:
        kept = origins.pop("api_key")
        del values["api_key"]
        told = f"the key from {kept} is not sent to the base URL of {file.origins['base_url']}; HIRA_API_KEY would be"
        return [*withheld, told]
    return withheld


def _paired_keys_of_roles(file: Layer, values: dict[str, Any]) -> list[str]:
    """Take the keys of roles out that would go to the base URL of a project's file and do not stand in that file."""
    told, roles = [], dict(values.get("roles", {}))
    for name, own in roles.items():
        theirs = file.values.get("roles", {}).get(name, {}).get("api_key")
        if own.get("api_key") and not own.get("base_url") and own["api_key"] != theirs:
            roles[name] = {key: value for key, value in own.items() if key != "api_key"}
            told.append(f"the key of role {name!r} is not sent to the base URL of {file.origins['base_url']}")
    if told:
        values["roles"] = roles
    return told


def documents_alone(layers: Iterable[Layer], values: dict[str, Any], origins: dict[str, str]) -> list[str]:
    """Documents that are named closer to the question than a web search leave it out: `--docs` stays off the web."""
    for layer in layers:
        if "search" in layer.values:
            return []
        if "docs" in layer.values and values.get("search"):
            kept, name = origins.pop("search"), values.pop("search")
            where = layer.origins["docs"]
            return [f"search {name!r} from {kept} is off because {where} names documents; --search {name} turns it on"]
    return []
