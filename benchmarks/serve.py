"""Many clients at once at `hira serve`, on `offline`: errors, memory, and how long the server's loop is held up.

    python benchmarks/serve.py [--clients 200] [--seconds 60] [--hostile] [--write]

The server runs in this process, the clients in another one; each asks its next question as soon as it has an answer,
every other one as a stream. With `--hostile` one more client has its runs read hostile pages all the time: each pattern
of hostile.py, a megabyte of it, as HTML and as plain text. A scripted reader opens the page and answers with a part of
it, and the client then loads the run whole, with the text of its sources, as the live page does. lag.py explains the
lags; they are taken from the first client's connection to the last one's end. As in `hira serve`, garbage is
collected as `short_pauses` says.
"""

import argparse
import asyncio
import json
import platform
import subprocess
import sys
import tempfile
import time
from itertools import cycle
from pathlib import Path

import httpx
from apart import serve_app
from batch import DOCUMENTS, QUESTION, resident
from lag import METHOD, lagging

from hira import Settings
from hira.cli.many import short_pauses
from hira.core.policy import Completion, Request, Watch
from hira.policies import open_policy
from hira.server.app import application
from hira.testing import FakeWeb, calling
from hira.testing.web import Served

RESULTS = Path(__file__).parent / "results" / "serve.md"
READ = "What does this page say? "
HOSTILE = """Meanwhile one more client's runs read hostile pages,
a megabyte each (hostile.py has the patterns): a child process parses them and checks claims on them. """
MEGABYTE, ANSWERED = 1_000_000, 20_000


def hostile_web() -> FakeWeb:
    """Each pattern of hostile.py as a page and as plain text."""
    from hostile import PATTERNS

    pages: dict[str, Served] = {}
    for at, (head, unit) in enumerate(PATTERNS):
        text = (head + unit * (MEGABYTE // len(unit)))[:MEGABYTE]
        page = (
            f"<title>{text[: MEGABYTE // 10]}</title><p>A long and readable sentence of the harbour.</p><p>{text}</p>"
        )
        pages |= {f"/{at}.html": Served(page), f"/{at}.txt": Served(text, "text/plain; charset=utf-8")}
    return FakeWeb(pages, hits={})


class Reader:
    """Opens the page that a question names and answers with a part of it; other questions go to `offline`."""

    model = "reader"

    def __init__(self) -> None:
        self.offline = open_policy("offline")

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        _, asked, rest = "\n".join(message.text for message in request.messages).partition(READ)
        if not asked:
            return await self.offline.complete(request, watch)
        last = request.messages[-1]
        if last.role != "tool":
            return calling("browse", url=rest.split()[0], intent="what it says")
        return Completion(f"It says {last.text[:ANSWERED]} [s1]. The harbour has a sentence [s1].")

    async def aclose(self) -> None:
        await self.offline.aclose()


async def served(clients: int, seconds: float, *, hostile: bool = False) -> list[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as folder, hostile_web() if hostile else FakeWeb({}, hits={}) as web:
        settings = Settings(model="offline", docs=(DOCUMENTS,), journal=Path(folder) / "journal.sqlite")
        if hostile:
            more = {"search": "documents,searxng", "searxng_url": web.url, "allowed_hosts": (web.host,)}
            settings = settings.with_values(more, "this benchmark")
        policies = {"reasoner": Reader()} if hostile else None
        async with application(settings, policies=policies) as app:
            with short_pauses():
                serving = serve_app(app, log_level="error", timeout_graceful_shutdown=5)
                async with serving as (host, port), lagging() as lags:
                    rows = await asked(f"http://{host}:{port}", clients, seconds, web.url if hostile else "")
    return [*rows, *lags.rows]


async def asked(address: str, clients: int, seconds: float, web: str) -> list[tuple[str, str]]:
    """What the clients were told, and the server's memory meanwhile."""
    command = [sys.executable, __file__, "--ask", address, "--clients", str(clients), "--seconds", str(seconds)]
    command += ["--web", web]
    asking = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    output = asyncio.create_task(asking.communicate())
    memory: list[tuple[str, str]] = []
    for told_as, share in (("a fifth", 1 / 5), ("three fifths", 2 / 5)):
        await asyncio.sleep(seconds * share)
        memory.append((f"resident after {told_as} of the time", f"{resident():.0f} MB"))
    told = json.loads((await output)[0])
    answers = [("answers", f"{told['answered']}"), ("errors", f"{told['failed']}")]
    if web:
        answers.append(("hostile pages read", f"{told['read']}, {len(told['pages'])} different ones"))
    return [*answers, *memory, ("resident at the end", f"{resident():.0f} MB")]


async def ask(address: str, clients: int, seconds: float, web: str) -> None:
    """All clients until the time is over; one line of JSON on stdout."""
    answered = failed = 0
    read: list[str] = []
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

    async def hostile() -> None:
        from hostile import PATTERNS

        nonlocal failed
        pages = cycle(f"{web}/{at}.{kind}" for at in range(len(PATTERNS)) for kind in ("html", "txt"))
        async with httpx.AsyncClient(base_url=address, timeout=120) as http:
            for url in pages:
                if time.monotonic() >= end:
                    return
                reply = await http.post("/api/runs", json={"question": f"{READ}{url}", "workflow": "react"})
                run = reply.json()["id"]
                async with http.stream("GET", f"/api/runs/{run}/events") as events:
                    async for _ in events.aiter_bytes():
                        pass
                whole = (await http.get(f"/api/runs/{run}")).json()
                read.append(url) if whole["texts"] else print(url, whole["status"], whole["error"], file=sys.stderr)
                failed += not whole["texts"]

    await asyncio.gather(*map(client, range(clients)), *([hostile()] if web else []))
    print(json.dumps({"answered": answered, "failed": failed, "read": len(read), "pages": list(set(read))}))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure hira serve.")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--hostile", action="store_true", help="one more client has its runs read hostile pages")
    parser.add_argument("--ask", default="", help=argparse.SUPPRESS)
    parser.add_argument("--web", default="", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="write the figures to benchmarks/results")
    args = parser.parse_args()
    if args.ask:
        asyncio.run(ask(args.ask, args.clients, args.seconds, args.web))
        return
    rows = asyncio.run(served(args.clients, args.seconds, hostile=args.hostile))
    shown = "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])
    print(shown)
    if args.write:
        flag = " --hostile" if args.hostile else ""
        made = f"`python benchmarks/serve.py{flag} --write`, Python {platform.python_version()} on {platform.system()}"
        what = f"{args.clients} clients for {args.seconds:.0f} s, workflow `rag`, `offline`, with the journal"
        page = f"# hira serve\n\n{made}: {what}. {HOSTILE if args.hostile else ''}{METHOD}\n\n{shown}\n"
        place = RESULTS.with_name("serve_hostile.md") if args.hostile else RESULTS
        place.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
