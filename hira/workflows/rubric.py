"""Writing a rubric for a query, in one turn: what is trained when a rubric generator is (rubrics paper, section
3.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hira.agents.rubrics import FEWEST, GENERATE, MOST, WRITER
from hira.agents.run_context import RunContext
from hira.core.messages import user
from hira.core.policy import Usage
from hira.core.sanitize import sanitize
from hira.evidence.citations import language
from hira.workflows.bound import Sizes, bound_loop


@dataclass(frozen=True)
class RubricWriting:
    """The same prompt as `hira rubric` sends. Nothing holds the reply to a schema and nothing is asked again: in
    training a rubric that cannot be read is paid for as one, and sampling is the model's own."""

    roles: ClassVar[frozenset[str]] = frozenset({WRITER})
    takes_tools: ClassVar[frozenset[str]] = frozenset()

    name: str = "rubric"

    async def run(self, question: str, context: RunContext) -> str:
        prompt = GENERATE.fill(query=sanitize(question), fewest=FEWEST, most=MOST, language=language(question))
        return await context.conversation(WRITER).reply(user(prompt))

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        return {WRITER: bound_loop(0, 0, sizes)}
