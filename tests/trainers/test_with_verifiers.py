"""`vf-eval` of the package `verifiers` runs hira as a harness, and hira's documents as a task set.

verifiers pins other versions than hira's tests, so it has an environment of its own:

    python -m venv .verifiers && .verifiers/bin/pip install . "verifiers>=0.4,<0.5"
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hira.core.policy import Request
from hira.testing import Endpoint

ROOT = Path(__file__).parents[2]
ENVIRONMENT = Path(os.environ.get("VERIFIERS_ENVIRONMENT", ROOT / ".verifiers"))
COMMAND = ENVIRONMENT / "bin" / "vf-eval"
pytestmark = [
    pytest.mark.heavy(60),
    pytest.mark.skipif(not COMMAND.exists(), reason=f"there is no {COMMAND}: see the top of this file"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "arnby.md").write_text("# Arnby\n\nThe river Vell flows through Arnby.\n")
    (tmp_path / "questions.jsonl").write_text('{"question": "Which river flows through Arnby?"}\n')
    return tmp_path


def run(folder: Path, endpoint: Endpoint, *options: str) -> dict[str, Any]:
    """Run vf-eval on the one question and return its trace."""
    command = [
        str(COMMAND), "hira_documents", "--env.taskset.questions", str(folder / "questions.jsonl"),
        "--env.taskset.task.docs", str(folder / "docs"), "--env.agent.runtime.type", "subprocess",
        "--model", endpoint.model, "--client.base-url", endpoint.base_url, "--client.api-key-var", "KEY",
        "--no-push", "--no-rich", *options,
    ]  # fmt: skip
    path = os.pathsep.join(map(str, (ROOT, ROOT / "examples" / "verifiers", Path(__file__).parent)))
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": path, "KEY": "k"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)
    (traces,) = folder.glob("outputs/*/traces.jsonl")
    episode = json.loads(traces.read_text(encoding="utf-8").splitlines()[0])
    assert episode["ok"], f"{episode}\n{done.stderr}"
    (trace,) = episode["traces"]
    return trace


def cite(request: Request) -> str:
    """A model that repeats the document and cites it."""
    shown = "\n".join(message.text for message in request.messages)
    return "The river Vell flows through Arnby. [s1]" if "[s1]" in shown else "I do not know."


def test_vf_eval_runs_hira_as_a_harness_and_scores_its_citations(folder: Path) -> None:
    with Endpoint(cite) as endpoint:
        harness = ("--env.agent.harness.id", "hira_harness", "--env.agent.harness.docs", str(folder / "docs"))
        trace = run(folder, endpoint, *harness)
    assert trace["info"]["hira"]["status"] == "answered"
    assert trace["root_reply"].startswith("The river Vell flows through Arnby.")
    assert trace["rewards"]["cited"]["score"] == 1.0
    assert len(trace["calls"]) == len(endpoint.calls) == 1, "every call went through the server of verifiers"


@pytest.mark.parametrize(
    ("model", "reward"),
    [(cite, 1.0), (lambda _: "The river Lorn flows through Arnby. [s1]", 0.0)],
    ids=["true", "false"],
)
def test_another_agent_searches_hiras_documents_and_is_paid_for_true_citations(
    model: Any, reward: float, folder: Path
) -> None:
    with Endpoint(model) as endpoint:
        trace = run(folder, endpoint, "--env.agent.harness.id", "verifiers_agent")
    assert trace["info"]["tools"] == ["browse", "search"]
    assert trace["rewards"]["cited"]["score"] == reward
    assert trace["metrics"]["claims"] == 1.0
