"""The layer contract: imports run downward only, and heavy packages stay where they belong."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "hira"
LAYERS: list[set[str]] = [
    {"errors", "messages", "pipeline", "redaction", "untrusted"},
    {"policy"},
    {"events", "bounds", "budget", "prices", "tokens", "relevance", "journal"},
    {"evidence", "memory", "trajectory", "conversation", "team", "tools", "dialects", "policies", "prompts", "testing"},
    {"agents", "rewards"},
    {"workflows"},
    {
        "settings",
        "workbench",
        "surroundings",
        "casting",
        "crew",
        "connecting",
        "chosen",
        "page_policy",
        "answer",
        "given",
        "trace",
        "telemetry",
        "replay",
        "plugin",
        "api",
        "batch",
        "compare",
        "spread",
        "evaluation",
        "trainers",
    },
    {"serve"},
    {"cli", "__init__", "__main__"},
]
RANK = {name: at for at, names in enumerate(LAYERS) for name in names}
HEAVY = {"torch", "transformers", "trl", "peft"}
LONGEST = 80


@cache
def modules() -> list[tuple[str, Path, ast.Module]]:
    """Each file of the package with the name of its part (the first folder, or the module itself)."""
    return [
        (path.relative_to(PACKAGE).parts[0].removesuffix(".py"), path, ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return names


def test_every_part_has_a_layer() -> None:
    assert {part for part, _, _ in modules()} <= set(RANK)


def test_imports_run_downward_only() -> None:
    wrong = []
    for part, path, tree in modules():
        for name in imported(tree):
            head, _, rest = name.partition(".")
            target = rest.split(".")[0]
            if head == "hira" and target in RANK and RANK[target] > RANK[part]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not wrong, "\n".join(sorted(wrong))


def test_only_the_trainers_the_local_policy_and_adapters_import_the_training_stack() -> None:
    for part, path, tree in modules():
        if part != "trainers" and path.parent.name != "local" and path.name != "adapters.py":
            assert not {name.split(".")[0] for name in imported(tree)} & HEAVY, path


def test_only_dialects_parse_what_a_model_wrote() -> None:
    for part, path, _ in modules():
        if part in {"agents", "workflows"}:
            assert "json.loads" not in path.read_text(encoding="utf-8"), path
            assert "raw_decode" not in path.read_text(encoding="utf-8"), path


def test_no_function_is_over_eighty_lines() -> None:
    long = [
        f"{path.name}:{node.name} {node.end_lineno - node.lineno + 1}"
        for _, path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno
        and node.end_lineno - node.lineno + 1 > LONGEST
    ]
    assert not long, long


def test_importing_hira_loads_nothing_heavy() -> None:
    heavy = ["openai", "httpx", "pydantic", "litellm", "rich", "torch", "transformers", "mcp", "tiktoken"]
    code = f"import sys, hira; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
