"""The shapes of the OpenAI chat API: what a request asks, and how an answer and its progress are told."""

import base64
import binascii
import json
import mimetypes
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hira.agents.history import add_history
from hira.agents.output import OutputType
from hira.core.errors import AccessDenied, ContextOverflow, EndpointError, HiraError, UsageError
from hira.core.events import (
    Event,
    Notice,
    Remembered,
    SourceRead,
    SubtaskAssigned,
    SubtaskDone,
    SubtaskIssued,
    ToolStarted,
)
from hira.core.policy import Usage
from hira.evidence import CITED
from hira.runtime.answer import Answer
from hira.server.keys import Refused
from hira.server.outside import without_folders

_SUFFIX = re.compile(r"\.\w{1,16}", re.ASCII)
_PLAIN = re.compile(r"\w[\w .()+-]{0,80}\.\w{1,16}")
_DATA = re.compile(r"data:([\w.+/-]+);base64,(.*)", re.DOTALL)


MOST_TEXT = 400_000
"""Characters of a question with all that was said before it, about 100,000 tokens."""


class Spoken(BaseModel):
    """One message of a request; parts of its content may be text, pictures and sounds."""

    model_config = ConfigDict(extra="allow")
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="allow")
    include_usage: bool | None = None


class Asked(BaseModel):
    """A chat completion request. What hira decides by its own settings, such as the temperature, is not read."""

    model_config = ConfigDict(extra="allow")
    model: str = Field(min_length=1)
    messages: list[Spoken] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None


def asked_of(body: bytes) -> Asked:
    """The request. Raises `Refused` with what is wrong with it."""
    try:
        asked = Asked.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        what = f"{where}: {first['msg']}" if where else first["msg"]
        raise Refused(400, what, "invalid_request_error") from None
    _check_abilities(asked)
    return asked


def _check_abilities(asked: Asked) -> None:
    """Raises `Refused` where the client counts on what it would not get."""
    if asked.n not in (None, 1):
        raise Refused(400, "n: hira gives one answer; remove it", "invalid_request_error", "unsupported_value")
    if asked.tools or asked.functions or asked.tool_choice not in (None, "auto", "none"):
        what = "tools: hira calls only its own tools; remove them"
        raise Refused(400, what, "invalid_request_error", "unsupported_parameter")
    output_of(asked)


def output_of(asked: Asked) -> OutputType | None:
    """The output that `response_format` asks for; None for plain text. Raises `Refused` for a schema that is none."""
    form = asked.response_format or {}
    kind = form.get("type", "text")
    if kind == "text":
        return None
    if kind == "json_schema":
        told = form.get("json_schema")
        schema = told.get("schema") if isinstance(told, dict) else None
        if not isinstance(schema, dict):
            what = "response_format: json_schema.schema is missing"
            raise Refused(400, what, "invalid_request_error")
        try:
            return OutputType(schema)
        except UsageError as error:
            raise Refused(400, f"response_format: {error.what}", "invalid_request_error") from None
    what = f"response_format: {kind!r} is not supported; use 'text' or 'json_schema'"
    raise Refused(400, what, "invalid_request_error", "unsupported_value")


def question_of(asked: Asked) -> str:
    """What is asked: the last message of the user, told with what was said before it. Raises `Refused` where that is
    nothing, or too long."""
    turns = [(one.role, _text(one)) for one in asked.messages]
    last = next((at for at in reversed(range(len(turns))) if turns[at][0] == "user" and turns[at][1]), None)
    if last is None:
        raise Refused(400, "messages: a user message with text is missing", "invalid_request_error")
    earlier = [(role, text) for role, text in turns[:last] if text]
    check_length(sum(len(text) for _, text in turns))
    return add_history(turns[last][1], earlier)


def check_length(characters: int) -> None:
    """Raises `Refused` for a text that nobody reads: it would hold up those who ask at the same time."""
    if characters > MOST_TEXT:
        what = f"{characters:,} characters, with all that was said before, are more than {MOST_TEXT:,}; "
        what += "attach long texts as files"
        raise Refused(400, what, "invalid_request_error", "context_length_exceeded")


def _text(one: Spoken) -> str:
    if not isinstance(one.content, list):
        return (one.content or "").strip()
    texts = [part.get("text") for part in one.content if part.get("type") == "text"]
    if not all(isinstance(text, str) for text in texts):
        raise Refused(400, "messages: content of the type 'text' must contain a text", "invalid_request_error")
    return "\n".join(map(str, texts)).strip()


def write_attachments(asked: Asked, folder: Path) -> list[Path]:
    """The pictures, sounds and files of the last message of the user, written into a folder of their own in `folder`.

    They stay there as long as the run is kept in memory, so that it can be gone on with.
    """
    last = next((one for one in reversed(asked.messages) if one.role == "user"), None)
    parts = last.content if last and isinstance(last.content, list) else []
    if all(part.get("type") == "text" for part in parts):
        return []
    own = Path(tempfile.mkdtemp(dir=folder))
    try:
        return [path for at, part in enumerate(parts, 1) if (path := _written(part, own / f"attached-{at}"))]
    except BaseException:
        shutil.rmtree(own, ignore_errors=True)
        raise


def _written(part: Mapping[str, Any], path: Path) -> Path | None:
    kind = part.get("type")
    told = part.get(str(kind))
    told = told if isinstance(told, Mapping) else {}
    if kind == "text":
        return None
    if kind == "input_audio":
        return _saved(str(told.get("data", "")), path, f".{told.get('format') or 'wav'}")
    url = str(told.get("url") or told.get("file_data") or "")
    found = _DATA.fullmatch(url)
    if found is None:
        what = f"messages: content of the type {kind!r} must contain its data as a data: URI"
        raise Refused(400, what, "invalid_request_error")
    name = str(told.get("filename") or "")
    suffix = Path(name).suffix or mimetypes.guess_extension(found[1]) or ".bin"
    if _PLAIN.fullmatch(name) and not path.with_name(name).exists():
        path = path.with_name(Path(name).stem)
    return _saved(found[2], path, suffix)


def _saved(data: str, path: Path, suffix: str) -> Path:
    if not _SUFFIX.fullmatch(suffix):
        raise Refused(400, f"messages: {suffix[:20]!r} is not a file format", "invalid_request_error")
    path = path.with_name(path.name + suffix)
    try:
        path.write_bytes(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        raise Refused(400, "messages: attached data is not base64", "invalid_request_error") from None
    return path


def completion(answer: Answer, text: str, model: str, reasoning: str, made: int) -> dict[str, Any]:
    """The whole answer as one chat completion, with its text as it is told."""
    message: dict[str, Any] = {"role": "assistant", **content_of(answer, text)}
    if reasoning:
        message["reasoning_content"] = reasoning
    message["annotations"] = [] if answer.output_type else annotations(answer, text)
    return {
        "id": f"chatcmpl-{answer.rollout.run}",
        "object": "chat.completion",
        "created": made,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish(answer), "logprobs": None}],
        "usage": usage(answer.rollout.usage),
        "hira": about(answer),
    }


def content_of(answer: Answer, text: str) -> dict[str, str | None]:
    """The text, or the JSON that `response_format` asked for; where that was not had, the text is told as a refusal."""
    if answer.output_type is None:
        return {"content": text, "refusal": None}
    if not answer.rollout.has_output:
        return {"content": None, "refusal": text or answer.rollout.output_error}
    value = answer.output_type.dump(answer.output)
    return {"content": json.dumps(value, ensure_ascii=False), "refusal": None}


def chunk(run: str, model: str, made: int, delta: Mapping[str, Any], ending: str | None = None) -> dict[str, Any]:
    """A piece of a streamed answer."""
    choice = {"index": 0, "delta": dict(delta), "finish_reason": ending, "logprobs": None}
    head = {"id": f"chatcmpl-{run}", "object": "chat.completion.chunk", "created": made, "model": model}
    return {**head, "choices": [choice]}


def last_chunk(answer: Answer, model: str, made: int) -> dict[str, Any]:
    """The piece behind the last one, which holds no text and what all roles took together."""
    return {**chunk(answer.rollout.run, model, made, {}), "choices": [], "usage": usage(answer.rollout.usage)}


def finish(answer: Answer) -> str:
    """`length` for an answer that a budget, a person or a failure ended early."""
    return "length" if answer.status in ("partial", "interrupted", "failed") else "stop"


def usage(spent: Usage) -> dict[str, Any]:
    """What all roles took together."""
    return {
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "total_tokens": spent.tokens,
        "prompt_tokens_details": {"cached_tokens": spent.cached_tokens},
    }


def about(answer: Answer) -> dict[str, Any]:
    """What the chat API has no field for."""
    return {
        "run_id": answer.rollout.run,
        "status": answer.status,
        "error": trouble(answer),
        "workflow": answer.rollout.workflow,
        "calls": answer.rollout.usage.calls,
        "cost": answer.rollout.usage.cost,
        **{name: value for name, value in answer.json().items() if name in ("citations", "output_sources")},
    }


def annotations(answer: Answer, text: str) -> list[dict[str, Any]]:
    """Where the text, as it is told, cites which source, by characters; documents have a file URL by their name."""
    found = []
    for mark in CITED.finditer(text):
        for one in re.findall(r"s\d+", mark[1]):
            source = answer.rollout.sources.read.get(one)
            if source:
                place = {"start_index": mark.start(), "end_index": mark.end()}
                cited = {"url": url_of(source.location), "title": source.title or source.location, **place}
                found.append({"type": "url_citation", "url_citation": cited})
    return found


def url_of(location: str) -> str:
    return location if re.match(r"https?://", location) else f"file:{quote(location)}"


def describe_progress(event: Event) -> str:
    """What a client is told of the run while it goes on, as its reasoning; empty for what it need not know."""
    tell = THOUGHTS.get(type(event))
    return f"{tell(event)}\n" if tell else ""


def _brief(text: str, most: int) -> str:
    return " ".join(text.split())[:most]


THOUGHTS: Mapping[type[Event], Callable[[Any], str]] = {
    SubtaskIssued: lambda one: f"Subtask {one.subtask}: {one.text}",
    SubtaskAssigned: lambda one: f"→ {one.expert}" + (f": {one.reason}" if one.reason else ""),
    ToolStarted: lambda one: f"  {one.tool}({_brief(', '.join(map(str, one.arguments.values())), 120)})",
    SourceRead: lambda one: f"  read [{one.source}] {one.title or one.location}",
    SubtaskDone: lambda one: f"✓ {_brief(one.conclusion, 300)}",
    Remembered: lambda one: f"  remembered: {one.text}",
    Notice: lambda one: f"  ({one.text})",
}


def pieces(text: str, size: int = 48) -> Sequence[str]:
    """The answer in pieces as a stream has them; it is only sent once its citations are checked."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def refused_by(error: HiraError | Refused) -> Refused:
    """An error of hira's as the client is told of it: what it can mend is its own request, all else is a matter of this
    server, whose addresses and keys are nobody's business."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, UsageError):
        what = without_folders(f"{error.what}. {error.fix}".strip(". "))
        return Refused(400, what, "invalid_request_error")
    if isinstance(error, ContextOverflow):
        return Refused(400, without_folders(error.what), "invalid_request_error", "context_length_exceeded")
    if isinstance(error, AccessDenied):
        return Refused(502, "the model of this server refused its key", "api_error", "upstream_denied")
    what = without_folders(error.what)
    return Refused(502, f"the model of this server: {what}" if isinstance(error, EndpointError) else what, "api_error")


def trouble(answer: Answer) -> str:
    """What ended the run early, as a client is told of it."""
    return refused_by(answer.rollout.failure).message if answer.rollout.failure else ""


def error_of(message: str, kind: str, code: str = "") -> dict[str, Any]:
    """The API's shape of an error."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code or None}}


STILL = b": still at work\n\n"
"""Keeps the connection of a stream alive, and says nothing."""


def sse(value: Mapping[str, Any] | str) -> bytes:
    """One server-sent event."""
    told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return f"data: {told}\n\n".encode()


def now() -> int:
    return int(time.time())
