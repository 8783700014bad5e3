"""The baselines of one chain of reasoning: direct, vanilla RAG, CodeAct, multimodal and ReAct (HiRA, Table 1 and
appendix)."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from hira.agents.loop import CALLS, Loop
from hira.agents.run_context import RunContext, format_files
from hira.core.errors import UsageError
from hira.core.messages import Filled, user
from hira.core.policy import Usage
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evidence import CITED
from hira.tools import WHERE_TO_SEARCH, Tool

if TYPE_CHECKING:
    from hira.workflows.bound import Sizes


DIRECT = Prompt(__file__, "direct")
CODEACT = Prompt(__file__, "codeact")
REACT = Prompt(__file__, "react")
REASONER = "reasoner"
"""The role that answers in every baseline but Plan-and-Solve, so that one `--role` configures it in all of them."""


def require_search(context: RunContext) -> Tool:
    """The search of this run. Raises `UsageError`, before any work, where it has none."""
    if context.tools.search is None:
        raise UsageError("this workflow needs a search, but this run has none", fix=WHERE_TO_SEARCH)
    return context.tools.search


def begin_loop(context: RunContext, prompt: Prompt, tools: Sequence[Tool], question: str, *, limit: int = 1) -> Loop:
    """Begin the role's loop with its task. The prompt may have slots for `today`, `tools`, `limit`, `task`, `files` and
    `known`, which is empty because nobody worked before."""
    loop = Loop(context.conversation(REASONER), tools, limit=limit, final=True, task=question)
    values = {
        "today": context.rollout.today,
        "tools": loop.conversation.explain(tools),
        "limit": limit,
        "task": sanitize(question),
        "files": format_files(context.files),
        "known": Filled(""),
    }
    loop.conversation.say(user(prompt.fill(**{name: value for name, value in values.items() if name in prompt.slots})))
    return loop


@dataclass(frozen=True)
class Direct:
    roles: ClassVar[frozenset[str]] = frozenset({REASONER})
    takes_tools: ClassVar[frozenset[str]] = frozenset()

    name: str = "direct"

    async def run(self, question: str, context: RunContext) -> str:
        loop = begin_loop(context, DIRECT, [], question)
        return (await loop.run()).answer

    def bound(self, sizes: "Sizes") -> Mapping[str, Usage]:
        return {REASONER: sizes.bound_loop(0, 0)}


@dataclass(frozen=True)
class Rag:
    """Search once, read the first `pages` hits (HiRA: the top 10), answer. If nothing is found, no model is asked. A
    model that answers a follow-up question with an earlier message is asked again, without the earlier messages."""

    roles: ClassVar[frozenset[str]] = frozenset({REASONER})
    takes_tools: ClassVar[frozenset[str]] = frozenset()

    pages: int = 10
    name: str = "rag"

    async def run(self, question: str, context: RunContext) -> str:
        from hira.agents.experts import ANSWER  # the prompt of simple search
        from hira.agents.record import repeats_form
        from hira.agents.retrieval import NOTHING_FOUND, look_up_question, restate  # a role with tools searches itself

        require_search(context)
        loop = Loop(context.conversation(REASONER), [], limit=1, final=True)
        seen = await look_up_question(loop.conversation, question, self.pages)
        if not (context.rollout.sources.read or context.earlier) and all(result.ok for result in seen):
            return NOTHING_FOUND.fill()
        passages = Filled("\n\n".join(dict.fromkeys(result.text for result in seen)))

        async def ask(loop: Loop, task: str) -> str:
            loop.conversation.say(user(ANSWER.fill(documents=passages, task=sanitize(task), known=Filled(""))))
            return (await loop.run()).answer

        answer, repeated = await ask(loop, question), CITED.sub("", question)
        if context.stopped or not (context.earlier and repeats_form(CITED.sub("", answer), repeated)):
            return answer
        again, restated = Loop(context.conversation(REASONER), [], limit=1, final=True), restate(context)
        second = await ask(again, restated)
        echoes = context.rollout.question in second and repeats_form(second, restated)
        return answer if echoes else second or answer

    def bound(self, sizes: "Sizes") -> Mapping[str, Usage]:
        read = (self.pages + 1) * sizes.result
        return {REASONER: replace(sizes, prompt=sizes.prompt + read).bound_loop(0, 0)}


@dataclass(frozen=True)
class CodeAct:
    """`calls` of Python at most (as HiRA's experts: 10)."""

    roles: ClassVar[frozenset[str]] = frozenset({REASONER})
    takes_tools: ClassVar[frozenset[str]] = frozenset({REASONER})

    calls: int = CALLS
    name: str = "codeact"

    async def run(self, question: str, context: RunContext) -> str:
        if context.tools.python is None:
            fix = "hira doctor shows why this machine cannot run code"
            raise UsageError("this workflow needs Python, and this run has none", fix=fix)
        async with context.tools.python("1") as python:
            tools = [tool for tool in (python, context.tools.files, *context.tools.extra_for(REASONER)) if tool]
            loop = begin_loop(context, CODEACT, tools, question, limit=self.calls)
            return (await loop.run()).answer

    def bound(self, sizes: "Sizes") -> Mapping[str, Usage]:
        return {REASONER: sizes.bound_loop(self.calls, sizes.result)}


SEES = "look"


def bound_with_sight(calls: int, sizes: "Sizes") -> Mapping[str, Usage]:
    """The most that a role with tools takes, and the one that looks for it."""
    looks = Usage(calls, calls * sizes.prompt, calls * sizes.reply)
    return {REASONER: sizes.bound_loop(calls, sizes.result), SEES: looks}


@dataclass(frozen=True)
class MultimodalAlone:
    """`calls`: looks and readings at most (as HiRA's experts: 10). `alone` answers a question with nothing to look at
    by reasoning, as most of HiRA's Table 1 need."""

    roles: ClassVar[frozenset[str]] = frozenset({REASONER, SEES})
    takes_tools: ClassVar[frozenset[str]] = frozenset({REASONER})

    calls: int = CALLS
    alone: bool = False
    name: str = "multimodal"

    async def run(self, question: str, context: RunContext) -> str:
        from hira.agents.experts import MULTIMODAL, look  # the expert's prompt and its tool

        sight = look(context, "1") if context.tools.media else None
        tools = [tool for tool in (sight, context.tools.files, *context.tools.extra_for(REASONER)) if tool]
        if not tools and not self.alone:
            fix = "attach a picture, a sound or a video (--file or files=), or name a folder of them (--docs or docs=)"
            raise UsageError("this workflow needs something to look at, and this run has nothing", fix=fix)
        loop = begin_loop(context, MULTIMODAL if tools else DIRECT, tools, question, limit=self.calls)
        return (await loop.run()).answer

    def bound(self, sizes: "Sizes") -> Mapping[str, Usage]:
        return bound_with_sight(self.calls, sizes)


@dataclass(frozen=True)
class ReAct:
    """`calls` of all tools together at most (the HiRA paper gives none: as many as WebThinker searches)."""

    roles: ClassVar[frozenset[str]] = frozenset({REASONER, SEES})
    takes_tools: ClassVar[frozenset[str]] = frozenset({REASONER})

    calls: int = 20
    name: str = "react"

    async def run(self, question: str, context: RunContext) -> str:
        box = context.tools
        async with AsyncExitStack() as stack:
            python = await stack.enter_async_context(box.python("1")) if box.python else None
            sight = None
            if box.media:
                from hira.agents.experts import look  # few runs have pictures

                sight = look(context, "1")
            mine = (box.search, box.browse, box.files, python, sight, *box.extra_for(REASONER))
            tools = [tool for tool in mine if tool]
            if not tools:
                raise UsageError("this workflow needs tools, and this run has none", fix=WHERE_TO_SEARCH)
            loop = begin_loop(context, REACT, tools, question, limit=self.calls)
            return (await loop.run()).answer

    def bound(self, sizes: "Sizes") -> Mapping[str, Usage]:
        return bound_with_sight(self.calls, sizes)
