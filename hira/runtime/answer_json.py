"""The parts of an answer as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hira.core.policy import Usage
from hira.evidence import Citation, Sources
from hira.evidence.citations import find_page


def usage_as_json(usage: Usage) -> dict[str, Any]:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
        "seconds": round(usage.seconds, 3),
    }


def citations_as_json(citations: Sequence[Citation], sources: Sources) -> list[dict[str, Any]]:
    """The citations as plain values, each with the location of its source."""
    return [
        {
            "id": citation.source,
            **asdict(citation),
            "source": sources.read[citation.source].location,
            "missing": list(citation.missing),
            "lacking": list(citation.lacking),
            "page": find_page(citation.place),
        }
        for citation in citations
    ]
