"""The eight baselines that HiRA is compared with (HiRA, Table 1 and appendix), and the one that MaMs is, on the same
tools and the same loop. Each is loaded when it is first used."""

from typing import TYPE_CHECKING, Any

from hira.workflows import load_workflow

if TYPE_CHECKING:
    from hira.workflows.baselines.plan_and_solve import PlanAndSolve
    from hira.workflows.baselines.react_report import ReActReport
    from hira.workflows.baselines.search_o1 import SearchO1
    from hira.workflows.baselines.single import CodeAct, Direct, MultimodalAlone, Rag, ReAct
    from hira.workflows.baselines.webthinker import WebThinker

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
    return load_workflow(name, __name__)
