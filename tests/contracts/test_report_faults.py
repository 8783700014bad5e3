"""Reports under every fault of an endpoint, over real HTTP."""

import json
import re

import pytest
from rows import DOZEN
from under_faults import asked, endings

from hira.core.policy import Completion, Request
from hira.testing import Endpoint, calling

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


@pytest.mark.parametrize("name", NAMES)
async def test_without_a_fault_the_report_is_written_over_http(name: str) -> None:
    with Endpoint(reply) as endpoint:
        run = await asked(endpoint.base_url, name, TOPIC)
    assert run.answer.text.startswith("# Skerry Point")
    assert run.answer.status == "answered"


@pytest.mark.heavy
@pytest.mark.parametrize("name", NAMES)
async def test_every_fault_ends_in_a_report_or_in_an_error_of_three_lines(name: str) -> None:
    ended = await endings(reply, lambda base_url: asked(base_url, name, TOPIC))
    assert ended["answered"] > len(DOZEN) // 3
