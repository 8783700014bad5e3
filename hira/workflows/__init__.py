"""Async programs over roles, each reading like its paper's algorithm."""

from collections.abc import Callable

from hira.workflows.baselines import (
    CodeAct,
    Direct,
    MultimodalAlone,
    PlanAndSolve,
    Rag,
    ReAct,
    ReActReport,
    SearchO1,
    WebThinker,
)
from hira.workflows.hira import HiRA
from hira.workflows.mams import MaMs
from hira.workflows.mars import MARS
from hira.workflows.marsrl import MarsRL
from hira.workflows.matpo import MATPO
from hira.workflows.workflow import BuiltIn, Workflow, rollout

WORKFLOWS: dict[str, Callable[..., BuiltIn]] = {
    "hira": HiRA,
    "mars": MARS,
    "marsrl": MarsRL,
    "matpo": MATPO,
    "mams": MaMs,
    "direct": Direct,
    "rag": Rag,
    "search-o1": SearchO1,
    "webthinker": WebThinker,
    "codeact": CodeAct,
    "multimodal": MultimodalAlone,
    "plan-and-solve": PlanAndSolve,
    "react": ReAct,
    "react-report": ReActReport,
}

__all__ = ["MARS", "MATPO", "WORKFLOWS", "BuiltIn", "HiRA", "MaMs", "MarsRL", "Workflow", "rollout"]
