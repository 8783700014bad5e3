"""Async programs over roles, each reading like its paper's algorithm."""

from collections.abc import Callable

from hira.workflows.hira import HiRA
from hira.workflows.workflow import Workflow, rollout

WORKFLOWS: dict[str, Callable[..., Workflow]] = {"hira": HiRA}

__all__ = ["WORKFLOWS", "HiRA", "Workflow", "rollout"]
