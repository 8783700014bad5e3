"""The program's hooks at work: what they return is checked, and recorded where a resumed run needs it."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import TypedDict

from hira.core.concurrency import contain
from hira.core.errors import HookError, Stop, Withheld
from hira.core.hooks import Hooks, Refusal, ToolUse, TurnInput
from hira.core.messages import Message, assistant, read_message, user
from hira.core.policy import Completion, Request
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.tool import Context, Observation, Tool, limit_texts
from hira.journal import CallSpec, NotRecorded
from hira.journal.encoding import DamagedRecord, Digests, digest_of_tool, dump_messages, validate
from hira.journal.records import WireMessage

REFUSED = Prompt(__file__, "refusals", "call_refused")
WITHHELD = Prompt(__file__, "refusals", "result_refused")
REPLY = Prompt(__file__, "refusals", "reply_refused")

TAKES = {
    "before_tool": "the arguments as a mapping",
    "after_tool": "an Observation or a text",
    "before_turn": "a list of messages",
    "after_turn": "a Completion or a text",
}
REPLIES = 3
"""Replies of one turn that may be refused, after which the turn fails."""


Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class HookedTurn:
    """A turn as its hooks see it. `record` calls a hook within the time of the turn, or takes its decision from the
    run's record."""

    hooks: Hooks
    role: str
    conversation: str
    context: Context[Any]
    record: Callable[[CallSpec, Callable[[], Awaitable[Any]], Convert, Convert], Awaitable[Any]]


def refuse_call(tool: Tool, refusal: Refusal) -> Observation:
    """The result, for the model, of a call that is not made."""
    return Observation(REFUSED.fill(tool=tool.name, reason=sanitize(refusal.reason.strip())), ok=False)


async def check_call(hooks: Hooks, tool: Tool, use: ToolUse) -> ToolUse | Observation:
    """The call as the hook `before_tool` lets it be made, or the result of one that it refuses."""
    made = await _run("before_tool", hooks.before_tool, use)
    if isinstance(made, Refusal):
        return refuse_call(tool, made)
    if made is None:
        return use
    if not isinstance(made, Mapping):
        raise _wrong("before_tool", made)
    return replace(use, arguments=dict(made))


async def change_result(hooks: Hooks, tool: Tool, use: ToolUse, seen: Observation) -> Observation:
    """The result as the hook `after_tool` leaves it."""
    made = await _run("after_tool", hooks.after_tool, use, seen)
    if isinstance(made, Refusal):
        return Observation(WITHHELD.fill(tool=tool.name, reason=sanitize(made.reason.strip())), ok=False)
    if isinstance(made, str):
        made = Observation(made, ok=seen.ok, citable=seen.ok)
    if not isinstance(made, Observation | None):
        raise _wrong("after_tool", made)
    return seen if made is None else limit_texts(made, tool, use.arguments)


async def change_prompt(turn: HookedTurn, request: Request) -> Request:
    """The request with the messages as the hook `before_turn` leaves them. Raises `Withheld` where it refuses."""

    async def make() -> Refusal | tuple[Message, ...]:
        made = await _run("before_turn", turn.hooks.before_turn, _input(turn, request))
        if made is None or isinstance(made, Refusal):
            return request.messages if made is None else made
        if not isinstance(made, Sequence) or not made or not all(isinstance(message, Message) for message in made):
            raise _wrong("before_turn", made)
        return tuple(made)

    def decode(record: Any) -> tuple[Message, ...]:
        entries = validate(_Messages, record)["messages"]
        if not entries:
            raise DamagedRecord("it has no messages")
        return tuple(request.messages[entry] if isinstance(entry, int) else read_message(entry) for entry in entries)

    digest, _ = Digests().of(f"before_turn {turn.context.run_id}", request)
    codec = refusable(lambda messages: {"messages": dump_messages(messages, request.messages)}, decode)
    made = await turn.record(_spec(turn, "before_turn", digest), make, *codec)
    if isinstance(made, Refusal):
        raise _withheld("before_turn", "prompt", made.reason, turn.role)
    return replace(request, messages=made, continues=made[-1].role == "assistant")


async def change_reply(
    turn: HookedTurn, request: Request, completion: Completion, refused: int
) -> Completion | Request:
    """The reply as the hook `after_turn` leaves it, or the request to reply again where it refuses. Raises `Withheld`
    for the third reply that is refused, if `refused` were so before."""

    async def make() -> Refusal | Completion:
        made = await _run("after_turn", turn.hooks.after_turn, _input(turn, request), completion)
        if isinstance(made, str):
            return replace(completion, text=made, calls=(), tokens=None, finish="stop")
        if not isinstance(made, Completion | Refusal | None):
            raise _wrong("after_turn", made)
        return completion if made is None else made

    calls = [[call.name, call.arguments] for call in completion.calls]
    digest = digest_of_tool(f"after_turn {turn.context.run_id}", {"text": completion.text, "calls": calls})
    codec = refusable(lambda reply: {"reply": reply}, lambda record: validate(_Reply, record)["reply"])
    made = await turn.record(_spec(turn, "after_turn", digest), make, *codec)
    if isinstance(made, Completion):
        return made
    if refused + 1 == REPLIES:
        raise _withheld("after_turn", "reply", f"{REPLIES} replies in a row", turn.role)
    messages = request.messages
    if request.continues:
        messages = (*messages[:-1], replace(messages[-1], text=messages[-1].text + completion.text))
    elif completion.text:
        messages = (*messages, assistant(completion.text))
    reason = user(REPLY.fill(reason=sanitize(made.reason)))
    return replace(request, messages=(*messages, reason), continues=False)


def refusable(encode: Convert, decode: Convert) -> tuple[Convert, Convert]:
    """How a decision is recorded that may also be a refusal; without one it is recorded by these two. Earlier versions
    recorded the refusal of a subtask with the subtask, as `rejected`."""

    def encode_decision(decision: Any) -> Any:
        return {"refused": decision.reason} if isinstance(decision, Refusal) else encode(decision)

    def decode_decision(record: Any) -> Any:
        reason = next((record[name] for name in ("refused", "rejected") if name in record), None)
        return decode(record) if reason is None else Refusal(validate(str, reason))

    return encode_decision, decode_decision


def _withheld(name: str, what: str, reason: str, role: str) -> Withheld:
    return Withheld(f"the hook {name} refused the {what}: {reason}".rstrip(": "), where=f"role {role!r}")


def _input(turn: HookedTurn, request: Request) -> TurnInput:
    return TurnInput(turn.role, request.messages, turn.conversation, turn.context)


def _spec(turn: HookedTurn, name: str, digest: str) -> CallSpec:
    return CallSpec("tool", f"{turn.conversation}/{name}", digest, name, dict)


async def _run(name: str, hook: Callable[..., Any] | None, *given: Any) -> Any:
    """Call the hook and await it if it is async. An exception ends the run."""
    if hook is None:
        return None
    try:
        with contain("it"):
            made = hook(*given)
            return await made if inspect.isawaitable(made) else made
    except (Stop, AssertionError, NotRecorded):
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}".rstrip(": ")
        raise HookError(f"the hook {name} failed: {why}", fix="correct it; to refuse, return a Refusal") from error


def _wrong(name: str, made: object) -> HookError:
    fix = f"return {TAKES[name]}, a Refusal, or None to change nothing"
    return HookError(f"the hook {name} returned {made!r:.80}", fix=fix)


class _Reply(TypedDict):
    reply: Completion


class _Messages(TypedDict):
    """The positions of messages of the request, and those that the hook wrote."""

    messages: list[int | WireMessage]
