"""Each workflow at an endpoint that misbehaves: it ends in an answer, or in an error that can be read."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from rows import DOZEN
from test_faults_end_to_end import DEADLINE
from virtual import quick_policy

from hira import Hira
from hira.core.policy import Completion, Request
from hira.runtime.run import Run
from hira.runtime.settings import Settings
from hira.testing import Endpoint, calling
from hira.tools.python import refusal

LIBRARY = Path(__file__).parent.parent / "data" / "library"


async def ask_library(base_url: str, workflow: str, question: str, files: Sequence[Path] = ()) -> Run:
    """A question over the library, to its end."""
    policy = quick_policy(base_url)
    settings = Settings(docs=(LIBRARY,), journal=None, cache=None, workflow=workflow)
    async with Hira(settings=settings, policies={"*": policy}) as hira:
        run = hira.stream(question, files=files)
        async with asyncio.timeout(DEADLINE):
            await run.work()
        await policy.aclose()
    return run


async def endings(reply: Callable[[Request], str | Completion], ask: Callable[[str], Awaitable[Run]]) -> Counter[str]:
    """How the runs end, each fault with the first call, and with the second and all that follow."""
    ended: Counter[str] = Counter()
    for fault in DOZEN:
        for hit in (lambda number: number == 1, lambda number: number > 1):
            with Endpoint(reply, faults=lambda number, fault=fault, hit=hit: fault if hit(number) else "") as endpoint:
                answer = (await ask(endpoint.base_url)).answer
            ended[answer.status] += 1
            assert answer.text or answer.error, (fault, "an empty answer was accepted")
            assert len(answer.error.splitlines()) <= 3, (fault, answer.error)
            assert answer.status != "answered" or "supported" in {one.verdict for one in answer.citations}
    assert sum(ended.values()) == 2 * len(DOZEN)
    assert ended["failed"]
    return ended


FILE = LIBRARY / "lighthouses.md"
QUESTION = "When was the lighthouse at Skerry Point built?"
ANSWER = r"\boxed{The lighthouse at Skerry Point was built in 1871 [s1].}"
NAMES = ("direct", "rag", "search-o1", "webthinker", "codeact", "multimodal", "plan-and-solve", "react")
ARGUMENTS = {
    "search": {"query": "lighthouse Skerry Point"},
    "python": {"code": "print('The lighthouse at Skerry Point was built in', 1700 + 171)"},
    "files": {"path": "lighthouses.md"},
}
needs_python = pytest.mark.skipif(bool(refusal("auto")), reason=refusal("auto"))


def reply(request: Request) -> str | Completion:
    """Whoever asks, and however often, gets what fits its prompt: one call of a tool, then the answer."""
    first = request.messages[0].text
    if '"steps"' in first:
        return f'{{"steps": ["{QUESTION}"]}}'
    if '"expert"' in first:
        return '{"reason": "a page states it", "expert": "simple_search"}'
    if '"queries"' in first and len(request.messages) == 1:
        return '{"queries": ["lighthouse Skerry Point"]}'
    tools = [tool["function"]["name"] for tool in request.tools if tool["function"]["name"] in ARGUMENTS]
    if tools and not any(message.role == "tool" for message in request.messages):
        return calling(tools[0], **ARGUMENTS[tools[0]])
    return ANSWER


async def answered(base_url: str, name: str) -> Run:
    return await ask_library(base_url, name, QUESTION, [FILE] if name == "multimodal" else [])


@needs_python
@pytest.mark.parametrize("name", NAMES)
async def test_without_a_fault_each_baseline_answers_over_http(name: str) -> None:
    with Endpoint(reply) as endpoint:
        run = await answered(endpoint.base_url, name)
    assert "1871" in run.answer.text
    assert run.answer.status == ("unverified" if name == "direct" else "answered")


@needs_python
@pytest.mark.heavy
@pytest.mark.parametrize("name", NAMES)
async def test_every_fault_ends_in_an_answer_or_in_an_error_of_three_lines(name: str) -> None:
    ended = await endings(reply, lambda base_url: answered(base_url, name))
    if name != "direct":
        assert ended["answered"] > len(DOZEN) // 3


TOPIC = "The lighthouse at Skerry Point"
FACT = "The lighthouse at Skerry Point was built in 1871"
REPORTS = ("mams", "react-report")


def report(request: Request) -> str | Completion:
    """Whoever asks, and however often, gets what fits its prompt: one search, a note, the report."""
    first = request.messages[0].text
    notes = re.findall(r"^(m\d+)\. ", first.partition("Fragment;")[0], re.MULTILINE)
    if '"keep"' in first:
        source = re.search(r"^\[(s\d+)\] Lighthouses", first, re.MULTILINE)
        new = [] if notes or not source else [{"text": f"{FACT}.", "sources": [source[1]]}]
        return json.dumps({"keep": notes, "memory": new})
    if "Write the whole report between" in first:
        source = re.search(r"^\[(s\d+)\] Lighthouses", first, re.MULTILINE)
        return f"<report># Skerry Point\n\n{FACT} [{source[1]}].</report>" if source else "<report>unchanged</report>"
    if " — s" in first or any(message.role == "tool" for message in request.messages):
        return f"# Skerry Point\n\n{FACT} [s1]."
    return calling("search", query="lighthouse Skerry Point built")


@pytest.mark.parametrize("name", REPORTS)
async def test_without_a_fault_the_report_is_written_over_http(name: str) -> None:
    with Endpoint(report) as endpoint:
        run = await ask_library(endpoint.base_url, name, TOPIC)
    assert run.answer.text.startswith("# Skerry Point")
    assert run.answer.status == "answered"


@pytest.mark.heavy
@pytest.mark.parametrize("name", REPORTS)
async def test_every_fault_ends_in_a_report_or_in_an_error_of_three_lines(name: str) -> None:
    ended = await endings(report, lambda base_url: ask_library(base_url, name, TOPIC))
    assert ended["answered"] > len(DOZEN) // 3
