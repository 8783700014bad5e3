"""What `import hira` gives, and what it costs."""

import subprocess
import sys
from pathlib import Path

import pytest
from later import needs

import hira

HEAVY = {"openai", "httpx", "pydantic", "litellm", "rich", "torch", "mcp", "tiktoken", "sqlite3", "asyncio"}


def test_the_public_names_are_exactly_these() -> None:
    assert set(hira.__all__) == {
        "Answer", "AnyEvent", "Chat", "Context", "Event", "Hira", "HiraError", "Hooks", "Policy", "Refusal", "Rollout", "Settings", "Tool",
        "ToolUse", "Workflow", "__version__", "ask", "ask_sync", "expert", "tool",
    }  # fmt: skip
    assert len(hira.__all__) <= 20
    assert set(dir(hira)) == set(hira.__all__)
    assert all(getattr(hira, name) is not None for name in hira.__all__)
    assert not hasattr(hira, "Manager")


def loaded_by(code: str) -> set[str]:
    """The top-level modules that are loaded once the code has run in a fresh interpreter."""
    told = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*{{name.partition('.')[0] for name in sys.modules}})"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(told.stdout.split())


def test_importing_hira_loads_nothing_heavy() -> None:
    assert not loaded_by("import hira") & HEAVY


def test_asking_the_command_for_help_loads_nothing_heavy() -> None:
    code = "import contextlib, io\nfrom hira.cli import main\nwith contextlib.redirect_stdout(io.StringIO()): main(['--help'])"
    assert not loaded_by(code) & HEAVY


@needs("mypy")
@pytest.mark.heavy(seconds=90)
def test_mypy_in_strict_mode_accepts_a_program_with_typed_answers_tools_and_hooks() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "tests/data/user_program.py"]
    done = subprocess.run(command, cwd=Path(hira.__file__).parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
