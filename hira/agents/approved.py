"""Human approval of subtasks, and of calls of tools that need it: a person accepts, changes or rejects each.

Decisions are recorded like calls, so that a resumed or replayed run asks nobody again.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from hira.agents.hooks import refusable, refuse_call
from hira.agents.run_context import Conversation, RunContext
from hira.agents.trajectory import Finding, Rejected, Subtask
from hira.core.errors import Stop, UsageError, count_of
from hira.core.events import ApprovalAwaited, CallApproved, CallRefused, SubtaskApproved, SubtaskRejected
from hira.core.hooks import Refusal, ToolUse
from hira.core.messages import Filled
from hira.core.policy import fields_of
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.journal import CallSpec
from hira.journal.encoding import DamagedRecord, digest_of_tool, validate
from hira.tools import Observation, Tool

REJECTED = Prompt(__file__, "refusals", "subtask_rejected")
HELD = Prompt(__file__, "refusals", "subtask_held")
CHANGED = Prompt(__file__, "refusals", "subtask_changed")

PERSON = "person"
APPROVAL = "approval"
"""The conversation under which decisions are recorded."""
APPROVAL_OF_CALLS = "approval of calls"
"""The same for decisions on single calls."""
NOBODY = Refusal("no person can be asked to approve it in this run")
Decision = Subtask | Refusal
Dispatch = Callable[[Sequence[Subtask]], Awaitable[Sequence[Finding]]]


async def ask_approval(subtasks: Sequence[Subtask], context: RunContext, dispatch: Dispatch) -> list[Finding]:
    """The findings for the subtasks, in their order: what `dispatch` brings for those that a person lets through, and
    for each of the others that it was rejected. Where nobody is to be asked, all are handed out as they are.

    `dispatch` may bring fewer, of the first ones, when the run is ended meanwhile; there is no finding for the rest.
    """
    try:
        decisions = await _get_decisions(subtasks, context) if is_approved(context) else subtasks
    except Stop as stop:
        context.stop(stop)
        return [_note_undelivered(context, subtask, HELD.fill(why=stop.what)) for subtask in subtasks]
    accepted = [decision for decision in decisions if isinstance(decision, Subtask)]
    accepted_findings = iter(await dispatch(accepted) if accepted else ())
    findings = [
        next(accepted_findings, None)
        if isinstance(decision, Subtask)
        else _note_undelivered(context, issued, REJECTED.fill(reason=sanitize(decision.reason.strip())))
        for issued, decision in zip(subtasks, decisions, strict=True)
    ]
    return [finding for finding in findings if finding]


def is_approved(context: RunContext) -> bool:
    """Return whether a person approves the subtasks of this run, or did so in the part that its record holds."""
    return context.options.approve is not None or context.log.holds(APPROVAL)


async def _get_decisions(subtasks: Sequence[Subtask], context: RunContext) -> Sequence[Decision]:
    """One decision for each subtask, from the record or from the person. Raises `Stop` if the run is ended first."""
    # the run is part of the request, so that no other run takes its decisions over
    request = {"run": context.rollout.run, "subtasks": [[subtask.id, subtask.text] for subtask in subtasks]}
    spec = CallSpec("tool", APPROVAL, digest_of_tool(APPROVAL, request), PERSON, lambda: request)
    encode, decode = refusable(fields_of, partial(validate, Subtask))

    def read(record: Mapping[str, Any]) -> list[Decision]:
        decisions = [*map(decode, validate(list[dict[str, Any]], record["decisions"]))]
        if len(decisions) != len(subtasks):
            raise DamagedRecord(f"it has {len(decisions)} decisions on {len(subtasks)} subtasks")
        return decisions

    decisions = await context.log.call(
        spec, partial(_ask_person, subtasks, context), lambda made: {"decisions": [*map(encode, made)]}, read
    )
    for issued, decision in zip(subtasks, decisions, strict=True):
        if isinstance(decision, Refusal):
            context.events(SubtaskRejected(issued.id, decision.reason))
        else:
            context.events(SubtaskApproved(issued.id, decision.text, decision.text != issued.text))
    return decisions


async def _ask_person(subtasks: Sequence[Subtask], context: RunContext) -> Sequence[Decision]:
    if context.options.approve is None:
        what = "a person approves the subtasks of this run, but no one can be asked"
        raise UsageError(what, fix="give Hira(approve=…), or resume the run in a terminal")
    context.events(ApprovalAwaited({subtask.id: subtask.text for subtask in subtasks}))
    approve = context.options.approve
    decided: object = await context.stopping.wait_for_person(
        f"approve, asked about {count_of(len(subtasks), 'subtask')},", lambda: approve(list(subtasks))
    )
    decisions = decided if isinstance(decided, Sequence) else ()
    made = [
        Refusal(decision.reason) if isinstance(decision, Rejected) and decision.subtask.id == issued.id else decision
        for issued, decision in zip(subtasks, decisions, strict=False)
    ]
    fits = [
        isinstance(decision, Refusal)
        or (isinstance(decision, Subtask) and decision.id == issued.id and bool(decision.text.strip()))
        for issued, decision in zip(subtasks, made, strict=False)
    ]
    if len(decisions) != len(subtasks) or not all(fits):
        raise UsageError(
            f"approve was asked about {len(subtasks)} subtasks and returned {decided!r}",
            fix="return one for each, in their order: the Subtask, one with another text, or Refusal(reason)",
        )
    return made


def _note_undelivered(context: RunContext, subtask: Subtask, why: Filled) -> Finding:
    """The finding of a subtask that was not handed out."""
    finding = Finding(subtask, PERSON, "", why, ok=False)
    context.rollout.findings.append(finding)
    return context.announce(finding)


async def ask_about_call(tool: Tool, use: ToolUse, conversation: Conversation, nth: int) -> ToolUse | Observation:
    """The call as a person lets it be made, or the result of one that they refuse. It is the `nth` of its kind in its
    conversation; one that the record holds a decision on is not asked about again."""
    context = conversation.context

    async def ask() -> ToolUse | Refusal:
        if context.options.approve_tool is None:
            return NOBODY
        approve = context.options.approve_tool
        context.events(ApprovalAwaited({}, {use.id: _spell(use)}, use.name))
        decision: object = await context.stopping.wait_for_person(
            f"approve_tool, asked about a call of {use.name!r},", lambda: approve(use)
        )
        if isinstance(decision, Refusal):
            return Refusal(context.redact(decision.reason))
        if not isinstance(decision, ToolUse):
            what = f"approve_tool was asked about a call of {use.name!r} and returned {decision!r:.80}"
            raise UsageError(what, fix="return the ToolUse, one with other arguments, or Refusal(reason)")
        return decision

    values = {"conversation": conversation.name, "arguments": dict(use.arguments), "nth": nth}
    digest = digest_of_tool(f"{context.rollout.run} {use.name}", values)  # no other run decides for it
    spec = CallSpec("tool", APPROVAL_OF_CALLS, digest, PERSON, lambda: {"tool": use.name, **values}, shared=True)
    encode, decode = refusable(
        lambda decision: {"arguments": dict(decision.arguments)},
        lambda record: replace(use, arguments=validate(dict[str, Any], record["arguments"])),
    )
    decision = await context.log.call(spec, ask, encode, decode)
    if isinstance(decision, Refusal):
        context.events(CallRefused(use.id, use.name, decision.reason))
        return refuse_call(tool, decision)
    context.events(CallApproved(use.id, use.name, _spell(decision), decision.arguments != use.arguments))
    return replace(use, arguments=dict(decision.arguments))


def _spell(use: ToolUse) -> str:
    return json.dumps(dict(use.arguments), ensure_ascii=False, default=str)
