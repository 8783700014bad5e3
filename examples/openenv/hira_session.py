"""hira's documents as a session of OpenEnv: tools for any of its harnesses, and the verdicts on citations as reward.

    pip install . "openenv-core>=0.3,<0.4"

`HiraSessions(hira)` is a `ResourceSessionFactory`, as OpenEnv's harnesses and the experimental AsyncGRPO of TRL take
it: the trainer samples the turns itself, and gets their tokens. A task is a question, or a conversation as TRL's
prompts are. The reward is the share of the answer's claims that a source supports; it needs no known answer.

    from openenv.core.harness import MCPHarnessAdapter
    with Hira("offline", docs="docs", journal=False) as hira:
        session = HiraSessions(hira).create("Which river flows through Arnby?")
        result = MCPHarnessAdapter().run_white_box(model_step, session)
        print(session.verify(result.messages).env_reward)
"""

from contextlib import AsyncExitStack
from typing import Any

from openenv.core.env_server.mcp_types import Tool
from openenv.core.harness import ResourceSession, ResourceSessionFactory, ToolResult, VerifyResult

from hira import Hira
from hira.trainers.cited_session import INSTRUCTIONS, open_cited_session

Message = dict[str, Any]


class HiraSession(ResourceSession):
    """One question. OpenEnv is synchronous, so everything runs in the loop that `hira` keeps in its own thread."""

    def __init__(self, hira: Hira, question: str, name: str) -> None:
        self._hira, self._question, self._stack = hira, question, AsyncExitStack()
        self._session = hira.wait_for(self._open(name))

    async def _open(self, name: str) -> Any:
        opened = open_cited_session(await self._hira.open_session(), name, self._question)
        return await self._stack.enter_async_context(opened)

    def initial_messages(self) -> list[Message]:
        return [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": self._question}]

    def list_tools(self) -> list[Tool]:
        return [
            Tool(name=tool.name, description=tool.description, input_schema=dict(tool.parameters))
            for tool in self._session.tools
        ]

    def call_tool(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(data=self._hira.wait_for(self._session.call(name, arguments)))

    def verify(self, transcript: list[Message], final_state: Any | None = None) -> VerifyResult:
        """Check the last words of the assistant against what this session has read."""
        del final_state
        replies = [message.get("content") or "" for message in transcript if message["role"] == "assistant"]
        score = self._hira.wait_for(self._session.score(replies[-1] if replies else ""))
        return VerifyResult(env_reward=score.value, done=True, metrics=dict(score.parts))

    def close(self) -> None:
        self._hira.wait_for(self._stack.aclose())


class HiraSessions(ResourceSessionFactory):
    """Makes a session for each rollout; `hira` has the documents, and is closed by its owner."""

    def __init__(self, hira: Hira) -> None:
        self._hira = hira

    def create(self, task: Any, seed: int | None = None, episode_id: str | None = None) -> HiraSession:
        question = task if isinstance(task, str) else task[-1]["content"]
        return HiraSession(self._hira, question, episode_id or f"openenv-{seed or 0}")
