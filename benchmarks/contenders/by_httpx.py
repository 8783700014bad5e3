"""The loop as one would write it over httpx."""

import json
from contextlib import asynccontextmanager

import httpx
from measure import ANSWER, QUESTION, SPEC, SYSTEM, lookup

PATIENCE = 300.0


@asynccontextmanager
async def open_asker(base_url, many, _option):
    limits = httpx.Limits(max_connections=many + 10, max_keepalive_connections=many + 10)
    url = f"{base_url}/chat/completions"
    async with httpx.AsyncClient(limits=limits, timeout=httpx.Timeout(PATIENCE, pool=None)) as client:

        async def send(body):
            return (await client.post(url, json=body)).json()

        async def stream(tell):
            body = {"model": "m", "messages": [{"role": "user", "content": QUESTION}], "stream": True}
            async with client.stream("POST", url, json=body) as reply:
                async for line in reply.aiter_lines():
                    if line.startswith("data: {") and (choices := json.loads(line[6:])["choices"]):
                        tell(choices[0]["delta"].get("content"))

        yield by_hand(send), stream


def by_hand(send):
    async def ask():
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
        while True:
            message = (await send({"model": "m", "messages": messages, "tools": [SPEC]}))["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                assert message["content"] == ANSWER
                return
            for call in message["tool_calls"]:
                seen = await lookup(**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": seen})

    return ask
