"""The headline tables of the papers: their sets, the ways of asking in their rows, and the paper's settings.

`hira eval NAME` runs a table. Rows of models that the paper trained need a model that was trained so.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hira.core.errors import UsageError
from hira.evaluation.files import Item
from hira.evaluation.public import FILES, REPORTS, SETS, TEXT, draw, load_public

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    sets: Mapping[str, int | None]
    """The number of questions drawn from each set, None for all."""
    workflows: tuple[str, ...]
    metric: str = "hira"
    only: Mapping[str, str] = field(default_factory=dict)
    """The label that questions of a set must have."""
    judges: Mapping[str, str] = field(default_factory=dict)
    """The sets that have their own judge under the metric `hira`."""
    settings: Settings = field(default_factory=dict)
    """The paper's settings for all rows."""
    row_settings: Mapping[str, Settings] = field(default_factory=dict)
    """Those of one workflow alone."""
    variants: Mapping[str, Mapping[str, Settings]] = field(default_factory=dict)
    """The rows of a workflow that has several, by their names."""
    averaged: tuple[str, ...] = ()
    """The columns whose mean is the paper's average."""

    def rows(self, workflow: str) -> Mapping[str, Settings]:
        """The settings of a workflow's rows, by the name of the variant."""
        general = {**self.settings, **self.row_settings.get(workflow, {})}
        return {name: {**general, **more} for name, more in self.variants.get(workflow, {"": {}}).items()}


FAITHFUL: Settings = {"workflows": {"hira": {"faithful": True}}}
"""Every call of HiRA's paper, where the default skips those that decide nothing."""


def _marsrl(**options: int) -> Settings:
    """The paper reasons without documents, in replies of at most 64k tokens."""
    return {"workflows": {"marsrl": {"search": False, "reply": 65_536, **options}}}


def _matpo(*, planner: bool = True, planner_summary: bool = True) -> Settings:
    return {"workflows": {"matpo": {"planner": planner, "planner_summary": planner_summary}}}


_BASELINES = ("direct", "rag", "search-o1", "webthinker", "codeact", "multimodal", "plan-and-solve", "react")
_KNOWLEDGE = ("nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihop", "musique", "bamboogle")
TABLES: Mapping[str, Table] = {
    "hira-table1": Table(
        sets={"gaia": None, "webwalkerqa": 200, "hle": 500, "simpleqa": 200},
        workflows=(*_BASELINES, "hira"),
        judges={"webwalkerqa": SETS["webwalkerqa"].metric},
        settings={"temperature": 0.7, "top_p": 0.95, "top_k": 20},
        row_settings={"hira": FAITHFUL, "multimodal": {"workflows": {"multimodal": {"alone": True}}}},
        averaged=("gaia without file", f"gaia {FILES}", "webwalkerqa", "hle", "simpleqa"),
    ),
    "mars-table1": Table(sets={"hle": None}, workflows=("direct", "webthinker", "search-o1", "mars"), metric="hle"),
    "mars-table2": Table(
        sets=dict.fromkeys(_KNOWLEDGE), workflows=("direct", "rag", "search-o1", "mars"), averaged=_KNOWLEDGE
    ),
    "marsrl-table1": Table(
        sets={"aime2025": None, "beyondaime": None},
        workflows=("marsrl",),
        metric="numeric",
        settings={"temperature": 0.6, "top_p": 0.95},
        variants={"marsrl": {"Solver": _marsrl(rounds=1), "Reasoning System": _marsrl()}},
    ),
    "matpo-fig5": Table(
        sets={"gaia": None, "webwalkerqa": None, "frames": None},
        workflows=("matpo",),
        metric="simpleqa",
        only={"gaia": TEXT},
        variants={"matpo": {"": _matpo(planner_summary=False), "single agent": _matpo(planner=False)}},
    ),
    "rubrics-table2": Table(
        sets={REPORTS: None},
        workflows=("react-report", "mams"),
        metric="race",
        settings={"temperature": 1.0, "top_p": 1.0},
        row_settings={"react-report": {"workflows": {"react-report": {"condense": True}}}},
    ),
}


def load_table(name: str, folder: Path | None, *, seed: int = 0, limit: int | None = None) -> tuple[Item, ...]:
    """Load the questions of a table with its columns as labels, from the hub or from files `SET.jsonl` in a folder,
    where DeepResearch Bench is a folder of its repository; with a `limit`, the first ones of each column. Raises
    `UsageError` for a missing file."""
    table = TABLES[name]
    items: list[Item] = []
    places = {known: known if known == REPORTS else f"{known}.jsonl" for known in table.sets}
    for known, most in table.sets.items():
        path = folder / places[known] if folder else None
        if path and not path.exists():
            fix = f"save the sets there as {', '.join(places.values())}"
            raise UsageError(f"there is no {path.name}", where=f"in {folder}", fix=fix)
        loaded = load_public(known, file=path)
        if wanted := table.only.get(known):
            loaded = tuple(item for item in loaded if wanted in item.labels)
        for item in _take_first(draw(loaded, most, seed), limit):
            labels = " | ".join([known, *(f"{known} {label}" for label in item.labels)])
            items.append(replace(item, id=f"{known}/{item.id}", category=labels, judge=table.judges.get(known, "")))
    return tuple(items)


def _take_first(items: Sequence[Item], limit: int | None) -> Iterator[Item]:
    """The first items of each label, and of those without one, so that no column of a small table is empty."""
    taken: Counter[str] = Counter()
    for item in items:
        labels = item.labels or [""]
        if limit is None or any(taken[label] < limit for label in labels):
            taken.update(labels)
            yield item
