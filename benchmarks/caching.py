"""How much of the prompts an endpoint with a prompt cache bills as cached, for one question and for a conversation.

    python benchmarks/caching.py [--write]

The endpoint is a script that keeps every prompt it has read, tools included. As OpenAI does, it bills the longest
beginning that it has read before as cached if it has at least 1,024 tokens, in steps of 128; the last column counts
shorter ones too, as vLLM and llama.cpp reuse them. In the question, the role that searches takes five turns (`rag` has
one); the conversation has five questions of two turns each.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hira import Hira
from hira.core.messages import ToolCall
from hira.core.policy import Completion, Request, Usage
from hira.core.tokens import count
from hira.testing import Endpoint

LEAST, STEP = 1024, 128
TURNS, QUESTIONS = 5, 5
WORKFLOWS = ("hira", "react", "rag")
RESULT = Path(__file__).parent / "results" / "caching.md"
TOWERS = ("Alta", "Brava", "Corva", "Delta", "Elva")
TEXT = " ".join(
    f"Floor {floor} of the tower was restored in {1900 + floor} by the guild of masons." for floor in range(60)
)


class CachingEndpoint:
    """Replies as a model that searches several times before it answers, and counts what it has read before."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.read: list[str] = []
        self.prompt = self.billed = self.shared = 0

    def __call__(self, request: Request) -> Completion:
        prompt = write_prompt(request)
        shared = count(max((common(prompt, earlier) for earlier in self.read), key=len, default=""))
        billed = shared // STEP * STEP if shared >= LEAST else 0
        self.read.append(prompt)
        tokens = count(prompt)
        self.prompt, self.billed, self.shared = self.prompt + tokens, self.billed + billed, self.shared + shared
        text, calls = self.reply(request)
        return Completion(text, calls=calls, usage=Usage(1, tokens, count(text), billed))

    def reply(self, request: Request) -> tuple[str, tuple[ToolCall, ...]]:
        tools = {tool["function"]["name"] for tool in request.tools}
        done = sum(message.role == "tool" for message in request.messages)
        name = TOWERS[done % len(TOWERS)]
        if request.schema and "expert" in str(request.schema):
            return json.dumps({"reason": "it searches", "expert": "deep_search"}), ()
        if request.schema:
            return json.dumps({"reasoning": "read", "conclusion": answer(name), "facts": []}), ()
        if "subtask" in tools and done < 1:
            return "", (ToolCall(f"c{len(self.read)}", "subtask", json.dumps({"task": f"Find the height of {name}."})),)
        if "search" in tools and done < self.turns - 1:
            return "", (
                ToolCall(f"c{len(self.read)}", "search", json.dumps({"query": f"height of the tower of {name}"})),
            )
        return f"\\boxed{{{answer(name)}}}", ()


def answer(name: str) -> str:
    return f"The tower of {name} is {30 + TOWERS.index(name)} metres high. [s1]"


def write_prompt(request: Request) -> str:
    wires = [json.dumps(message.wire, sort_keys=True) for message in request.messages]
    return "\n".join([json.dumps(list(request.tools), sort_keys=True), *wires])


def common(first: str, second: str) -> str:
    """Return the longest common beginning."""
    least, most = 0, min(len(first), len(second))
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if first[:middle] == second[:middle] else (least, middle - 1)
    return first[:least]


async def measure(workflow: str, docs: Path, questions: Sequence[str], turns: int) -> CachingEndpoint:
    """Ask the questions as one conversation."""
    replies = CachingEndpoint(turns)
    with Endpoint(replies) as endpoint:
        async with Hira(
            endpoint.model, base_url=endpoint.base_url, api_key="k", docs=docs, workflow=workflow, verify="lexical"
        ) as hira:
            chat = hira.chat()
            counted = [(await chat.ask(question)).rollout.usage.cached_tokens for question in questions]
    assert sum(counted) == replies.billed, "hira counts what the endpoint bills"
    return replies


async def table() -> str:
    lines = [
        "| workflow | asked | model calls | prompt tokens | billed as cached | read before, of any length |",
        "|---|---|---|---|---|---|",
    ]
    with TemporaryDirectory() as folder:
        docs = Path(folder)
        for name in TOWERS:
            (docs / f"{name}.md").write_text(f"# The tower of {name}\n\n{answer(name)[:-5]} {TEXT}\n", encoding="utf-8")
        follow_ups = [f"How high is the tower of {name}?" for name in TOWERS[:QUESTIONS]]
        for workflow in WORKFLOWS:
            for asked, questions, turns in (("one question", follow_ups[:1], TURNS), ("a conversation", follow_ups, 2)):
                made: Any = await measure(workflow, docs, questions, turns)
                shares = f"{made.billed / made.prompt:.0%} | {made.shared / made.prompt:.0%}"
                lines.append(f"| `{workflow}` | {asked} | {len(made.read)} | {made.prompt:,} | {shares} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args()
    made = asyncio.run(table())
    print(made)
    if options.write:
        head, _, about = (__doc__ or "").partition("\n\n    ")
        described = about.partition("\n\n")[2].strip().replace("\n", " ")
        page = f"# Prompt caching\n\n{head}\n\n`python benchmarks/caching.py --write`\n\n{described}\n\n{made}\n"
        RESULT.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
