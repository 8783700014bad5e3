"""The chat template of a model; small conversations, rendered once, show its abilities."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from typing import Any

from hira.core.child import Worker, WorkerLimits, prepare
from hira.core.errors import HiraError, UsageError, WorkerError
from hira.core.messages import Message, ToolCall, assistant, system, user
from hira.core.policy import Request
from hira.policies.chat import media_refused
from hira.policies.dialects.lenient import decode_json
from hira.policies.failures import tools_refused

_LIMITS = WorkerLimits(cpu_seconds=5, wall_seconds=60.0, memory=8 << 30)
"""Most of the memory is that of libraries, which are mapped and never read."""
_LOADING_SECONDS = 60
_TOOL = {
    "type": "function",
    "function": {
        "name": "hira_probe",
        "description": "A probe.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}
_TOOL_CALL = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "hira_probe", "arguments": {"query": "Three?"}},
}
_TURNS: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "One?"},
    {"role": "assistant", "content": "Two.", "tool_calls": [_TOOL_CALL]},
    {"role": "tool", "content": "Four.", "tool_call_id": "call00001", "name": "hira_probe"},
    {"role": "assistant", "content": "<think>\nFive?\n</think>\n\nSix."},
)


def require_template(tokenizer: Any, where: str) -> None:
    if not getattr(tokenizer, "chat_template", None):
        fix = "use the model's instruct version, or set tokenizer.chat_template and save the tokenizer"
        raise UsageError("the tokenizer has no chat template", where=where, fix=fix)


def check_template(tokenizer: Any, where: str) -> None:
    """Raise `UsageError` for a chat template that renders without end or takes all memory. Blocks for a second."""
    named = tokenizer.chat_template
    texts = tuple(named.values()) if isinstance(named, dict) else (named,)
    special = {name: str(token) for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)}
    if why := try_rendering(json.dumps([texts, special])):
        fix = "use another model, or repair its template"
        raise UsageError(f"the model's chat template cannot be rendered: {why}", where=where, fix=fix)


@lru_cache(maxsize=64)
def try_rendering(job: str) -> str:
    """Describe the fault of the templates, empty without one; cached, because one renders many conversations."""
    worker = Worker(replace(_LIMITS, cpu_seconds=_LOADING_SECONDS))
    try:
        worker.call(prepare, "transformers.utils.chat_template_utils")
        worker.limits = _LIMITS
        worker.call(render_beginnings, job)
    except WorkerError as error:
        return error.what
    finally:
        worker.close()
    return ""


def render_beginnings(job: str) -> None:
    """Render all beginnings of a conversation with each template, which may raise. Runs in the child."""
    from transformers.utils.chat_template_utils import render_jinja_template

    texts, special = json.loads(job)
    offered: tuple[list[Any] | None, ...] = (None, [_TOOL])
    for text, many, tools, start in product(texts, range(1, 2 * len(_TURNS) + 1), offered, (0, 1)):
        conversation = [{"role": "system", "content": "Zero."}, *(_TURNS * 2)[:many]][start:]
        try:
            render_jinja_template(
                [conversation], tools=tools, chat_template=text, add_generation_prompt=True, **special
            )
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001, S112 - a template raises what it likes
            continue


_SAID, _ASKED, _FOUND = "probe-said", "probe-asked", "probe-found"
_CALLED = assistant(_SAID, (ToolCall("call00001", "hira_probe", json.dumps({"query": _ASKED})),))
_RESULT = Message("tool", _FOUND, call_id="call00001")
_THOUGHT_OPENS = ("<think>", "<thinking>")


@dataclass(frozen=True, slots=True)
class Abilities:
    """The abilities of a template. `system`: a system message; `repeats`: two consecutive messages of one speaker;
    `tools`: tools, calls and their results; `keeps`: reasoning stays in the prompt of later turns."""

    system: bool
    repeats: bool
    tools: bool
    keeps: bool


class Template:
    """Renders requests with a tokenizer's chat template, and turns text into ids and back. `ends` are more tokens that
    end a turn than those that are found. Raises `UsageError` if the tokenizer has no template, or one that renders no
    plain conversation, or one that does not end."""

    def __init__(self, tokenizer: Any, *, where: str = "", ends: Iterable[int] = ()) -> None:
        self.tokenizer = tokenizer
        self.where = where
        require_template(tokenizer, where)
        check_template(tokenizer, where)
        self.can = Abilities(system=True, repeats=True, tools=True, keeps=True)
        self.can = self._probe_abilities()
        self.ends = self._ends() | frozenset(ends)
        self._anchor = self.encode("a")
        self._anchored = self._decode(self._anchor)
        self.piece = cache(lambda token: self.decode((token,)))

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for a person who trains or runs with this template, one line each."""
        lacks = {
            "removes earlier thoughts from the prompt: each later turn begins a new row": not self.can.keeps,
            "has no place for tools: calls are written as text": not self.can.tools,
            "has no system messages: they are joined to the user's": not self.can.system,
        }
        return tuple(f"the chat template {what}" for what, so in lacks.items() if so)

    def prompt(self, request: Request) -> str:
        """Return the text that the model continues: all messages, and the beginning of its turn or of its message."""
        if kinds := [media.kind for message in request.messages for media in message.media]:
            raise media_refused(kinds[0], where=self.where)
        if request.tools and not self.can.tools:
            raise tools_refused("the model's chat template has no place for tools", where=self.where)
        if not request.continues:
            return self._render_messages(request.messages, request.tools)
        return self._render_messages(request.messages[:-1], request.tools) + request.messages[-1].text

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of the ids as in the middle of a conversation, including special tokens."""
        return self._decode([*self._anchor, *ids])[len(self._anchored) :]

    def _ends(self) -> frozenset[int]:
        """The tokens that end a turn: the tokenizer's own, and the one that the template writes after a reply."""
        rendered = self._render_messages((user(_ASKED), assistant(_SAID)), (), generation=False)
        if _SAID not in rendered:
            raise UsageError("the model's chat template leaves out what the model said", where=self.where)
        after = self.encode(rendered[rendered.rindex(_SAID) + len(_SAID) :])
        special = {id_ for id_ in after[:1] if id_ in self.tokenizer.all_special_ids}
        end_id = self.tokenizer.eos_token_id
        return frozenset({end_id} | special if end_id is not None else special)

    def _decode(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

    def _render_messages(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], *, generation: bool = True
    ) -> str:
        wires = [{**message.wire, "content": str(message.text)} for message in self._shape(messages)]
        for wire in wires:
            if calls := wire.get("tool_calls"):
                wire["tool_calls"] = [_decode_arguments(call) for call in calls]
        try:
            text: str = self.tokenizer.apply_chat_template(
                wires, tools=list(tools) or None, tokenize=False, add_generation_prompt=generation
            )
        except Exception as error:  # a template is a program, and may raise anything
            raise UsageError(f"the model's chat template cannot render this: {error}", where=self.where) from error
        return text

    def _shape(self, messages: Sequence[Message]) -> list[Message]:
        """The messages as the template takes them: a system message joins the user's, and neighbours are joined."""
        shaped: list[Message] = []
        for message in messages:
            now = message if message.role != "system" or self.can.system else user(message.text)
            before = shaped[-1] if shaped else None
            joins = before and before.role == now.role and now.role != "tool" and not (before.calls or now.calls)
            if before and joins and not self.can.repeats:
                shaped[-1] = Message(now.role, f"{before.text}\n\n{now.text}")
            else:
                shaped.append(now)
        return shaped

    def _probe_abilities(self) -> Abilities:
        question, called = user(_ASKED), (user("probe"), _CALLED, _RESULT)
        reply = assistant(f"<think>\nprobe\n</think>\n\n{_SAID}")
        begun = self._render_messages((question,), ()) + reply.text  # raises what is wrong
        # tools, calls and results, and the text of a turn with a call
        shown = self._try_rendering(*called, tools=(_TOOL,))
        keeps_calls = all(text in shown for text in ("hira_probe", _SAID, _ASKED, _FOUND))
        return Abilities(
            system=_FOUND in self._try_rendering(system(_FOUND), question),
            repeats=_FOUND in self._try_rendering(question, user(_FOUND)),
            tools=keeps_calls and "hira_probe" in self._try_rendering(called[0], tools=(_TOOL,)),
            keeps=self._try_rendering(question, reply, user(_FOUND)).startswith(begun),
        )

    def _try_rendering(self, *messages: Message, tools: Sequence[Mapping[str, Any]] = ()) -> str:
        """The text of the messages, empty if the template does not take them."""
        try:
            return self._render_messages(messages, tools)
        except HiraError:
            return ""


def opens_thought(prompt: str) -> bool:
    """Return whether a prompt ends inside reasoning, because the template opened it for the model."""
    return prompt.rstrip().endswith(_THOUGHT_OPENS)


def _decode_arguments(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call of the chat API with its arguments as an object, which templates read."""
    function = call["function"]
    with suppress(ValueError):
        function = {**function, "arguments": decode_json(function["arguments"] or "{}")}
    return {**call, "function": function}
