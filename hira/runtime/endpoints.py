"""Which model is asked where: what is named, what is found on this machine, else `offline`."""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from hira.core.errors import AccessDenied, UsageError
from hira.core.policy import Policy
from hira.core.sanitize import without_userinfo
from hira.policies import open_policy
from hira.policies.names import IN_PROCESS, LOCAL_PORTS, OFFLINE, OPENAI_URL, Api, has_own_place, names_of, place_of
from hira.runtime.settings import Continuation, RoleSettings, Settings, TimeoutSettings
from hira.runtime.settings.keys import EndpointPlace, find_place

_ADDRESS = re.compile(r"https?://[^/?#]", re.IGNORECASE)
_HOST = re.compile(r"(?:[\w.-]+|\[[\da-f:]+\])(?::\d+)?(?:/(?!/)|$)", re.IGNORECASE)
"""The beginning of an address without `http://`."""
_NAME_A_BASE = f"name its base (--model or model=): {IN_PROCESS}FOLDER, or {IN_PROCESS}OWNER/NAME for one of the Hub"


async def find_model(settings: Settings, ports: Sequence[int] = LOCAL_PORTS) -> Settings:
    """The settings with a model: the one that is named, the only one of the endpoint that is named, the first of a
    server found on this machine, else `offline`. Of several models for a role the first one decides."""
    _check_endpoints(settings)
    first, key = next(iter(names_of(settings.model)), ""), settings.api_key.get_secret_value()
    given = bool(settings.base_url or key)
    if not (has_own_place(first) or place_of(first)[1] or (given and settings.model)):
        from hira.runtime.discovery import find_endpoint, find_only_model  # loads httpx

        settings = await (find_only_model(settings, key) if given else find_endpoint(settings, ports))
    if settings.roles:
        _check_keys(settings)
    return settings


def with_client(settings: Settings, client: Any) -> Settings:
    """The settings of runs whose requests a client sends: its endpoint and its key replace those of the settings."""
    if not settings.model:
        raise UsageError("no model is named for the client", fix='name it: Hira("MODEL", client=…)')
    settings = settings.with_values({"base_url": "", "api_key": ""}, "Hira(client=…)")
    _check_endpoints(settings)
    return settings.with_origins({}, secrets=[str(client.api_key or "")])


def _check_endpoints(settings: Settings) -> None:
    """Raise `UsageError` for a base URL that is no address of HTTP, or has the path of a request at its end, and for an
    adapter of a model that is not in this process."""
    urls = {settings.origin("base_url"): settings.base_url}
    urls |= {f"role {role}": role_settings.base_url for role, role_settings in settings.roles.items()}
    for origin, url in urls.items():
        if url and not _ADDRESS.match(url):
            what = f"the base URL {without_userinfo(url)!r} does not begin with http:// or https://"
            near = f"http://{url}" if _HOST.match(url) else "http://HOST:PORT/v1"
            raise UsageError(what, where=f"set by {origin}", fix=f"write {without_userinfo(near)}")
        bare = url.rstrip("/")
        for path in ("/chat/completions", "/completions", "/models", "/responses"):
            if bare.endswith(path):
                what = f"the base URL {without_userinfo(url)!r} ends in {path}, which hira adds itself"
                fix = f"write {without_userinfo(bare.removesuffix(path))}"
                raise UsageError(what, where=f"set by {origin}", fix=fix)
    general = bool(settings.adapter)
    for role, role_settings in {"": RoleSettings(), **settings.roles}.items():
        here = any(name.startswith(IN_PROCESS) for name in names_of(role_settings.model or settings.model))
        general = general and not here
        if role_settings.adapter and not here:
            raise UsageError(
                f"role {role!r} has an adapter, but its model is not loaded in this process", fix=_NAME_A_BASE
            )
    if general:
        raise UsageError("an adapter needs a model loaded in this process", fix=_NAME_A_BASE)


def _check_keys(settings: Settings) -> None:
    """Raise `AccessDenied` for a role whose model would be asked at OpenAI without a key."""
    for role, role_settings in settings.roles.items():
        for name in names_of(role_settings.model):
            place = find_place(name, role, role_settings, settings)
            if not (place.base_url or place.secret or has_own_place(place.model)):
                what = f"there is no key for model {name!r} of role {role!r}"
                where = f"at {OPENAI_URL}, no key, and no local server was found"
                from hira.runtime.discovery import suggest_model

                raise AccessDenied(what, where=where, fix=suggest_model(name))


class EndpointList(NamedTuple):
    """Endpoints of a role, in order of preference. `extra_body` is JSON, so that equal lists have equal hashes."""

    places: tuple[EndpointPlace, ...]
    continuation: Continuation
    api: Api = "chat"
    extra_body: str = "{}"

    def open(self, client: Any = None, timeout: TimeoutSettings | None = None) -> Policy:
        """The policy; with several models, one that falls back. A `client` sends what has no base URL."""
        waiting = None
        if timeout and any(place.model != OFFLINE for place in self.places):
            from hira.policies.waiting import Timeout  # only endpoints are waited for

            waiting = Timeout(**timeout.model_dump())
        way = "none" if self.continuation == "turns" else self.continuation
        policies = [
            open_policy(
                place.model,
                base_url=place.base_url,
                api_key=place.secret,
                key_origin=place.key_origin,
                continuation=way,
                patient=place is self.places[-1],
                adapter=place.adapter,
                client=None if place.base_url else client,
                timeout=waiting,
                api=self.api,
                extra_body=json.loads(self.extra_body),
            )
            for place in self.places
        ]
        if len(policies) == 1:
            return policies[0]
        from hira.policies.fallback import Fallback  # few roles have several models

        return Fallback(tuple(policies))
