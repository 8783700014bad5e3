"""Record what a real model replies to hira's workflows, to plain RAG and to other agent libraries.

    python benchmarks/real/record.py MODEL OUT [--systems plain,rag,react,hira] [--set mini|held] [--limit 12]
                                     [--peers VENV_PYTHON]

MODEL is a GGUF file, which is served with llama.cpp (pip install xllamacpp), or the base URL of an endpoint without
`/v1`. OUT is a JSON Lines file: one line for each system and question, with the answer, how it was scored, and every
turn as it was sent and replied. A question that the file has is not asked again, so a recording may be stopped and run
again. VENV_PYTHON is a Python of an environment with openai-agents and smolagents; without it they are left out.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from recording import Recorder, recording
from serve import PORT

from hira import Answer, Hira
from hira.core.bm25 import BM25
from hira.evaluation.files import Item, items_of
from hira.evaluation.mini import DOCS, QUESTIONS
from hira.evaluation.rewards.match import contains, extract_answer
from hira.runtime.settings import Settings
from hira.tools.documents import Index, search_documents
from hira.workflows import WORKFLOWS

HERE = Path(__file__).parent
HELD = HERE.parent / "data" / "real" / "held"
MINI_IDS = "si02 tw01 si03 si06 tw02 un01 si04 tw06 si05 si07 tw04 un04 si08 si09 un05".split()
PEERS = ("openai-agents", "smolagents")
BY_HAND = ("plain", "plain-hira")
PASSAGES = 5
PLAIN = "Answer the question from these passages.\n\n{passages}\n\nQuestion: {question}"
MINUTES = 8


@dataclass(frozen=True)
class Told:
    """What a system answered; `more` is what only hira can tell."""

    answer: str
    error: str = ""
    more: Mapping[str, Any] | None = None


Ask = Callable[[str], Awaitable[Told]]


def questions(name: str, limit: int) -> tuple[list[Item], Path]:
    """The questions of a set and the folder with its documents."""
    if name == "mini":
        items = {item.id: item for item in items_of(QUESTIONS)}
        return [items[one] for one in MINI_IDS][:limit], DOCS
    return list(items_of(HELD.with_suffix(".jsonl")))[:limit], HELD


def searcher(docs: Path) -> Callable[[str], str]:
    """Retrieval as one writes it by hand: paragraphs of the files, the best by BM25."""
    paths = sorted(path for path in docs.iterdir() if path.suffix in (".md", ".txt", ".csv", ".html"))
    texts = [
        f"{path.name}: {part.strip()}" for path in paths for part in path.read_text(encoding="utf-8").split("\n\n")
    ]
    index = BM25(texts)
    return lambda query: "\n\n".join(texts[at] for at in index.best(query, PASSAGES)) or "Nothing was found."


def finder(system: str, docs: Path) -> Callable[[str], Awaitable[str]]:
    """The passages of plain RAG: those of `searcher`, or for `plain-hira` those that hira's search finds."""
    by_words, search = searcher(docs), search_documents(Index([docs]))

    async def find(question: str) -> str:
        if system == "plain":
            return by_words(question)
        found = await search.call({"query": question})
        return "\n\n".join(f"{one.source.location}: {one.text}" for one in found.passages) or found.text

    return find


@contextmanager
def served(model: str) -> Iterator[str]:
    """The endpoint of the model, started here if it is a file."""
    if model.startswith("http"):
        yield model
        return
    if not Path(model).is_file():
        raise SystemExit(f"there is no file {model!r}: name a GGUF file or the base URL of an endpoint")
    address = f"http://127.0.0.1:{PORT}"
    with subprocess.Popen([sys.executable, HERE / "serve.py", model, str(PORT)], stdout=subprocess.DEVNULL) as server:
        try:
            while server.poll() is None and not _ready(address):
                time.sleep(0.5)
            if server.poll() is not None:
                raise SystemExit("the server did not start: pip install xllamacpp")
            yield address
        finally:
            server.terminate()


def _ready(address: str) -> bool:
    try:
        with urlopen(f"{address}/health") as reply:  # noqa: S310 - our own server
            return bool(reply.status == 200)
    except URLError:
        return False


def model_name(address: str) -> str:
    with urlopen(f"{address}/v1/models") as reply:  # noqa: S310 - the endpoint named on the command line
        return str(json.load(reply)["data"][0]["id"])


def by_hand(find: Callable[[str], Awaitable[str]], recorder: Recorder, model: str) -> Ask:
    """Plain RAG: one search with the question, one chat call."""

    async def ask(question: str) -> Told:
        content = PLAIN.format(passages=await find(question), question=question)
        body = json.dumps({"model": model, "messages": [{"role": "user", "content": content}]}).encode()
        request = Request(f"{recorder.address}/v1/chat/completions", body, {"Content-Type": "application/json"})  # noqa: S310
        reply = await asyncio.to_thread(lambda: json.load(urlopen(request)))  # noqa: S310
        return Told(reply["choices"][0]["message"]["content"])

    return ask


def by_hira(workflow: str, recorder: Recorder, model: str, docs: Path, dialect: str) -> Ask:
    """A workflow of hira with its defaults, over the documents. What it learns about the model is kept for all
    questions, as the command keeps it."""
    cache = Path(tempfile.mkdtemp(prefix="answers-"))
    settings = Settings(
        model=model, base_url=f"{recorder.address}/v1", docs=(docs,), workflow=workflow, journal=None, cache=cache,
        max_time=60.0 * MINUTES, dialect=dialect or None,
    )  # fmt: skip

    async def ask(question: str) -> Told:
        async with Hira(settings=settings) as hira:
            run = hira.stream(question)
            await run.work()
            return Told(run.answer.text, str(run.failure or ""), told_by_hira(run.answer))

    return ask


def told_by_hira(answer: Answer) -> dict[str, Any]:
    trajectories = answer.rollout.trajectories.values()
    return {
        "status": answer.status,
        "citations": [
            {"claim": one.claim, "source": one.source, "verdict": str(one.verdict)} for one in answer.citations
        ],
        "sources": {source.id: source.text for source in answer.sources},
        "calls": sum(one.calls for one in trajectories),
        "unreadable": sum(one.unreadable for one in trajectories),
        "experts": [finding.expert for finding in answer.rollout.findings],
    }


@contextmanager
def by_peer(library: str, python: str, recorder: Recorder, model: str) -> Iterator[Ask]:
    """Another library, in a process of its environment; a new process after a question that took too long."""
    command = [python, str(HERE / "peers.py"), library, recorder.address, model]
    running: list[subprocess.Popen[str]] = []

    async def ask(question: str) -> Told:
        if not running:
            running.append(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
            )
        reading = asyncio.to_thread(ask_peer, running[0], question)
        try:
            line = await asyncio.wait_for(reading, 60 * MINUTES)
        except TimeoutError:
            running.pop().kill()
            return Told("", f"no answer within {MINUTES} minutes", {"calls": len(recorder.searches)})
        if not line:
            raise SystemExit(f"{library} does not start: pip install openai-agents 'smolagents[openai]'")
        told = json.loads(line[1:])
        return Told(told["answer"], told.get("error", ""), {"calls": len(recorder.searches)})

    try:
        yield ask
    finally:
        for peer in running:
            peer.kill()


def ask_peer(peer: subprocess.Popen[str], question: str) -> str:
    """The line with the peer's answer, after whatever the library prints as well; empty if the process ended."""
    assert peer.stdin
    assert peer.stdout
    peer.stdin.write(json.dumps(question) + "\n")
    peer.stdin.flush()
    return next((line for line in peer.stdout if line.startswith("\x1e")), "")


def scored(item: Item, told: Told) -> bool | None:
    """Whether the known answer stands in the text; None where nothing can be known."""
    return any(contains(extract_answer(told.answer), gold) for gold in item.answers) if item.answerable else None


async def record(
    ask: Ask, system: str, items: Sequence[Item], recorder: Recorder, about: Mapping[str, str], out: Path
) -> None:
    """Ask what the file does not have yet, one question after the other."""
    lines = out.read_text(encoding="utf-8").splitlines() if out.exists() else []
    done = {(one["system"], one["set"], one["id"]) for one in map(json.loads, lines)}
    for item in items:
        if (system, about["set"], item.id) in done:
            continue
        recorder.clear()
        began = time.monotonic()
        told = await ask(item.question)
        seconds, turns = round(time.monotonic() - began, 1), recorder.settled()
        line = {
            **about, "system": system, "id": item.id, "category": item.category, "question": item.question,
            "gold": item.gold, "answer": told.answer, "right": scored(item, told), "error": told.error,
            "seconds": seconds, **(told.more or {}), "turns": turns,
        }  # fmt: skip
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        spent = sum(turn["prompt_tokens"] + turn["reply_tokens"] for turn in turns)
        shown = f"{system:14} {item.id} right={line['right']!s:5} {line.get('status', ''):22}"
        print(f"{shown} {len(turns):2} turns {spent:6} tokens {seconds:6.1f} s  {told.answer[:60]!r}", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out", type=Path)
    parser.add_argument("--systems", default="plain,rag,react,hira,openai-agents,smolagents")
    parser.add_argument("--set", choices=["mini", "held"], default="held")
    parser.add_argument("--limit", type=int, default=15)
    parser.add_argument("--dialect", default="", help="how hira's workflows write calls, if not by default")
    parser.add_argument("--peers", default="", metavar="VENV_PYTHON")
    options = parser.parse_args()
    items, docs = questions(options.set, options.limit)
    with served(options.model) as address, recording(address, searcher(docs)) as recorder:
        model = model_name(address)
        about = {"set": options.set, "model": Path(model).stem, "dialect": options.dialect}
        for system in options.systems.split(","):
            if system in PEERS and not options.peers:
                print(f"{system} is left out: --peers names no environment that has it")
            elif system in PEERS:
                with by_peer(system, options.peers, recorder, model) as ask:
                    await record(ask, system, items, recorder, about, options.out)
            elif system in BY_HAND:
                await record(
                    by_hand(finder(system, docs), recorder, model), system, items, recorder, about, options.out
                )
            elif system in WORKFLOWS:
                await record(
                    by_hira(system, recorder, model, docs, options.dialect), system, items, recorder, about, options.out
                )
            else:
                raise SystemExit(f"there is no system {system!r}: {', '.join((*BY_HAND, *WORKFLOWS, *PEERS))}")


if __name__ == "__main__":
    asyncio.run(main())
