"""Async programs over roles, each reading like its paper's algorithm. Each is loaded when it is first used."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from hira.core.plugin import LazyMapping
from hira.workflows.workflow import BuiltIn, Workflow, rollout

if TYPE_CHECKING:
    from hira.workflows.hira import HiRA
    from hira.workflows.mams import MaMs
    from hira.workflows.mars import MARS
    from hira.workflows.marsrl import MarsRL
    from hira.workflows.matpo import MATPO

_CLASSES = {
    "hira": "hira:HiRA",
    "auto": "auto:Auto",
    "mars": "mars:MARS",
    "marsrl": "marsrl:MarsRL",
    "matpo": "matpo:MATPO",
    "mams": "mams:MaMs",
    "direct": "baselines.single:Direct",
    "rag": "baselines.single:Rag",
    "search-o1": "baselines.search_o1:SearchO1",
    "webthinker": "baselines.webthinker:WebThinker",
    "codeact": "baselines.single:CodeAct",
    "multimodal": "baselines.single:MultimodalAlone",
    "plan-and-solve": "baselines.plan_and_solve:PlanAndSolve",
    "react": "baselines.single:ReAct",
    "react-report": "baselines.react_report:ReActReport",
}

WORKFLOWS: Mapping[str, Callable[..., BuiltIn]] = LazyMapping(
    {name: f"{__name__}.{place}" for name, place in _CLASSES.items()}
)
"""The built-in workflows by name."""

__all__ = ["MARS", "MATPO", "WORKFLOWS", "BuiltIn", "HiRA", "MaMs", "MarsRL", "Workflow", "has_options_of", "rollout"]


def has_options_of(workflow: str, other: str) -> bool:
    """Return whether a built-in workflow has the options of another one: `auto` has those of `hira`."""
    return workflow in WORKFLOWS and WORKFLOWS[other] in cast("type", WORKFLOWS[workflow]).__mro__


def load_workflow(name: str, module: str) -> Callable[..., BuiltIn]:
    """Return the class of a built-in workflow by its own name, for a `module` that offers it."""
    for key, place in _CLASSES.items():
        if place.endswith(f":{name}"):
            return WORKFLOWS[key]
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def __getattr__(name: str) -> Any:
    return load_workflow(name, __name__)
