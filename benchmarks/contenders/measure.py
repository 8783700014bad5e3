"""One contender in a process of its own, told on stdin what to measure. It runs where nothing but the contender is.

    python measure.py NAME BASE_URL first      prints the CPU time when the first piece of text streams in, and ends
    python measure.py NAME BASE_URL serve N    answers lines of stdin with lines of JSON; N questions at once at most

A contender is a module of this folder with `open_asker(base_url, many, option)`, an asynchronous context that yields
two coroutine functions: `ask()` asks a question with one tool, `stream(tell)` hands the text of a reply to `tell` as it
comes.
"""

import asyncio
import os
import sys
import time
from importlib import import_module

SETTLED = 0.8
"""Seconds in which what a contender does beside the answer, such as recording it, comes to an end. They are waited for
and cost no CPU time."""
SYSTEM, QUESTION, ANSWER = "You answer questions with the tool.", "What is it?", "The answer is 42."


async def lookup(query: str) -> str:
    """Look something up."""
    return f"For {query}, the answer is 42."


SPEC = {
    "type": "function",
    "function": {
        "name": "lookup",
        "description": "Look something up.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}


def opened(name, base_url, many):
    """The contender's context; `name` may have an option behind a colon, which the contender reads."""
    module, _, option = name.partition(":")
    return import_module(module).open_asker(base_url, many, option)


async def first(name, base_url):
    async with opened(name, base_url, 1) as (_, stream):

        def tell(text):
            if text:
                os.write(1, f"{time.process_time()}\n".encode())
                os._exit(0)

        await stream(tell)


def resident_kb():
    from pathlib import Path  # not before the first text of a contender that does without

    return int(Path("/proc/self/status").read_text(encoding="ascii").split("VmRSS:")[1].split()[0])


async def cpu(ask, _stream, questions):
    """CPU seconds of so many questions, one after the other."""
    began = time.process_time()
    for _ in range(questions):
        await ask()
    await asyncio.sleep(SETTLED)
    return time.process_time() - began


async def wall(ask, _stream, questions):
    """Seconds until so many questions at once are answered, and the CPU seconds that they took."""
    began, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(ask() for _ in range(questions)))
    took = time.perf_counter() - began
    await asyncio.sleep(SETTLED)
    return [took, time.process_time() - used]


async def chunks(_ask, stream, replies):
    """CPU seconds for each word of so many replies that stream in, a word a chunk."""
    words = 0

    def tell(text):
        nonlocal words
        words += len(text.split()) if text else 0

    began = time.process_time()
    for _ in range(replies):
        await stream(tell)
    return (time.process_time() - began) / words


async def memory(ask, _stream, questions):
    """kB of resident memory for each of so many questions that wait for a reply."""
    await ask()
    before = resident_kb()
    asked = [asyncio.ensure_future(ask()) for _ in range(questions)]
    await asyncio.sleep(2.5)
    waiting = sum(not one.done() for one in asked)
    after = resident_kb()
    await asyncio.gather(*asked)
    assert waiting == questions, f"{questions - waiting} had their answers already"
    return (after - before) / questions


PARTS = {"cpu": cpu, "wall": wall, "chunks": chunks, "memory": memory}


async def serve(name, base_url, many):
    import json

    async with opened(name, base_url, many) as (ask, stream):
        for line in sys.stdin:
            part, number = line.split()
            print(json.dumps(await PARTS[part](ask, stream, int(number))), flush=True)


if __name__ == "__main__":
    sys.modules["measure"] = sys.modules["__main__"]
    told, where, how = sys.argv[1:4]
    asyncio.run(first(told, where) if how == "first" else serve(told, where, int(sys.argv[4])))
