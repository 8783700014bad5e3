"""Async programs over roles, each reading like its paper's algorithm. Each is loaded when it is first used."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "search-o1": "baselines.single:SearchO1",
    "webthinker": "baselines.webthinker:WebThinker",
    "codeact": "baselines.single:CodeAct",
    "multimodal": "baselines.single:MultimodalAlone",
    "plan-and-solve": "baselines.plan_and_solve:PlanAndSolve",
    "react": "baselines.single:ReAct",
    "react-report": "baselines.react_report:ReActReport",
}


class _Workflows(Mapping[str, Callable[..., BuiltIn]]):
    def __getitem__(self, name: str) -> Callable[..., BuiltIn]:
        module, _, kind = _CLASSES[name].partition(":")
        make: Callable[..., BuiltIn] = getattr(import_module(f"hira.workflows.{module}"), kind)
        return make

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)

    def __contains__(self, name: object) -> bool:
        return name in _CLASSES


WORKFLOWS: Mapping[str, Callable[..., BuiltIn]] = _Workflows()
"""The built-in workflows by name."""

__all__ = ["MARS", "MATPO", "WORKFLOWS", "BuiltIn", "HiRA", "MaMs", "MarsRL", "Workflow", "rollout"]


def load_workflow(name: str, module: str) -> Callable[..., BuiltIn]:
    """Return the class of a built-in workflow by its own name, for a `module` that offers it."""
    for key, place in _CLASSES.items():
        if place.endswith(f":{name}"):
            return WORKFLOWS[key]
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def __getattr__(name: str) -> Any:
    return load_workflow(name, __name__)
