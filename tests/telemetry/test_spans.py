"""Runs as spans: recorded ones exported, those under way watched, by the GenAI conventions, to a real collector."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings
from hira.agents.trajectory import Rollout
from hira.cli import main
from hira.core.events import Events
from hira.evidence import Source
from hira.journal import Journal
from hira.runtime.spans import spans_of
from hira.runtime.trace import Reading, read
from hira.testing import Endpoint, calling
from hira.testing.script import make_context
from hira.tools import Observation, Passage, Toolbox, tool
from hira.workflows import HiRA, rollout

memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
wire = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

SUBTASK = "<|begin_call_subtask|>Height of the tower<|end_call_subtask|>"
DISTILLED = json.dumps({"reasoning": "Looked.", "conclusion": "31 m [s1]."})
SCRIPT: dict[str, Any] = {
    "planner": [SUBTASK, r"\boxed{The tower is 31 m high [s1].}"],
    "coordinator": ['{"reason": "r", "expert": "simple_search"}', DISTILLED],
    "simple_search": ['{"queries": ["tower"]}', "It is 31 m high [s1]."],
}
QUESTION = "How high is the tower?"


@tool(pure=True)
async def search(query: str) -> Observation:
    "Search."
    return Observation(passages=(Passage(Source("t.md", "T", "The tower is 31 m high."), query),))


class Collector:
    """A collector on this machine that takes spans over OTLP and HTTP, or answers with a `status` of trouble."""

    def __init__(self, status: int = 200) -> None:
        self.spans: list[Any] = []
        self.paths: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                sent = wire.ExportTraceServiceRequest.FromString(body)
                outer.paths.append(self.path)
                for one in sent.resource_spans:
                    for scope in one.scope_spans:
                        outer.spans += scope.spans
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def told(span: Any) -> dict[str, Any]:
    values = {one.key: one.value for one in span.attributes}
    return {key: getattr(value, value.WhichOneof("value")) for key, value in values.items()}


@pytest.fixture
async def journal(tmp_path: Path) -> Any:
    made = Journal(tmp_path / "journal.sqlite")
    log = made.begin(
        "r1", QUESTION, "hira", settings={"model": "m", "base_url": "http://x.example/v1"}, files=(), versions={}
    )
    context = make_context(
        SCRIPT, tools=Toolbox(search=search), log=log, rollout=Rollout("r1", "", ""), events=Events(log.event)
    )
    await rollout(HiRA(faithful=True), QUESTION, context)
    yield made
    made.close()


@pytest.fixture
def reading(journal: Journal) -> Reading:
    return read(journal, "r1")


def test_a_recorded_run_is_a_tree_of_run_subtask_turns_and_tools(reading: Reading) -> None:
    spans = spans_of(reading)
    by = {one.id: one for one in spans}
    tree = [(one.name, by[one.parent].name if one.parent else "") for one in spans]
    assert tree[:2] == [("invoke_workflow hira", ""), ("invoke_agent simple_search", "invoke_workflow hira")]
    assert ("execute_tool search", "invoke_agent simple_search") in tree
    assert sum(name.startswith("chat ") for name, _ in tree) == 6
    for one in spans[1:]:
        above = by[one.parent]
        assert above.began <= one.began <= one.ended <= above.ended
    usage = spans[0].attributes
    assert usage["gen_ai.usage.input_tokens"] == sum(
        one.attributes["gen_ai.usage.input_tokens"] for one in spans if one.remote
    )


def test_what_was_said_goes_along_only_where_it_is_asked_for(reading: Reading) -> None:
    without, with_ = spans_of(reading), spans_of(reading, content=True)
    assert "tower" not in json.dumps([one.attributes for one in without])
    first = next(one for one in with_ if one.remote)
    assert QUESTION in str(first.attributes["gen_ai.input.messages"])
    (reply,) = json.loads(str(first.attributes["gen_ai.output.messages"]))
    assert (reply["role"], reply["parts"][0]["content"]) == ("assistant", SUBTASK.removesuffix("<|end_call_subtask|>"))
    tools = [one for one in with_ if one.attributes["gen_ai.operation.name"] == "execute_tool"]
    assert json.loads(str(tools[0].attributes["gen_ai.tool.call.arguments"])) == {"query": "tower"}


def test_every_attribute_of_the_conventions_is_one_that_they_know(reading: Reading) -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as known

    names = {value for name, value in vars(known).items() if name.startswith("GEN_AI_") and isinstance(value, str)}
    used = {name for one in spans_of(reading, content=True) for name in one.attributes if name.startswith("gen_ai.")}
    assert used <= names


def test_a_run_that_is_sent_twice_has_the_same_ids(reading: Reading) -> None:
    from hira.runtime.telemetry import export

    exporters = [memory.InMemorySpanExporter() for _ in range(2)]
    for exporter in exporters:
        export("r1", spans_of(reading), exporter, "memory")
    first, second = ([one.context for one in exporter.get_finished_spans()] for exporter in exporters)
    assert first == second
    assert len({one.span_id for one in first}) == len(first) > 8
    assert len({one.trace_id for one in first}) == 1


def test_the_command_sends_a_run_to_a_collector(
    journal: Journal, collector: Collector, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["trace", "r1", "--journal", str(journal.path), "--otel", collector.url])
    assert (code, capsys.readouterr().err) == (
        0, f"hira: {len(collector.spans)} spans of run r1 sent to {collector.url}\n",
    )  # fmt: skip
    assert collector.paths == ["/v1/traces"]
    chat = next(told(one) for one in collector.spans if one.name.startswith("chat"))
    assert (chat["gen_ai.operation.name"], chat["server.address"]) == ("chat", "x.example")


def test_a_collector_that_does_not_take_them_is_told_of(journal: Journal, capsys: pytest.CaptureFixture[str]) -> None:
    refusing = Collector(400)
    try:
        code = main(["trace", "r1", "--journal", str(journal.path), "--otel", refusing.url])
    finally:
        refusing.close()
    err = capsys.readouterr().err
    assert code == 3
    assert "the collector did not take the spans" in err
    assert len(err.splitlines()) <= 3


async def test_a_run_under_way_is_watched(tmp_path: Path, collector: Collector) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "t.txt").write_text("The tower is 31 m high.\n", encoding="utf-8")
    replies = [
        calling("subtask", task=QUESTION),
        '{"reason": "", "expert": "simple_search"}',
        "It is 31 m high [s1].",
        "The tower is 31 m high [s1].",
    ]
    with Endpoint(replies) as endpoint:
        where = {"base_url": endpoint.base_url, "docs": tmp_path / "docs", "otel": collector.url}
        async with Hira(endpoint.model, workflow="hira", **where) as hira:
            answer = await hira.ask(QUESTION)
    assert answer.status == "answered"
    names = {one.span_id: one.name for one in collector.spans}
    tree = {(one.name, names.get(one.parent_span_id, "")) for one in collector.spans}
    assert ("invoke_workflow hira", "") in tree
    assert ("invoke_agent simple_search", "invoke_workflow hira") in tree
    assert ("execute_tool search", "invoke_agent simple_search") in tree
    assert "tower" not in json.dumps([told(one) for one in collector.spans])


TRACED = """
import asyncio, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from hira import Hira

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)


async def main():
    async with Hira("offline", otel=False if sys.argv[1] == "off" else None) as hira:
        with provider.get_tracer("program").start_as_current_span("request"):
            await hira.ask("What is 2 + 2?")


asyncio.run(main())
names = {span.context.span_id: span.name for span in spans.get_finished_spans()}
print(sorted({(span.name, names.get(span.parent.span_id) if span.parent else None) for span in spans.get_finished_spans()}))
"""


@pytest.mark.heavy
def test_a_program_that_traces_itself_gets_the_spans_below_its_own_without_a_setting() -> None:
    def run(otel: str) -> str:
        command = [sys.executable, "-c", TRACED, otel]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "('invoke_workflow auto', 'request')" in run("")
    assert run("off") == "[('request', None)]\n"


@pytest.mark.heavy(seconds=2)
async def test_a_collector_that_is_down_costs_no_answer_and_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(model="offline", otel="http://user:word@127.0.0.1:1")
    async with Hira(settings=settings) as hira:
        assert (await hira.ask("What is 2 + 2?")).text
    (told,) = [one.getMessage() for one in caplog.records if one.name == "hira"]
    assert told.startswith("the collector at http://127.0.0.1:1 did not take")
    assert "hira trace RUN --otel URL" in told
