"""Mistakes in settings, for the person who wrote them: all of a kind in one error."""

from collections.abc import Collection, Mapping, Sequence

from hira.core.errors import UsageError, did_you_mean, find_near
from hira.core.wrong_values import WrongValue

_SECRETS = ("api_key", "search_keys", "mcp", "keys", "experts")
"""The settings whose values are not shown, because they may be keys or passwords."""


def explain_wrong_values(wrong: Sequence[WrongValue], origins: Mapping[str, str]) -> UsageError:
    """Explain the wrong values: their names, what they take, what they are unless they may be secrets, who set them."""
    paths = [[str(key) for key in value.keys] for value in wrong if value.keys]
    places = [origins.get(".".join(path[:2])) or origins.get(path[0], "") for path in paths]
    named = " and ".join(dict.fromkeys(filter(None, places)))
    fix = wrong[0].fix if len(wrong) == 1 else "correct them, or leave them out"
    return UsageError("; ".join(map(_describe, wrong)), where=f"set by {named}" if named else "", fix=fix)


def _describe(wrong: WrongValue) -> str:
    name = ".".join(key for key in wrong.keys if isinstance(key, str))
    secret = not name or wrong.keys[0] in _SECRETS or wrong.keys[-1] == "api_key"
    return wrong.explain(name, secret=secret)


def explain_unknown_keys(unknown: Sequence[tuple[str, str, Collection[str]]], file: str, path: object) -> UsageError:
    """Explain the unknown keys of a file, each with its table, empty for none, and the keys that are known there."""
    if len(unknown) == 1:
        (table, key, known), *_ = unknown
        where = f"in {path}, table [{table}]" if table else f"in {path}"
        return UsageError(f"unknown key {key!r} in {file}", where=where, fix=did_you_mean(key, known))
    named = ", ".join(f"{key!r} in [{table}]" if table else repr(key) for table, key, _ in unknown)
    near = {key: find_near(key, known) for _, key, known in unknown}
    fixes = [f"{meant[0]!r} for {key!r}" for key, meant in near.items() if meant]
    useless = [repr(key) for key, meant in near.items() if not meant]
    advice = [f"write {', '.join(fixes)}" if fixes else "", f"remove {', '.join(useless)}" if useless else ""]
    return UsageError(f"unknown keys in {file}: {named}", where=f"in {path}", fix="; ".join(filter(None, advice)))
