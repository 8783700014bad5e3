"""An answer as JSON, and its parts."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hira.core.policy import Usage
from hira.evidence import Citation, Sources
from hira.evidence.citations import find_page, find_places


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


def answer_as_json(answer: Any) -> dict[str, Any]:
    """An `Answer` as one JSON object: the same keys for every run, and `output` where a type was asked for."""
    record = answer.rollout
    written: dict[str, Any] = {
        "question": record.question,
        "answer": answer.text,
        "status": answer.status,
        "error": answer.error,
        "notices": list(answer.notices),
        "citations": citations_as_json(answer.citations, record.sources),
        "answers_question": record.answers,
        "sources": [
            {
                "id": source.id,
                "title": source.title,
                "location": source.location,
                "kind": source.kind,
                "places": find_places(source.id, answer.citations),
            }
            for source in answer.sources
        ],
        "facts": [{**asdict(fact), "sources": list(fact.sources)} for fact in record.memory.facts],
        "resources": [asdict(resource) for resource in record.memory.resources],
        "subtasks": [
            {"text": finding.subtask.text, "expert": finding.expert, "conclusion": finding.conclusion}
            for finding in record.findings
        ],
        "usage": usage_as_json(record.usage),
        "workflow": record.workflow,
        "model": answer.model,
        "run_id": record.run,
    }
    if answer.output_type is None:
        return written
    return {
        **written,
        "output": answer.output_type.dump(record.output) if record.has_output else None,
        "output_sources": {path: list(ids) for path, ids in answer.output_sources.items()},
        "output_places": {path: list(named) for path, named in answer.output_places.items()},
        "output_error": record.output_error,
    }
