"""The reply of a slow model appears on a real terminal while the model writes it."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from test_approve import Terminal, docs  # noqa: F401 - a fixture

from hira.testing import Endpoint
from hira.testing.faults import Fault, delta
from hira.testing.server import Exchange

pytestmark = pytest.mark.heavy(seconds=8)


def chunk(text: str, finish: str | None = None) -> bytes:
    return b"data: " + json.dumps(delta(text, finish)).encode() + b"\n\n"


def test_the_first_token_is_shown_within_a_second_and_the_answer_alone_is_printed(docs: Path, tmp_path: Path) -> None:  # noqa: F811
    sent: list[float] = []

    async def slowly(exchange: Exchange) -> None:
        await asyncio.sleep(2)
        await exchange.begin()
        sent.append(time.monotonic())
        for word in ("Edda ", "Brand ", "built ", "it ", "[s1]."):
            await exchange.chunk(chunk(word))
            await asyncio.sleep(0.5)
        await exchange.chunk(chunk("", "stop") + b"data: [DONE]\n\n")
        await exchange.end()

    with Endpoint(faults=lambda _: Fault(slowly)) as endpoint:
        where = ("--base-url", endpoint.base_url, "--model", endpoint.model, "--workflow", "rag", "--journal", "off")
        terminal = Terminal(tmp_path, "ask", "Who built the tower of Alta?", "--docs", str(docs), *where)
        terminal.until("reads")
        terminal.until("Edda")
        assert time.monotonic() - sent[0] < 1
        terminal.until("tokens/s")
        terminal.end()
    assert terminal.out.read_text(encoding="utf-8").splitlines()[0] == "Edda Brand built it [s1] (unchecked)."
    assert "read [s1] towers" in terminal.seen
