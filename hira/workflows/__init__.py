"""Async programs over roles, each reading like its paper's algorithm."""

from collections.abc import Callable

from hira.workflows.baselines.react_report import ReActReport
from hira.workflows.hira import HiRA
from hira.workflows.mams import MaMs
from hira.workflows.workflow import BuiltIn, Workflow, rollout

WORKFLOWS: dict[str, Callable[..., BuiltIn]] = {"hira": HiRA, "mams": MaMs, "react-report": ReActReport}

__all__ = ["WORKFLOWS", "BuiltIn", "HiRA", "MaMs", "ReActReport", "Workflow", "rollout"]
