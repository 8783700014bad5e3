"""Ask questions of an agent library other than hira, in an environment of its own that has it installed.

    VENV_PYTHON peers.py LIBRARY BASE_URL MODEL REPLY_TOKENS

reads questions, one JSON string a line. It prints JSON objects: `{"search": QUERY}`, to which one JSON string with
passages is expected, then for each question its `answer` with `calls` and `tokens`, or the `error` that ended it. Each
library gets one search tool and is otherwise used as its documentation shows.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

STEPS = 6
KEY = os.environ.get("OPENAI_API_KEY", "none")
INSTRUCTIONS = "Answer the question from the documents. Use the search tool to find passages."


def send(message: dict[str, Any]) -> None:
    print("\x1e" + json.dumps(message), flush=True)


def search(query: str) -> str:
    """Search the documents for passages that fit the query.

    Args:
        query: What to look for.
    """
    send({"search": query})
    return str(json.loads(sys.stdin.readline()))


def make_openai_agents(url: str, model: str, reply: int) -> Callable[[str], dict[str, Any]]:
    from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=url, api_key=KEY, timeout=900, max_retries=0)
    agent = Agent(
        name="Assistant",
        instructions=INSTRUCTIONS,
        model=OpenAIChatCompletionsModel(model=model, openai_client=client),
        model_settings=ModelSettings(temperature=0, max_tokens=reply, include_usage=True),
        tools=[function_tool(search)],
    )

    def ask(question: str) -> dict[str, Any]:
        run = Runner.run_sync(agent, question, max_turns=STEPS)
        usage = run.context_wrapper.usage
        return {"answer": str(run.final_output), "calls": usage.requests, "tokens": usage.total_tokens}

    return ask


def make_smolagents(url: str, model: str, reply: int) -> Callable[[str], dict[str, Any]]:
    from smolagents import CodeAgent, OpenAIServerModel, tool

    served = OpenAIServerModel(
        model_id=model, api_base=url, api_key=KEY, client_kwargs={"timeout": 900}, temperature=0, max_tokens=reply
    )
    agent = CodeAgent(tools=[tool(search)], model=served, max_steps=STEPS, verbosity_level=0)

    def ask(question: str) -> dict[str, Any]:
        run = agent.run(question, return_full_result=True)
        return {"answer": str(run.output), "calls": len(run.steps), "tokens": run.token_usage.total_tokens}

    return ask


def make_pydantic_ai(url: str, model: str, reply: int) -> Callable[[str], dict[str, Any]]:
    from pydantic_ai import Agent, UsageLimits
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    served = OpenAIChatModel(model, provider=OpenAIProvider(base_url=url, api_key=KEY))
    settings = {"temperature": 0, "max_tokens": reply, "timeout": 900}
    agent = Agent(served, instructions=INSTRUCTIONS, tools=[search], model_settings=settings)

    def ask(question: str) -> dict[str, Any]:
        run = agent.run_sync(question, usage_limits=UsageLimits(request_limit=STEPS))
        usage = run.usage()
        return {"answer": str(run.output), "calls": usage.requests, "tokens": usage.total_tokens}

    return ask


LIBRARIES = {"openai-agents": make_openai_agents, "smolagents": make_smolagents, "pydantic-ai": make_pydantic_ai}

if __name__ == "__main__":
    library, address, name, longest = sys.argv[1:]
    ask = LIBRARIES[library](address, name, int(longest))
    for line in iter(sys.stdin.readline, ""):
        try:
            outcome = ask(json.loads(line))
        except Exception as error:  # noqa: BLE001 - what ended the library's run is its result
            outcome = {"answer": "", "error": f"{type(error).__name__}: {error}"[:500]}
        send(outcome)
