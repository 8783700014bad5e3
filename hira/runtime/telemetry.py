"""A run under way as OpenTelemetry spans, sent to a collector over OTLP and HTTP. Needs the extra `otel`."""

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from hira.core import events
from hira.core.errors import EndpointError
from hira.core.sanitize import without_userinfo
from hira.runtime.spans import (
    RUN,
    Attributes,
    Span,
    run_attributes,
    subtask_attributes,
    tool_attributes,
    turn_attributes,
    usage_attributes,
)

PATH = "/v1/traces"
SECONDS = 5
"""For which a collector is waited for."""
AT_ONCE = 200
"""Spans that are sent together."""


class CountingExporter(SpanExporter):
    """The exporter, that enters into `refused` how many spans the collector did not take, each time."""

    def __init__(self, exporter: SpanExporter, refused: list[int]) -> None:
        self._exporter = exporter
        self._refused = refused

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            self._refused.append(len(spans))
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


def sender(endpoint: str) -> SpanExporter:
    """Return the exporter that sends spans to the collector at this base URL.

    Headers and certificates come from the variables that OpenTelemetry reads itself.
    """
    # a program with its own exporter may do without this one
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # hira reports what goes wrong
    base = endpoint.rstrip("/")
    return OTLPSpanExporter(endpoint=base if base.endswith(PATH) else base + PATH, timeout=SECONDS)


def resource() -> Resource:
    return Resource.create({"service.name": "hira", "service.version": version("hira")})


def export(run: str, spans: Sequence[Span], exporter: SpanExporter, endpoint: str) -> None:
    """Send a recorded run. Sent twice it has the same ids. Raises `EndpointError` if the collector does not take it."""
    made = _make_spans(run, spans)
    for start in range(0, len(made), AT_ONCE):
        if exporter.export(made[start : start + AT_ONCE]) is not SpanExportResult.SUCCESS:
            where = f"at {without_userinfo(endpoint)}"
            raise EndpointError(
                "the collector did not take the spans", where=where, fix="check that it runs, and read its log"
            )
    exporter.shutdown()


def _make_spans(run: str, spans: Sequence[Span]) -> list[ReadableSpan]:
    """The spans as the exporter takes them. The same run has the same ids each time."""

    def number(text: str, size: int) -> int:
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size).digest()) or 1

    sampled = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    contexts = {
        span.id: trace.SpanContext(
            number(run, 16), number(f"{run} {position}", 8), is_remote=False, trace_flags=sampled
        )
        for position, span in enumerate(spans)
    }
    about, scope = resource(), InstrumentationScope("hira", version("hira"))
    return [
        ReadableSpan(
            span.name,
            contexts[span.id],
            contexts.get(span.parent),
            about,
            {**span.attributes, "error.type": "_OTHER"} if span.error else span.attributes,
            kind=trace.SpanKind.CLIENT if span.remote else trace.SpanKind.INTERNAL,
            status=trace.Status(trace.StatusCode.ERROR, span.error) if span.error else trace.Status(),
            start_time=round(span.began * 1e9),
            end_time=round(span.ended * 1e9),
            instrumentation_scope=scope,
        )
        for span in spans
    ]


class Telemetry:
    """Sends the spans of all runs; in a program that has set up OpenTelemetry, its way and below its current span."""

    def __init__(self, endpoint: str) -> None:
        provider = trace.get_tracer_provider()
        self._own: TracerProvider | None = None
        self._endpoint = endpoint
        self._refused: list[int] = []
        if not isinstance(provider, TracerProvider):
            provider = self._own = TracerProvider(resource=resource(), shutdown_on_exit=False)
            provider.add_span_processor(BatchSpanProcessor(CountingExporter(sender(endpoint), self._refused)))
        self._tracer = provider.get_tracer("hira")

    @contextmanager
    def watching(self) -> Iterator[events.Reader]:
        """A reader for one run; what is still open when the context is left ends with it."""
        run = _OpenSpans(self._tracer)
        try:
            yield run.hear
        finally:
            run.close()

    def close(self) -> None:
        """Send the waiting spans, for a few seconds at most. A failure is only logged: the runs have ended."""
        if self._own:
            self._own.shutdown()
        if self._refused:
            logging.getLogger("hira").warning(
                "the collector at %s did not take %d spans; check that it runs, or send them later: "
                "hira trace RUN --otel URL",
                without_userinfo(self._endpoint),
                sum(self._refused),
            )


class _OpenSpans:
    """The open spans of one run, by the step that each represents."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer
        self._open: dict[str, trace.Span] = {}
        self._models: dict[str, str] = {}

    def hear(self, event: events.Event) -> None:
        match event:
            case events.RunStarted():
                self._models = dict(event.models)
                self._begin(RUN, f"invoke_workflow {event.workflow}", run_attributes(event.run, event.workflow))
            case events.RunEnded():
                failed = event.status if event.status in ("failed", "interrupted") else ""
                self._end(RUN, usage_attributes(event.usage) | {"hira.status": event.status}, failed)
            case events.SubtaskIssued():
                self._begin(f"subtask {event.subtask}", "invoke_agent", subtask_attributes("", event.subtask))
            case events.SubtaskAssigned() if span := self._open.get(f"subtask {event.subtask}"):
                span.update_name(f"invoke_agent {event.expert}")
                span.set_attribute("gen_ai.agent.name", event.expert)
            case events.SubtaskDone():
                self._end(f"subtask {event.subtask}", {}, "" if event.ok else "failed")
            case events.TurnStarted():
                model = self._models.get(event.role) or self._models.get("*", "")
                attributes = turn_attributes(event.role, event.conversation, model)
                self._begin(f"turn {event.conversation}", f"chat {model}", attributes, remote=True)
            case events.TurnEnded():
                self._end(f"turn {event.conversation}", usage_attributes(event.usage))
            case events.ToolStarted():
                attributes = tool_attributes(event.tool, event.conversation)
                self._begin(f"tool {event.conversation} {event.call}", f"execute_tool {event.tool}", attributes)
            case events.ToolEnded():
                self._end(f"tool {event.conversation} {event.call}", {}, "" if event.ok else "failed")

    def close(self) -> None:
        for key in reversed(list(self._open)):
            self._end(key, {}, "broken off")

    def _begin(self, key: str, name: str, attributes: Attributes, *, remote: bool = False) -> None:
        self._end(key, {}, "failed")  # a turn that brought nothing tells no end
        conversation = str(attributes.get("hira.conversation", ""))
        subtask = self._open.get(f"subtask {conversation.partition('/')[0]}") if "/" in conversation else None
        above = subtask or self._open.get(RUN)
        context = trace.set_span_in_context(above) if above else None
        kind = trace.SpanKind.CLIENT if remote else trace.SpanKind.INTERNAL
        self._open[key] = self._tracer.start_span(name, context, kind, attributes)

    def _end(self, key: str, attributes: Attributes, failed: str = "") -> None:
        if span := self._open.pop(key, None):
            span.set_attributes(attributes)
            if failed:
                span.set_attribute("error.type", "_OTHER")
                span.set_status(trace.Status(trace.StatusCode.ERROR, failed))
            span.end()
