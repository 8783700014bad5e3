"""Text that comes in pieces, cut so that what may not be told stands in one piece and can be found in it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from hira.core.events import Event, TurnEnded, TurnText
from hira.core.redaction import redact

LONGEST = 200
"""Characters that a piece is held back by at most, where the name of a folder of attachments goes on and on."""


class Hidden:
    """What may not be told: `folders` of the server, those in which each request has an `attached` folder of its own,
    and `secrets`."""

    def __init__(self, folders: Sequence[str], attached: Sequence[str], secrets: frozenset[str] = frozenset()) -> None:
        self.secrets = secrets
        paths = {f"{one}/" for one in (*folders, *attached)}
        self._begins: dict[str, list[str]] = {}
        forms = paths | {f"file://{one}" for one in paths} | secrets
        self._longest = max(map(len, forms), default=0) - 1
        for form in forms:
            self._begins.setdefault(form[0], []).append(form)
        own = "|".join(map(re.escape, attached))
        self._attached = re.compile(rf"(?:{own})/[^/\s]{{0,{LONGEST}}}/?\Z") if own else None

    def ending(self, text: str) -> int:
        """Where the end of the text begins that may, with what comes next, be something that is hidden."""
        if self._attached and (found := self._attached.search(text)):
            return found.start()
        for at in range(max(0, len(text) - self._longest), len(text)):
            if any(form.startswith(text[at:]) for form in self._begins.get(text[at], ())):
                return at
        return len(text)


@dataclass(slots=True)
class Deltas:
    """The events of one run, with the pieces of each conversation's text put together where something hidden might
    have been cut in two."""

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
        """What was held back of a conversation's text, whose turn has ended."""
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
