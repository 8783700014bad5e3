"""MaMs: the multi-agent Markov-state workflow for reports (Lv and others, "Learning Query-Specific Rubrics from Human
Preferences for DeepResearch Report Generation", section 3.4 and Algorithm 1).

State s = ⟨memory, plan, report⟩. In each turn the Search agent plans and acts, or ends. The results of its calls are
cut into chunks; chunk by chunk the State agent updates memory and plan (eq. 4) and the Report agent updates the report
(eq. 5). No agent sees more of the past than the state: each step is a new conversation.

Concurrency: both equations read m_(k-1), so the two agents of a chunk run at the same time, and since the State agent
never reads the report, it does not wait for the Report agent of an earlier chunk either. Two chains run: states one
after another, and reports one after another, report k as soon as m_(k-1) and r_(k-1) exist. A turn takes the longer of
the two. The next turn begins when both are done, because the Search agent reads all of s.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from hira.agents.run_context import RunContext
from hira.core.concurrency import together
from hira.core.errors import HiraError, Stop, UsageError
from hira.core.events import Remembered
from hira.core.memory import Fact
from hira.core.messages import user
from hira.core.policy import Usage
from hira.core.sanitize import sanitize
from hira.evidence.references import is_chinese, language
from hira.tools import WHERE_TO_SEARCH, Tool
from hira.workflows.bound import ASKED_TWICE, Sizes
from hira.workflows.mams.chunking import Chunk, Key, split_into_chunks
from hira.workflows.mams.rubrics import FEWEST, GENERATE, MOST, WRITER
from hira.workflows.mams.state import Memory, State
from hira.workflows.mams.steps import act, decide, remember, within, write

LEAST = 200
"""Tokens of a chunk, without which the frame around a source leaves no room for its text."""
NOTHING = {False: "Nothing that was read has to do with the topic.", True: "所读内容均与主题无关。"}


@dataclass(frozen=True)
class MaMs:
    """The limits of the paper: `max_turns`, `several` calls a turn (appendix D), and `window`, the most tokens of one
    turn's results that are read (Table 4, observation window). The paper gives no figure for `chunk`, in tokens; it is
    that of MemAgent, which the paper follows."""

    roles: ClassVar[frozenset[str]] = frozenset({"search", "state", "report"})
    takes_tools: ClassVar[frozenset[str]] = frozenset({"search"})

    max_turns: int = 10
    several: int = 5
    window: int = 24_000
    chunk: int = 5_000
    name: str = "mams"

    def __post_init__(self) -> None:
        if min(self.max_turns, self.several) < 1 or not LEAST <= self.chunk <= self.window:
            raise UsageError(
                f"{self.max_turns} turns of {self.several} calls, chunks of {self.chunk} tokens in a window of "
                f"{self.window}: these limits leave nothing to do",
                fix=f"at least one turn and one call, and {LEAST} ≤ chunk ≤ window",
            )

    async def run(self, question: str, context: RunContext) -> str:
        tools, state = collect_tools(context, "search"), State()
        seen: set[Key] = set()
        try:
            for turn in range(1, self.max_turns + 1):
                left = self.max_turns + 1 - turn
                decision = await decide(context, question, state, tools, turn=turn, left=left, several=self.several)
                if not decision.calls:  # what it says once it has looked, or when the run ends, is no report
                    words = "" if state.plan.done or context.stopped else decision.text
                    return _report(context) or words or _nothing(question, context)
                observed = await act(context, decision, tools, window=self.window)
                new = {key: source for key, source in observed.read.items() if key not in seen}
                fresh, unread = within(new, self.window)
                seen |= set(fresh)
                plan = replace(decision.plan, done=(*decision.plan.done, *observed.done, *unread))
                chunks = split_into_chunks(fresh.values(), self.chunk)
                state = await self._transition(question, replace(state, plan=plan), chunks, context, turn)
        except HiraError as error:
            context.rollout.answer = _report(context)
            if not isinstance(error, Stop) or not context.rollout.answer:
                raise
        return _report(context) or _nothing(question, context)

    async def _transition(
        self, question: str, state: State, chunks: list[Chunk], context: RunContext, turn: int
    ) -> State:
        """s_(t+1): memory, plan and report after all chunks of the turn."""
        if not chunks:
            return state
        memories = [asyncio.get_running_loop().create_future() for _ in chunks]
        memories[0].set_result(state.memory)

        async def states() -> State:
            now = state
            for number, chunk in enumerate(chunks, 1):
                now = await remember(context.conversation("state", f"{turn}.{number}"), question, chunk, now)
                _note(context, now.memory, turn)
                if number < len(chunks):
                    memories[number].set_result(now.memory)
            return now

        async def reports() -> State:
            report = state.report
            for number, (chunk, memory) in enumerate(zip(chunks, memories, strict=True), 1):
                known = await memory
                report = await write(context.conversation("report", f"{turn}.{number}"), question, chunk, known, report)
                context.rollout.answer = report  # what a run that ends early leaves
            return replace(state, report=report)

        remembered, reported = await together([states(), reports()])
        return replace(remembered, report=reported.report)

    def bound(self, sizes: Sizes) -> dict[str, Usage]:
        """At most so much by role. Of two chunks side by side at least one is half full; what the Search agent begins
        with may be asked for twice."""
        chunks = self.max_turns * (2 * self.window // self.chunk + 1)
        calls = chunks * ASKED_TWICE
        grown = sum(index * sizes.reply for index in range(chunks)) * ASKED_TWICE
        each = Usage(calls, calls * (sizes.prompt + self.chunk + 2 * sizes.reply) + grown, calls * sizes.reply)
        search = sizes.bound_loop(1, sizes.result).times(self.max_turns + 1)
        known = search.calls * (chunks + 1) * sizes.reply  # all notes and the report, in every prompt
        return {
            "search": replace(search, prompt_tokens=search.prompt_tokens + known),
            "state": each,
            "report": each,
        }


def collect_tools(context: RunContext, role: str) -> list[Tool]:
    """The tools that the role may call. Raises `UsageError` where there is nothing to be read."""
    box = context.tools
    extra = box.extra_for(role)
    tools = [tool for tool in (box.search, box.browse, box.files, *extra) if tool]
    if not (box.search or context.files or extra):
        raise UsageError("a report needs something to read", fix=WHERE_TO_SEARCH)
    return tools


def _report(context: RunContext) -> str:
    """Return the report so far, or, before there is one, the contents of memory with their sources."""
    facts = context.rollout.memory.facts
    return context.rollout.answer or "\n".join(
        f"- {fact.text} [{', '.join(fact.sources)}]" for fact in facts if fact.sources
    )


def _nothing(question: str, context: RunContext) -> str:
    """Return the answer of a run that finished without finding anything; a stopped run has none."""
    return "" if context.stopped else NOTHING[is_chinese(question)]


def _note(context: RunContext, memory: Memory, turn: int) -> None:
    """Copy memory into the run's record, so that it outlasts the run, and report new entries."""
    kept = {fact.text: fact.subtask for fact in context.rollout.memory.facts}
    facts = [Fact(entry.text, entry.sources, kept.get(entry.text, str(turn))) for entry in memory]
    context.rollout.memory.facts[:] = facts
    for fact in facts:
        if fact.text not in kept:
            context.events(Remembered("fact", fact.text, ", ".join(fact.sources), fact.subtask))


@dataclass(frozen=True)
class RubricWriting:
    """Writes a rubric for a query in one turn: what is trained when a rubric generator is (section 3.3).

    The prompt is that of `hira rubric`. Nothing holds the reply to a schema and nothing is asked again: in
    training a rubric that cannot be read is paid for as one, and sampling is the model's own."""

    roles: ClassVar[frozenset[str]] = frozenset({WRITER})
    takes_tools: ClassVar[frozenset[str]] = frozenset()

    name: str = "rubric"

    async def run(self, question: str, context: RunContext) -> str:
        prompt = GENERATE.fill(query=sanitize(question), fewest=FEWEST, most=MOST, language=language(question))
        return await context.conversation(WRITER).reply(user(prompt))

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        return {WRITER: sizes.bound_loop(0, 0)}
