"""A policy that follows a script, and a run context in which all roles use it."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from hira.agents.run_context import Continuation, RoleConfig, RunContext, RunOptions
from hira.core.messages import ToolCall
from hira.core.policy import Completion, Delta, Policy, Request, Usage, Watch, cut_at_stop, role_of
from hira.core.tokens import count
from hira.policies.dialects import DIALECTS, Dialect
from hira.testing.wire import pieces_of

Reply = str | Completion | BaseException | Callable[[Request], str | Completion]
Replies = Callable[[Request], str | Completion] | Iterable[Reply]


class ScriptError(AssertionError):
    """The run and its script do not fit. No `HiraError`, so that no run can turn it into a polite answer."""


def calling(name: str, /, **arguments: Any) -> Completion:
    """A reply that calls one tool. Several calls are written as a `Completion`; empty ids are filled in."""
    call = ToolCall("", name, json.dumps(arguments, ensure_ascii=False))
    return Completion("", calls=(call,), finish="calls")


class ScriptedPolicy:
    """Answers from a script, and fails loudly when the run does not follow it.

    >>> policy = ScriptedPolicy(["first reply", "second reply"])
    >>> policy = ScriptedPolicy({"planner": ["…"], "code": [calling("python", code="print(1)"), "the answer is 1"]})

    A reply is a text, a `Completion`, an exception to raise, or a function of the `Request` that returns one of the
    first two. A function in place of a list answers every turn. With a mapping, the key is the role, the full name of
    one conversation, or `*` for all others. Texts are cut at the request's stop strings, as an endpoint would do.
    `requests` are all requests so far, in order.
    """

    def __init__(self, replies: Mapping[str, Replies] | Replies, *, model: str = "scripted") -> None:
        self.model = model
        self.replies = replies
        self.requests: list[Request] = []
        self._scripts: dict[str, list[Reply] | Callable[[Request], str | Completion]] = {}
        self._turns: Counter[str] = Counter()
        for name, script in (replies if isinstance(replies, Mapping) else {"*": replies}).items():
            if isinstance(script, str):
                raise TypeError(f"the script for {name!r} is one text; write a list of replies")
            self._scripts[name] = script if callable(script) else list(script)

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        completion = self.reply(request)
        if watch:
            for piece in pieces_of(completion.reasoning):
                watch(Delta(piece, reasoning=True))
            for piece in pieces_of(completion.text):
                watch(Delta(piece))
        return completion if completion.model else replace(completion, model=self.model)

    async def aclose(self) -> None:
        pass

    def reply(self, request: Request) -> Completion:
        """Return the next completion for this request, or raise the exception in its place."""
        _check_history(request)
        self.requests.append(request)
        name = request.conversation
        self._turns[name] += 1
        reply = self._next(name, self._turns[name], request)
        if isinstance(reply, BaseException):
            raise reply
        if callable(reply):
            reply = reply(request)
        completion = reply if isinstance(reply, Completion) else Completion(reply)
        return _complete(cut_at_stop(completion, request.stop), request, len(self.requests))

    def assert_done(self) -> None:
        """Fail if replies of the script were not requested."""
        left = {name: len(script) for name, script in self._scripts.items() if isinstance(script, list) and script}
        if left:
            text = ", ".join(f"{number} for {name!r}" for name, number in left.items())
            raise ScriptError(f"replies were not used: {text}; {len(self.requests)} requests were sent")

    def _next(self, name: str, turn: int, request: Request) -> Reply:
        key = next((key for key in (name, role_of(name), "*") if key in self._scripts), "")
        script = self._scripts.get(key)
        if callable(script):
            return script
        if script:
            return script.pop(0)
        why = f"the script for {key!r} has no reply left" if key else f"the script has no part for {role_of(name)!r}"
        last = request.messages[-1].text if request.messages else ""
        raise ScriptError(f"{why}: turn {turn} of conversation {name!r} ended with {last[-300:]!r}")


def _check_history(request: Request) -> None:
    """Refuse what endpoints refuse: a call without a result, a result without a call, tools spoken of and not shown. A
    tool message without an id is the result of a call that was written as text."""
    open_calls: set[str] = set()
    for message in request.messages:
        if message.role == "tool" and (message.call_id or open_calls):
            if message.call_id not in open_calls:
                raise ScriptError(f"a result for {message.call_id!r}, which was not called: {message.text[:200]!r}")
            open_calls.discard(message.call_id)
        elif open_calls:
            break
        open_calls.update(call.id for call in message.calls)
    if open_calls:
        raise ScriptError(f"calls {sorted(open_calls)} of {request.conversation!r} have no result")
    if not request.tools and any(message.calls for message in request.messages):
        raise ScriptError(f"the history of {request.conversation!r} mentions tools that the request does not show")


def _complete(completion: Completion, request: Request, number: int) -> Completion:
    """Fill in ids of calls, the finish they imply, and a counted usage where the reply has none."""
    if completion.calls:
        calls = tuple(
            call if call.id else replace(call, id=f"call_{number}_{index}")
            for index, call in enumerate(completion.calls, 1)
        )
        finish = "calls" if completion.finish == "stop" else completion.finish
        completion = replace(completion, calls=calls, finish=finish)
    if not completion.usage.tokens:
        prompt_tokens = sum(count(message.text) for message in request.messages)
        arguments = "".join(call.arguments for call in completion.calls)
        reply_tokens = count(completion.reasoning + completion.text + arguments)
        completion = replace(completion, usage=Usage(1, prompt_tokens, reply_tokens))
    return completion


def make_context(
    policy: Policy | dict[str, Replies] | list[Any],
    *,
    dialect: str | Dialect = "tags",
    chain: bool = False,
    **context: Any,
) -> RunContext:
    """A run context in which this policy, or a script of replies, plays every role; `context` are its other fields and
    its options.

    >>> context = make_context({"planner": ["The answer is \\\\boxed{42}."]}, tools=Toolbox())
    """
    speaking = policy if isinstance(policy, Policy) else ScriptedPolicy(policy)
    continuation: Continuation = "chain" if chain else "turns"
    spoken = DIALECTS[dialect] if isinstance(dialect, str) else dialect
    options = {name: context.pop(name) for name in RunOptions.__dataclass_fields__ if name in context}
    context.setdefault("options", RunOptions(**options))
    return RunContext({"*": RoleConfig(speaking, dialect=spoken, continuation=continuation)}, **context)
