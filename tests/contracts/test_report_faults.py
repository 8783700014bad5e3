"""Reports under every fault of an endpoint, over real HTTP."""

import asyncio
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from test_faults_end_to_end import DEADLINE, policy_at

from hira import Hira
from hira.api import Run
from hira.policy import Completion, Request
from hira.settings import Settings
from hira.testing import Endpoint, calling
from hira.testing.faults import FAULTS

LIBRARY = Path(__file__).parent.parent / "data" / "library"
TOPIC = "The lighthouse at Skerry Point"
FACT = "The lighthouse at Skerry Point was built in 1871"
NAMES = ("mams", "react-report")


def reply(request: Request) -> str | Completion:
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


async def asked(base_url: str, name: str) -> Run:
    policy = policy_at(base_url)
    async with Hira(
        settings=Settings(docs=(LIBRARY,), journal=None, cache=None, workflow=name), policies={"*": policy}
    ) as hira:
        run = hira.stream(TOPIC)
        async with asyncio.timeout(DEADLINE):
            await run.work()
        await policy.aclose()
    return run


@pytest.mark.parametrize("name", NAMES)
async def test_without_a_fault_the_report_is_written_over_http(name: str) -> None:
    with Endpoint(reply) as endpoint:
        run = await asked(endpoint.base_url, name)
    assert run.answer.text.startswith("# Skerry Point")
    assert run.answer.status == "answered"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
async def test_every_fault_ends_in_a_report_or_in_an_error_of_three_lines(name: str) -> None:
    """The fault comes with the first call, or with the second and all that follow."""
    ended: Counter[str] = Counter()
    for fault in FAULTS:
        for hit in (lambda number: number == 1, lambda number: number > 1):
            with Endpoint(reply, faults=lambda number, fault=fault, hit=hit: fault if hit(number) else "") as endpoint:
                run = await asked(endpoint.base_url, name)
            answer = run.answer
            ended[answer.status] += 1
            assert answer.text or answer.error, (fault, "an empty report was accepted")
            assert len(answer.error.splitlines()) <= 3, (fault, answer.error)
            assert answer.status != "answered" or "supported" in {one.verdict for one in answer.citations}
    assert sum(ended.values()) == 2 * len(FAULTS)
    assert ended["failed"] > 10
    assert ended["answered"] > len(FAULTS) // 3
