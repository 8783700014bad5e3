"""Facts that hira learned about models at their endpoints, kept in one file of the cache folder."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from json import dumps, loads
from pathlib import Path
from typing import Any

DIALECT = "dialect"
"""The fact that names the dialect that worked."""


class EndpointFacts:
    """Facts about each model at each endpoint, by name. Without a folder they last as long as the object.

    A file that cannot be read counts as empty, and one that cannot be written is left as it is: what is lost is
    learned again.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = folder / "endpoints.json" if folder else None
        self._known = self._read()
        self._locks: dict[str, asyncio.Lock] = {}

    def get(self, base_url: str, model: str, name: str) -> Any:
        """Return a fact, None if it is not known."""
        return self._known.get(_key(base_url, model), {}).get(name)

    def keep(self, base_url: str, model: str, name: str, value: Any) -> None:
        """Remember a fact, and forget it if the value is None or empty."""
        if self.get(base_url, model, name) == (value or None):
            return
        self._known |= self._read()  # others learn, too
        facts = {**self._known.get(_key(base_url, model), {}), name: value}
        self._known[_key(base_url, model)] = {name: value for name, value in facts.items() if value}
        self._write()

    def lock(self, base_url: str, model: str) -> asyncio.Lock:
        """Return the lock of a model, to be held while a fact is found out that several runs need at once."""
        return self._locks.setdefault(_key(base_url, model), asyncio.Lock())

    def about(self, base_url: str, model: str) -> "ModelFacts":
        """Return the facts about one model."""
        return ModelFacts(self, base_url, model)

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            read = loads(self._path.read_text(encoding="utf-8")) if self._path else {}
        except (OSError, ValueError, RecursionError):
            return {}
        known = read.items() if isinstance(read, Mapping) else ()
        named = ((key, {DIALECT: facts} if isinstance(facts, str) else facts) for key, facts in known)
        return {key: dict(facts) for key, facts in named if isinstance(facts, Mapping)}

    def _write(self) -> None:
        if self._path is None:
            return
        from hira.core.files import replace_file  # most runs learn nothing new

        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            content = dumps(self._known, ensure_ascii=False, indent=1, sort_keys=True)
            replace_file(self._path, content.encode("utf-8", "replace"), private=True)
        except OSError:
            return


def _key(base_url: str, model: str) -> str:
    return f"{base_url.rstrip('/')} {model}"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The facts about one model at its endpoint."""

    known: EndpointFacts = field(default_factory=EndpointFacts)
    base_url: str = ""
    model: str = ""

    def get(self, name: str) -> Any:
        """Return a fact, None if it is not known."""
        return self.known.get(self.base_url, self.model, name)

    def keep(self, name: str, value: Any) -> None:
        """Remember a fact, and forget it if the value is None or empty."""
        self.known.keep(self.base_url, self.model, name, value)

    def lock(self) -> asyncio.Lock:
        """Return the lock of the model, to be held while a fact is found out that several runs need at once."""
        return self.known.lock(self.base_url, self.model)
