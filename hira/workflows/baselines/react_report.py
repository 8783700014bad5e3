"""The ReAct report workflow, with which MaMs is compared (MaMs, appendix C.10)."""

from dataclasses import dataclass
from typing import ClassVar

from hira.agents.calls import SEARCHES
from hira.agents.loop import Loop
from hira.agents.run_context import RunContext, format_files
from hira.core.concurrency import together
from hira.core.errors import UsageError
from hira.core.messages import user
from hira.core.policy import Usage
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evidence.references import language, without_references
from hira.policies.dialects import Call
from hira.workflows.baselines.search_o1 import READER, bound_reader, search_and_condense
from hira.workflows.bound import Sizes
from hira.workflows.mams import collect_tools

REACT_REPORT = Prompt(__file__, "react_report")
CLOSE = Prompt(__file__, "remarks", "react_report_close")


@dataclass(frozen=True)
class ReActReport:
    """Search, then write, all in one conversation. `max_turns` and `several` calls a turn are the paper's (MaMs,
    appendix D). The last turn is the report. With `condense` the role `reader` opens what a search finds and condenses
    it, as the paper summarises results for ReAct alone (section 4.1); otherwise the results are extracts."""

    roles: ClassVar[frozenset[str]] = frozenset({"report", READER})
    takes_tools: ClassVar[frozenset[str]] = frozenset({"report"})

    max_turns: int = 10
    several: int = 5
    condense: bool = False
    name: str = "react-report"

    def __post_init__(self) -> None:
        if self.max_turns < 2 or self.several < 1:
            raise UsageError("a report takes at least two turns and one call", fix="the last turn writes it")

    async def run(self, question: str, context: RunContext) -> str:
        tools = collect_tools(context, "report")
        conversation = context.conversation("report")
        limit = self.max_turns * self.several
        loop = Loop(conversation, tools, limit, self.several, final=True, conclude=lambda why: CLOSE.fill(reason=why))
        instructions = conversation.explain(tools)
        values = {"question": sanitize(question), "files": format_files(context.files), "language": language(question)}
        limits = {"today": context.rollout.today, "several": self.several, "limit": self.max_turns}
        conversation.say(user(REACT_REPORT.fill(call=instructions, **values, **limits)))

        async def perform(call: Call) -> str:
            if self.condense and call.name in SEARCHES:
                return await search_and_condense(loop, call, question)
            return await loop.perform(call)

        step, left = await loop.think(), self.max_turns - 1
        while step.calls:
            results = await together([perform(call) for call in step.calls])
            loop.observe(list(zip(step.calls, results, strict=True)))
            left -= 1
            step = await (loop.think() if left else loop.close(f"all {self.max_turns} turns are used"))
        if not step.answer:
            loop.keep_read()
        return without_references(step.answer)

    def bound(self, sizes: Sizes) -> dict[str, Usage]:
        calls = self.max_turns * self.several
        reader = {READER: bound_reader(calls, sizes)} if self.condense else {}
        return {"report": sizes.bound_loop(calls, sizes.result), **reader}
