"""Run OpenEnv's own harness over a session of hira, with a scripted model, and print what came of it as JSON."""

import json
import sys
from typing import Any

from hira_session import HiraSessions
from openenv.core.harness import MCPHarnessAdapter, ModelStepResult
from openenv.core.llm_client import LLMResponse, ToolCall

from hira import Hira

folder, answer = sys.argv[1:]


def step(messages: list[dict[str, Any]], tools: list[Any], sampling: dict[str, Any]) -> ModelStepResult:
    """A model that searches first, and then answers."""
    if messages[-1]["role"] == "tool":
        return ModelStepResult(LLMResponse(answer), [1], [2, 3], [-0.1, -0.2])
    call = ToolCall("1", tools[0].name, {"query": "river Arnby"})
    return ModelStepResult(LLMResponse("", [call]), [1], [2], [-0.1])


with Hira("offline", docs=folder, journal=False) as hira:
    session = HiraSessions(hira).create([{"role": "user", "content": "Which river flows through Arnby?"}], 1, "e1")
    result = MCPHarnessAdapter().run_white_box(step, session)
    verified = session.verify(result.messages)
    session.close()
record = {
    "reward": verified.env_reward,
    "metrics": verified.metrics,
    "tools": [tool.name for tool in session.list_tools()],
}
shown = next(message["content"] for message in result.messages if message["role"] == "tool")
sys.stdout.write(json.dumps({**record, "shown": shown, "tokens": result.completion_ids}))
