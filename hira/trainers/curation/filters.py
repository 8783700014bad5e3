"""Filters of questions and their decisions: near-duplicates, judges, and best of N (MARS, appendix B)."""

import re
import unicodedata
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field

from hira.agents.record import ask_for_record
from hira.agents.run_context import Conversation
from hira.core.errors import DialectError, EndpointError, UsageError
from hira.core.events import Notice
from hira.core.messages import user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evaluation.cells import grid
from hira.evaluation.files import Item
from hira.evaluation.record import Record
from hira.evaluation.run import Evaluation, Plan, Task
from hira.evaluation.scorers import Scorer
from hira.runtime.settings import Settings

Stage = Literal["level", "duplicates", "clarity", "expert", "challenge"]
STAGES: tuple[Stage, ...] = ("level", "duplicates", "clarity", "expert", "challenge")
"""The stages in the order of MARS, appendix B."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a stage on the question with that id: kept or not, and why. `told` are the stage's own figures.

    A question whose judge failed has no decision: it is neither kept nor removed, and is asked again when the curation
    resumes.
    """

    stage: Stage
    id: str
    kept: bool
    why: str = ""
    told: Mapping[str, Any] = field(default_factory=dict)


_WORDS = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Alike:
    """The least similarity of two equal questions: the Jaccard index of their shingles, runs of `shingle` letters.

    `permutations` is the size of a MinHash; it only finds the pairs, which are then compared exactly. Questions that
    differ in a number are different ones, unless `numbers` is False.
    """

    threshold: float = 0.7
    shingle: int = 4
    permutations: int = 128
    numbers: bool = True
    seed: int = 1


def plain(question: str) -> str:
    """Return the words of a question alone: without case, punctuation, accents and marks."""
    folded = unicodedata.normalize("NFKD", question).casefold()
    return " ".join(_WORDS.findall("".join(sign for sign in folded if not unicodedata.combining(sign))))


def shingles(question: str, size: int) -> frozenset[str]:
    """Return all runs of `size` letters of the plain question; of half as many if a letter is a syllable or a word."""
    text = plain(question)
    size = max(1, size // 2) if _CJK.search(text) else size
    return frozenset(text[at : at + size] for at in range(max(1, len(text) - size + 1)))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return |A ∩ B| / |A ∪ B|; 1 for two empty sets."""
    return len(one & other) / len(one | other) if one or other else 1.0


def find_duplicates(items: Sequence[Item], alike: Alike = Alike()) -> list[Decision]:
    """Return one decision for each item, in their order. The first of similar items is kept.

    An item is compared with kept items, not with removed ones, so that a chain of small changes does not swallow a
    different question. Raises `UsageError` if datasketch is not installed.
    """
    if find_spec("datasketch") is None:
        raise UsageError("datasketch is not installed", fix="pip install 'hira[curate]'")
    from datasketch import MinHash, MinHashLSH  # type: ignore[import-untyped]

    # a lower threshold for candidates: an LSH misses pairs close to its own
    index = MinHashLSH(threshold=max(0.1, 0.75 * alike.threshold), num_perm=alike.permutations)
    kept: dict[str, frozenset[str]] = {}
    numbers: dict[str, list[str]] = {}
    found = []
    for item in items:
        own = shingles(item.question, alike.shingle)
        figures = sorted(re.findall(r"\d+", item.question))
        hashed = MinHash(num_perm=alike.permutations, seed=alike.seed)
        hashed.update_batch([one.encode() for one in sorted(own)])
        near = [
            (jaccard(own, kept[other]), other)
            for other in sorted(index.query(hashed))
            if not alike.numbers or numbers[other] == figures
        ]
        close = max(near, default=(0.0, ""), key=lambda one: one[0])
        if close[0] >= alike.threshold:
            told = {"of": close[1], "similarity": round(close[0], 4)}
            found.append(Decision("duplicates", item.id, kept=False, why=f"nearly the same as {close[1]}", told=told))
            continue
        index.insert(item.id, hashed)
        kept[item.id], numbers[item.id] = own, figures
        found.append(Decision("duplicates", item.id, kept=True))
    return found


LEVEL = Prompt(__file__, "curation_level")
CLARITY = Prompt(__file__, "curation_clarity")
EXPERT = Prompt(__file__, "curation_expert")
ACADEMIC = frozenset({"undergraduate", "graduate"})
T = TypeVar("T", bound=BaseModel)


class Level(BaseModel):
    reason: str = ""
    discipline: str = Field(min_length=1)
    level: Literal["school", "undergraduate", "graduate", "none"]


class Clear(BaseModel):
    reason: str = ""
    clear: Literal["yes", "no"]


class Expert(BaseModel):
    reason: str = ""
    expert: Literal["yes", "no"]


Asked = Callable[[Conversation, Item], Awaitable[Decision | None]]


async def level(conversation: Conversation, item: Item) -> Decision | None:
    """Step 1: keep questions that may be of undergraduate or graduate level, with their discipline."""
    read = await _read(conversation, LEVEL, Level, item)
    if read is None:
        return None
    told = {"discipline": read.discipline, "level": read.level}
    return Decision("level", item.id, kept=read.level in ACADEMIC, why=read.reason, told=told)


async def clarity(conversation: Conversation, item: Item) -> Decision | None:
    """Step 3: keep clear and unambiguous questions with one answer."""
    read = await _read(conversation, CLARITY, Clear, item)
    return None if read is None else Decision("clarity", item.id, kept=read.clear == "yes", why=read.reason)


async def expert(conversation: Conversation, item: Item) -> Decision | None:
    """Step 4: keep questions that require knowledge of advanced or graduate studies."""
    read = await _read(conversation, EXPERT, Expert, item)
    return None if read is None else Decision("expert", item.id, kept=read.expert == "yes", why=read.reason)


JUDGED: dict[Stage, Asked] = {"level": level, "clarity": clarity, "expert": expert}


async def _read(conversation: Conversation, prompt: Prompt, shape: type[T], item: Item) -> T | None:
    filled = prompt.fill(question=sanitize(item.question), answer=sanitize(item.gold))
    try:
        return await ask_for_record(conversation, user(filled), shape)
    except (DialectError, EndpointError) as error:
        conversation.context.events(Notice(f"{conversation.name}: {item.id} is not decided, because {error.what}"))
        return None


OWN = ("DialectError", "ContextOverflow", "Withheld", "BadReply", "OutOfBudget", "RoleBudgetExceeded")
"""Failures that an attempt causes itself. Others say nothing about the question."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """`attempts` at each question, of which `fewest` to `most` must be right."""

    attempts: int = 16
    fewest: int = 1
    most: int = 12
    workflow: str = "mars"
    metric: str = "match"
    concurrency: int = 8

    def __post_init__(self) -> None:
        if not 0 <= self.fewest <= self.most <= self.attempts or not self.attempts:
            what = f"{self.fewest} to {self.most} of {self.attempts} attempts cannot be right"
            raise UsageError(what, fix="choose 0 ≤ fewest ≤ most ≤ attempts")

    def keeps(self, right: int, unknown: int) -> bool | None:
        """Return whether a question is kept, given the numbers of right and of unknown attempts.

        None if that depends on the unknown ones.

        >>> Challenge().keeps(3, 0), Challenge().keeps(0, 0), Challenge().keeps(13, 3), Challenge().keeps(0, 1)
        (True, False, False, None)
        """
        possible = {self.fewest <= right + more <= self.most for more in range(unknown + 1)}
        return possible.pop() if len(possible) == 1 else None


class Attempts(Evaluation):
    """The attempts at the questions so far, in an evaluation of all of them: a later stage adds its attempts to the
    same folder."""

    def __init__(self, plan: Plan, folder: Path, score: Scorer, wanted: Collection[str]) -> None:
        super().__init__(plan, folder, score)
        self.wanted = frozenset(wanted)

    @property
    def left(self) -> list[Task]:
        return [task for task in super().left if task.item.id in self.wanted]


def plan_of(challenge: Challenge, data: str, items: Sequence[Item], settings: Settings) -> Plan:
    """Return the plan of the attempts: each is a cell with its own seed."""
    cells = tuple(grid([challenge.workflow], [], challenge.attempts))
    return Plan(data, tuple(items), cells, settings, challenge.metric, challenge.concurrency)


def count_outcomes(records: Sequence[Record], wanted: Collection[str]) -> dict[str, list[bool]]:
    """Return the known outcomes of the attempts at each question."""
    found: dict[str, list[bool]] = {one: [] for one in wanted}
    for one in records:
        if one.id in found and (right := outcome(one)) is not None:
            found[one.id].append(right)
    return found


def outcome(record: Record) -> bool | None:
    """Return whether the attempt was right; None if an outside failure broke it, or no judge scored it."""
    if record.error and not record.error.startswith(OWN):
        return None
    return record.score.correct


def decide(challenge: Challenge, outcomes: Mapping[str, Sequence[bool]]) -> list[Decision]:
    """Return the decisions on all questions with enough known outcomes."""
    found = []
    for question, known in outcomes.items():
        right = sum(known)
        kept = challenge.keeps(right, challenge.attempts - len(known))
        if kept is not None:
            told = {"right": right, "known": len(known), "of": challenge.attempts}
            why = "" if kept else "never answered" if right < challenge.fewest else "answered too often"
            found.append(Decision("challenge", question, kept=kept, why=why, told=told))
    return found
