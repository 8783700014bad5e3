"""The loop as one would write it over aiohttp."""

import json
from contextlib import asynccontextmanager

import aiohttp
from by_httpx import PATIENCE, by_hand
from measure import QUESTION


@asynccontextmanager
async def open_asker(base_url, many, _option):
    connector = aiohttp.TCPConnector(limit=many + 10)
    url = f"{base_url}/chat/completions"
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(PATIENCE)) as session:

        async def send(body):
            async with session.post(url, json=body) as reply:
                return await reply.json()

        async def stream(tell):
            body = {"model": "m", "messages": [{"role": "user", "content": QUESTION}], "stream": True}
            async with session.post(url, json=body) as reply:
                async for line in reply.content:
                    if line.startswith(b"data: {") and (choices := json.loads(line[6:])["choices"]):
                        tell(choices[0]["delta"].get("content"))

        yield by_hand(send), stream
