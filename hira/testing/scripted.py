"""A policy that says what its script says."""

import re
from collections.abc import Mapping
from dataclasses import replace

from hira.core.policy import Completion, Delta, Request, Watch
from hira.testing.script import Replies, Script

_PIECES = re.compile(r"\S+\s*|\s+")


class ScriptedPolicy:
    """Answers from a script, and fails loudly when the run does not follow it.

    >>> policy = ScriptedPolicy(["first reply", "second reply"])
    >>> policy = ScriptedPolicy({"planner": ["…"], "code": [calling("python", code="print(1)"), "the answer is 1"]})

    A reply is a text, a `Completion`, an exception to raise, or a function of the `Request` that returns one of the
    first two. A function in place of a list answers every turn. With a mapping, the key is the role, the full name of
    one conversation, or `*` for all others. Texts are cut at the request's stop strings, as an endpoint would do.
    """

    def __init__(self, replies: Mapping[str, Replies] | Replies, *, model: str = "scripted") -> None:
        self.script = Script(replies)
        self._model = model

    @property
    def model(self) -> str:
        return self._model

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in order."""
        return self.script.requests

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        completion = self.script.reply(request)
        if watch:
            for piece in _PIECES.findall(completion.reasoning):
                watch(Delta(piece, reasoning=True))
            for piece in _PIECES.findall(completion.text):
                watch(Delta(piece))
        return completion if completion.model else replace(completion, model=self._model)

    def assert_done(self) -> None:
        """Fail if the script holds replies that nobody asked for."""
        self.script.assert_done()

    async def aclose(self) -> None:
        pass
