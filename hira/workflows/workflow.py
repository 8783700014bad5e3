"""The protocol of a workflow, and `rollout`, which runs one and never loses its findings."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Protocol

from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout, Status
from hira.agents.verifier import check_answer
from hira.core.concurrency import EndsEarly, contain
from hira.core.errors import BadReply, HiraError, Interrupted, OutOfBudget, UsageError
from hira.core.events import AnswerChecked, Notice, RunEnded, RunStarted
from hira.core.policy import Usage
from hira.core.sanitize import presentable
from hira.evidence import claims, drop_unknown, has_only_marks, is_accepted, is_refusal
from hira.evidence.verdicts import Relevance
from hira.policies.dialects.text_calls import drop_calls

if TYPE_CHECKING:
    from hira.agents.history import Earlier
    from hira.workflows.bound import Sizes


ENDING = 100
"""Characters of an answer that say whether it ends where a reply was cut off."""
LONGER = "let it write longer replies (--max-reply-tokens or max_reply_tokens=)"


class Workflow(Protocol):
    """An async program over roles. The same object serves every run, every policy and training."""

    @property
    def name(self) -> str: ...

    async def run(self, question: str, context: RunContext) -> str:
        """The answer to the question, with its sources cited as `[s1]`."""
        ...


class BuiltIn(Workflow, Protocol):
    """A workflow of hira's own: it also says which roles it has, which of them are given the tools that a user brings,
    and the most that it can take."""

    @property
    def roles(self) -> frozenset[str]: ...

    @property
    def takes_tools(self) -> frozenset[str]: ...

    def bound(self, sizes: "Sizes") -> Mapping[str, Usage]:
        """The most by role, from the limits alone."""
        ...


async def rollout(workflow: Workflow, question: str, context: RunContext, earlier: "Earlier | None" = None) -> Rollout:
    """Run the workflow and hold its answer against the sources. A failed run is a rollout with a status and an error.

    What the run knew when it ended early stays in the rollout and is its answer's last resort. A follow-up question
    begins with what the `earlier` turns of its conversation left.
    """
    record = context.rollout
    record.question, record.workflow = question, workflow.name
    if earlier:
        earlier.seed(record)
        context.earlier = earlier.messages
    models = {role: config.policy.model for role, config in context.roles.items()}
    budget = context.budget
    every = {"tokens": budget.tokens, "cost": budget.cost, "seconds": budget.seconds, "calls": budget.calls}
    limits = {name: limit for name, limit in every.items() if limit is not None}
    try:
        await context.log.settle()  # whoever sees its id can resume it
        context.events(RunStarted(record.run, question, workflow.name, models, limits))
        try:
            full_question, output = question, context.options.output
            if earlier:
                from hira.agents.summary import sum_up  # only a follow-up question has earlier messages

                full_question = (await sum_up(context, earlier)).extend(question)
            full_question = output.extend(full_question) if output else full_question
            # hira's own workflows look at the time themselves, and answer before it is over
            left = None if hasattr(workflow, "bound") else partial(budget.remaining_seconds, last=True)
            with contain(f"the workflow {workflow.name!r}"):
                async with EndsEarly(left, budget.make_late_error):
                    answer = await workflow.run(full_question, context)
            record.answer = _take_answer(answer, workflow, context, full_question)
        except HiraError as error:
            record.failure = error
        _close(record, context)
        await settle(record, context)
        if output:
            from hira.agents.output import settle_output

            await settle_output(context, output)
    except asyncio.CancelledError:
        record.status, record.failure = "interrupted", Interrupted("cancelled")
        record.unused = context.log.read_unused()
        context.log.end(record.status, "", record.error, record.usage)
        raise
    record.status = _find_early_end(record) or record.status
    record.unused = context.log.read_unused()
    context.events(RunEnded(record.run, record.status, record.answer, record.usage))
    context.log.end(record.status, record.answer, record.error, record.usage)
    return record


def _take_answer(answer: object, workflow: Workflow, context: RunContext, question: str) -> str:
    """The text of an answer, without calls that were printed in it; empty if only marks are left, or if it repeats the
    question or the earlier messages."""
    if not isinstance(answer, str):
        what = f"workflow {workflow.name!r} returned no text: {answer!r}"
        raise UsageError(what, fix="its method run has to return the answer")
    text = drop_calls(answer, [*context.state.offered.values()])
    typed, own = context.rollout.question, hasattr(workflow, "bound")
    if has_only_marks(text, context.rollout.sources) or (own and text.strip() == typed.strip()):
        return ""
    if own and context.earlier:
        from hira.agents.history import repeats_history  # most questions are the first

        text = "" if repeats_history(text, question, (*context.earlier, ("user", typed))) else text
    return text


def _close(record: Rollout, context: RunContext) -> None:
    """Say why the run ended early, if it did; without an answer its findings that claim something replace it."""
    ended = context.log.ended if context.log.missed else None  # once a replay has reached it
    record.failure = record.failure or context.stopped or ended
    ending = record.answer[-ENDING:].strip()
    completions = (turn.completion for trajectory in record.trajectories.values() for turn in trajectory.turns)
    written = [completion for completion in completions if ending and ending in completion.text]
    cut = [reply for reply in written if reply.finish == "length" and reply.text.rstrip().endswith(ending)]
    if not record.failure and cut and cut == written:  # it ends where a reply was cut off, and in no whole reply
        what = "the answer was cut off at the length limit of a reply"
        context.note(what, important=True)
        record.failure = OutOfBudget(what, fix=LONGER)
    if not record.answer and not record.failure:
        record.failure = BadReply("the model wrote no answer", fix=f"use another model, or {LONGER}")
    found = (finding.conclusion for finding in record.findings if finding.ok)
    told = (f"- {text}" for text in found if claims(text) and not has_only_marks(text, record.sources))
    record.answer = record.answer or "\n".join(told)


def _find_early_end(record: Rollout) -> Status | None:
    """The status of a run that a failure ended, None for any other."""
    failure = record.failure
    if failure is None or isinstance(failure, Interrupted):
        return "interrupted" if failure else None
    late = isinstance(failure, OutOfBudget) and (record.answer or not isinstance(failure, UsageError))
    return "partial" if late else "failed"


async def settle(record: Rollout, context: RunContext) -> None:
    """Drop links and citations of what nobody read, check the claims, and say whether the answer rests on evidence. A
    failed run states nothing: its text only lists what it had found."""
    read = {source.location for source in record.sources.read.values()}
    answer, unknown = drop_unknown(record.answer, record.sources)
    record.answer = presentable(answer, read)  # last, since words on both sides of a dropped mark may make a tag
    if unknown:
        context.events(Notice(f"dropped citations of sources that do not exist: {', '.join(unknown)}"))
    if _find_early_end(record) == "failed":
        record.status = "failed"
        return
    refused = not record.answer or is_refusal(record.answer)
    accepted = context.options.verify == "off" and not context.options.verifier
    if not accepted:
        checked = await check_answer(context)
        record.citations, record.answers, record.lacking = checked.citations, checked.answers, checked.lacking
        for reason in checked.reasons:
            context.events(Notice(f"not fully checked: {reason}", important=True))
        refused = refused or checked.answers is Relevance.REFUSAL  # a model knows it in languages that words do not
        accepted = is_accepted(record.citations) and checked.answers is Relevance.YES
        if accepted:
            note_outdated(context)
        if record.citations or not refused:
            citations = tuple(asdict(citation) for citation in record.citations)
            context.events(AnswerChecked(citations, checked.answers or "", checked.lacking))
    record.status = "insufficient_evidence" if refused else "answered" if accepted else "unverified"


def note_outdated(context: RunContext) -> None:
    """Name the newest edition of a document of which an older one supports the answer to a question without a date."""
    record, read = context.rollout, context.rollout.sources.read
    held = {read[cited.source].location: read[cited.source].newer for cited in record.citations if cited.verdict.holds}
    outdated = {location: newer for location, newer in held.items() if newer and newer not in held}
    if outdated:
        from hira.tools.documents.ranking import read_vintage  # other answers need no index

        dated = read_vintage("", record.question).date
        for location, newer in outdated.items():
            if not dated:
                context.note(f"{location} supports the answer; {newer} is a newer edition of it", important=True)
