"""The adaptive reasoning coordinator (HiRA): assign → recall → the expert works → distil → remember.

Where nothing is to decide or to condense, no model is asked, and one call both assigns and recalls; a `faithful`
coordinator makes every call of the paper. A reply that cannot be used never loses a run: assignment falls back to the
cheapest expert, recall to relevance, distillation to the expert's own conclusion.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache
from typing import Literal

from pydantic import Field, create_model

from hira.agents.distiller import NO_CONCLUSION, SHORT, Distillate, distil, keep_words
from hira.agents.expert import CODE, SEARCH, Account, Expert, Task, check_account
from hira.agents.faults import log_fault
from hira.agents.record import Reply, ask_for_record
from hira.agents.run_context import RunContext, format_files
from hira.agents.trajectory import Finding, Subtask
from hira.core.bm25 import BM25
from hira.core.concurrency import contain, together
from hira.core.errors import DialectError, EndpointError, HiraError, RoleBudgetExceeded, Stop, ToolError, WorkerError
from hira.core.events import Notice, Remembered, SubtaskAssigned
from hira.core.memory import DualMemory, Recall
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.tokens import count
from hira.evidence import claims, is_refusal
from hira.evidence.records import find_invented

ASSIGN = Prompt(__file__, "assign")
BROKE_OFF = Prompt(__file__, "reports", "broke_off")
COULD_NOT = Prompt(__file__, "reports", "could_not")
NOBODY = Prompt(__file__, "reports", "nobody")
RECALL = Prompt(__file__, "recall")

RECALLED = 5
"""Notes (memory entries) that an expert gets at most; from this many candidates on, the model chooses."""
CONSIDERED = 12
"""Candidates at most."""


class Assignment(Reply):
    """The choice of an expert; `assignment_of` narrows `expert` to the names that can be chosen."""

    reason: str = Field(default="", json_schema_extra={"maxLength": 200})
    expert: str


class Choice(Reply):
    """The numbers of the notes that are passed on."""

    chosen: list[int] = Field(default=[], json_schema_extra={"maxItems": RECALLED})


class AssignmentWithNotes(Choice, Assignment):
    """Both in one reply."""


@cache
def assignment_of(names: tuple[str, ...], *, notes: bool) -> type[Assignment]:
    """The assignment whose expert is one of these names, so that a server can hold the model to them."""
    base = AssignmentWithNotes if notes else Assignment
    return create_model("Assignment", __base__=base, expert=(Literal[names], ...))  # type: ignore[arg-type]  # names are known at run time


@dataclass(frozen=True, slots=True)
class FirstFinding:
    """The finding of a subtask's first expert. If that computes, `other` searches and may try the subtask too."""

    finding: Finding
    recall: Recall = Recall()
    other: Expert | None = None


@dataclass(eq=False, repr=False)
class Coordinator:
    """Gives subtasks to experts. `transfer` and `remember` switch off the two mechanisms that HiRA's Table 2 removes.

    Without transfer, no model chooses the expert or distils its reasoning for the planner; without remembering, the
    memory is neither read nor written. With `distils` False an expert's own words are its report and what memory keeps.
    `faithful` makes every call of the paper.
    """

    context: RunContext
    experts: Sequence[Expert]
    _: KW_ONLY
    transfer: bool = True
    remember: bool = True
    distils: bool = True
    faithful: bool = False
    _set_aside: list[Finding] = field(default_factory=list, init=False)
    """The findings of experts whose subtask another expert reports on."""

    def __post_init__(self) -> None:
        self.experts = sorted(self.experts, key=lambda expert: expert.cost)

    async def delegate(self, subtasks: Sequence[Subtask], memory: DualMemory) -> list[Finding]:
        """Findings in the order of the subtasks, whichever is done first; memory grows in that order too. Findings are
        doubted once all first experts are done, so that a replayed run doubts the same ones."""
        firsts = await together(
            [self._begin(subtask, memory, self._available(subtask, index)) for index, subtask in enumerate(subtasks)]
        )
        doubts = [self._doubt(first.finding) if first.other else "" for first in firsts]
        findings = await together([self._end(*pair) for pair in zip(firsts, doubts, strict=True)])
        for finding in findings:
            self.context.rollout.findings.append(finding)
            if self.remember:
                self._remember(finding, memory)
        return findings

    def _available(self, subtask: Subtask, before: int) -> list[Expert]:
        """Return the experts that may get a subtask, even if each of the `before` ones issued with it goes to them;
        those that failed at the same words only if nobody else is left, or if every call of the paper is wanted. This
        is decided before any assignment, and so independent of completion order."""
        findings = [*self.context.rollout.findings, *self._set_aside]
        given = Counter(finding.expert for finding in findings)
        again = [] if self.faithful else [finding for finding in findings if finding.subtask.text == subtask.text]
        failed = {finding.expert for finding in again if not finding.ok}
        limits = ((expert, self.context.budget.subtasks_of(expert.name)) for expert in self.experts)
        free = [expert for expert, limit in limits if limit is None or given[expert.name] + before < limit]
        return [expert for expert in free if expert.name not in failed] or free

    async def _begin(self, subtask: Subtask, memory: DualMemory, experts: Sequence[Expert]) -> FirstFinding:
        if not experts:
            return FirstFinding(self.context.announce(Finding(subtask, "nobody", "", NOBODY.fill(), ok=False)))
        expert, reason, recall = await self._prepare(subtask, experts, memory)
        finding = await self._work(subtask, expert, reason, recall)
        other = next((other for other in experts if other.ability == SEARCH), None)
        if other and expert.ability == CODE and self.transfer and not self.faithful:
            return FirstFinding(finding, recall, other)
        return FirstFinding(self.context.announce(finding))

    def _doubt(self, finding: Finding) -> str:
        """Return why an expert that searches should try the subtask of one that computes: this one found no answer, or
        states numbers or names that nothing which was read or computed contains. Empty if there is no reason."""
        if not finding.ok:
            return ""
        if is_refusal(finding.conclusion):
            return f"{finding.expert} found no answer"
        run = self.context.rollout
        asked = f"{run.question}\n{finding.subtask.text}"
        in_order = sorted(run.sources.read.values(), key=lambda source: (len(source.id), source.id))
        invented = find_invented(finding.conclusion, asked, in_order)
        return f"{finding.expert} states {' and '.join(invented[:3])} without a source" if invented else ""

    async def _end(self, first: FirstFinding, doubt: str) -> Finding:
        """Return the first finding; if it is in doubt and the expert that searches answers, that expert's."""
        finding = first.finding
        if first.other is None:
            return finding
        if doubt:
            doubted = replace(finding, facts=(), resources=(), ok=False)
            second = await self._work(finding.subtask, first.other, doubt, first.recall)
            answers = second.ok and not is_refusal(second.conclusion)
            finding = second if answers else doubted
            self._set_aside.append(doubted if answers else replace(second, ok=False))
        return self.context.announce(finding)

    async def _work(self, subtask: Subtask, expert: Expert, reason: str, recall: Recall) -> Finding:
        self.context.events(SubtaskAssigned(subtask.id, expert.name, reason, len(recall)))
        try:
            task = Task(subtask.id, subtask.text, recall, self.context.files, self.faithful)
            with contain("it"):
                account = check_account(await expert.work(task, self.context))
        except Exception as error:  # noqa: BLE001 - a fault in somebody's expert must not lose the run: the planner reads it
            return self._describe_failure(subtask, expert, error)
        finding = self._finding(subtask, expert, await self._distil(subtask, account))
        if account.ended:
            conclusion = BROKE_OFF.fill(expert=expert.name, why=account.ended, conclusion=finding.conclusion)
            finding = replace(finding, conclusion=str(conclusion), ok=False)
        return finding

    def _describe_failure(self, subtask: Subtask, expert: Expert, error: Exception) -> Finding:
        """A finding that says what ended the expert's work. Raises an error that ends the run: a check that failed, a
        request that cannot be carried out, or the fault of a hook, which may be there to prevent something."""
        fault: BaseException = error
        if isinstance(error, BaseExceptionGroup):  # of tasks: the one that ends the run counts, else the first
            fault = error.subgroup(ends_run) or error
        while isinstance(fault, BaseExceptionGroup):
            fault = fault.exceptions[0]
        if ends_run(fault):
            raise fault
        why = fault.what if isinstance(fault, HiraError) else f"{type(fault).__name__}: {fault}".rstrip(": ")
        why = self.context.redact(why)
        if not isinstance(fault, HiraError):
            log_fault("expert", expert.name, error, self.context.redact)
            text = f"subtask {subtask.id}: a fault in the expert {expert.name!r} ended it: {why}"
            self.context.events(Notice(text, important=True))
        return Finding(subtask, expert.name, "", COULD_NOT.fill(expert=expert.name, why=why), ok=False)

    async def _prepare(
        self, subtask: Subtask, experts: Sequence[Expert], memory: DualMemory
    ) -> tuple[Expert, str, Recall]:
        """The expert, why it was chosen, and what it is given of memory. One that the planner called by its name is not
        chosen again; without transfer its description shares most words with the subtask, or it is the cheapest."""
        recalled = memory.recall(subtask.text, CONSIDERED) if self.remember else Recall()
        notes = recalled if len(recalled) >= RECALLED else Recall()
        expert, reason = experts[0], ""
        if named := next((expert for expert in experts if expert.name == subtask.expert), None):
            expert, reason = named, "the planner named it"
        elif not self.transfer:
            best = BM25([f"{expert.ability} {expert.description}" for expert in experts]).best(subtask.text, 1)
            expert = experts[best[0] if best else 0]
        elif len(experts) > 1:
            expert, reason, chosen = await self.assign(subtask, experts, Recall() if self.faithful else notes)
            if notes and not self.faithful:
                return expert, reason, chosen
        return expert, reason, await self.recall(subtask, notes) if notes else recalled

    async def assign(
        self, subtask: Subtask, experts: Sequence[Expert], notes: Recall = Recall()
    ) -> tuple[Expert, str, Recall]:
        """Reasoning transfer: the cheapest of these experts that suffices, and why (HiRA, A*_k); of the notes, if there
        are any, those that will help it."""
        named = {expert.name: expert for expert in experts}
        listed = Filled("\n".join(f"- {expert.name}: {expert.description}" for expert in experts))
        prompt = ASSIGN.fill(
            experts=listed,
            task=sanitize(subtask.text),
            files=format_files(self.context.files),
            notes=format_notes(notes),
            most=RECALLED,
        )
        conversation = self.context.conversation("coordinator", f"{subtask.id}/assign")
        shape = assignment_of(tuple(named), notes=bool(notes))
        try:
            assignment = await ask_for_record(conversation, user(prompt), shape)
        except (DialectError, EndpointError, Stop) as error:
            self._fell_back("assigned to the cheapest expert", error)
            return experts[0], "", notes.take(range(len(notes)), RECALLED)
        chosen = assignment.chosen if isinstance(assignment, AssignmentWithNotes) else []
        return named[assignment.expert], assignment.reason, select_notes(notes, chosen)

    async def recall(self, subtask: Subtask, notes: Recall) -> Recall:
        """At most `RECALLED` of the notes, which are ranked by relevance and quality: those that the model chooses."""
        prompt = RECALL.fill(most=RECALLED, notes=format_notes(notes), task=sanitize(subtask.text))
        conversation = self.context.conversation("coordinator", f"{subtask.id}/recall")
        try:
            choice = await ask_for_record(conversation, user(prompt), Choice)
        except (DialectError, EndpointError, Stop) as error:
            self._fell_back("recalled by relevance", error)
            return notes.take(range(len(notes)), RECALLED)
        return select_notes(notes, choice.chosen)

    async def _distil(self, subtask: Subtask, account: Account) -> Distillate:
        """Distil the work for the planner and for memory, without a call for parts that neither of them reads."""
        notes = self.remember and (account.found or self.faithful)
        wanted = self.distils and (self.transfer or notes)
        if not wanted or (count(account.reasoning) <= SHORT and not self.faithful):
            return keep_words(account, notes=notes)
        conversation = self.context.conversation("coordinator", f"{subtask.id}/distil")
        try:
            made = await distil(conversation, subtask.text, account, report=self.transfer, notes=notes)
            return made if account.found else made.model_copy(update={"facts": [], "resources": []})
        except (DialectError, EndpointError, Stop) as error:
            self._fell_back("passed on as the expert wrote it", error)
            return keep_words(account)

    def _finding(self, subtask: Subtask, expert: Expert, distilled: Distillate) -> Finding:
        sources = self.context.rollout.sources
        resolved = [fact.resolve(sources, subtask.id) for fact in distilled.facts]
        facts = tuple(fact for fact in resolved if fact.text and not (is_refusal(fact.text) and not claims(fact.text)))
        files = {*self.context.tools.visible, *map(str, self.context.files)}
        resources = tuple(filter(None, (one.resolve(sources, files, subtask.id) for one in distilled.resources)))
        ok = distilled.conclusion != NO_CONCLUSION.fill()
        return Finding(subtask, expert.name, distilled.reasoning, distilled.conclusion, facts, resources, ok)

    def _remember(self, finding: Finding, memory: DualMemory) -> None:
        for fact in finding.facts:
            if memory.add_fact(fact):
                self.context.events(Remembered("fact", fact.text, ", ".join(fact.sources), finding.subtask.id))
        for resource in finding.resources:
            if memory.add_resource(resource):
                self.context.events(Remembered("resource", resource.description, resource.path, finding.subtask.id))

    def _fell_back(self, to: str, error: HiraError) -> None:
        if isinstance(error, RoleBudgetExceeded):
            self.context.events(Notice(f"coordinator: {to}, because {error.what}"))
        elif not isinstance(error, Stop):
            self.context.events(Notice(f"coordinator: {to}, because its model's reply was not usable ({error.what})"))


def format_notes(notes: Recall) -> Filled:
    return sanitize("\n".join(f"{number}. {line}" for number, line in enumerate(notes.lines, 1)))


def select_notes(notes: Recall, chosen: Sequence[int]) -> Recall:
    """At most `RECALLED` notes, by the numbers that were chosen; numbers of no note are passed over."""
    return notes.take((number - 1 for number in chosen if 1 <= number <= len(notes)), RECALLED)


def ends_run(error: BaseException) -> bool:
    """Return whether an error of an expert ends the run, and not only the expert's work."""
    of_work = (DialectError, EndpointError, Stop, ToolError, WorkerError)
    return isinstance(error, AssertionError | HiraError) and not isinstance(error, of_work)
