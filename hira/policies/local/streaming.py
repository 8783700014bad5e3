"""A reply as it is sampled, told piece by piece: thought, then text, without calls, stop strings and end tokens."""

from hira.core.policy import Completion, Delta, Request, Watch
from hira.policies.dialects.written import BARE_CALL, LIST_OF_CALLS, OPEN_CALL, thought_in
from hira.policies.local.template import Template

_EVERY = 4
_THOUGHT = "<thinking>"


class Streamed:
    """Tells what a watcher has not yet seen of a reply. What may be the beginning of a stop string is held back."""

    def __init__(self, template: Template, request: Request, watch: Watch, *, opened: bool) -> None:
        self._template = template
        self._watch = watch
        self._opened = opened
        self._stops = (*request.stop, OPEN_CALL, LIST_OF_CALLS) if request.tools else request.stop
        self._bare = BARE_CALL if request.tools else ()
        self._held = max([len("</thinking>\n"), *map(len, self._stops)])
        self._ids: list[int] = []
        self._settled = ("", 0)
        self._told = ("", "")

    def seen(self, token: int) -> None:
        if token not in self._template.ends:
            self._ids.append(token)
        if len(self._ids) % _EVERY == 0:
            self._tell(self._written())

    def end(self, completion: Completion) -> None:
        """Tell the rest."""
        self._push(completion.reasoning, completion.text)

    def _written(self) -> str:
        """All text so far. Only the last ids are decoded again: a character may be made of several of them."""
        text, at = self._settled
        now = text + self._template.decode(self._ids[at:])
        if len(self._ids) - at > 4 * _EVERY and not now.endswith("\ufffd"):
            self._settled = (now, len(self._ids))
        return now

    def _tell(self, written: str) -> None:
        if _THOUGHT.startswith(written.lstrip()[: len(_THOUGHT)]):
            return
        reasoning, text, closed = thought_in(written, opened=self._opened)
        if not closed:
            self._push(reasoning[: -self._held].rstrip(), "")
            return
        if text.lstrip().startswith(self._bare):
            return
        found = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        self._push(reasoning, text[: min([len(text) - self._held, *found])].rstrip() if len(text) > self._held else "")

    def _push(self, reasoning: str, text: str) -> None:
        """Hand on what is new; what was told before and is no beginning of it is not taken back."""
        told = self._told
        if reasoning.startswith(told[0]) and reasoning != told[0]:
            self._watch(Delta(reasoning[len(told[0]) :], reasoning=True))
        if text.startswith(told[1]) and text != told[1]:
            self._watch(Delta(text[len(told[1]) :]))
        self._told = (reasoning, text)
