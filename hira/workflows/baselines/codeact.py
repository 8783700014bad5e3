"""CodeAct (HiRA, appendix): every action is Python. Documents are read by it too: what a program prints is cited."""

from collections.abc import Mapping
from dataclasses import dataclass

from hira.agents.baselines.alone import CODEACT, REASONER, begin_loop, run_to_answer
from hira.agents.expert import CALLS
from hira.agents.run_context import RunContext
from hira.core.errors import UsageError
from hira.core.policy import Usage
from hira.workflows.bound import Sizes, bound_loop


@dataclass(frozen=True)
class CodeAct:
    """`calls` of Python at most (as HiRA's experts: 10)."""

    calls: int = CALLS
    name: str = "codeact"

    @property
    def roles(self) -> frozenset[str]:
        return frozenset({REASONER})

    @property
    def takes_tools(self) -> frozenset[str]:
        return frozenset({REASONER})

    async def run(self, question: str, team: RunContext) -> str:
        if team.tools.python is None:
            fix = "hira doctor tells why code is not run on this machine"
            raise UsageError("this workflow needs Python, and this run has none", fix=fix)
        async with team.tools.python("1") as python:
            tools = [tool for tool in (python, team.tools.files, *team.tools.extra_for(REASONER)) if tool]
            return await run_to_answer(begin_loop(team, CODEACT, tools, question, limit=self.calls), question)

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        return {REASONER: bound_loop(self.calls, sizes.result, sizes)}
