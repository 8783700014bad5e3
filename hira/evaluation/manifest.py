"""What an evaluation was made with, so that it can be had again."""

import hashlib
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

from hira.evaluation.run import Plan, digest
from hira.evaluation.summary import FETCHES, SEARCHES, Row

PACKAGES = ("hira", "openai", "httpx", "litellm", "tiktoken", "torch", "transformers", "trl", "peft")


def manifest(plan: Plan, rows: Sequence[Row]) -> dict[str, Any]:
    """Versions, models, prompts, seeds, and how often search and fetch went well."""
    return {
        "versions": versions(),
        "data": plan.data,
        "questions": len(plan.items),
        "questions_digest": digest(plan.items),
        "metric": plan.metric,
        "models": sorted({cell.model or plan.settings.model or "the default" for cell in plan.cells}),
        "workflows": sorted({cell.workflow for cell in plan.cells}),
        "seeds": sorted({cell.seed for cell in plan.cells}),
        "settings": plan.shown()["settings"],
        "prompts_digest": prompts()["all"],
        "prompts": prompts()["each"],
        "search_success": {row.name: row.success_rate(SEARCHES) for row in rows},
        "fetch_success": {row.name: row.success_rate(FETCHES) for row in rows},
    }


@cache
def versions() -> Mapping[str, str]:
    found = {"python": platform.python_version(), "platform": platform.system()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def prompts() -> Mapping[str, Any]:
    """The digest of every prompt that hira sends, by its file, and of all together."""
    each: dict[str, str] = {}
    pending = [(files("hira"), "")]
    while pending:
        folder, path = pending.pop()
        for entry in folder.iterdir():
            name = f"{path}{entry.name}"
            if entry.is_dir():
                pending.append((entry, f"{name}/"))
            elif name.endswith(".md"):
                each[name] = hashlib.sha256(entry.read_bytes()).hexdigest()[:12]
    each = {name: each[name] for name in sorted(each) if not name.startswith("evaluation/mini/")}
    return {"all": hashlib.sha256(repr(each).encode()).hexdigest()[:16], "each": each}
