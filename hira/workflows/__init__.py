"""Async programs over roles, each reading like its paper's algorithm."""

from collections.abc import Callable

from hira.workflows.hira import HiRA
from hira.workflows.workflow import BuiltIn, Workflow, rollout

WORKFLOWS: dict[str, Callable[..., BuiltIn]] = {"hira": HiRA}

__all__ = ["WORKFLOWS", "BuiltIn", "HiRA", "Workflow", "rollout"]
