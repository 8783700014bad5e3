"""A task set of `verifiers`: hira's documents as tools, and the verdicts on citations as the reward.

Any harness that takes MCP tools can be the agent; hira_harness.py has the commands, and is one that searches itself.
No answers are needed: an answer earns the share of its claims that a source supports which the agent has read.

The tools run in a process of their own. The state has their calls, and the reward repeats them: the same calls to the
same documents give the same sources and ids.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from hira import Hira
from hira.trainers.cited_session import INSTRUCTIONS, open_cited_session


class Calls(vf.State):
    calls: list[tuple[str, dict[str, Any]]] = Field(default_factory=list)


class Documents(vf.TaskConfig, vf.ToolsetConfig):
    docs: str = "docs"
    """The file or folder that the tools search."""

    def open(self) -> Hira:
        return Hira("offline", docs=self.docs, journal=False)


class Library(vf.Toolset[Documents, Calls]):
    TOOL_PREFIX = None

    async def setup(self) -> None:
        hira = await self._exit_stack.enter_async_context(self.config.open())
        opened = open_cited_session(await hira.open_session(), "tools", "")
        self.session = await self._exit_stack.enter_async_context(opened)

    async def _call(self, name: str, **arguments: str) -> str:
        self.state.calls.append((name, arguments))
        return await self.session.call(name, arguments)

    @vf.tool
    async def search(self, query: str) -> str:
        """Search the documents. Results have ids, such as s1, to cite."""
        return await self._call("search", query=query)

    @vf.tool
    async def browse(self, url: str) -> str:
        """Open a document that was found, by its location."""
        return await self._call("browse", url=url)


class CitedTask(vf.Task[vf.TaskData, Calls, Documents]):
    @classmethod
    def toolsets(cls, config: Documents) -> list[vf.Toolset]:
        return [Library(config)]

    @vf.reward
    async def cited(self, trace: vf.Trace) -> float:
        if "hira" in trace.info:  # hira_harness searched by itself, and has checked its answer
            return float(trace.info["hira"]["cited"])
        async with self.config.open() as hira:
            question = self.data.prompt_text
            async with open_cited_session(await hira.open_session(), trace.id, question) as session:
                for name, arguments in trace.state.calls:
                    await session.call(name, arguments)
                score = await session.score(trace.last_reply)
        trace.record_metrics(dict(score.parts))
        return score.value or 0.0


class QuestionsConfig(vf.TasksetConfig):
    questions: Path = Path("questions.jsonl")
    """A file with a `question` on each line, as `hira eval` reads it."""
    task: Documents = Documents()


class HiraDocuments(vf.Taskset[CitedTask, QuestionsConfig]):
    def load(self) -> Iterable[CitedTask]:
        for line in self.config.questions.read_text(encoding="utf-8").splitlines():
            data = vf.TaskData(prompt=json.loads(line)["question"], system_prompt=INSTRUCTIONS)
            yield CitedTask(data, self.config.task)


__all__ = ["HiraDocuments"]

if __name__ == "__main__":  # verifiers starts the tools' process with `python -m hira_documents`
    Library.run()
