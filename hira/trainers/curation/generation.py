"""New questions: chains of facts from a graph (rubrics paper, section 3.2), queries rewritten as requests."""

import random
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from hira.agents.record import ask_for_record
from hira.agents.run_context import Conversation
from hira.core.errors import UsageError
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.window import map_concurrently
from hira.evaluation.files import Item, rows_of
from hira.evaluation.rewards.answer_judge import ask_judge, fill_words
from hira.evaluation.rewards.match import contains
from hira.evidence.references import language
from hira.trainers import records
from hira.trainers.curation.pipeline import begin_folder, row_of


@dataclass(frozen=True, slots=True, order=True)
class Triple:
    """Subject, relation, object. `value` marks an object that is a value, such as a year, at which a chain ends."""

    subject: str
    relation: str
    object: str
    value: bool = False


@dataclass(frozen=True, slots=True)
class FactChain:
    """Facts that each begin where the previous one ends; no entity occurs twice."""

    facts: tuple[Triple, ...]

    @property
    def start(self) -> str:
        return self.facts[0].subject

    @property
    def end(self) -> str:
        return self.facts[-1].object

    @property
    def hidden(self) -> tuple[str, ...]:
        """The entities to find on the way, and the end."""
        return tuple(fact.object for fact in self.facts)


def facts_of(path: Path) -> list[Triple]:
    """Return the facts of a file, each once, in a fixed order. Raises `UsageError` for an incomplete fact or an empty
    file."""
    facts = []
    for number, row in enumerate(rows_of(path), 1):
        parts = [str(row.get(name, "")).strip() for name in ("subject", "relation", "object")]
        if not all(parts):
            fix = 'each line is {"subject": "…", "relation": "…", "object": "…"}'
            raise UsageError("a fact lacks a part", where=f"line {number} of {path}", fix=fix)
        facts.append(Triple(parts[0], parts[1], parts[2], value=bool(row.get("value", False))))
    if not facts:
        raise UsageError("there are no facts", where=f"in {path}", fix="give relations between entities")
    return sorted(set(facts))


TRIES = 50
"""Walks for each wanted path."""
BRANCHING = 50
"""The most facts of an entity on the way: through a country or a year everything is connected to everything."""


def paths(facts: Sequence[Triple], many: int, least: int = 2, most: int = 4, *, seed: int = 0) -> list[FactChain]:
    """Return `many` different paths of `least` to `most` facts, or as many as are found, by walks of that seed: from
    any entity and along any relation with equal chance, so that those with many objects do not crowd out the others.
    Each step is the only one of its relation from there, so that the end is the only answer. Raises `UsageError` if
    `most` is under `least`."""
    if not 1 <= least <= most:
        raise UsageError(f"there are no paths of {least} to {most} facts", fix="1 ≤ least ≤ most")
    onward: dict[str, list[Triple]] = defaultdict(list)
    only: dict[tuple[str, str], int] = defaultdict(int)
    for fact in sorted(set(facts)):
        onward[fact.subject].append(fact)
        only[fact.subject, fact.relation] += 1
    starts, chance = sorted(onward), random.Random(seed)  # noqa: S311 - repeatable walks
    chains: dict[tuple[str, str], FactChain] = {}
    for _ in range(many * TRIES if starts else 0):
        walked = _walk(chance, chance.choice(starts), chance.randint(least, most), onward, only)
        if len(walked.facts) >= least:
            chains.setdefault((walked.start, walked.end), walked)
        if len(chains) == many:
            break
    return list(chains.values())


def _walk(
    chance: random.Random,
    here: str,
    wanted: int,
    onward: Mapping[str, Sequence[Triple]],
    only: Mapping[tuple[str, str], int],
) -> FactChain:
    seen, walked = {here}, list[Triple]()
    while len(walked) < wanted:
        if walked and len(onward.get(here, ())) > BRANCHING:
            break
        choices: dict[str, list[Triple]] = defaultdict(list)
        for fact in onward.get(here, ()):
            if fact.object not in seen and only[fact.subject, fact.relation] == 1:
                choices[fact.relation].append(fact)
        if not choices:
            break
        walked.append(chance.choice(choices[chance.choice(sorted(choices))]))
        here = walked[-1].object
        seen.add(here)
        if walked[-1].value:
            break
    return FactChain(tuple(walked))


SYNTHESIZE = Prompt(__file__, "curation_synthesize")


class WrittenQuestion(BaseModel):
    question: str = Field(min_length=1)


def leaks(question: str, chain: FactChain) -> list[str]:
    """Return the faults of a question for a chain: it does not name the first entity, or it names another one."""
    hidden = [name for name in chain.hidden if contains(question, name) and not contains(chain.start, name)]
    lost = [] if contains(question, chain.start) else [f"it does not name {chain.start}"]
    return [*lost, *(f"it gives {name} away" for name in hidden)]


async def write_question(conversation: Conversation, name: str, chain: FactChain) -> Item | None:
    """Return a question whose answer is the end of the chain; None, with a notice, if the second try also names a
    hidden entity, or the writer fails."""
    told = [f"{number}. {fact.subject} – {fact.relation} – {fact.object}" for number, fact in enumerate(chain.facts, 1)]
    hidden = "\n".join(f"- {name}" for name in chain.hidden)
    prompt = fill_words(SYNTHESIZE, facts="\n".join(told), start=chain.start, answer=chain.end, hidden=hidden)

    def wrong(written: WrittenQuestion) -> str:
        leaked = leaks(written.question, chain)
        return f"The question is not usable: {'; '.join(leaked)}." if leaked else ""

    failed = f"there is no question {name}"
    written = await ask_judge(conversation, prompt, WrittenQuestion, wrong=wrong, failed=failed)
    if written is None:
        return None
    meta = {"path": [[fact.subject, fact.relation, fact.object] for fact in chain.facts]}
    return Item(name, written.question.strip(), (chain.end,), category=f"{len(chain.facts)} hops", meta=meta)


REWRITE = Prompt(__file__, "curation_rewrite")


class Rewritten(BaseModel):
    kept: list[str] = []
    query: str = Field(min_length=1)


async def rewrite_query(conversation: Conversation, query: str) -> str:
    """Rewrite a short question as a request for a report, in the question's language. The names and figures that the
    writer claims to have kept must be in both. Raises `DialectError` if its second try fails, too."""

    def wrong(rewritten: Rewritten) -> str:
        text = rewritten.query.strip()
        if text.casefold() == query.strip().casefold():
            return "This is the question as it was. Write it as a request for a report."
        named = [name for name in rewritten.kept if name.strip()]
        lost = [name for name in named if not (contains(text, name) and contains(query, name))]
        return f"These are not in both, question and request: {', '.join(lost)}." if lost else ""

    prompt = REWRITE.fill(query=sanitize(query), language=language(query))
    return (await ask_for_record(conversation, user(prompt), Rewritten, wrong=wrong)).query.strip()


MADE = "questions.jsonl"
Make = Callable[[str], Awaitable[Item | None]]


async def generate(
    folder: Path, plan: Mapping[str, Any], names: Sequence[str], make: Make, concurrency: int
) -> AsyncGenerator[Item | None, None]:
    """Yield the new item of each name that is missing in the folder; None if `make` failed, which the next run tries
    again. Raises `UsageError` if the folder holds the items of another plan."""
    begin_folder(folder, plan)
    path = folder / MADE
    records.cut(path, 0)
    done = {str(record["id"]) for record in records.read(path)}

    missing = [name for name in names if name not in done]
    async with aclosing(map_concurrently(missing, concurrency, make)) as items:
        async for item in items:
            if item is not None:
                records.append_records(path, [row_of(item)])
            yield item
