"""WebThinker (2504.21776): reasoning that sends an explorer to search and click; as a report, it drafts on the way."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hira.agents.baselines.alone import REASONER, begin_loop, require_tool, run_to_answer
from hira.agents.baselines.webthinker import (
    CHECK,
    DOCUMENTS,
    LONGEST,
    REPORTS,
    REWRITE,
    SEARCH,
    WEBTHINKER,
    WRITE,
    WRITER,
    Article,
    send_explorer,
)
from hira.agents.coordinator import Coordinator
from hira.agents.expert import CALLS
from hira.agents.experts import DeepSearch
from hira.agents.run_context import RunContext
from hira.core.policy import Usage
from hira.policies.dialects import Call
from hira.workflows.bound import Sizes, bound_loop, times


@dataclass(frozen=True)
class WebThinker:
    """`searches` of a question at most (the published code: 20), each explored with 10 calls; with `report`, at most so
    many `interactions` of all kinds (the published code: 80), and the answer is the report."""

    approves: ClassVar[bool] = True

    searches: int = 20
    report: bool = False
    interactions: int = 80
    name: str = "webthinker"

    @property
    def roles(self) -> frozenset[str]:
        return frozenset({REASONER, DeepSearch.name, WRITER})

    @property
    def takes_tools(self) -> frozenset[str]:
        return frozenset()

    async def run(self, question: str, team: RunContext) -> str:
        require_tool(team.tools.search, "a search")
        explorer = Coordinator(team, [DeepSearch()], transfer=False, remember=False)
        article = Article(team, question)
        tools = [SEARCH, WRITE, CHECK, REWRITE] if self.report else [SEARCH]
        limit = self.interactions if self.report else self.searches
        loop = begin_loop(team, REPORTS if self.report else WEBTHINKER, tools, question, limit=limit)

        async def perform(call: Call) -> str:
            return await (
                send_explorer(explorer, loop, call) if call.name == SEARCH.name else article.perform(call, loop)
            )

        answer = await run_to_answer(loop, question, perform)
        return article.text or answer

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        limit = self.interactions if self.report else self.searches
        rows = {
            REASONER: bound_loop(limit, sizes.reply, sizes),
            DeepSearch.name: times(bound_loop(CALLS, sizes.result, sizes), limit),
        }
        if self.report:
            written = Usage(1, sizes.prompt + DOCUMENTS * LONGEST + limit * sizes.reply, limit * sizes.reply)
            rows[WRITER] = times(written, limit)
        return rows
