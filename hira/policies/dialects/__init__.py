"""How calls are written and results are written back. The only place that parses what a model wrote."""

import tempfile
from json import dump, loads
from pathlib import Path

from hira.policies.dialects.dialect import Call, Dialect, Parsed, rewrite_messages
from hira.policies.dialects.json import DIALECT as JSON
from hira.policies.dialects.native import DIALECT as NATIVE
from hira.policies.dialects.tags import DIALECT as TAGS
from hira.policies.dialects.xml import DIALECT as XML

DIALECTS: dict[str, Dialect] = {"native": NATIVE, "tags": TAGS, "xml": XML, "json": JSON}
# the next dialect for a model whose calls cannot be read
FALLBACKS: dict[str, Dialect] = {"native": JSON, "json": TAGS}


class LearnedDialects:
    """The dialect that worked for each model at each endpoint. Without a folder it lasts as long as the object.

    A file that cannot be read counts as empty, and one that cannot be written is left as it is: what is lost is
    learned again.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = folder / "endpoints.json" if folder else None
        self._known = self._read()

    def get(self, base_url: str, model: str) -> str:
        """The name of the dialect, empty if it is not known."""
        return self._known.get(f"{base_url.rstrip('/')} {model}", "")

    def keep(self, base_url: str, model: str, dialect: str) -> None:
        """Remember a dialect, and forget it where the name is empty."""
        if self.get(base_url, model) == dialect:
            return
        self._known |= self._read()  # others learn, too
        self._known[f"{base_url.rstrip('/')} {model}"] = dialect
        self._write()

    def _read(self) -> dict[str, str]:
        try:
            read = loads(self._path.read_text(encoding="utf-8")) if self._path else {}
        except (OSError, ValueError):
            return {}
        known = read.items() if isinstance(read, dict) else ()
        return {place: dialect for place, dialect in known if isinstance(dialect, str)}

    def _write(self) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=self._path.parent, delete=False) as file:
                dump(self._known, file, ensure_ascii=False, indent=1, sort_keys=True)
            Path(file.name).replace(self._path)
        except OSError:
            return


__all__ = [
    "DIALECTS", "FALLBACKS", "JSON", "NATIVE", "TAGS", "XML", "Call", "Dialect", "LearnedDialects", "Parsed",
    "rewrite_messages",
]  # fmt: skip
