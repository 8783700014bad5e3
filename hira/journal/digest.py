"""Names for requests. A conversation's next request is named by reading only what is new in it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hira.messages import Message
from hira.policy import Request


@dataclass(slots=True)
class _Read:
    about: tuple[Any, ...]
    messages: tuple[Message, ...]
    total: "hashlib.blake2b"


@dataclass(slots=True)
class Digests:
    """Digests of the requests of one run; each conversation's last one is remembered, because the next begins so."""

    _last: dict[str, _Read] = field(default_factory=dict)

    def of(self, model: str, request: Request) -> tuple[str, int]:
        """The request's digest, and how many messages it shares with its conversation's previous one."""
        about = (model, request.stop, request.sampling, request.tools, request.schema, request.continues)
        earlier = self._last.get(request.conversation)
        kept = _shared(earlier.messages, request.messages) if earlier else 0
        if earlier and kept == len(earlier.messages) and earlier.about == about:
            total, begin = earlier.total.copy(), kept
        else:
            total, begin = hashlib.blake2b(digest_size=16), 0
            total.update(repr(about).encode("utf-8", "surrogatepass"))
        for message in request.messages[begin:]:
            total.update(repr(message.wire).encode("utf-8", "surrogatepass"))
        self._last[request.conversation] = _Read(about, request.messages, total)
        return total.hexdigest(), kept

    def last(self, conversation: str) -> _Read | None:
        return self._last.get(conversation)

    def back(self, conversation: str, to: _Read | None) -> None:
        """Forget a request that was not recorded after all."""
        if to:
            self._last[conversation] = to
        else:
            self._last.pop(conversation, None)


def digest_of(model: str, request: Request) -> str:
    """Names what was asked of whom: model, messages, sampling, stops, tools. 32 hexadecimal digits."""
    return Digests().of(model, request)[0]


def _shared(earlier: tuple[Message, ...], now: tuple[Message, ...]) -> int:
    shared = zip(earlier, now, strict=False)
    return next((at for at, (a, b) in enumerate(shared) if a is not b), min(len(earlier), len(now)))


def digest_of_tool(name: str, arguments: Mapping[str, Any]) -> str:
    """Names a tool's call: its name and its arguments, whatever their order."""
    spelled = json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.blake2b(f"{name} {spelled}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
