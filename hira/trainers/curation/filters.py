"""Filters of questions and their decisions: near-duplicates, judges, and best of N (MARS, appendix B)."""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from hira.agents.run_context import Conversation
from hira.core.errors import UsageError
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evaluation.files import Item
from hira.evaluation.record import Record
from hira.evaluation.rewards.answer_judge import ask_judge
from hira.evaluation.run import Evaluation, EvaluationPlan, EvaluationTask
from hira.evaluation.scorers import Scorer

Stage = Literal["level", "duplicates", "clarity", "expert", "challenge"]
STAGES: tuple[Stage, ...] = ("level", "duplicates", "clarity", "expert", "challenge")
"""The stages in the order of MARS, appendix B."""


@dataclass(frozen=True, slots=True)
class StageDecision:
    """The decision of a stage on the question with that id: kept or not, and why. `told` are the stage's own figures.
    A question whose judge failed has no decision, and is asked again when the curation resumes."""

    stage: Stage
    id: str
    kept: bool
    why: str = ""
    told: Mapping[str, Any] = field(default_factory=dict)


_WORDS = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


SIMILARITY = 0.7
"""The least similarity of two equal questions."""
SHINGLE = 4
PERMUTATIONS = 128
"""The size of a MinHash, which only finds pairs; they are then compared exactly."""


def plain(question: str) -> str:
    """Return the words of a question alone: without case, punctuation, accents and marks."""
    folded = unicodedata.normalize("NFKD", question).casefold()
    return " ".join(_WORDS.findall("".join(sign for sign in folded if not unicodedata.combining(sign))))


def shingles(question: str) -> frozenset[str]:
    """Return all runs of `SHINGLE` letters of the plain question; of half as many if a letter is a syllable or a
    word."""
    text = plain(question)
    size = SHINGLE // 2 if _CJK.search(text) else SHINGLE
    return frozenset(text[index : index + size] for index in range(max(1, len(text) - size + 1)))


def jaccard(first: frozenset[str], other: frozenset[str]) -> float:
    """Return |A ∩ B| / |A ∪ B|; 1 for two empty sets."""
    return len(first & other) / len(first | other) if first or other else 1.0


def find_duplicates(items: Sequence[Item], similarity: float = SIMILARITY) -> list[StageDecision]:
    """Return one decision for each item, in their order. The first of similar items is kept: the similarity is the
    Jaccard index of their shingles, and questions that differ in a number are different. Removed items are compared
    with nothing, so that a chain of small changes does not swallow a different question. Raises `UsageError` if
    datasketch is not installed."""
    if find_spec("datasketch") is None:
        raise UsageError("datasketch is not installed", fix="pip install 'hira[curate]'")
    from datasketch import MinHash, MinHashLSH  # type: ignore[import-untyped]

    # a lower threshold for candidates: an LSH misses pairs close to its own
    index = MinHashLSH(threshold=0.75 * similarity, num_perm=PERMUTATIONS)
    kept: dict[str, frozenset[str]] = {}
    numbers: dict[str, list[str]] = {}
    decisions = []
    for item in items:
        item_shingles = shingles(item.question)
        figures = sorted(re.findall(r"\d+", item.question))
        hashed = MinHash(num_perm=PERMUTATIONS, seed=1)
        hashed.update_batch([shingle.encode() for shingle in sorted(item_shingles)])
        alike = [other for other in sorted(index.query(hashed)) if numbers[other] == figures]
        near = [(jaccard(item_shingles, kept[other]), other) for other in alike]
        close = max(near, default=(0.0, ""), key=lambda match: match[0])
        if close[0] >= similarity:
            why, values = f"nearly the same as {close[1]}", {"of": close[1], "similarity": round(close[0], 4)}
            decisions.append(StageDecision("duplicates", item.id, kept=False, why=why, told=values))
            continue
        index.insert(item.id, hashed)
        kept[item.id], numbers[item.id] = item_shingles, figures
        decisions.append(StageDecision("duplicates", item.id, kept=True))
    return decisions


LEVEL = Prompt(__file__, "curation_level")
CLARITY = Prompt(__file__, "curation_clarity")
EXPERT = Prompt(__file__, "curation_expert")


class Judgement(BaseModel):
    """A judge's answer; each kind has one more field, with the verdict."""

    reason: str = ""


class Level(Judgement):
    discipline: str = Field(min_length=1)
    level: Literal["school", "undergraduate", "graduate", "none"]


class Clear(Judgement):
    clear: Literal["yes", "no"]


class ExpertJudgement(Judgement):
    expert: Literal["yes", "no"]


JUDGED: Mapping[Stage, tuple[Prompt, type[Judgement], str, Collection[str]]] = {
    "level": (LEVEL, Level, "level", ("undergraduate", "graduate")),
    "clarity": (CLARITY, Clear, "clear", ("yes",)),
    "expert": (EXPERT, ExpertJudgement, "expert", ("yes",)),
}
"""The prompt of each stage, the form of its answer, the field of the verdict, and the verdicts that keep a question.
Step 1 keeps questions that may be of undergraduate or graduate level, step 3 clear and unambiguous ones with one
answer, step 4 those that require knowledge of advanced or graduate studies."""


async def judge(conversation: Conversation, stage: Stage, item: Item) -> StageDecision | None:
    """Return the judge's decision; None, with a notice, if it failed."""
    prompt, shape, verdict, keeping = JUDGED[stage]
    filled = prompt.fill(question=sanitize(item.question), answer=sanitize(item.gold))
    read = await ask_judge(conversation, filled, shape, failed=f"{item.id} is not decided")
    if read is None:
        return None
    told = read.model_dump(include={"discipline", "level"})
    return StageDecision(stage, item.id, kept=getattr(read, verdict) in keeping, why=read.reason, told=told)


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

    def __init__(self, plan: EvaluationPlan, folder: Path, score: Scorer, wanted: Collection[str]) -> None:
        super().__init__(plan, folder, score)
        self.wanted = frozenset(wanted)

    @property
    def left(self) -> list[EvaluationTask]:
        return [task for task in super().left if task.item.id in self.wanted]


def decide(challenge: Challenge, records: Sequence[Record], wanted: Collection[str]) -> list[StageDecision]:
    """Return the decisions on all questions with enough known outcomes: those of attempts that no outside failure broke
    and that were scored."""
    outcomes: dict[str, list[bool]] = {name: [] for name in wanted}
    for record in records:
        broken = record.error and not record.error.startswith(OWN)
        if record.id in outcomes and not broken and record.score.correct is not None:
            outcomes[record.id].append(record.score.correct)
    decisions = []
    for question, known in outcomes.items():
        right = sum(known)
        kept = challenge.keeps(right, challenge.attempts - len(known))
        if kept is not None:
            values = {"right": right, "known": len(known), "of": challenge.attempts}
            why = "" if kept else "never answered" if right < challenge.fewest else "answered too often"
            decisions.append(StageDecision("challenge", question, kept=kept, why=why, told=values))
    return decisions
