"""Filters what leaves the server: a client sees names, relative to the documents' folder; the terminal, full paths."""

import logging
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hira.core.events import Event, TurnEnded, TurnText
from hira.core.masking import spell
from hira.core.sanitize import redact
from hira.runtime.settings import OFF, Settings

LONGEST = 200
"""The most characters of a held-back piece, in case the name of a folder of attachments never ends."""


class Hidden:
    """Texts that no client may see: `folders`, those of each request in an `attached` folder, and `secrets`."""

    def __init__(self, folders: Sequence[str], attached: Sequence[str], secrets: frozenset[str] = frozenset()) -> None:
        self.secrets = secrets
        paths = {f"{folder}/" for folder in (*folders, *attached)}
        self._begins: dict[str, list[str]] = {}
        spellings = spell(secrets)
        forms = {*paths, *(f"file://{path}" for path in paths), *spellings.plain, *spellings.packed}
        self._longest = max(map(len, forms), default=0) - 1
        for form in forms:
            self._begins.setdefault(form[0], []).append(form)
        pattern = "|".join(map(re.escape, attached))
        self._attached = re.compile(rf"(?:{pattern})/[^/\s]{{0,{LONGEST}}}/?\Z") if pattern else None

    def ending(self, text: str) -> int:
        """The position from which the end of the text may, together with the next piece, be a hidden text."""
        if self._attached and (match := self._attached.search(text)):
            return match.start()
        for index in range(max(0, len(text) - self._longest), len(text)):
            if any(form.startswith(text[index:]) for form in self._begins.get(text[index], ())):
                return index
        return len(text)


@dataclass(slots=True)
class Deltas:
    """The events of one run; pieces of text are joined if a hidden text might be split between them."""

    hidden: Hidden
    _held: dict[str, TurnText] = field(default_factory=dict)

    def __call__(self, event: Event) -> Iterator[Event]:
        if isinstance(event, TurnText):
            yield from self.text(event)
            return
        if isinstance(event, TurnEnded):
            yield from self.rest(event.conversation)
        yield event

    def rest(self, conversation: str) -> Iterator[TurnText]:
        """Return the held-back text of a conversation whose turn has ended."""
        if left := self._held.pop(conversation, None):
            yield left

    def text(self, event: TurnText) -> Iterator[TurnText]:
        held = self._held.pop(event.conversation, None)
        if held and held.reasoning != event.reasoning:
            yield held
            held = None
        text = held.text + event.text if held else event.text
        cut = self.hidden.ending(text)
        if cut < len(text):
            self._held[event.conversation] = replace(event, text=text[cut:])
        if cut:
            yield replace(event, text=redact(text[:cut], self.hidden.secrets))


# An absolute path of any machine, as a file: URL, too. Another URL's has a slash, a colon or a name before it.
_ABSOLUTE = re.compile(r"(?:\bfile://|(?<![\w:/.~-]))(?:/(?:[^\s/'\"<>|:,;()]+/)+|[A-Za-z]:\\(?:[^\s\\'\"<>|]+\\)+)")
log = logging.getLogger("hira.server")


def without_folders(text: str) -> str:
    """The text of an error with the last name of every absolute path in its place.

    >>> without_folders("no such file: '/srv/papers/alta.txt'; see http://example.org/a/b")
    "no such file: 'alta.txt'; see http://example.org/a/b"
    """
    return _ABSOLUTE.sub("", text)


class PathScrubber:
    """Filters text or JSON for clients: it removes this server's folders and those in `attached` from paths."""

    def __init__(self, settings: Settings, attached: Path) -> None:
        docs = (Path(os.path.realpath(doc.expanduser())) for doc in settings.docs)
        folders = [Path.cwd(), Path.home(), Path(tempfile.gettempdir())]
        folders += [doc if doc.is_dir() else doc.parent for doc in docs]
        folders += [settings.journal.parent] if settings.journal and str(settings.journal) != OFF else []
        attached_folders, shared = _spell_folders([attached]), _spell_folders(folders)
        self._folders = (*attached_folders, *shared)
        self.hidden = Hidden(shared, attached_folders, settings.secrets)
        places = [f"{re.escape(folder)}/[^/\\s]+" for folder in attached_folders] + list(map(re.escape, shared))
        self._places = re.compile(rf"(?:\bfile://|(?<![\w.~/-]))(?:{'|'.join(places)})(?:/|(?![\w.-]))")

    def __call__(self, value: Any) -> Any:
        if isinstance(value, str):
            # a quick check: most texts contain none
            held = "/" in value and any(folder in value for folder in self._folders)
            return self._places.sub(_shorten, value) if held else value
        if isinstance(value, dict):
            return {key: self(element) for key, element in value.items()}
        if isinstance(value, list | tuple):
            return [self(element) for element in value]
        return value


def _shorten(place: re.Match[str]) -> str:
    return "" if place[0].endswith("/") else place[0].rpartition("/")[2]


def _spell_folders(folders: Iterable[Path]) -> list[str]:
    """The folders as they are named and without links, the longest first; `/` would be every path's beginning."""
    every = {folder.absolute() for folder in folders} | {Path(os.path.realpath(folder)) for folder in folders}
    return sorted((str(path) for path in every if len(path.parts) > 1), key=len, reverse=True)
