"""The eight baselines that HiRA is compared with (HiRA, Table 1 and appendix), and the one that MaMs is, on the same
tools and the same loop. Each is loaded when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hira.workflows.baselines.plan_and_solve import PlanAndSolve
    from hira.workflows.baselines.react_report import ReActReport
    from hira.workflows.baselines.search_o1 import SearchO1
    from hira.workflows.baselines.single import CodeAct, Direct, MultimodalAlone, Rag, ReAct
    from hira.workflows.baselines.webthinker import WebThinker

_HOMES = {
    "CodeAct": "single",
    "Direct": "single",
    "MultimodalAlone": "single",
    "PlanAndSolve": "plan_and_solve",
    "Rag": "single",
    "ReAct": "single",
    "ReActReport": "react_report",
    "SearchO1": "search_o1",
    "WebThinker": "webthinker",
}

__all__ = [
    "CodeAct",
    "Direct",
    "MultimodalAlone",
    "PlanAndSolve",
    "Rag",
    "ReAct",
    "ReActReport",
    "SearchO1",
    "WebThinker",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
