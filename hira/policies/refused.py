"""What endpoints have refused to take: native tool calls, pictures, sounds, videos. Learned once, kept for the process.

A request that holds what its endpoint is known to refuse is not sent again; it fails at once, in the same way.
"""

import re
from functools import cache

from hira.core.errors import EndpointError, MediaRefused, ToolsRefused
from hira.core.policy import Request

TOOLS = "tools"
MEDIA = {"image": "pictures", "audio": "sounds", "video": "videos"}

_TOOL = r"(?:tools?|tool[ _-]?(?:use|using|calls?|calling|choice)|function[ _-]?call(?:s|ing)?)\b"
_NO = r"\b(?:not|never|no longer|isn't|aren't|unsupported)\b"
_NO_TOOLS = re.compile(
    rf"enable-auto-tool-choice|tool-call-parser|--jinja"
    rf"|\b{_TOOL}.{{0,40}}(?:{_NO}.{{0,20}}(?:support|enabled|available|allowed|permitted|implemented)|\bunsupported\b)"
    rf"|(?:\bnot|n't|found that) (?:currently |yet )?support(?:ed)?\b.{{0,40}}\b{_TOOL}"
    r"|(?:unsupported|unrecogni[sz]ed|unknown|extra|unexpected)\b.{0,60}[\s'\"`.:\[]tools\b",
    re.IGNORECASE,
)
_KINDS = {
    "image": re.compile(r"\b(?:image_url|input_image|images?|vision|multi-?modal)\b|content\[\]\.type", re.IGNORECASE),
    "audio": re.compile(r"\b(?:input_audio|audio|sounds?|multi-?modal)\b|content\[\]\.type", re.IGNORECASE),
    "video": re.compile(r"\b(?:video_url|videos?|multi-?modal)\b|content\[\]\.type", re.IGNORECASE),
}
_NOT_TAKEN = re.compile(
    r"\bnot\b.{0,30}\b(?:support|accept|allow|enabled|available|a multi-?modal)|n't support|unsupported|unrecogni[sz]ed"
    r"|unknown (?:variant|type|part|content)|invalid (?:content type|part type)|supported values are|only supported by"
    r"|support(?:s|ed)? (?:only )?text|text[- ]only|at most 0|no endpoints? found|missing data required"
    r"|cannot (?:take|process|handle)|mmproj",
    re.IGNORECASE,
)
# what is said of this one picture, not of all of them
_THIS_ONE = re.compile(
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
