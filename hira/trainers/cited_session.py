"""hira's documents and verdicts for agents of other frameworks: tools whose results have ids, and a reward that checks
what the answer cites (examples/verifiers, examples/openenv)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hira.agents.calls import use
from hira.agents.run_context import Conversation, RunContext
from hira.core.prompts import Prompt
from hira.core.tool import Tool
from hira.evaluation.rewards.answers import RolloutScore
from hira.runtime.session import Session
from hira.trainers.rewards import score_citations
from hira.workflows.workflow import rollout

ROLE = "agent"
INSTRUCTIONS = Prompt(__file__, "cited_agent").fill()
"""The instructions for an agent: search, and cite."""


@dataclass(frozen=True, slots=True)
class CitedSession:
    """One question's session of somebody else's agent. Begin its prompt with `INSTRUCTIONS`."""

    context: RunContext
    conversation: Conversation

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that search documents, or the web if the settings say so, and open their results."""
        known = (self.context.tools.search, self.context.tools.browse)
        return [tool for tool in known if tool is not None]

    async def call(self, name: str, arguments: Mapping[str, object]) -> str:
        """Return what the tool shows the model: passages with the ids that an answer may cite, or what went wrong."""
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            return f"There is no tool {name!r}; there are {', '.join(tool.name for tool in self.tools)}."
        return (await use(self.conversation, tool, arguments)).text

    async def score(self, answer: str) -> RolloutScore:
        """Check the answer against its sources, and return the reward for its citations."""
        return score_citations(await rollout(_Given(answer), self.context.rollout.question, self.context))


@dataclass(frozen=True, slots=True)
class _Given:
    """The workflow of an answer that exists already."""

    answer: str
    name: str = "given"

    async def run(self, question: str, context: RunContext) -> str:
        del question, context
        return self.answer


@asynccontextmanager
async def open_cited_session(session: Session, run: str, question: str) -> AsyncIterator[CitedSession]:
    """Open the session of a question; `session` is that of a `Hira`: `await hira.open_session()`."""
    async with session.open_context(run, question, (), ()) as context:
        yield CitedSession(context, context.conversation(ROLE))
