"""Endpoints and models that nobody named: those of this machine, and the only one of an endpoint."""

from collections.abc import Sequence

from hira.core.errors import AccessDenied, EndpointError, UsageError, suggest
from hira.core.sanitize import without_userinfo
from hira.policies.names import NOTHING_FOUND, OFFLINE, OPENAI_URL, has_own_place, names_of, place_of, resolve_name
from hira.policies.probe import WANTS_KEY, find_local, probe
from hira.runtime.settings import Settings

_LISTED = 5
_KEYED = "set OPENAI_API_KEY, or name another endpoint with --base-url or base_url="


async def find_endpoint(settings: Settings, ports: Sequence[int]) -> Settings:
    """Find a server on this machine: one that has the named model, or the first of any with its first model."""
    first = next(iter(names_of(settings.model)), "")
    local = await find_local(ports) if ports else []
    servers = [server for server in local if server.models]
    if settings.model:
        served = next((server for server in servers if first in server.models), None)
        if served is None and (has_own_place(meant := resolve_name(first)) or place_of(meant)[1]):
            return settings
        if served is None:
            raise _no_key(settings, [name for server in servers for name in server.models])
        return settings.with_values(
            {"base_url": served.base_url}, f"{served.server or 'a server'} found on this machine"
        )
    if not servers:
        chosen = settings.with_values({"model": OFFLINE}, NOTHING_FOUND)
        locked = (server.base_url for server in local if server.status in WANTS_KEY)
        fix = "set HIRA_API_KEY, and name it with --base-url or base_url="
        lines = [f"a server at {url} needs a key: {fix}" for url in locked]
        return chosen.with_origins({}, lines)
    server = servers[0]
    origin = f"{server.server or 'a server'} found on this machine"
    return settings.with_values({"model": server.chat_model, "base_url": server.base_url}, origin)


async def find_only_model(settings: Settings, key: str) -> Settings:
    """An endpoint without a model's name: its model, if it has one; else a choice that is the user's."""
    base_url = settings.base_url or OPENAI_URL
    endpoint = await probe(base_url, key)
    key = f"key from {settings.origin('api_key')}" if settings.api_key.get_secret_value() else "no key"
    where = f"at {without_userinfo(base_url)}, {key}"
    if endpoint.ok and len(endpoint.models) == 1:
        named = settings.with_values({"model": endpoint.models[0]}, "the only model there")
        if endpoint.base_url == settings.base_url:
            return named
        return named.with_values({"base_url": endpoint.base_url}, settings.origin("base_url"))
    if endpoint.ok:
        shown = ", ".join(endpoint.models[:_LISTED]) + (", …" if len(endpoint.models) > _LISTED else "")
        has = f"{where}, which has {shown or 'none'}"
        raise UsageError("no model is named", where=has, fix="choose one with --model NAME, model= or HIRA_MODEL")
    refused = endpoint.status in WANTS_KEY
    fix = "check the key" if refused else "name the model (--model or model=) and check the base URL"
    raise (AccessDenied if refused else EndpointError)(
        f"no model is named and the endpoint lists none: {endpoint.error}", where=where, fix=fix, status=endpoint.status
    )


def _no_key(settings: Settings, served: Sequence[str]) -> AccessDenied:
    """The error for a model that nobody here has; `served` are those that servers of this machine have."""
    return AccessDenied(
        f"there is no key for model {settings.model!r}",
        where=f"at {OPENAI_URL}, model from {settings.origin('model')}, no key, and no local server has it",
        fix=suggest_model(settings.model, served),
    )


def suggest_model(name: str, served: Sequence[str] = ()) -> str:
    """Suggest what to do about a model without an endpoint: its name may be misspelt."""
    suggestion = suggest(name, [OFFLINE, *served])
    return f"{suggestion} Else {_KEYED}" if suggestion else _KEYED
