"""What was learned of models at endpoints: what they refused to take, and in which dialect they speak."""

import json
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from hira.core.errors import EndpointError, MediaRefused, ToolsRefused
from hira.core.patterns import compile_lazily
from hira.core.policy import Request

TOOLS = "tools"
MEDIA = {"image": "pictures", "audio": "sounds", "video": "videos"}

_TOOL = r"(?:tools?|tool[ _-]?(?:use|using|calls?|calling|choice)|function[ _-]?call(?:s|ing)?)\b"
_NO = r"\b(?:not|never|no longer|isn't|aren't|unsupported)\b"
_NO_TOOLS = compile_lazily(
    rf"enable-auto-tool-choice|tool-call-parser|--jinja"
    rf"|\b{_TOOL}.{{0,40}}(?:{_NO}.{{0,20}}(?:support|enabled|available|allowed|permitted|implemented)|\bunsupported\b)"
    rf"|(?:\bnot|n't|found that) (?:currently |yet )?support(?:ed)?\b.{{0,40}}\b{_TOOL}"
    r"|(?:unsupported|unrecogni[sz]ed|unknown|extra|unexpected)\b.{0,60}[\s'\"`.:\[]tools\b",
    re.IGNORECASE,
)
_KINDS = {
    "image": compile_lazily(
        r"\b(?:image_url|input_image|images?|vision|multi-?modal)\b|content\[\]\.type", re.IGNORECASE
    ),
    "audio": compile_lazily(r"\b(?:input_audio|audio|sounds?|multi-?modal)\b|content\[\]\.type", re.IGNORECASE),
    "video": compile_lazily(r"\b(?:video_url|videos?|multi-?modal)\b|content\[\]\.type", re.IGNORECASE),
}
_NOT_TAKEN = compile_lazily(
    r"\bnot\b.{0,30}\b(?:support|accept|allow|enabled|available|a multi-?modal)|n't support|unsupported|unrecogni[sz]ed"
    r"|unknown (?:variant|type|part|content)|invalid (?:content type|part type)|supported values are|only supported by"
    r"|support(?:s|ed)? (?:only )?text|text[- ]only|at most 0|no endpoints? found|missing data required"
    r"|cannot (?:take|process|handle)|mmproj",
    re.IGNORECASE,
)
# what is said of this one picture, not of all of them
_THIS_ONE = compile_lazily(
    r"too (?:large|big|small|long|many)|\b(?:decod|download|fetch|corrupt|dimension|pixel)"
    r"|base64|\bformats?\b|\bsize\b|\bmime",
    re.IGNORECASE,
)
_STATUSES = frozenset({0, 400, 404, 415, 422, 500, 501})


@cache
def known_at(base_url: str, model: str) -> set[str]:
    """What this model at this endpoint has refused: "tools", "image", "audio", "video"."""
    del base_url, model
    return set()


def no_tools(said: str) -> bool:
    """Whether a failure says that the endpoint takes no tool calls."""
    return bool(_NO_TOOLS.search(said))


def kinds_of(request: Request) -> list[str]:
    """The kinds of media in a request, each once."""
    return list(dict.fromkeys(media.kind for message in request.messages for media in message.media))


def no_media(status: int, said: str, request: Request) -> str:
    """The kind of media that a failure says the endpoint never takes, empty if it says no such thing."""
    if status not in _STATUSES or _THIS_ONE.search(said) or not _NOT_TAKEN.search(said):
        return ""
    return next((kind for kind in kinds_of(request) if _KINDS[kind].search(said)), "")


def learn_from_error(error: EndpointError, request: Request, known: set[str], *, where: str) -> EndpointError:
    """The error, as what it says of the endpoint if it says something of it; that is kept in `known`."""
    if isinstance(error, ToolsRefused) and request.tools:
        known.add(TOOLS)
    elif kind := no_media(error.status, error.what, request):
        known.add(kind)
        return media_refused(kind, where=where, status=error.status, said=error.what)
    return error


def check(request: Request, known: set[str], *, where: str) -> None:
    """Raise what the endpoint would answer, as far as that is known."""
    if request.tools and TOOLS in known:
        raise tools_refused("the endpoint takes no tool calls", where=where)
    for kind in kinds_of(request):
        if kind in known:
            raise media_refused(kind, where=where)


def tools_refused(what: str, *, where: str, status: int = 0) -> ToolsRefused:
    fix = "run with HIRA_DIALECT=tags, or start vLLM with --enable-auto-tool-choice --tool-call-parser PARSER"
    return ToolsRefused(what, where=where, fix=fix, status=status)


def media_refused(kind: str, *, where: str, status: int = 0, said: str = "") -> MediaRefused:
    what = f"the model takes no {MEDIA[kind]}" + (f" ({said})" if said else "")
    return MediaRefused(what, where=where, fix=f"use a model that takes {MEDIA[kind]} for the role look", status=status)


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
