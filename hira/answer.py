"""What a question is answered with, for Python and as JSON."""

from dataclasses import asdict, dataclass, field
from typing import Any

from hira.evidence import Citation, Source, cited
from hira.trajectory import Rollout, Status


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run ends with. `sources` is everything that was read, `citations` what the text rests on.

    `status` is `answered`, `insufficient_evidence`, `partial` (a budget ended the run), `interrupted` or `failed`; the
    text is then what was known by that time, and `error` says what ended it.
    """

    text: str
    status: Status
    citations: tuple[Citation, ...]
    sources: tuple[Source, ...] = field(repr=False)
    rollout: Rollout = field(repr=False)
    model: str
    error: str = ""

    @property
    def cited(self) -> tuple[Source, ...]:
        """The sources that the text cites, in its order."""
        read = self.rollout.sources.read
        return tuple(read[one] for one in cited(self.text) if one in read)

    def source(self, source: str) -> Source:
        """What stands behind an id such as `s1`. Raises `KeyError` for one that nobody read."""
        return self.rollout.sources.read[source]

    def json(self) -> dict[str, Any]:
        """The answer as one JSON object: the same keys for every run."""
        record, usage = self.rollout, self.rollout.usage
        where = record.sources.read
        return {
            "question": record.question,
            "answer": self.text,
            "status": self.status,
            "error": self.error,
            "citations": [
                {"id": one.source, "source": where[one.source].location, "quote": one.quote, "verdict": one.verdict}
                for one in self.citations
            ],
            "sources": [
                {"id": one.id, "title": one.title, "location": one.location, "kind": one.kind} for one in self.sources
            ],
            "facts": [
                {"text": fact.text, "sources": list(fact.sources), "subtask": fact.subtask}
                for fact in record.memory.facts
            ],
            "resources": [asdict(resource) for resource in record.memory.resources],
            "subtasks": [
                {"text": finding.subtask.text, "expert": finding.expert, "conclusion": finding.conclusion}
                for finding in record.findings
            ],
            "usage": {
                "calls": usage.calls,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "cost": usage.cost,
                "seconds": round(usage.seconds, 3),
            },
            "workflow": record.workflow,
            "model": self.model,
            "run_id": record.run,
        }


def answer_of(record: Rollout, model: str) -> Answer:
    """The answer that a rollout came to."""
    return Answer(
        record.answer,
        record.status,
        tuple(record.citations),
        tuple(record.sources.read.values()),
        record,
        model,
        record.error,
    )
