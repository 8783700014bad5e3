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
    """Facts about each model at each endpoint, by name; without a folder they last as long as the object. A file that
    cannot be read counts as empty, and one that cannot be written stays: what is lost is learned again."""

    def __init__(self, folder: Path | None = None) -> None:
        self._path = folder / "endpoints.json" if folder else None
        self.known = self.read()
        self.locks: dict[str, asyncio.Lock] = {}

    def about(self, base_url: str, model: str) -> "ModelFacts":
        return ModelFacts(self, f"{base_url.rstrip('/')} {model}")

    def read(self) -> dict[str, dict[str, Any]]:
        try:
            read = loads(self._path.read_text(encoding="utf-8")) if self._path else {}
        except (OSError, ValueError, RecursionError):
            return {}
        known = read.items() if isinstance(read, Mapping) else ()
        named = ((key, {DIALECT: facts} if isinstance(facts, str) else facts) for key, facts in known)
        return {key: dict(facts) for key, facts in named if isinstance(facts, Mapping)}

    def write(self) -> None:
        if self._path is None:
            return
        from hira.core.files import replace_file  # most runs learn nothing new

        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            content = dumps(self.known, ensure_ascii=False, indent=1, sort_keys=True)
            replace_file(self._path, [content.encode("utf-8", "replace")], private=True)
        except OSError:
            return


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The facts about one model at its endpoint."""

    facts: EndpointFacts = field(default_factory=EndpointFacts)
    key: str = ""
    """The model and its endpoint, as the file names them."""

    def get(self, name: str) -> Any:
        return self.facts.known.get(self.key, {}).get(name)

    def keep(self, name: str, value: Any) -> None:
        """Remember a fact, and forget it if the value is None or empty."""
        if self.get(name) == (value or None):
            return
        self.facts.known |= self.facts.read()  # others learn, too
        named = {**self.facts.known.get(self.key, {}), name: value}
        self.facts.known[self.key] = {name: value for name, value in named.items() if value}
        self.facts.write()

    def lock(self) -> asyncio.Lock:
        """Return the lock of the model, to be held while a fact is found out that several runs need at once."""
        return self.facts.locks.setdefault(self.key, asyncio.Lock())
