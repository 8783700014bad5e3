"""OpenTelemetry: a run as spans, by the conventions for generative AI. Needs the extra `otel`."""
