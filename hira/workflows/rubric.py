"""Writing a rubric for a query, in one turn: what is trained when a rubric generator is (rubrics paper, section
3.3)."""

from collections.abc import Mapping
from dataclasses import dataclass

from hira.evidence.references import language
from hira.messages import user
from hira.policy import Usage
from hira.rewards.hybrid import WRITER
from hira.rewards.rubric import FEWEST, MOST
from hira.rewards.rubric_writer import GENERATE
from hira.team import Team
from hira.untrusted import said
from hira.workflows.bound import Sizes, looped


@dataclass(frozen=True)
class RubricWriting:
    """The same prompt as `hira rubric` sends. Nothing holds the reply to a schema and nothing is asked again: in
    training a rubric that cannot be read is paid for as one, and sampling is the model's own."""

    name: str = "rubric"

    @property
    def roles(self) -> frozenset[str]:
        return frozenset({WRITER})

    @property
    def takes_tools(self) -> frozenset[str]:
        return frozenset()

    async def run(self, question: str, team: Team) -> str:
        prompt = GENERATE.fill(query=said(question), fewest=FEWEST, most=MOST, language=language(question))
        return await team.conversation(WRITER).reply(user(prompt))

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        return {WRITER: looped(0, 0, sizes)}
