"""Messages of conversations. A message is immutable and carries its own wire form, built once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, cast

Speaker = Literal["system", "user", "assistant", "tool"]


class Filled(str):
    """The text of a filled prompt, with the name of the `prompt` and its `values`."""

    __slots__ = ("prompt", "values")
    prompt: str
    values: Mapping[str, Any]

    def __new__(cls, text: str, prompt: str = "", values: Mapping[str, Any] | None = None) -> Self:
        self = super().__new__(cls, text)
        self.prompt = prompt
        self.values = values or {}
        return self


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A native tool call; `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Media:
    """An image, a sound or a video in a message; `url` is an http(s) URL or a data URI."""

    kind: Literal["image", "audio", "video"]
    url: str
    format: str = ""

    @property
    def wire(self) -> dict[str, Any]:
        if self.kind == "audio":
            return {"type": "input_audio", "input_audio": {"data": self.url.partition(",")[2], "format": self.format}}
        return {"type": f"{self.kind}_url", f"{self.kind}_url": {"url": self.url}}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, in the shape of the chat API.

    `prompt` and `values` name the prompt of the text and the values of its slots (empty for a model's text). `wire`
    is the plain dict for the endpoint.
    """

    role: Speaker
    text: str
    media: tuple[Media, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    prompt: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    wire: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.text, Filled) and not self.prompt:
            object.__setattr__(self, "prompt", self.text.prompt)
            object.__setattr__(self, "values", self.text.values)
        content: Any = self.text
        if self.media:
            content = [{"type": "text", "text": str(self.text)}, *(part.wire for part in self.media)]
        wire: dict[str, Any] = {"role": self.role, "content": content}
        if self.calls:
            wire["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.calls
            ]
        if self.call_id:
            wire["tool_call_id"] = self.call_id
        object.__setattr__(self, "wire", wire)


def system(text: str) -> Message:
    return Message("system", text)


def user(text: str, *media: Media) -> Message:
    return Message("user", text, media)


def assistant(text: str, calls: tuple[ToolCall, ...] = ()) -> Message:
    return Message("assistant", text, calls=calls)


def read_message(wire: Mapping[str, Any]) -> Message:
    """Return a message from its wire form; `prompt` may name its prompt, as in the journal."""
    content = wire.get("content") or ""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    media = tuple(_read_media(part) for part in parts if part["type"] != "text")
    calls = tuple(
        ToolCall(call.get("id", ""), call["function"]["name"], call["function"]["arguments"])
        for call in wire.get("tool_calls") or ()
    )
    return Message(wire["role"], text, media, calls, wire.get("tool_call_id", ""), wire.get("prompt", ""))


def _read_media(part: Mapping[str, Any]) -> Media:
    if part["type"] == "input_audio":
        sound = part["input_audio"]
        return Media("audio", f"data:audio/{sound['format']};base64,{sound['data']}", sound["format"])
    kind = cast("Literal['image', 'video']", part["type"].removesuffix("_url"))
    return Media(kind, part[part["type"]]["url"])
