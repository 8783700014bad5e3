"""`auto`: one search and one call, and the hierarchy only where the check does not confirm the answer."""

from dataclasses import dataclass

from hira.agents.planner import Attempt
from hira.agents.run_context import RunContext
from hira.agents.verifier import check_answer
from hira.core.policy import Usage
from hira.evidence import is_accepted, is_refusal
from hira.evidence.verdicts import Relevance
from hira.workflows.baselines.single import Rag
from hira.workflows.bound import Sizes
from hira.workflows.hira import HiRA


@dataclass(frozen=True)
class Auto(HiRA):
    """`rag` first, with as many `pages`. If the check does not confirm its answer, `hira` continues with the passages
    that were read; it has all options of `hira`, and so inherits them.

    A run without a search, with attached files, with tools of the user or with subtasks that somebody approves starts
    with `hira`, because `rag` has none of these.
    """

    pages: int = 10
    name: str = "auto"

    @property
    def roles(self) -> frozenset[str]:
        return super().roles | Rag.roles

    async def run(self, question: str, context: RunContext, attempt: Attempt | None = None) -> str:
        tools = context.tools
        if tools.search is None or tools.extra or tools.scoped or context.files or context.options.approve:
            return await super().run(question, context, attempt)
        rag = Rag(self.pages)
        loop = rag.begin(context)
        passages = await rag.read(loop, question)
        answer = await rag.answer(loop, question, passages)
        if context.stopped or await is_confirmed(answer, context):
            return answer
        context.note("the answer after one search is not confirmed: hira continues with the passages")
        return await super().run(question, context, Attempt(answer, passages))

    def bound(self, sizes: Sizes) -> dict[str, Usage]:
        return {**super().bound(sizes), **Rag(self.pages).bound(sizes)}


async def is_confirmed(answer: str, context: RunContext) -> bool:
    """Return whether the check accepts an answer to the run's question. Without a check, every answer but a refusal
    counts."""
    if not answer or is_refusal(answer):
        return False
    if context.options.verify == "off" and not context.options.verifier:
        return True
    context.rollout.answer = answer
    checked = await check_answer(context)
    return is_accepted(checked.citations) and checked.answers is Relevance.YES
