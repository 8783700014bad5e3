"""Reasoning distillation and memory construction in one call (HiRA, "Reasoning Distillation Process")."""

import re

from pydantic import BaseModel, Field, field_validator

from hira.agents.expert import Account
from hira.agents.record import record
from hira.evidence import Sources, cited
from hira.memory import Fact, Resource
from hira.messages import user
from hira.prompts import Prompt
from hira.team import Conversation
from hira.tokens import clip

DISTIL = Prompt(__file__, "distil")
LONGEST = 80_000
"""Tokens of an expert's work that are distilled; beyond, the middle is cut (HiRA)."""


class FactRecord(BaseModel):
    text: str = Field(min_length=1)
    sources: list[str] = []

    @field_validator("sources", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    def resolved(self, sources: Sources, subtask: str) -> Fact:
        """With sources that were really read, by id or by where they lie; a fact without any is an inference."""
        by_location = {source.location: source.id for source in sources.read.values()}
        named = [one for entry in (*self.sources, *cited(self.text)) for one in (_ids(entry) or [entry.strip()])]
        known = [by_location.get(one, one) for one in named]
        return Fact(self.text, tuple(dict.fromkeys(one for one in known if one in sources)), subtask)


class ResourceRecord(BaseModel):
    description: str = Field(min_length=1)
    path: str = Field(min_length=1)

    def kept(self, subtask: str) -> Resource:
        return Resource(self.description, self.path, subtask)


class Distillate(BaseModel):
    reasoning: str
    conclusion: str = Field(min_length=1)
    facts: list[FactRecord] = []
    resources: list[ResourceRecord] = []


async def distil(conversation: Conversation, task: str, account: Account) -> Distillate:
    """What the planner needs of the expert's work, and what memory should keep. Raises `DialectError`."""
    work = clip(account.reasoning, LONGEST, middle=True)
    return await record(conversation, user(DISTIL.fill(task=task, work=work)), Distillate)


def taken_as_it_is(account: Account) -> Distillate:
    """The last resort: the expert's own words."""
    return Distillate(reasoning="", conclusion=account.conclusion or "The expert came to no conclusion.")


def _ids(entry: str) -> list[str]:
    return re.findall(r"\bs\d+\b", entry)
