"""Reasoning distillation and memory construction in one call (HiRA, "Reasoning Distillation Process")."""

from collections.abc import Collection

from pydantic import Field, field_validator

from hira.agents.expert import Account
from hira.agents.record import Reply, ask_for_record
from hira.agents.run_context import Conversation
from hira.core.memory import NAMED, Fact, Resource
from hira.core.messages import user
from hira.core.patterns import compile_lazily
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.tokens import clip
from hira.evidence import Sources, drop_unknown, find_cited
from hira.tools.addresses import canonicalise_url

DISTIL = Prompt(__file__, "distil")
NO_CONCLUSION = Prompt(__file__, "reports", "no_conclusion")
LONGEST = 80_000
"""Tokens of an expert's work that are distilled; beyond, the middle is cut (HiRA)."""
SHORT = 2_000
"""Tokens of an expert's work up to which its own conclusion is its report, and no call condenses it."""
_ID = compile_lazily(r"s\d+")
_IDS = compile_lazily(r"s\d+(?:\s*(?:[,;]|and)\s*s\d+)*")


class FactRecord(Reply):
    text: str = Field(min_length=1, json_schema_extra={"maxLength": 500})
    sources: list[str] = Field(default=[], json_schema_extra={"maxItems": 5})

    @field_validator("sources", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    def resolve(self, sources: Sources, subtask: str) -> Fact:
        """With sources that were really read, by where they lie or by id; a fact without any is an inference. Its text
        names none, because memory writes the sources after each fact."""
        places = {canonicalise_url(source.location): source.id for source in sources.read.values()}
        named: list[str] = []
        for written in (*self.sources, *(match[1] for match in NAMED.finditer(self.text))):
            entry = written.strip().strip("\"'`<>")
            if known := places.get(canonicalise_url(entry)):
                named.append(known)
            else:  # what merely looks like an id stays part of an address, as in `https://data.s1.example`
                named += _ID.findall(entry) if _IDS.fullmatch(entry) else find_cited(entry)
        named += find_cited(self.text)
        text, _ = drop_unknown(NAMED.sub("", self.text), sources)
        return Fact(
            " ".join(text.split()), tuple(dict.fromkeys(source for source in named if source in sources)), subtask
        )


class ResourceRecord(Reply):
    description: str = Field(min_length=1, json_schema_extra={"maxLength": 200})
    path: str = Field(min_length=1, json_schema_extra={"maxLength": 500})

    def resolve(self, sources: Sources, files: Collection[str], subtask: str) -> Resource | None:
        """With a path under which something can be opened: that of a source that was read, one that such a source
        names, or a file of the run. None for any other, which the model may have invented."""
        path = self.path.strip().strip("\"'`<>")
        place = canonicalise_url(path)
        if source := sources.read.get(path):
            return Resource(self.description, source.location, subtask)
        known = path in files or any(
            place == canonicalise_url(source.location) or path in source.text for source in sources.read.values()
        )
        return Resource(self.description, path, subtask) if known else None


class Report(Reply):
    """The report for the planner."""

    reasoning: str = Field(json_schema_extra={"maxLength": 1000})
    conclusion: str = Field(min_length=1, json_schema_extra={"maxLength": 2000})


class Notes(Reply):
    """The notes for memory."""

    facts: list[FactRecord] = Field(default=[], json_schema_extra={"maxItems": 10})
    resources: list[ResourceRecord] = Field(default=[], json_schema_extra={"maxItems": 5})


class Distillate(Notes, Report):
    """Both, made in one call. (The fields of the last parent come first, so that the model reasons before it notes.)"""


async def distil(
    conversation: Conversation, task: str, account: Account, *, report: bool = True, notes: bool = True
) -> Distillate:
    """Distil the expert's work into a `report` for the planner and `notes` for memory. Only the parts that somebody
    reads are requested; without a report the expert's own words take its place. Raises `DialectError`."""
    work = clip(account.reasoning, LONGEST, middle=True)
    shape: type[Reply] = Distillate if report and notes else Report if report else Notes
    message = user(DISTIL.fill(task=sanitize(task), work=sanitize(work), report=report, notes=notes))
    record = await ask_for_record(conversation, message, shape)
    return keep_words(account).model_copy(update=dict(record))


def keep_words(account: Account, *, notes: bool = False) -> Distillate:
    """The expert's own words; with `notes`, memory keeps its conclusion as well, if it found something."""
    conclusion = account.conclusion or NO_CONCLUSION.fill()
    text = account.conclusion if notes and account.found and not account.ended else ""
    facts = [FactRecord(text=" ".join(text.split()))] if text.strip() else []
    return Distillate(reasoning="", conclusion=conclusion, facts=facts)
