"""An agent of openai-agents with one tool."""

from contextlib import asynccontextmanager

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from measure import ANSWER, QUESTION, SYSTEM, lookup
from openai import AsyncOpenAI

set_tracing_disabled(disabled=True)


@asynccontextmanager
async def open_asker(base_url, _many, _option):
    async with AsyncOpenAI(base_url=base_url, api_key="k", max_retries=0, timeout=300) as client:
        model = OpenAIChatCompletionsModel("m", client)
        agent = Agent(name="a", instructions=SYSTEM, model=model, tools=[function_tool(lookup)])
        talker = Agent(name="t", model=model)

        async def ask():
            assert (await Runner.run(agent, QUESTION)).final_output == ANSWER

        async def stream(tell):
            async for event in Runner.run_streamed(talker, QUESTION).stream_events():
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                    tell(event.data.delta)

        yield ask, stream
