"""The grid of an evaluation: each cell is one way of asking all questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hira.core.errors import UsageError, count_of
from hira.core.options import PARTS
from hira.evaluation.tables import FAITHFUL, Table
from hira.runtime.settings import Settings

BETWEEN = " · "


def join_way(*parts: str) -> str:
    """Return the name of a way of asking: its workflow, its model, its variant, as far as it has them."""
    return BETWEEN.join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class Cell:
    """One workflow, model and seed; `variant` describes other differences, and `changes` has them as settings."""

    workflow: str
    model: str = ""
    seed: int = 0
    variant: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return "/".join(part for part in (self.workflow, self.model, self.variant, f"seed-{self.seed}") if part)

    @property
    def way(self) -> str:
        return join_way(*self.group)

    @property
    def group(self) -> tuple[str, str, str]:
        """The workflow, the model and the variant, which cells of several seeds share."""
        return (self.workflow, self.model, self.variant)

    def settings(self, general: Settings) -> Settings:
        changes: dict[str, Any] = {"workflow": self.workflow, "seed": self.seed, **self.changes}
        if changes.get("workflows"):
            options = {name: {**general.workflows.get(name, {}), **more} for name, more in changes["workflows"].items()}
            changes["workflows"] = {**general.workflows, **options}
        if self.model:
            changes["model"] = self.model
        return general.with_values(changes, f"the evaluation of {self.name}")


def grid(workflows: Sequence[str], models: Sequence[str], seeds: int, table: Table | None = None) -> list[Cell]:
    """Return the cells of every workflow with every model, `seeds` times, with the settings that a table of a paper has
    for them. Raises `UsageError` for fewer than 1."""
    if seeds < 1:
        raise UsageError(f"--repeats must be at least 1, got {seeds}")
    variants = table.rows if table else lambda _workflow: {"": {}}
    return [cell for workflow in workflows for cell in _repeat(workflow, variants(workflow), models, seeds)]


def _repeat(workflow: str, variants: Mapping[str, Mapping[str, Any]], models: Sequence[str], seeds: int) -> list[Cell]:
    """Return the cells of every variant, each with its changes, with every model and every seed."""
    return [
        Cell(workflow, model, seed, variant, changes)
        for variant, changes in variants.items()
        for model in models or [""]
        for seed in range(seeds)
    ]


def _option(workflow: str, **options: bool | str) -> Mapping[str, Any]:
    return {"workflows": {workflow: options}}


_TOOLS = ("python", "search", "scholar")
ABLATIONS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "hira": {"": {}, **{f"without {part}": {"without": frozenset([part])} for part in PARTS}},
    "mars": {
        "": {},
        **{f"without {tool}": _option("mars", without=tool) for tool in _TOOLS},
        **{
            f"{tool} alone": _option("mars", without=",".join(other for other in _TOOLS if other != tool))
            for tool in _TOOLS
        },
    },
    "matpo": {
        "": {},
        "without recap": _option("matpo", recap=False, block_leaks=False),
        "without recap and summary": _option("matpo", recap=False, summary=False),
        "single agent": _option("matpo", planner=False),
        "single agent, without summary": _option("matpo", planner=False, summary=False, block_leaks=False),
    },
}
"""By workflow, the rows of its paper's ablation: HiRA, Table 2; MARS, Table 3; MATPO, Fig. 6."""


def ablation(workflow: str, models: Sequence[str], seeds: int) -> list[Cell]:
    """Return the cells of a workflow's paper and of the paper's ablations. Raises `UsageError` for one without any."""
    if workflow not in ABLATIONS:
        raise UsageError(f"there is no ablation of {workflow!r}", fix=f"there are {', '.join(ABLATIONS)}")
    paper = FAITHFUL if workflow == "hira" else {}
    variants = {variant: {**paper, **changes} for variant, changes in ABLATIONS[workflow].items()}
    return _repeat(workflow, variants, models, seeds)


def sweep(limits: Sequence[int], workflow: str, models: Sequence[str], seeds: int) -> list[Cell]:
    """Return the cells of one workflow under several limits of subtasks, with and without the experts' descriptions
    (HiRA, Fig. 3)."""
    kinds: dict[str, Mapping[str, Any]] = {"": {}}
    if workflow == "hira":
        kinds = {"": FAITHFUL, ", not described": _option("hira", faithful=True, describe_experts=False)}
    variants = {
        f"{count_of(limit, 'subtask')}{kind}": {"max_subtasks": limit, **changes}
        for kind, changes in kinds.items()
        for limit in limits
    }
    return _repeat(workflow, variants, models, seeds)
