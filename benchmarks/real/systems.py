"""What the public questions are asked of: hira's workflows, one call written by hand, and other agent libraries."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from openai import AsyncOpenAI
from real.serve import PORT

from hira import Answer, Hira
from hira.runtime.settings import Settings
from hira.tools.documents import Index, search_documents

HERE = Path(__file__).parent
PEERS = ("openai-agents", "smolagents", "pydantic-ai")
PLAIN = "plain"
PROMPT = "Answer the question from these passages.\n\n{passages}\n\nQuestion: {question}"
MINUTES = 15


@dataclass(frozen=True)
class Outcome:
    """The answer of a system and its cost. `accepted` is None for a system that does not judge its answers, `more` is
    what only hira knows."""

    answer: str
    calls: int = 0
    tokens: int = 0
    cost: float | None = None
    error: str = ""
    accepted: bool | None = None
    more: dict[str, Any] = field(default_factory=dict)


Ask = Callable[[str], Awaitable[Outcome]]


@contextmanager
def serve_model(model: str, base_url: str) -> Iterator[tuple[str, str]]:
    """Yield the base URL and the name of a model: of a GGUF file, which is served here, or of an endpoint."""
    if base_url:
        yield base_url, model
        return
    if not Path(model).is_file():
        raise SystemExit(f"there is no file {model!r}: name a GGUF file, or a model with --base-url")
    address = f"http://127.0.0.1:{PORT}/v1"
    with subprocess.Popen(
        [sys.executable, HERE / "serve.py", model, str(PORT)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            while server.poll() is None and not is_reachable(address):
                time.sleep(0.5)
            if server.poll() is not None:
                raise SystemExit("the server did not start: pip install 'hira[local]'")
            with urlopen(f"{address}/models") as reply:  # noqa: S310 - our own server
                yield address, str(json.load(reply)["data"][0]["id"])
        finally:
            server.terminate()


def is_reachable(address: str) -> bool:
    """Return whether an endpoint answers at all; a refusal is an answer."""
    try:
        with urlopen(f"{address}/models", timeout=30) as reply:  # noqa: S310 - the endpoint that was named
            return bool(reply.status < 500)
    except URLError as error:
        return getattr(error, "code", 599) < 500
    except OSError:
        return False


@asynccontextmanager
async def open_workflow(workflow: str, settings: Settings) -> AsyncIterator[Ask]:
    """Yield a workflow of hira with its defaults. What it learns about the model serves all questions."""
    cache = Path(tempfile.mkdtemp(prefix="hira-public-"))
    chosen = settings.model_copy(update={"workflow": workflow, "cache": cache, "max_time": 60.0 * MINUTES})
    async with Hira(settings=chosen) as hira:

        async def ask(question: str) -> Outcome:
            run = hira.stream(question)
            await run.work()
            answer, usage = run.answer, run.answer.usage
            return Outcome(
                answer.text, usage.calls, usage.prompt_tokens + usage.completion_tokens, usage.cost,
                str(run.failure or ""), answer.status == "answered", describe_run(answer, settings.docs[0]),
            )  # fmt: skip

        yield ask


def describe_run(answer: Answer, documents: Path) -> dict[str, Any]:
    """What only hira can tell of a run. The text of public documents stays where it is: sources are places in them."""
    trajectories = answer.rollout.trajectories.values()
    return {
        "status": answer.status,
        "tool_calls": sum(trajectory.calls for trajectory in trajectories),
        "unreadable": sum(trajectory.unreadable for trajectory in trajectories),
        "experts": [finding.expert for finding in answer.rollout.findings],
        "sources": [
            {"id": source.id, "document": source.location, "title": source.title, "text": locate(source.text, whole)}
            for source in answer.sources
            if (whole := _read_text(documents / source.location))
        ],
    }


def _read_text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.suffix == ".md" and path.is_file() else ""


def locate(text: str, whole: str) -> list[str | tuple[int, int]]:
    """Return a text as the places of its blocks in the whole document, and the blocks that are not in it."""
    blocks = [block.strip() for block in text.split("\n")]
    return [
        (whole.index(block), whole.index(block) + len(block)) if block in whole and block else block for block in blocks
    ]


def make_search(documents: Path) -> Callable[[str], Awaitable[str]]:
    """Return the search that every system uses: hira's own, so that answers differ by what is done with passages."""
    search = search_documents(Index([documents]))

    async def find(query: str) -> str:
        seen = await search.call({"query": query})
        return "\n\n".join(f"{one.source.location}: {one.text}" for one in seen.passages) or seen.text

    return find


@asynccontextmanager
async def open_plain(settings: Settings, reply: int) -> AsyncIterator[Ask]:
    """Yield plain RAG as one writes it by hand: one search with the question, one chat call."""
    find = make_search(settings.docs[0])
    async with AsyncOpenAI(base_url=settings.base_url, api_key=settings.api_key or "none", timeout=900) as client:

        async def ask(question: str) -> Outcome:
            content = PROMPT.format(passages=await find(question), question=question)
            made = await client.chat.completions.create(
                model=settings.model or "", messages=[{"role": "user", "content": content}], temperature=0,
                max_tokens=reply,
            )  # fmt: skip
            return Outcome(made.choices[0].message.content or "", 1, made.usage.total_tokens if made.usage else 0)

        yield ask


@asynccontextmanager
async def open_peer(library: str, python: str, settings: Settings, reply: int) -> AsyncIterator[Ask]:
    """Yield another library, in a process of its environment; a new process after a question that took too long."""
    command = [python, str(HERE / "peers.py"), library, settings.base_url or "", settings.model or "", str(reply)]
    find = make_search(settings.docs[0])
    running: list[asyncio.subprocess.Process] = []

    async def ask(question: str) -> Outcome:
        if not running:
            pipe = asyncio.subprocess.PIPE
            running.append(
                await asyncio.create_subprocess_exec(
                    *command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, limit=1 << 24
                )
            )
        try:
            async with asyncio.timeout(60 * MINUTES):
                return await _converse(running[0], question, find)
        except TimeoutError:
            running.pop().kill()
            return Outcome("", error=f"no answer within {MINUTES} minutes")
        except EOFError:
            raise SystemExit(f"{library} does not start: install it beside {python}") from None

    try:
        yield ask
    finally:
        for peer in running:
            peer.kill()


async def _converse(peer: asyncio.subprocess.Process, question: str, find: Callable[[str], Awaitable[str]]) -> Outcome:
    """Send a question and serve the peer's searches until it answers. Raises `EOFError` if its process ends."""
    assert peer.stdin
    assert peer.stdout
    sent = question
    while True:
        peer.stdin.write(json.dumps(sent).encode() + b"\n")
        await peer.stdin.drain()
        while not (line := await peer.stdout.readline()).startswith(b"\x1e"):
            if not line:
                raise EOFError
        message = json.loads(line[1:])
        if "search" not in message:
            return Outcome(**message)
        sent = await find(message["search"])
