"""Many clients at once at `hira serve`, on `offline`: errors, memory, and how long the server's loop is held up.

    python benchmarks/serve.py [--clients 200] [--seconds 60] [--write]

The server runs in this process, the clients in another one; each asks its next question as soon as it has an answer,
every other one as a stream. What the lags are is told in lag.py; they are taken from the first client's connection to
the last one's end. As in `hira serve`, garbage is collected as `short_pauses` says.
"""

import argparse
import asyncio
import json
import platform
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import uvicorn
from batch import DOCUMENTS, resident
from lag import METHOD, lagging

from hira import Settings
from hira.cli.pauses import short_pauses
from hira.serve.app import application

RESULTS = Path(__file__).parent / "results" / "serve.md"
QUESTION = "How long is the river number {}, and who measured it?"


async def served(clients: int, seconds: float) -> list[tuple[str, str]]:
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(model="offline", docs=(DOCUMENTS,), journal=Path(folder) / "journal.sqlite")
        async with application(settings) as app:
            server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=5))
            with short_pauses():
                serving = asyncio.create_task(server.serve(sockets=[listening]))
                async with lagging() as lags:
                    rows = await asked(f"http://127.0.0.1:{listening.getsockname()[1]}", clients, seconds)
                server.should_exit = True
                await serving
    return [*rows, *lags.rows]


async def asked(address: str, clients: int, seconds: float) -> list[tuple[str, str]]:
    """What the clients were told, and the server's memory meanwhile."""
    command = [sys.executable, __file__, "--ask", address, "--clients", str(clients), "--seconds", str(seconds)]
    asking = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    output = asyncio.create_task(asking.communicate())
    memory: list[tuple[str, str]] = []
    for told_as, share in (("a fifth", 1 / 5), ("three fifths", 2 / 5)):
        await asyncio.sleep(seconds * share)
        memory.append((f"resident after {told_as} of the time", f"{resident():.0f} MB"))
    told = json.loads((await output)[0])
    answers = [("answers", f"{told['answered']}"), ("errors", f"{told['failed']}")]
    return [*answers, *memory, ("resident at the end", f"{resident():.0f} MB")]


async def ask(address: str, clients: int, seconds: float) -> None:
    """All clients until the time is over; one line of JSON on stdout."""
    answered = failed = 0
    end = time.monotonic() + seconds

    async def client(number: int) -> None:
        nonlocal answered, failed
        async with httpx.AsyncClient(base_url=address, timeout=120) as http:
            at = 0
            while time.monotonic() < end:
                at += 1
                content = QUESTION.format(number * 1000 + at)
                body = {"model": "rag", "messages": [{"role": "user", "content": content}], "stream": bool(at % 2)}
                reply = await http.post("/v1/chat/completions", json=body)
                if reply.status_code == 200 and 'data: {"error"' not in reply.text:
                    answered += 1
                else:
                    failed += 1

    await asyncio.gather(*map(client, range(clients)))
    print(json.dumps({"answered": answered, "failed": failed}))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure hira serve.")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--ask", default="")
    parser.add_argument("--write", action="store_true", help="write the figures to benchmarks/results/serve.md")
    args = parser.parse_args()
    if args.ask:
        asyncio.run(ask(args.ask, args.clients, args.seconds))
        return
    rows = asyncio.run(served(args.clients, args.seconds))
    shown = "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])
    print(shown)
    if args.write:
        made = f"`python benchmarks/serve.py --write`, Python {platform.python_version()} on {platform.system()}"
        what = f"{args.clients} clients for {args.seconds:.0f} s, workflow `rag`, `offline`, with the journal"
        RESULTS.write_text(f"# hira serve\n\n{made}: {what}. {METHOD}\n\n{shown}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
