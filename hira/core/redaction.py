"""Keys and passwords stay out of what is shown, sent and recorded."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

MASK = "[secret]"
_USERINFO = re.compile(r"(?<=://)[^/?#\s]*@(?!https?://)")


def redact(value: Any, secrets: frozenset[str]) -> Any:
    """A JSON value with every secret in its texts masked, also where it is written as in a URL or in JSON.

    The value itself comes back if it holds none.
    """
    if not secrets:
        return value
    if isinstance(value, str):
        return _masked(value, _forms(secrets))
    if isinstance(value, Mapping):
        masked = {redact(key, secrets): redact(one, secrets) for key, one in value.items()}
        return value if masked == value else masked
    if isinstance(value, list | tuple):
        items = [redact(one, secrets) for one in value]
        return value if items == list(value) else items
    return value


def _masked(text: str, forms: Iterable[str]) -> str:
    for form in forms:
        if form in text:
            text = text.replace(form, MASK)
    return text


@lru_cache(maxsize=8)
def _forms(secrets: frozenset[str]) -> tuple[str, ...]:
    """How the secrets may be written, the longest first; kept because each text of a run is held against them."""
    forms = {form for one in secrets for form in (one, quote(one, safe=""), json.dumps(one)[1:-1])}
    return tuple(sorted(forms, key=len, reverse=True))


def without_userinfo(text: str) -> str:
    """The text with no user and no password in its URLs.

    >>> without_userinfo("https://me:hidden@example.org/v1")
    'https://example.org/v1'
    """
    return _USERINFO.sub("", text)


def passwords_in(text: str) -> set[str]:
    """The passwords of the text's URLs, as they stand there and unquoted; without a password the user is one."""
    told = (found[0][:-1].partition(":") for found in _USERINFO.finditer(text))
    found = {password or user for user, _, password in told} - {""}
    return found | {unquote(one) for one in found}
