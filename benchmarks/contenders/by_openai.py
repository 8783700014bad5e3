"""The openai SDK as its documentation shows it."""

import json
from contextlib import asynccontextmanager

import openai
from measure import ANSWER, QUESTION, SPEC, SYSTEM, lookup


@asynccontextmanager
async def open_asker(base_url, _many, _option):
    async with openai.AsyncOpenAI(base_url=base_url, api_key="k", max_retries=0, timeout=300) as client:

        async def ask():
            messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
            while True:
                reply = await client.chat.completions.create(model="m", messages=messages, tools=[SPEC])
                message = reply.choices[0].message
                if not message.tool_calls:
                    assert message.content == ANSWER
                    return
                messages.append(message.model_dump(exclude_none=True))
                for call in message.tool_calls:
                    seen = await lookup(**json.loads(call.function.arguments))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": seen})

        async def stream(tell):
            messages = [{"role": "user", "content": QUESTION}]
            async for chunk in await client.chat.completions.create(model="m", messages=messages, stream=True):
                if chunk.choices:
                    tell(chunk.choices[0].delta.content)

        yield ask, stream
