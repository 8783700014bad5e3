"""`hira mcp`: the real command in a separate process, called by the real client of the package "mcp"."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from command import Command
from later import later, needs

import hira
from hira.runtime.answer import Answer
from hira.testing.endpoint import Endpoint

mcp = later("mcp")
pytestmark = needs("mcp")

QUESTION = "When was ASEAN founded?"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for folder, text in (("docs", "ASEAN was founded on 8 August 1967 in Bangkok."), ("docs/more", "Tea is green.")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "note.txt").write_text(text + "\n", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("ASEAN was founded on 1 January 1900.\n", encoding="utf-8")
    (tmp_path / "docs" / "way-out.txt").symlink_to(tmp_path / "secret.txt")
    return tmp_path


def with_docs(place: Path, *flags: str) -> tuple[str, ...]:
    """Return the arguments of `hira mcp`."""
    named = flags if "--model" in flags else ("--model", "offline", *flags)
    return ("mcp", "--docs", str(place / "docs"), *named)


def running(place: Path, *flags: str) -> "subprocess.Popen[str]":
    return Command(place, {"HIRA_SANDBOX": "process"}).start(*with_docs(place, *flags), stdin=subprocess.PIPE)


@asynccontextmanager
async def serving(place: Path, *flags: str) -> AsyncIterator[Any]:
    """Yield a client of `hira mcp` over stdio. The server's stderr goes to server.log."""
    from mcp.client.stdio import stdio_client

    argv = ["-m", "hira", *with_docs(place, *flags)]
    environ = {"HOME": str(place / "home"), "XDG_CONFIG_HOME": "", "HIRA_SANDBOX": "process"}
    environ["PYTHONPATH"] = str(Path(hira.__file__).parents[1])
    parameters = mcp.StdioServerParameters(command=sys.executable, args=argv, env=environ, cwd=place)
    with (place / "server.log").open("w") as log:
        async with mcp.Client(stdio_client(parameters, errlog=log)) as client:
            yield client


@pytest.mark.heavy
async def test_hira_answers_over_stdio_with_citations_progress_and_the_json_object(place: Path):
    told: list[str] = []

    async def tell(_done: float, _total: float | None, message: str | None) -> None:
        told.append(message or "")

    async def refused(**arguments: Any) -> str:
        said = await client.call_tool("ask", arguments)
        assert said.is_error
        return said.content[0].text

    async with serving(place) as client:
        tool, *_ = (await client.list_tools()).tools
        assert (tool.name, list(tool.input_schema["properties"])) == ("ask", ["question", "workflow", "docs"])
        said = await client.call_tool("ask", {"question": QUESTION}, progress_callback=tell)
        assert not said.is_error
        assert "8 August 1967" in said.content[0].text
        assert "[s1]" in said.content[0].text
        assert set(Answer.__dataclass_fields__) - {"text", "rollout", "error", "cited", "output_type"} <= set(
            said.structured_content
        )
        assert said.structured_content["status"] == "answered"
        assert said.structured_content["citations"][0]["source"].endswith("note.txt")
        assert any(QUESTION in line for line in told)

        said = await client.call_tool("ask", {"question": QUESTION, "docs": ["docs/more"], "workflow": "hira"})
        assert said.structured_content["status"] == "insufficient_evidence"
        assert "Status: insufficient evidence" in said.content[0].text

        several = await asyncio.gather(*(client.call_tool("ask", {"question": QUESTION}) for _ in range(5)))
        assert {one.structured_content["status"] for one in several} == {"answered"}

        for outside in (
            "secret.txt",
            "../secret.txt",
            "docs/../secret.txt",
            "/etc/passwd",
            "docs/way-out.txt",
            "no.txt",
        ):
            assert "is not one of the server's documents" in await refused(question=QUESTION, docs=[outside])
        assert "did you mean 'hira'?" in await refused(question=QUESTION, workflow="hirra")
        assert "question: " in await refused(question="  ")
        assert "model: " in await refused(question=QUESTION, model="gpt-5")
        with pytest.raises(mcp.MCPError, match="there is no tool 'answer'"):
            await client.call_tool("answer", {})


@pytest.mark.heavy
async def test_another_agent_searches_and_opens_what_hira_reads_and_nothing_else(place: Path):
    lines = [f"Chapter {number} is about the harbour of town {number}." for number in range(3_000)]
    (place / "docs" / "long.txt").write_text("\n\n".join(lines), encoding="utf-8")

    async def refuse(name: str, **arguments: Any) -> str:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        return result.content[0].text

    async with serving(place) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["ask", "search", "open"]
        assert list(tools["search"].input_schema["properties"]) == ["query", "docs"]

        result = await client.call_tool("search", {"query": "founded ASEAN"})
        (passage,) = result.structured_content["passages"]
        assert passage["location"].endswith("note.txt")
        assert "8 August 1967" in passage["text"]
        assert passage["location"] in result.content[0].text

        result = await client.call_tool("open", {"location": passage["location"]})
        assert "8 August 1967" in result.structured_content["passages"][0]["text"]
        result = await client.call_tool("open", {"location": "long.txt", "intent": "the harbour of town 2718"})
        assert "town 2718." in result.content[0].text
        assert len(result.content[0].text) < 30_000
        result = await client.call_tool("search", {"query": "the harbour of town 2718"})
        assert all(passage["place"].startswith("lines ") for passage in result.structured_content["passages"])

        result = await client.call_tool("search", {"query": "founded ASEAN", "docs": ["docs/more"]})
        assert result.structured_content["passages"] == []
        assert "nothing found" in result.structured_content["note"]

        assert "is not one of the server's documents" in await refuse("search", query="ASEAN", docs=["secret.txt"])
        assert "is not one of the documents" in await refuse("open", location="../secret.txt")
        assert "is not one of the documents" in await refuse("open", location="http://127.0.0.1:1/")
        assert "query: " in await refuse("search", query=" ")


@pytest.mark.heavy
async def test_a_call_that_is_given_up_ends_its_run_and_so_does_a_client_that_leaves(place: Path):
    with Endpoint([], delay=600) as endpoint:

        async def until(number: int) -> None:
            async with asyncio.timeout(20):
                while endpoint.in_flight != number:
                    await asyncio.sleep(0.01)

        async with serving(place, "--model", endpoint.model, "--base-url", endpoint.base_url) as client:
            asking = asyncio.create_task(client.call_tool("ask", {"question": QUESTION}))
            await until(1)
            asking.cancel()
            await until(0)
            asking = asyncio.create_task(client.call_tool("ask", {"question": QUESTION}))
            await until(1)
        await until(0)
        with pytest.raises(mcp.MCPError):
            await asking
    assert (place / "server.log").read_text() == ""


@pytest.mark.heavy
async def test_hira_answers_over_http_on_this_machine_and_leaves_when_told(place: Path):
    process = running(place, "--http", "0")
    try:
        line = await asyncio.to_thread(process.stderr.readline)
        url = line.removeprefix("hira: MCP server at ").partition(";")[0]
        async with mcp.Client(url) as client:
            said = await client.call_tool("ask", {"question": QUESTION})
            assert said.structured_content["status"] == "answered"
        async with httpx.AsyncClient(trust_env=False) as browser:
            for header in ({"host": "evil.example"}, {"origin": "http://evil.example"}):
                assert (await browser.post(url, json={}, headers=header)).status_code in {403, 421}
        port = url.partition(":")[2].rpartition(":")[2].partition("/")[0]
        other = running(place, "--http", port)
        _, complaint = await asyncio.to_thread(other.communicate)
        assert (other.returncode, f"cannot listen on port {port}" in complaint) == (2, True)
        process.send_signal(signal.SIGTERM)
        out, err = await asyncio.to_thread(process.communicate)
        assert (process.returncode, out, "Traceback" in err) == (130, "", False)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_though_the_client_says_nothing(place: Path, number: signal.Signals):
    process = running(place)
    try:
        process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert '"id":1' in process.stdout.readline()
        process.send_signal(number)
        out, _ = process.communicate(timeout=120)
        assert (process.returncode, out) == (130, "")
    finally:
        process.kill()
        process.communicate()


def spell(method: str, number: int, **params: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.mark.heavy
def test_a_call_that_a_client_has_left_half_written_is_not_made(place: Path):
    with running(place) as process:
        process.stdin.write(spell("initialize", 1, **HELLO) + "\n")
        process.stdin.flush()
        assert '"id":1' in process.stdout.readline()
        process.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        call = spell("tools/call", 2, name="search", arguments={"query": QUESTION})
        out, err = process.communicate(call, timeout=120)  # without the end of the line
        assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.heavy
def test_a_client_that_reads_no_more_ends_the_server_without_a_fault(place: Path):
    with running(place) as process:
        process.stdout.close()
        process.stdin.write(spell("initialize", 1, **HELLO) + "\n")
        process.stdin.flush()
        process.wait(120)
        assert (process.returncode, process.stderr.read()) == (0, "")


def test_the_doctor_lists_servers_with_their_tools_and_what_is_wrong_with_others(place: Path):
    rough = Path(__file__).parent.parent / "tools" / "mcp_rough.py"
    config = place / "home" / ".config" / "hira"
    config.mkdir(parents=True)
    (config / "hira.toml").write_text(
        f"[mcp.shelf]\ncommand = {sys.executable!r}\nargs = [{str(rough)!r}, 'plain']\nroles = ['code']\n"
        "[mcp.gone]\ncommand = '/no/such/program'\n"
    )
    said = Command(place)("doctor", "--model", "offline")
    assert said.code == 2
    told = said.out
    assert f"shelf           2 tools: shelf_echo, shelf_any_thing  ({config / 'hira.toml'})" in told
    assert "for code" in told
    assert "the MCP server 'gone' cannot be started: there is no command '/no/such/program'" in told
    assert "the tool 'naughty' is left out" in told
