"""Spans leave for a collector, over OTLP and HTTP."""

import hashlib
import logging
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from itertools import count
from typing import TYPE_CHECKING

from hira.core.errors import EndpointError, UsageError
from hira.core.redaction import without_userinfo
from hira.runtime.telemetry.spans import Span

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

PATH = "/v1/traces"
SECONDS = 5
"""For which a collector is waited for."""
AT_ONCE = 200
"""Spans that are sent together."""


def sender(endpoint: str) -> "SpanExporter":
    """What sends spans to the collector at this base URL. Raises `UsageError` where the extra is not installed.

    Headers and certificates are those of the variables that OpenTelemetry reads itself.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise UsageError("spans cannot be exported", fix="pip install 'hira[otel]'") from None
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # what goes wrong is told by hira
    base = endpoint.rstrip("/")
    return OTLPSpanExporter(endpoint=base if base.endswith(PATH) else base + PATH, timeout=SECONDS)


def counting(exporter: "SpanExporter", refused: list[int]) -> "SpanExporter":
    """The exporter, that enters into `refused` how many spans the collector did not take, each time."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class Counting(SpanExporter):
        def export(self, spans: "Sequence[ReadableSpan]") -> "SpanExportResult":
            result = exporter.export(spans)
            if result is not SpanExportResult.SUCCESS:
                refused.append(len(spans))
            return result

        def shutdown(self) -> None:
            exporter.shutdown()

    return Counting()


def resource() -> "Resource":
    from opentelemetry.sdk.resources import Resource

    return Resource.create({"service.name": "hira", "service.version": version("hira")})


def export(run: str, spans: Sequence[Span], exporter: "SpanExporter", endpoint: str) -> None:
    """Send a recorded run. Sent twice it has the same ids. Raises `EndpointError` if the collector does not take it."""
    from opentelemetry.sdk.trace.export import SpanExportResult

    made = _made(run, spans)
    for at in range(0, len(made), AT_ONCE):
        if exporter.export(made[at : at + AT_ONCE]) is not SpanExportResult.SUCCESS:
            where = f"at {without_userinfo(endpoint)}"
            raise EndpointError(
                "the collector did not take the spans", where=where, fix="check that it runs, and read its log"
            )
    exporter.shutdown()


def _made(run: str, spans: Sequence[Span]) -> "list[ReadableSpan]":
    from opentelemetry import trace
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.id_generator import IdGenerator

    number = partial(next, count())

    class Ids(IdGenerator):
        """The same for the same run."""

        def generate_trace_id(self) -> int:
            return _hashed(run, 16)

        def generate_span_id(self) -> int:
            return _hashed(f"{run} {number()}", 8)

    class Kept(SpanProcessor):
        def on_end(self, span: "ReadableSpan") -> None:
            ended.append(span)

    ended: list[ReadableSpan] = []
    provider = TracerProvider(resource=resource(), id_generator=Ids(), shutdown_on_exit=False)
    provider.add_span_processor(Kept())
    tracer = provider.get_tracer("hira", version("hira"))
    begun: dict[str, trace.Span] = {}
    for one in spans:
        parent = trace.set_span_in_context(begun[one.parent]) if one.parent else Context()
        kind = trace.SpanKind.CLIENT if one.remote else trace.SpanKind.INTERNAL
        made = tracer.start_span(one.name, parent, kind, one.attributes, start_time=_nanoseconds(one.began))
        if one.error:
            made.set_attribute("error.type", "_OTHER")
            made.set_status(trace.Status(trace.StatusCode.ERROR, one.error))
        begun[one.id] = made
    for one in spans:
        begun[one.id].end(_nanoseconds(one.ended))
    return ended


def _hashed(text: str, size: int) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size).digest()) or 1


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
