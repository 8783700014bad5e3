"""Demonstrations: conversations to learn as they are, as rows with a mask over the role's own messages.

They come from recorded runs (`hira runs export`) or from well-rewarded rollouts. The chat template renders each turn by
turn, so that the learned text is the text that a run-time prompt continues.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from hira.agents.trajectory import Rollout, Trajectory
from hira.core.errors import UsageError
from hira.core.messages import Message, assistant, read_message
from hira.core.policy import Count, Request, Tokens
from hira.journal.encoding import read_json, validate
from hira.journal.records import WireMessage
from hira.policies.local.template import Template
from hira.trainers.rows import Row, join_turns

Tools = tuple[Mapping[str, Any], ...]
FAILED = frozenset({"failed", "interrupted", "running"})


def demonstrations_of(rollout: Rollout, template: Template) -> list[Row]:
    return [
        row
        for trajectory in rollout.trajectories.values()
        if trajectory.turns
        for row in rows_in(
            list_messages(trajectory),
            template,
            role=trajectory.role,
            conversation=trajectory.conversation,
            question=rollout.question,
        )
    ]


def list_messages(trajectory: Trajectory) -> tuple[Message, ...]:
    """Return all messages of a conversation, its last reply included."""
    last = trajectory.turns[-1]
    reply = last.completion.text + (last.completion.stop or "")
    return (*last.request.messages, assistant(reply, last.completion.calls))


def read_demonstrations(
    path: Path, template: Template, roles: Collection[str] | None = None, workflow: str = ""
) -> tuple[list[Row], Mapping[str, int]]:
    """Return the rows of a file that `hira runs export` wrote, or of lines with only `messages`, and the number of
    conversations that are left out, by reason: those of roles outside `roles`, of another `workflow`, of failed runs.
    Raises `UsageError` for an unreadable file or line."""
    rows: list[Row] = []
    left: Counter[str] = Counter()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        fix = "write it with: hira runs export -o FILE"
        raise UsageError(f"the conversations cannot be read: {why}", where=str(path), fix=fix) from None
    for number, line in enumerate(filter(str.strip, lines), 1):
        try:
            record = validate(_ConversationRecord, read_json(line))
            threads = [([_read_text_message(wire) for wire in wires], since) for wires, since in _threads(record)]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            fix = "each line must be a JSON object with `messages`, as `hira runs export` writes it"
            raise UsageError(f"line {number} is not a conversation: {what}", where=f"in {path}", fix=fix) from None
        role = str(record.get("role", ""))
        if why := _explain_skip(record, role, roles, workflow):
            left[why] += 1
            continue
        name, tools = str(record.get("conversation", number)), tuple(record.get("tools") or ())
        for messages, since in threads:
            rows += rows_in(messages, template, role=role, conversation=name, tools=tools, since=since)
    return rows, left


class _ConversationRecord(TypedDict, total=False):
    """A line of conversations: its messages, or its turns as `hira runs export` writes them."""

    messages: list[dict[str, Any]]
    turns: list["_TurnRecord"]
    role: str | None
    workflow: str | None
    status: str | None
    conversation: str | int | None
    tools: list[dict[str, Any]] | None


class _TurnRecord(TypedDict):
    kept: Count
    added: list[dict[str, Any]]
    completion: dict[str, Any]


def _explain_skip(record: Mapping[str, Any], role: str, roles: Collection[str] | None, workflow: str) -> str:
    """Return why a conversation is left out, "" if it is not. One without a workflow or a status is kept."""
    if workflow and record.get("workflow", workflow) != workflow:
        return f"of the workflow {record['workflow']!r}"
    if roles is not None and role not in roles:
        return f"of the role {role!r}"
    return "of a run that failed" if record.get("status") in FAILED else ""


def _threads(record: Mapping[str, Any]) -> list[tuple[list[Mapping[str, Any]], int]]:
    """Return lists of messages, each up to the model's last reply, with the position from which on they are to be
    learned. A turn that does not continue all earlier messages begins a new list, which shares its first messages."""
    if not record.get("turns"):
        return [(list(record["messages"]), 0)]
    threads: list[tuple[list[Mapping[str, Any]], int]] = []
    messages: list[Mapping[str, Any]] = []
    since, reply = 0, None
    for turn in record["turns"]:
        if reply is not None and turn["kept"] < len(messages):
            threads.append((_add_reply(messages, reply), since))
            since = turn["kept"]
        messages, reply = [*messages[: turn["kept"]], *turn["added"]], turn["completion"]
    return [*threads, (_add_reply(messages, reply or {}), since)]


def _add_reply(messages: Sequence[Mapping[str, Any]], reply: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the request with its reply, which continues the last message if that is the model's own."""
    begun = str(messages[-1].get("content") or "") if messages[-1]["role"] == "assistant" else ""
    before = messages[:-1] if messages[-1]["role"] == "assistant" else messages
    calls = [{"id": call["id"], "function": {"name": call["name"], "arguments": call["arguments"]}}
             for call in reply.get("calls") or ()]  # fmt: skip
    text = f"{begun}{reply.get('text') or ''}{reply.get('stop') or ''}"
    return [*before, {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}]


def rows_in(
    messages: Sequence[Message],
    template: Template,
    *,
    role: str = "",
    conversation: str = "",
    question: str = "",
    tools: Tools = (),
    since: int = 0,
) -> list[Row]:
    """Return the rows of one conversation: one, unless the chat template rewrites earlier messages. Messages before
    `since` are read only."""
    turns: list[tuple[Tokens, str]] = []
    text, ids = "", list[int]()
    for index, message in enumerate(messages):
        if message.role != "assistant" or index < since:
            continue
        before = template.prompt(Request(tuple(messages[:index]), tools=tools))
        if not before.startswith(text):
            text, ids = "", []
        rendered = _render_reply(template, message, before, messages[: index + 1], tools)
        prompt, sampled = [*ids, *template.encode(before[len(text) :])], template.encode(rendered)
        turns.append((Tokens(tuple(prompt), tuple(sampled), (0.0,) * len(sampled)), ""))
        text, ids = before + rendered, [*prompt, *sampled]
    return list(join_turns(turns, Row(question, "", role, conversation, (), (), (), ())).rows)


def _render_reply(template: Template, message: Message, before: str, until: Sequence[Message], tools: Tools) -> str:
    """Return the text that the model should write for the message, with the token that ends a turn."""
    end = template.tokenizer.eos_token or ""
    if not message.calls:
        return message.text + end
    lines = [message.wire | {"content": str(message.text)} for message in until]
    whole: str = template.tokenizer.apply_chat_template(lines, tools=list(tools) or None, tokenize=False)
    if not whole.startswith(before):
        raise UsageError("the chat template writes calls in another place than replies", where=template.where)
    rendered = whole[len(before) :]
    return rendered[: rendered.index(end) + len(end)] if end and end in rendered else rendered


def _read_text_message(wire: Mapping[str, Any]) -> Message:
    message = read_message(validate(WireMessage, wire))
    if message.media:
        raise TypeError("a message with media")
    return message
