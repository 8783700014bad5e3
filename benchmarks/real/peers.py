"""Ask questions of an agent library other than hira, in an environment of its own that has it installed.

    VENV_PYTHON peers.py LIBRARY RECORDER_URL MODEL

reads questions, one JSON string a line, and prints a JSON object for each: its `answer`, or the `error` that ended it.
Each library gets one search tool and is otherwise used as its documentation shows.
"""

import json
import sys
from collections.abc import Callable
from urllib.parse import quote
from urllib.request import urlopen

STEPS = 6


def openai_agents(url: str, model: str) -> Callable[[str], str]:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    @function_tool
    def search(query: str) -> str:
        """Search the documents for passages that fit the query.

        Args:
            query: What to look for.
        """
        return found(url, query)

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", timeout=900, max_retries=0)
    agent = Agent(
        name="Assistant",
        instructions="Answer the question from the documents. Use the search tool to find passages.",
        model=OpenAIChatCompletionsModel(model=model, openai_client=client),
        tools=[search],
    )
    return lambda question: str(Runner.run_sync(agent, question, max_turns=STEPS).final_output)


def smolagents(url: str, model: str) -> Callable[[str], str]:
    from smolagents import CodeAgent, OpenAIServerModel, tool

    @tool
    def search(query: str) -> str:
        """Search the documents for passages that fit the query.

        Args:
            query: What to look for.
        """
        return found(url, query)

    served = OpenAIServerModel(model_id=model, api_base=f"{url}/v1", api_key="none", client_kwargs={"timeout": 900})
    agent = CodeAgent(tools=[search], model=served, max_steps=STEPS, verbosity_level=0)
    return lambda question: str(agent.run(question))


def found(url: str, query: str) -> str:
    with urlopen(f"{url}/search?q={quote(query)}") as reply:  # noqa: S310 - the recorder on this machine
        return str(reply.read().decode())


LIBRARIES = {"openai-agents": openai_agents, "smolagents": smolagents}

if __name__ == "__main__":
    library, address, name = sys.argv[1:]
    ask = LIBRARIES[library](address, name)
    for line in sys.stdin:
        try:
            told = {"answer": ask(json.loads(line))}
        except Exception as error:  # noqa: BLE001 - what ended the library's run is its result
            told = {"answer": "", "error": f"{type(error).__name__}: {error}"[:500]}
        print("\x1e" + json.dumps(told), flush=True)
