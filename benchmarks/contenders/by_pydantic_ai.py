"""An agent of pydantic-ai with one tool."""

from contextlib import asynccontextmanager

from measure import ANSWER, QUESTION, SYSTEM, lookup
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


@asynccontextmanager
async def open_asker(base_url, _many, _option):
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=base_url, api_key="k"))
    agent = Agent(model, instructions=SYSTEM, tools=[lookup])
    talker = Agent(model)

    async def ask():
        assert (await agent.run(QUESTION)).output == ANSWER

    async def stream(tell):
        async with talker.run_stream(QUESTION) as reply:
            async for text in reply.stream_text(delta=True, debounce_by=None):
                tell(text)

    yield ask, stream
