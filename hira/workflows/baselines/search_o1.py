"""Search-o1 (2501.05366): reasoning that searches by itself; each result is condensed for it before it is inserted."""

from collections.abc import Mapping
from dataclasses import dataclass

from hira.agents.baselines.alone import REASONER, begin_loop, require_tool, run_to_answer
from hira.agents.baselines.search_o1 import EARLIER, PAGES, READER, SEARCH_O1, search_and_condense
from hira.agents.run_context import RunContext
from hira.core.policy import Usage
from hira.policies.dialects import Call
from hira.workflows.bound import Sizes, bound_loop, times


@dataclass(frozen=True)
class SearchO1:
    """`searches` at most (the published code's default: 10)."""

    searches: int = 10
    name: str = "search-o1"

    @property
    def roles(self) -> frozenset[str]:
        return frozenset({REASONER, READER})

    @property
    def takes_tools(self) -> frozenset[str]:
        return frozenset()

    async def run(self, question: str, team: RunContext) -> str:
        search = require_tool(team.tools.search, "a search")
        loop = begin_loop(team, SEARCH_O1, [search], question, limit=self.searches)

        async def perform(call: Call) -> str:
            return await search_and_condense(loop, call, question)

        return await run_to_answer(loop, question, perform)

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        """The reader is asked once a search; it is shown all that the search brought."""
        read = Usage(1, sizes.prompt + EARLIER + (PAGES + 1) * sizes.result, sizes.reply)
        return {REASONER: bound_loop(self.searches, sizes.reply, sizes), READER: times(read, self.searches)}
