"""The run of an evaluation: every question in every cell, concurrently, recorded as they finish, resumed after a crash.

A folder holds all of an evaluation: `plan.json` has its plan, `records.jsonl` a line for each finished question,
`journal.sqlite` the model calls of the others so far.
"""

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hira.api import Hira
from hira.core.errors import AccessDenied, HiraError, Stop, UsageError
from hira.core.events import Event, Reader, ToolEnded, ToolStarted
from hira.core.files import replace_file
from hira.core.window import CONCURRENCY, check_concurrency, map_concurrently
from hira.evaluation.cells import Cell
from hira.evaluation.files import Item
from hira.evaluation.record import Record, Score, read, record_of
from hira.evaluation.scorers import Scorer, check
from hira.journal import NoJournal, StillGoing
from hira.journal.encoding import digest_text, read_json, validate
from hira.journal.lines import append_lines, repair_last_line
from hira.runtime.batch import Batch, Done, Question
from hira.runtime.ray_batch import RayBatch
from hira.runtime.session import Session
from hira.runtime.settings import Settings

RECORDS, PLAN, JOURNAL = "records.jsonl", "plan.json", "journal.sqlite"
HELD_AGAINST = ("rubric", "criteria", "reference")
"""Columns of a set of reports that scores depend on."""


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """The questions, the ways of asking them, and the metric. `data` names the questions, `metric` the scorer. Raises
    `UsageError` for a question that lacks the reference of its metric."""

    data: str
    items: tuple[Item, ...]
    cells: tuple[Cell, ...]
    settings: Settings
    metric: str = "match"
    concurrency: int = CONCURRENCY

    def __post_init__(self) -> None:
        check_concurrency(self.concurrency)
        check(self.metric, self.items, self.data)

    @property
    def total(self) -> int:
        return len(self.items) * len(self.cells)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as recorded, without any key. Two plans with the same JSON values are one evaluation."""
        settings = {k: v for k, v in self.settings.to_json().items() if k not in ("cache", "journal")}
        plan = {
            "data": self.data,
            "questions": [item.id for item in self.items],
            "digest": digest(self.items),
            "cells": [asdict(cell) for cell in self.cells],
            "metric": self.metric,
            "settings": settings,
        }
        encoded = json.dumps(plan, default=lambda value: sorted(value) if isinstance(value, frozenset) else str(value))
        values: dict[str, Any] = json.loads(encoded)
        return values


def among(path: Path, docs: Sequence[Path]) -> bool:
    """Return whether a path is one of the documents or is in one of their folders."""
    return any(path.resolve().is_relative_to(doc.expanduser().resolve()) for doc in docs)


def digest(items: Sequence[Item]) -> str:
    """Return a digest of the questions and of everything that scores them: sets with one digest are the same set."""
    told = [
        [item.id, item.question, item.answers, item.every, item.category, [item.meta.get(key) for key in HELD_AGAINST]]
        for item in items
    ]
    return digest_text(json.dumps(told, ensure_ascii=False, default=str))


@dataclass(slots=True)
class ToolCounts:
    """Counts the tool calls of one run, and those that succeeded. Opening a page that a search of scholarly works named
    counts as `paper`, opening any other as `browse` (MARS, Table 4)."""

    made: Counter[str] = field(default_factory=Counter)
    well: Counter[str] = field(default_factory=Counter)
    _works: str = ""
    _papers: set[tuple[str, int]] = field(default_factory=set)

    def __call__(self, event: Event) -> None:
        if isinstance(event, ToolStarted) and f"({event.arguments.get('url')})" in self._works:
            self._papers.add((event.conversation, event.call))
        if isinstance(event, ToolEnded):
            tool = "paper" if (event.conversation, event.call) in self._papers else event.tool
            self.made[tool] += 1
            self.well[tool] += event.ok
            self._works += f"\n{event.text}" if event.tool == "scholar" else ""

    @property
    def tools(self) -> dict[str, tuple[int, int]]:
        return {tool: (self.made[tool], self.well[tool]) for tool in self.made}


@dataclass(frozen=True, slots=True)
class EvaluationTask:
    cell: Cell
    item: Item

    @property
    def key(self) -> tuple[str, str]:
        return (self.cell.name, self.item.id)

    def run(self, plan: str) -> str:
        """Return the id of its run in the journal, the same after a crash."""
        text = "\n".join((plan, *self.key))
        return f"eval-{hashlib.sha256(text.encode()).hexdigest()[:20]}"


class Evaluation:
    """An evaluation in a folder. `failure` is a failure that every other question would meet too, such as a refused
    key; it ends the evaluation, which can be resumed. `readers` get the events of all runs. Raises `UsageError` for a
    folder that holds another evaluation, or the documents."""

    def __init__(self, plan: EvaluationPlan, folder: Path, score: Scorer, *, ray: str = "") -> None:
        self.plan = plan
        self.folder = folder
        self.score = score
        self.ray = ray
        self.readers: Sequence[Reader] = ()
        self.failure: HiraError | None = None
        self.sessions: dict[str, Session] = {}
        if any(among(doc, [folder]) for doc in plan.settings.docs):
            what = f"{folder} is or contains the documents, so results written there would be read as documents"
            raise UsageError(what, fix="name another folder with --output")
        shown = plan.to_json()
        claim_folder(folder, PLAN, shown, "evaluation")
        self._name = hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()
        self._done = {(record.cell, record.id) for record in self.records}
        self._recorded: frozenset[str] | None = None
        self._many: dict[str, Batch] = {}
        self._watching: dict[str, ToolCounts] = {}
        self._stopped = False

    @property
    def records(self) -> list[Record]:
        """The finished records, read from the folder: a long evaluation has too many to keep in memory as well."""
        return read(self.folder / RECORDS)

    @property
    def left(self) -> list[EvaluationTask]:
        """The unfinished tasks. Cells alternate, so that an early look shows all of them."""
        tasks = (EvaluationTask(cell, item) for item in self.plan.items for cell in self.plan.cells)
        return [task for task in tasks if task.key not in self._done]

    def stop(self) -> None:
        """Begin no other question; those in flight are answered from the results so far, and asked again another
        time."""
        self._stopped = True
        for many in self._many.values():
            many.stop()

    async def each(self) -> AsyncGenerator[Record, None]:
        with (self.folder / RECORDS).open("a+b") as file:
            repair_last_line(file)
            async with aclosing(self._ask_on_ray() if self.ray else self._ask_missing()) as finished:
                async for record in finished:
                    if record is not None:
                        append_lines(file, [record])
                        self._done.add((record.cell, record.id))
                        yield record

    async def _ask_missing(self) -> AsyncGenerator[Record | None, None]:
        """Ask all cells concurrently, in this process."""
        self._recorded = None  # an earlier pass has begun runs, too
        async with AsyncExitStack() as stack:
            for cell in self.plan.cells:
                hira = await stack.enter_async_context(Hira(settings=self._settings(cell)))
                session = await hira.open_session()  # faults of the settings are raised before anything is asked
                self.sessions[cell.name] = session
                self._many[cell.name] = Batch(hira, (), begins=self._begins)
                if self._recorded is None:  # all cells share one journal; only runs that it has are looked up
                    begun = await asyncio.to_thread(session.journal.runs, -1) if session.journal else ()
                    self._recorded = frozenset(entry.id for entry in begun)
            tasks = (task for task in self.left if not self._stopped)
            async with aclosing(map_concurrently(tasks, self.plan.concurrency, self._ask)) as finished:
                async for record in finished:
                    yield record

    async def _ask_on_ray(self) -> AsyncGenerator[Record | None, None]:
        """Ask one cell after the other on the Ray cluster, where calls of tools are not counted."""
        for cell in self.plan.cells:
            tasks = {task.item.id: task for task in self.left if task.cell == cell and not self._stopped}
            questions = [self._question(task) for task in tasks.values()]
            if not questions:
                continue
            batch = RayBatch(self._settings(cell), questions, address=self.ray, concurrency=self.plan.concurrency)
            self._many[cell.name] = batch
            async with aclosing(batch.each()) as finished:
                async for done in finished:
                    task, seconds = tasks[done.question.id], done.answer.rollout.usage.seconds
                    yield await self._score(task, done, ToolCounts(), seconds)

    def _settings(self, cell: Cell) -> Settings:
        return cell.settings(self.plan.settings).with_values({"journal": self.folder / JOURNAL}, "--output")

    def _question(self, task: EvaluationTask) -> Question:
        """Return the question with the id of its run in the journal, the same after a crash."""
        run = task.run(self._name)
        begun = run if self._recorded is None or run in self._recorded else ""
        return Question(task.item.question, task.item.id, task.item.files, run=begun, begin_as=run)

    async def _ask(self, task: EvaluationTask) -> Record | None:
        question = self._question(task)
        watched = self._watching[question.begin_as] = ToolCounts()
        began = time.monotonic()
        done = await self._many[task.cell.name].answer(question)
        del self._watching[question.begin_as]
        return await self._score(task, done, watched, time.monotonic() - began)

    async def _score(self, task: EvaluationTask, done: Done, watched: ToolCounts, seconds: float) -> Record | None:
        """Return the record of a question; None if it must be asked again: it was interrupted, or another process runs
        it."""
        failure, status = done.answer.rollout.failure, done.answer.status
        if isinstance(failure, StillGoing):
            return None
        if isinstance(failure, AccessDenied | NoJournal):  # other failures concern one question
            self.failure = self.failure or failure
            self._stopped = True
            return None
        if status == "interrupted" or (self._stopped and status == "partial"):
            return None
        try:
            score = await self.score(task.item, done.answer)
        except Stop as stop:  # the judge's budget is exhausted
            score = Score(None, None, self.plan.metric, stop.what)
        return record_of(task.cell, task.item, done.answer, score, watched.tools, seconds)

    def _begins(self, _question: Question, run: str) -> Sequence[Reader]:
        return [self._watching[run], *self.readers]


def claim_folder(folder: Path, name: str, plan: Mapping[str, Any], work: str) -> None:
    """Make the folder that of this plan, in a file of that name. Raises `UsageError` if it holds other `work` or cannot
    be written."""
    path, fix = folder / name, "name another folder with --output"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            replace_file(path, [json.dumps(plan, ensure_ascii=False, indent=2).encode(), b"\n"])
            return
    except OSError as error:
        what = f"the folder of this {work} cannot be written: {error.strerror}"
        raise UsageError(what, where=f"at {folder}", fix=fix) from None
    try:
        known = validate(dict[str, Any], read_json(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise UsageError(f"the plan cannot be read: {error}", where=f"in {path}", fix=fix) from None
    if known != plan:
        different = ", ".join(key for key in plan if plan[key] != known.get(key))
        raise UsageError(f"{folder} holds another {work} (different: {different})", fix=fix)
