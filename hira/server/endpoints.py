"""Whether the models of a server can be asked now. One that is down may come up later, so it is told and no error."""

import asyncio

from hira.core.redaction import without_userinfo
from hira.policies import OPENAI_URL
from hira.policies.fallback import names_of
from hira.policies.names import has_own_place
from hira.policies.probe import Probe, probe
from hira.runtime.settings import RoleSettings, Settings
from hira.runtime.settings.keys import placed_for

REFUSED, BROKEN = (401, 403), 500
_SHOWN = 5


async def unready(settings: Settings) -> list[str]:
    """A line for each endpoint of these settings that does not answer, refuses its key or lacks the model."""
    places = _asked_at(settings)
    found = await asyncio.gather(*(probe(url, key) for url, key in places))
    told = [_told(url, one, models) for ((url, _), models), one in zip(places.items(), found, strict=True)]
    return [line for line in told if line]


def _asked_at(settings: Settings) -> dict[tuple[str, str], frozenset[str]]:
    """The OpenAI-compatible endpoints that these settings ask, by base URL and key, and the models they ask there."""
    found: dict[tuple[str, str], frozenset[str]] = {}
    for role, own in {"*": RoleSettings(), **settings.roles}.items():
        for name in names_of(own.model or settings.model):
            place = placed_for(name, role, own, settings)
            if not has_own_place(place.model):
                where = place.base_url or OPENAI_URL, place.secret
                found[where] = found.get(where, frozenset()) | {place.model}
    return found


def _told(url: str, found: Probe, models: frozenset[str]) -> str:
    """What is wrong with it now; empty if nothing is, also where it does not list what it has."""
    named, url = ", ".join(sorted(models)), without_userinfo(url)
    if not found.ok and not found.status:
        why = "nothing listens there" if "onnect call failed" in found.error else found.error
        return f"{url} does not answer ({why}): questions to {named} fail until it does"
    if found.status in REFUSED:
        return f"{url} refuses the key, and questions to {named} fail; hira doctor shows where the key comes from"
    if found.status >= BROKEN:
        return f"{url} answers with status {found.status}: questions to {named} may fail"
    if found.lacks_v1:
        return f"the base URL {url} lacks /v1: questions to {named} fail; set it to {without_userinfo(found.base_url)}"
    unknown = sorted(models - {*found.models}) if found.models else []
    if unknown:
        has = ", ".join(found.models[:_SHOWN]) + (", …" if len(found.models) > _SHOWN else "")
        return f"{url} lists no model {', '.join(unknown)}; it has {has}"
    return ""
