"""The answer to a question, for Python and as JSON."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from hira.agents.trajectory import Rollout, Status
from hira.core.errors import BadReply, UsageError
from hira.core.policy import Usage
from hira.evidence import Citation, Source, find_cited, flag_claims
from hira.evidence.citations import locate

if TYPE_CHECKING:
    from hira.agents.output_type import OutputType

T = TypeVar("T", default=Any)


class NoSource(UsageError, KeyError):
    """An answer has no source of this id."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The result of a run.

    Args:
        text: The answer, with its sources cited as `[s1]`.
        status: `answered`, `unverified` (no source supports the main claim, or what another one states, a source
            contradicts one, or the claims do not answer the question), `insufficient_evidence` (the answer says that
            it has none), `partial` (a budget or the length of a reply ended it), `interrupted` or `failed`. The text
            of the last three consists of the results until then.
        citations: The sources of each claim, with a verdict.
        sources: Everything that was read.
        rollout: Every turn of the run, its memory and its usage.
        model: The model that answered.
        error: The failure that ended the run, empty if none did.
        notices: The notes of the run that the terminal shows, such as a service that was down.
        output_type: The requested type of `output`.
    """

    text: str
    status: Status
    citations: tuple[Citation, ...]
    sources: tuple[Source, ...] = field(repr=False)
    rollout: Rollout = field(repr=False)
    model: str
    error: str = ""
    notices: tuple[str, ...] = ()
    output_type: "OutputType | None" = field(default=None, repr=False)

    @property
    def usage(self) -> Usage:
        """Calls, tokens, seconds and dollars that the run has cost."""
        return self.rollout.usage

    @property
    def run_id(self) -> str:
        """The id of the run, for `hira show` and `hira resume` if it has a journal."""
        return self.rollout.run

    @property
    def output(self) -> T:
        """The answer as a value of the requested `output_type`. Raises `BadReply` without one."""
        if not self.rollout.has_output:
            fix = "read `text` instead, or ask again" if self.output_type else "give ask an output_type"
            raise BadReply(f"the answer has no output: {self.rollout.output_error or 'none was asked for'}", fix=fix)
        value: T = self.rollout.output
        return value

    @property
    def output_sources(self) -> dict[str, tuple[str, ...]]:
        """For each field of `output`, such as `orders.0.price`, the ids of the sources of the supported claims that
        contain its value; hira does not check that such a claim speaks of the field."""
        return self._describe_fields(lambda citation: citation.source)

    @property
    def output_places(self) -> dict[str, tuple[str, ...]]:
        """For each field of `output`, the places of supported claims with its value, such as "prices.pdf, p. 12"."""
        return self._describe_fields(lambda citation: locate(self.rollout.sources.read[citation.source], [citation]))

    def _describe_fields(self, describe: Callable[[Citation], str]) -> dict[str, tuple[str, ...]]:
        if not self.rollout.has_output:
            return {}
        from hira.agents.output_type import find_field_citations  # few answers have an output

        cited = find_field_citations(self.rollout.output, list(self.citations))
        return {path: tuple(dict.fromkeys(map(describe, citations))) for path, citations in cited.items()}

    @property
    def cited(self) -> tuple[Source, ...]:
        """The sources that the text cites, in its order, and those that were found to support an uncited claim."""
        read = self.rollout.sources.read
        found = [citation.source for citation in self.citations if citation.attributed and citation.verdict.holds]
        return tuple(read[source] for source in dict.fromkeys([*find_cited(self.text), *found]) if source in read)

    def __str__(self) -> str:
        """The answer, its status, and each claim with its verdict, its source and the words that the source lacks."""
        return "\n".join([self.text, f"({self.status})", *self._list_claims()])

    def _repr_markdown_(self) -> str:
        """The answer, its sources, and each claim with its verdict, as a notebook shows them."""
        sources = [
            " ".join(f"- [{source.id}] {source.title or source.location} — {locate(source, self.citations)}".split())
            for source in self.cited
        ]
        claims = [f"- {line}" for line in self._list_claims()]
        return "\n\n".join(filter(None, [self.flagged or f"*{self.status}*", "\n".join(sources), "\n".join(claims)]))

    def _list_claims(self) -> list[str]:
        return [
            f"{citation.flag()}: {citation.claim} [{citation.source}]" for citation in self.citations if citation.by
        ]

    @property
    def flagged(self) -> str:
        """The text, with the verdict after every checked claim that is not supported."""
        return flag_claims(self.text, self.citations)

    def source(self, source: str) -> Source:
        """The source with an id such as `s1`. Raises `NoSource`, a `UsageError` and a `KeyError`, for an unknown id."""
        read = self.rollout.sources.read
        if source not in read:
            raise NoSource(f"this answer has no source {source!r}", fix=f"it has {', '.join(read) or 'none'}")
        return read[source]

    def json(self) -> dict[str, Any]:
        """The answer as one JSON object: the same keys for every run, and `output` where a type was asked for."""
        from hira.runtime.answer_json import answer_as_json  # most answers are printed as a text

        return answer_as_json(self)


def answer_of(record: Rollout, model: str, output_type: "OutputType | None" = None) -> Answer[Any]:
    """The answer that a rollout came to."""
    citations, sources, notices = tuple(record.citations), tuple(record.sources.read.values()), tuple(record.notices)
    return Answer(record.answer, record.status, citations, sources, record, model, record.error, notices, output_type)
