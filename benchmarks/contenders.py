"""One question with tool turns, asked in four ways: hira with everything included, and hand-written loops."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp
import httpx
import openai
from apart import apart

from hira.agents.loop import Loop
from hira.agents.run_context import RoleConfig, RunContext
from hira.core.events import Events
from hira.core.messages import system, user
from hira.policies import open_policy
from hira.tools import Observation, tool

Ask = Callable[[int], Awaitable[None]]
Send = Callable[[dict[str, Any]], Awaitable[Mapping[str, Any]]]

SYSTEM, QUESTION, ANSWER = "You answer questions with the tool.", "What is it?", "The answer is 42."
PATIENCE = 300.0


@tool
async def lookup(query: str) -> Observation:
    "Look something up."
    return Observation(f"found {query}")


@contextmanager
def serving(*, turns: int, delay: float = 0.0) -> Iterator[str]:
    """A scripted endpoint in a process of its own; yields its base URL."""
    with apart("-m", "hira.testing", "--turns", str(turns), "--delay", str(delay)) as base_url:
        yield base_url


@asynccontextmanager
async def hira(base_url: str, _many: int) -> AsyncIterator[Ask]:
    """The loop, a run context, events with a reader, budget and record."""
    policy = open_policy("m", base_url=base_url, api_key="k")

    async def ask(turns: int) -> None:
        seen: list[Any] = []
        context = RunContext({"*": RoleConfig(policy)}, events=Events(seen.append))
        conversation = context.conversation("searcher")
        conversation.say(system(SYSTEM), user(QUESTION))
        step = await Loop(conversation, (lookup,), limit=turns + 1).run()
        assert step.answer == ANSWER

    yield ask
    await policy.aclose()


@asynccontextmanager
async def sdk(base_url: str, _many: int) -> AsyncIterator[Ask]:
    """The openai SDK as its documentation shows it."""
    async with openai.AsyncOpenAI(base_url=base_url, api_key="k", max_retries=0, timeout=PATIENCE) as client:

        async def ask(_turns: int) -> None:
            messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
            while True:
                reply = await client.chat.completions.create(model="m", messages=messages, tools=[lookup.spec])
                message = reply.choices[0].message
                if not message.tool_calls:
                    assert message.content == ANSWER
                    return
                messages.append(message.model_dump(exclude_none=True))
                for call in message.tool_calls:
                    seen = await lookup.run(json.loads(call.function.arguments))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": seen.text})

        yield ask


@asynccontextmanager
async def plain_httpx(base_url: str, many: int) -> AsyncIterator[Ask]:
    limits = httpx.Limits(max_connections=many + 10, max_keepalive_connections=many + 10)
    async with httpx.AsyncClient(limits=limits, timeout=httpx.Timeout(PATIENCE, pool=None)) as client:

        async def send(body: dict[str, Any]) -> Mapping[str, Any]:
            return (await client.post(f"{base_url}/chat/completions", json=body)).json()  # type: ignore[no-any-return]

        yield by_hand(send)


@asynccontextmanager
async def plain_aiohttp(base_url: str, many: int) -> AsyncIterator[Ask]:
    connector = aiohttp.TCPConnector(limit=many + 10)
    timeout = aiohttp.ClientTimeout(PATIENCE)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:

        async def send(body: dict[str, Any]) -> Mapping[str, Any]:
            async with session.post(f"{base_url}/chat/completions", json=body) as reply:
                return await reply.json()  # type: ignore[no-any-return]

        yield by_hand(send)


def by_hand(send: Send) -> Ask:
    """The loop as one would write it over plain HTTP."""

    async def ask(_turns: int) -> None:
        messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
        while True:
            message = (await send({"model": "m", "messages": messages, "tools": [lookup.spec]}))["choices"][0][
                "message"
            ]
            messages.append(message)
            if not message.get("tool_calls"):
                assert message["content"] == ANSWER
                return
            for call in message["tool_calls"]:
                seen = await lookup.run(json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": seen.text})

    return ask


CONTENDERS = {"hira": hira, "openai SDK": sdk, "httpx": plain_httpx, "aiohttp": plain_aiohttp}


def about() -> str:
    """The machine and the versions, in one line."""
    import os
    import platform

    return (
        f"Python {platform.python_version()}, openai {openai.__version__}, httpx {httpx.__version__}, "
        f"aiohttp {aiohttp.__version__}, {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
