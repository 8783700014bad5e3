"""The curation of a set of questions: stage by stage, each decision recorded, resumed after a crash (MARS, Figure 4).

A folder holds all of it: `curation.json` has the questions' digest and the options, `decisions.jsonl` a line for each
decision, `attempts/` the evaluation of the last stage, `curated.jsonl` the kept questions.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.core.errors import UsageError
from hira.core.files import replace_file
from hira.core.window import map_concurrently
from hira.evaluation.cells import grid
from hira.evaluation.files import Item
from hira.evaluation.report import format_table
from hira.evaluation.run import EvaluationPlan, claim_folder, digest
from hira.evaluation.scorers import Scorer
from hira.journal.lines import encode_line
from hira.runtime.settings import Settings
from hira.trainers import records
from hira.trainers.curation.filters import (
    SIMILARITY,
    STAGES,
    Attempts,
    Challenge,
    Stage,
    StageDecision,
    decide,
    find_duplicates,
    judge,
)

PLAN, DECISIONS, ATTEMPTS, CURATED = "curation.json", "decisions.jsonl", "attempts", "curated.jsonl"


@dataclass(frozen=True, slots=True)
class Curating:
    """The description of a curation: its questions, its `stages` in order, and their options. `concurrency` bounds
    concurrent judge calls."""

    data: str
    items: tuple[Item, ...]
    stages: tuple[Stage, ...] = STAGES
    similarity: float = SIMILARITY
    challenge: Challenge = field(default_factory=Challenge)
    concurrency: int = 16

    def __post_init__(self) -> None:
        if strange := [stage for stage in self.stages if stage not in STAGES]:
            raise UsageError(f"unknown stage {strange[0]!r}", fix=f"there are {', '.join(STAGES)}")
        if sorted(self.stages, key=STAGES.index) != list(self.stages) or len(set(self.stages)) < len(self.stages):
            raise UsageError("the stages are in the wrong order", fix=f"use the order {', '.join(STAGES)}")
        if not 0 < self.similarity <= 1:
            what = f"`similarity` must be above 0 and at most 1, got {self.similarity:g}"
            raise UsageError(what, fix="0 would make all questions duplicates; 1 removes equal ones only")
        if {"level", "clarity", "expert", "challenge"} & {*self.stages}:
            bare = next((item.id for item in self.items if not item.answerable), None)
            if bare is not None:
                what = f"the question {bare!r} has no answer"
                raise UsageError(what, where=f"in {self.data}", fix="give it one, or use --stages duplicates")

    def to_json(self) -> dict[str, Any]:
        """Return what identifies the curation. How many calls run at once does not matter."""
        told = asdict(replace(self, items=(), challenge=replace(self.challenge, concurrency=0), concurrency=0))
        return told | {"items": len(self.items), "digest": digest(self.items)}


@dataclass(frozen=True, slots=True)
class Passed:
    """The input of a stage and its result. `undecided` are questions without a decision."""

    stage: Stage
    came: tuple[str, ...]
    kept: tuple[str, ...]
    undecided: tuple[str, ...]

    @property
    def removed(self) -> int:
        return len(self.came) - len(self.kept) - len(self.undecided)


@dataclass
class Curation:
    """A curation in a folder. `context` has the role `judge`; `settings` and `score` are for the attempts. `decisions`
    are those so far: a later line about the same stage and question replaces an earlier one. Raises `UsageError` for a
    folder that holds another curation."""

    curating: Curating
    folder: Path
    context: RunContext | None = None
    settings: Settings | None = None
    score: Scorer | None = None
    tell: Callable[[str], None] = lambda _: None
    passed: list[Passed] = field(default_factory=list, init=False)
    decisions: dict[tuple[Stage, str], StageDecision] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        begin_folder(self.folder, self.curating.to_json())
        records.cut(self.folder / DECISIONS, 0)  # an incomplete last line
        read = (StageDecision(**values) for values in records.read(self.folder / DECISIONS))
        self.decisions = {(decision.stage, decision.id): decision for decision in read}

    def decisions_of(self, stage: Stage) -> dict[str, StageDecision]:
        return {question: decision for (decided, question), decision in self.decisions.items() if decided == stage}

    def _enter(self, decisions: Iterable[StageDecision]) -> None:
        """Add decisions, and write those that are new or changed."""
        new = [decision for decision in decisions if self.decisions.get((decision.stage, decision.id)) != decision]
        if new:
            records.append_records(self.folder / DECISIONS, map(asdict, new))
            self.decisions.update({(decision.stage, decision.id): decision for decision in new})

    async def run(self) -> list[Item]:
        """Return the questions that all stages keep, and write them to `curated.jsonl` with the findings on each, as
        `hira eval` and `hira-train` read them. Decided questions are not asked again."""
        self.passed = []
        left = list(self.curating.items)
        for stage in self.curating.stages:
            if stage == "duplicates":
                self._enter(find_duplicates(left, self.curating.similarity))
            elif stage == "challenge":
                await self._challenge(left)
            else:
                await self._judge(stage, left)
            known, came = self.decisions_of(stage), tuple(item.id for item in left)
            left = [item for item in left if item.id in known and known[item.id].kept]
            undecided = tuple(name for name in came if name not in known)
            passed = Passed(stage, came, tuple(item.id for item in left), undecided)
            self.passed.append(passed)
            more = f", {len(passed.undecided)} undecided" if passed.undecided else ""
            self.tell(f"{stage}: {len(passed.kept):,} of {len(passed.came):,} kept{more}")
        findings: dict[str, dict[str, Any]] = {item.id: row_of(item) for item in left}
        for (_, question), decision in self.decisions.items():
            told = {name: value for name, value in decision.told.items() if name != "of"}
            findings.setdefault(question, {}).update(told)
        replace_file(self.folder / CURATED, (encode_line(findings[item.id]) for item in left))
        return left

    async def _judge(self, stage: Stage, items: Sequence[Item]) -> None:
        if self.context is None:
            raise UsageError(f"the stage {stage!r} asks a judge", fix="name one with --judge MODEL")
        known, roles = self.decisions_of(stage), self.context.roles
        budget, events = self.context.budget, self.context.events

        async def ask(item: Item) -> StageDecision | None:
            context = RunContext(roles, Rollout("", item.question, "curation"), budget=budget, events=events)
            return await judge(context.conversation("judge"), stage, item)

        unjudged = (item for item in items if item.id not in known)
        async with aclosing(map_concurrently(unjudged, self.curating.concurrency, ask)) as judged:
            async for decision in judged:
                self._enter([decision] if decision else [])

    async def _challenge(self, items: Sequence[Item]) -> None:
        if self.settings is None or self.score is None:
            raise UsageError("the stage 'challenge' asks a workflow", fix="name a model for it with --model")
        curating, wanted = self.curating, [item.id for item in items]
        challenge = curating.challenge
        cells = tuple(grid([challenge.workflow], [], challenge.attempts))  # each has its own seed
        metric, many = challenge.metric, challenge.concurrency
        plan = EvaluationPlan(curating.data, curating.items, cells, self.settings, metric, many)
        attempts = Attempts(plan, self.folder / ATTEMPTS, self.score, wanted)
        async with aclosing(attempts.each()) as results:
            async for _ in results:
                pass
        if attempts.failure:
            raise attempts.failure
        self._enter(decide(challenge, attempts.records, wanted))


def row_of(item: Item) -> dict[str, Any]:
    """Return a question as a line of a file; the other columns of its set come first."""
    row: dict[str, Any] = {"id": item.id, "question": item.question}
    row |= {"every": list(item.every)} if item.every else {"answers": list(item.answers)}
    row |= {"category": item.category} if item.category else {}
    row |= {"files": [str(file) for file in item.files]} if item.files else {}
    known: dict[str, Any] = json.loads(json.dumps({**item.meta, **row}, default=str))
    return known


def begin_folder(folder: Path, shown: Mapping[str, Any]) -> None:
    """Record the work of a folder. Raises `UsageError` if the folder holds other work."""
    claim_folder(folder, PLAN, json.loads(json.dumps(shown)), "curation")


FUNNEL = "funnel.md"
NAMES = {
    "level": "academic level",
    "duplicates": "no near-duplicate",
    "clarity": "clear",
    "expert": "for experts",
    "challenge": "answered at times",
}


def write_funnel(curation: Curation) -> str:
    """Write `funnel.md` to the folder, and return its tables."""
    told = format_funnel(len(curation.curating.items), curation.passed)
    if challenge := curation.decisions_of("challenge"):
        told += "\n" + format_outcomes(challenge.values(), curation.curating.challenge)
    (curation.folder / FUNNEL).write_text(f"# {curation.curating.data}: curation\n\n{told}", encoding="utf-8")
    return told


def format_funnel(came: int, passed: Sequence[Passed]) -> str:
    """Return the funnel in Markdown, a row per stage; shares are of the questions that entered the stage."""
    rows = [["all questions", f"{came:,}", "", "", f"{came:,}", ""]]
    for stage in passed:
        share = f"{100 * len(stage.kept) / len(stage.came):.0f} %" if stage.came else "–"
        counts = (len(stage.came), stage.removed, len(stage.undecided), len(stage.kept))
        rows.append([NAMES[stage.stage], *(f"{count:,}" for count in counts), share])
    return "\n".join(format_table(["stage", "came", "removed", "undecided", "kept", "share"], rows)) + "\n"


def format_outcomes(decisions: Iterable[StageDecision], challenge: Challenge) -> str:
    known = (decision.told for decision in decisions if decision.told["known"] == challenge.attempts)
    counts = Counter(int(told["right"]) for told in known)
    rows = []
    for right in range(challenge.attempts + 1):
        fate = "kept" if challenge.fewest <= right <= challenge.most else "removed"
        rows.append([str(right), f"{counts[right]:,}", fate])
    return "\n".join(format_table([f"right of {challenge.attempts}", "questions", ""], rows)) + "\n"
