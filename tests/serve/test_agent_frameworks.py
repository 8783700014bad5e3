"""Agents of other frameworks, with hira as their model. Needs `pydantic-ai-slim[openai]` and `openai-agents`."""

from collections.abc import Iterator
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from serving import Served, served

from hira.core.policy import Request
from hira.runtime.settings import Settings
from hira.testing import Endpoint

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]  # their own imports warn
needs_pydantic_ai = pytest.mark.skipif(find_spec("pydantic_ai") is None, reason="pydantic-ai is not installed")
needs_agents = pytest.mark.skipif(
    "openai-agents" not in packages_distributions().get("agents", []), reason="openai-agents is not installed"
)

ASKED = "How high is the tower of Alta?"
SAID = "The tower of Alta is 31 metres high. [s1]"


class Tower(BaseModel):
    """What is known of a tower."""

    name: str
    height: int


def reply(request: Request) -> str:
    wants_value = request.schema or "Reply with the JSON object only." in request.messages[-1].text
    return '{"name": "Alta", "height": 31}' if wants_value else SAID


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "alta.txt").write_text("The tower of Alta is 31 metres high.\n", encoding="utf-8")
    with Endpoint(reply) as endpoint:
        settings = Settings(model="m", base_url=endpoint.base_url, api_key="k", docs=(docs,), verify="lexical")
        with served(settings) as running:
            yield running


def open_pydantic_ai_model(server: Served, api: str) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    made = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}[api]
    return made("rag", provider=OpenAIProvider(base_url=f"{server.url}/v1", api_key="any"))


@needs_pydantic_ai
@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("form", ["text", "a tool", "a schema", "any JSON"])
async def test_an_agent_of_pydantic_ai_answers_in_every_form_and_follows_up(
    server: Served, api: str, form: str
) -> None:
    from pydantic_ai import Agent, NativeOutput, PromptedOutput

    kinds: dict[str, Any] = {
        "text": str,
        "a tool": Tower,
        "a schema": NativeOutput(Tower),
        "any JSON": PromptedOutput(Tower),
    }
    agent: Any = Agent(open_pydantic_ai_model(server, api), output_type=kinds[form], instructions="Be brief.")
    first = await agent.run(ASKED)
    second = await agent.run(ASKED, message_history=first.all_messages())
    async with agent.run_stream(ASKED) as stream:
        streamed = await stream.get_output()
    assert [first.output, second.output, streamed] == [SAID if form == "text" else Tower(name="Alta", height=31)] * 3


@needs_pydantic_ai
async def test_an_agent_with_tools_of_its_own_is_refused_with_what_to_do(server: Served) -> None:
    from pydantic_ai import Agent

    agent = Agent(open_pydantic_ai_model(server, "chat"))
    agent.tool_plain(lambda: "4 degrees", name="weather")
    with pytest.raises(Exception, match="hira calls only its own tools; remove them"):
        await agent.run(ASKED)


@needs_agents
@pytest.mark.parametrize("model", ["OpenAIChatCompletionsModel", "OpenAIResponsesModel"])
@pytest.mark.parametrize("output", [None, Tower])
async def test_an_agent_of_the_agents_sdk_answers_streams_and_follows_up(
    server: Served, model: str, output: type[Tower] | None
) -> None:
    import agents

    agents.set_tracing_disabled(disabled=True)
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any") as client:
        agent: Any = agents.Agent(
            name="reader", instructions="Be brief.", model=getattr(agents, model)("rag", client), output_type=output
        )
        first = await agents.Runner.run(agent, ASKED)
        second = await agents.Runner.run(agent, [*first.to_input_list(), {"role": "user", "content": ASKED}])
        streamed = agents.Runner.run_streamed(agent, ASKED)
        async for _ in streamed.stream_events():
            pass
    expected = Tower(name="Alta", height=31) if output else SAID
    assert [first.final_output, second.final_output, streamed.final_output] == [expected] * 3
