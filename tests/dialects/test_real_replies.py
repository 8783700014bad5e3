"""First turns that small models wrote when they were asked a question and shown three tools, as they came.

Each line of `real_replies.jsonl` holds a reply, the dialect of its prompt, and the calls that a person finds in it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from hira.core.policy import Completion
from hira.policies.dialects import DIALECTS
from hira.tools import tool


@tool
def search(query: str) -> str:
    """Search the documents."""
    return query


@tool
def browse(url: str, intent: str = "") -> str:
    """Open a page."""
    return url + intent


@tool
def python(code: str) -> str:
    """Run a program."""
    return code


LINES = Path(__file__).with_name("real_replies.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_what_real_models_wrote_is_read(line: str) -> None:
    reply: dict[str, Any] = json.loads(line)
    completion = Completion(reply["text"], finish=reply["finish"], stop=reply["stop"])
    parsed = DIALECTS[reply["dialect"]].parse(completion, [search, browse, python])
    assert [[call.name, call.arguments] for call in parsed.calls] == reply["calls"]
    assert bool(parsed.error) == bool(reply["error"])
