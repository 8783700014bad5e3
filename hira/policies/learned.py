"""What runs and `hira doctor` have learned of models at endpoints, kept in the cache: the dialect to begin in."""

import json
import tempfile
from pathlib import Path
from typing import Any

DIALECT = "dialect"
_FILE = "endpoints.json"


class Learned:
    """Facts about a model at an endpoint, by name, such as "dialect". Without a folder they last as long as the object.

    A file that cannot be read counts as empty, and one that cannot be written is left as it is: what is lost is
    learned again.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = folder / _FILE if folder else None
        self._known = self._read()

    def get(self, base_url: str, model: str, fact: str) -> str:
        """The fact, empty if it is not known."""
        return str(self._known.get(_place(base_url, model), {}).get(fact, ""))

    def keep(self, base_url: str, model: str, fact: str, value: str) -> None:
        """Remember a fact, and forget it where the value is empty."""
        if self.get(base_url, model, fact) == value:
            return
        self._known |= self._read()  # others learn, too
        own = {name: one for name, one in self._known.get(_place(base_url, model), {}).items() if name != fact}
        self._known[_place(base_url, model)] = own | ({fact: value} if value else {})
        self._write()

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            read = json.loads(self._path.read_text(encoding="utf-8")) if self._path else {}
        except (OSError, ValueError):
            return {}
        return (
            {place: facts for place, facts in read.items() if isinstance(facts, dict)} if isinstance(read, dict) else {}
        )

    def _write(self) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=self._path.parent, delete=False) as file:
                json.dump(self._known, file, ensure_ascii=False, indent=1, sort_keys=True)
            Path(file.name).replace(self._path)
        except OSError:
            return


def _place(base_url: str, model: str) -> str:
    return f"{base_url.rstrip('/')} {model}"
