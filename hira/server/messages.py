"""Parses the messages of a request of either API, their attachments, and the form of the answer."""

import asyncio
import base64
import binascii
import mimetypes
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from hira.agents.output_type import OutputType
from hira.core.errors import UsageError
from hira.runtime.validation import LONGEST_QUESTION
from hira.server.keys import RejectedRequest

_SUFFIX = re.compile(r"\.\w{1,16}", re.ASCII)
_PLAIN = re.compile(r"\w[\w .()+-]{0,80}\.\w{1,16}")
_DATA = re.compile(r"data:([\w.+/-]+);base64,(.*)", re.DOTALL)
R = TypeVar("R", bound=BaseModel)
Count = Annotated[int, Field(ge=1, strict=True)]
"""A limit of a request. hira has its own limits and only checks it."""


class Spoken(BaseModel):
    """One message of a request; parts of its content may be text, pictures and sounds."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[Any] | None = None


@dataclass(frozen=True, slots=True)
class ReceivedQuestion:
    """The last message of the user, the messages before it, and the instructions of the system messages."""

    text: str
    before: tuple[tuple[str, str], ...]
    instructions: str


def read_request(body: bytes, shape: type[R]) -> R:
    """Validate the request. Raises `RejectedRequest` with its faulty field."""
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise RejectedRequest(400, first["msg"], field=where) from None


def reject_fields(request: BaseModel, lacking: Mapping[str, str]) -> None:
    """Raise `RejectedRequest` if the request asks for something that hira lacks; `lacking` says what to do instead."""
    for name, what in lacking.items():
        if getattr(request, name):
            raise RejectedRequest(400, what, "unsupported_parameter", field=name)


def read_question(messages: Sequence[Spoken], field: str, more: int = 0) -> ReceivedQuestion:
    """The question of these messages. Raises `RejectedRequest` for none, or one too long together with `more`."""
    turns = [(message.role, _text(message, field)) for message in messages]
    last = next((index for index in reversed(range(len(turns))) if turns[index][0] == "user" and turns[index][1]), None)
    if last is None:
        raise RejectedRequest(400, "a user message with text is missing", field=field)
    check_length(more + sum(len(text) for _, text in turns))
    lines = [(role, text) for role, text in turns if text]
    instructions = "\n\n".join(text for role, text in lines if role in ("system", "developer"))
    before = tuple((role, text) for role, text in turns[:last] if text and role in ("user", "assistant"))
    return ReceivedQuestion(turns[last][1], before, instructions)


def read_output(schema: Any, field: str) -> OutputType:
    """The output that a JSON schema describes. Raises `RejectedRequest` for one that is not valid."""
    if not isinstance(schema, dict):
        raise RejectedRequest(400, "the schema is missing", field=f"{field}.schema")
    try:
        return OutputType(schema)
    except UsageError as error:
        raise RejectedRequest(400, error.what, field=field) from None


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The form of the answer that a request asks for: a value of this type, None for text. With a `tool`, the value
    comes back as the arguments of a call of it."""

    output: OutputType | None = None
    tool: str = ""


def read_form(form: Mapping[str, Any], schema: Any, field: str, tools: Sequence[Any], choice: Any) -> AnswerForm:
    """Read the form from a format with this `schema` in this field, and from the tools. Raises `RejectedRequest` for
    other formats, for invalid schemas, and for tools that hira would have to choose from."""
    if tools or choice not in (None, "auto", "none"):
        return _read_output_tool(tools, choice)
    kind = form.get("type", "text")
    if kind == "text":
        return AnswerForm()
    if kind == "json_object":
        return AnswerForm(OutputType({"type": "object"}))
    if kind == "json_schema":
        return AnswerForm(read_output(schema, field))
    what = f"{kind!r} is not supported; use 'text', 'json_schema' or 'json_object'"
    raise RejectedRequest(400, what, "unsupported_value", field=field.removesuffix(".json_schema"))


def _read_output_tool(tools: Sequence[Any], choice: Any) -> AnswerForm:
    """The one tool that the client requires to be called, which is how agent frameworks ask for a typed answer."""
    (tool,) = tools if len(tools) == 1 else (None,)
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    if not isinstance(function, dict) or choice in (None, "auto", "none"):
        what = "hira calls only its own tools; remove them, or require one that takes the answer"
        raise RejectedRequest(400, what, "unsupported_parameter", field="tools" if tools else "tool_choice")
    return AnswerForm(read_output(function.get("parameters"), "tools"), str(function.get("name", "")))


def check_length(characters: int) -> None:
    """Raises `RejectedRequest` for a text that is too long to read: it would delay other requests."""
    if characters > LONGEST_QUESTION:
        what = f"{characters:,} characters, with all that was said before, are more than {LONGEST_QUESTION:,}; "
        what += "attach long texts as files"
        raise RejectedRequest(400, what, "context_length_exceeded")


def _text(spoken: Spoken, field: str) -> str:
    if not isinstance(spoken.content, list):
        # an assistant gives a typed answer as calls of tools
        functions = [call.get("function") for call in spoken.tool_calls or () if isinstance(call, dict)]
        typed = [str(function.get("arguments", "")) for function in functions if isinstance(function, dict)]
        return (spoken.content or "\n".join(typed)).strip()
    texts = [part.get("text") for part in spoken.content if part.get("type") == "text"]
    if not all(isinstance(text, str) for text in texts):
        raise RejectedRequest(400, "content of the type 'text' must contain a text", field=field)
    return "\n".join(map(str, texts)).strip()


async def write_attachments(messages: Sequence[Spoken], field: str, folder: Path) -> list[Path]:
    """Write the pictures, sounds and files of the user's last message into a separate folder in `folder`.

    They stay there as long as the server keeps the run in memory, so that it can be resumed.
    """
    last = next((message for message in reversed(messages) if message.role == "user"), None)
    parts = last.content if last and isinstance(last.content, list) else []
    if all(part.get("type") == "text" for part in parts):
        return []

    def write() -> list[Path]:
        subfolder = Path(tempfile.mkdtemp(dir=folder))
        try:
            named = ((subfolder / f"attached-{number}", part) for number, part in enumerate(parts, 1))
            return [_write_part(part, field, path) for path, part in named if part.get("type") != "text"]
        except BaseException:
            shutil.rmtree(subfolder, ignore_errors=True)
            raise

    return await asyncio.to_thread(write)


def _write_part(part: Mapping[str, Any], field: str, path: Path) -> Path:
    kind = part.get("type")
    record = part.get(str(kind))
    record = record if isinstance(record, Mapping) else {}
    if kind == "input_audio":
        data, suffix = str(record.get("data", "")), f".{record.get('format') or 'wav'}"
    else:
        match = _DATA.fullmatch(str(record.get("url") or record.get("file_data") or ""))
        if match is None:
            what = f"content of the type {kind!r} must contain its data as a data: URI"
            raise RejectedRequest(400, what, field=field)
        name = str(record.get("filename") or "")
        data, suffix = match[2], Path(name).suffix or mimetypes.guess_extension(match[1]) or ".bin"
        if _PLAIN.fullmatch(name) and not path.with_name(name).exists():
            path = path.with_name(Path(name).stem)
    if not _SUFFIX.fullmatch(suffix):
        raise RejectedRequest(400, f"{suffix[:20]!r} is not a file format", field=field)
    path = path.with_name(path.name + suffix)
    try:
        path.write_bytes(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        raise RejectedRequest(400, "attached data is not base64", field=field) from None
    return path
