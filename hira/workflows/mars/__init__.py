"""MARS: two systems for deep research (paper 2510.04935), its Algorithm 1.

System 2 reasons and makes requests: several queries to a search, and the purpose that they serve (eq. 1). System 1
reads all results, packed into bins of its window and in parallel, and passes on what serves the purpose (eq. 2). System
2 reasons further from there (eq. 3) until it answers.
"""

from dataclasses import dataclass
from typing import ClassVar

from hira.agents.loop import Loop
from hira.agents.retrieval import retrieve
from hira.agents.run_context import RunContext
from hira.core.errors import ToolError, UsageError
from hira.core.events import SubtaskIssued
from hira.core.policy import Usage
from hira.policies.dialects import Call
from hira.workflows.bound import Sizes
from hira.workflows.mars.system1 import distil
from hira.workflows.mars.system2 import ReadingRequest, answer, begin, perform_call, think, tools_of

TOOLS = frozenset({"search", "scholar", "python"})
LEAST = 2_000
"""Tokens without which System 1's own prompt leaves no room for documents."""


@dataclass(frozen=True)
class MARS:
    """`max_turns` of System 2, results read for a query of the web and documents (`pages`) and of scholarly works
    (`papers`), and tokens of a prompt of System 1 (`window`) are the paper's (section 2.1, Table 5); `queries` of one
    request are bounded by ourselves. The tokens of a reply of each system are left to the endpoint unless they are set,
    since not every one takes the paper's 8,192 of System 1 for each, and 28,672 of System 2 for all its turns together.
    `system2_prompt` are the tokens of System 2's first prompt, to which a longer question is cut (3,072 in the paper).
    `without` takes tools away by name, as Table 3 does: `mars.without=python,scholar`."""

    roles: ClassVar[frozenset[str]] = frozenset({"system2", "system1"})
    takes_tools: ClassVar[frozenset[str]] = frozenset({"system2"})

    max_turns: int = 10
    queries: int = 5
    pages: int = 10
    papers: int = 5
    window: int = 23_552
    system1_reply: int | None = None
    system2_reply: int | None = None
    system2_prompt: int | None = None
    without: str = ""
    name: str = "mars"

    def __post_init__(self) -> None:
        if self.window < LEAST:
            raise UsageError(
                f"a window of {self.window} tokens is too small for System 1", fix=f"give at least {LEAST}"
            )
        if min(self.max_turns, self.queries) < 1:
            what = f"{self.max_turns} turns of {self.queries} queries: these limits leave nothing to do"
            raise UsageError(what, fix="at least one of each")
        if strange := sorted(self._left_out - TOOLS):
            raise UsageError(
                f"`mars.without`: there is no tool {strange[0]!r}", fix=f"there are {', '.join(sorted(TOOLS))}"
            )

    @property
    def _left_out(self) -> frozenset[str]:
        return frozenset(name.strip() for name in self.without.split(",") if name.strip())

    async def run(self, question: str, context: RunContext) -> str:
        async with tools_of(context, self.queries, self._left_out) as tools:
            loop = begin(question, context, tools, self.max_turns, self.system2_prompt)
            step = await think(loop, self.system2_reply)
            while step.calls:
                loop.observe([(call, await self._result(question, call, loop)) for call in step.calls])
                step = await think(loop, self.system2_reply)
            return answer(step)

    async def _result(self, question: str, call: Call, loop: Loop) -> str:
        """Return the result of a call. Only searches go through System 1; Python's output goes straight back."""
        context = loop.conversation.context
        searches = {"search": (context.tools.search, self.pages), "scholar": (context.tools.scholar, self.papers)}
        search, most = searches.get(call.name, (None, 0))
        if search is None:
            return await perform_call(call, loop)
        try:
            arguments = loop.reader.find_tool(call).check(call.arguments)
        except ToolError as error:
            loop.forget(call)
            return error.what
        request = ReadingRequest(tuple(dict.fromkeys(arguments["queries"])), arguments["purpose"])
        context.events(SubtaskIssued(str(loop.calls.used), request.purpose))
        retrieved = await retrieve(loop.conversation, search, request.queries, intent=request.purpose, most=most)
        if not retrieved.ok:
            loop.forget(call)
        return await distil(
            question, request, retrieved, context, turn=loop.calls.used, window=self.window, reply=self.system1_reply
        )

    def bound(self, sizes: Sizes) -> dict[str, Usage]:
        """At most so much by role. Of any two bins, the documents of both would not fit into one."""
        documents = self.queries * max(self.pages, self.papers)
        room = max(self.window // 2, self.window - sizes.prompt)
        bins = min(documents, 2 * documents * sizes.result // room + 1)
        notes = bins * sizes.reply
        prompt_tokens = bins * sizes.prompt + documents * min(sizes.result, self.window)
        calls = self.max_turns
        return {
            "system2": sizes.bound_loop(calls, notes),
            "system1": Usage(calls * bins, calls * prompt_tokens, calls * bins * sizes.reply),
        }
