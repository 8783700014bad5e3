"""A batch on a real Ray cluster of this machine's own."""

import io
import json
from pathlib import Path

import pytest

from hira import Settings
from hira.cli import main
from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.evaluation.cells import grid
from hira.evaluation.files import Item
from hira.evaluation.run import Evaluation, EvaluationPlan
from hira.evaluation.scorers import match
from hira.runtime.batch import Question
from hira.runtime.ray_batch import RayBatch

pytest.importorskip("ray")
pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]  # Ray warns of its own doings

TOWERS = {"Alta": 31, "Brava": 42, "Carma": 53, "Delta": 64}
QUESTIONS = [f"How high is the tower of {name}?" for name in TOWERS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for name, metres in TOWERS.items():
        (tmp_path / "docs" / f"{name}.txt").write_text(
            f"The tower of {name} is {metres} metres high.\n", encoding="utf-8"
        )
    (tmp_path / "q.jsonl").write_text("\n".join(QUESTIONS), encoding="utf-8")
    return tmp_path


async def test_every_question_is_answered_on_the_cluster_and_its_run_is_known_before(folder: Path) -> None:
    begun: dict[str, str] = {}
    settings = Settings(model="offline", docs=(folder / "docs",), journal=folder / "j.sqlite")
    questions = [Question(text, str(at)) for at, text in enumerate(QUESTIONS)]
    spread = RayBatch(
        settings, questions, address="local", concurrency=20, begins=lambda one, run: begun.update({one.id: run})
    )
    done = {one.question.id: one async for one in spread.each()}
    assert all(str(metres) in done[str(at)].answer.text for at, metres in enumerate(TOWERS.values()))
    assert {at: one.answer.rollout.run for at, one in done.items()} == begun
    assert all(one.answer.status == "answered" and one.answer.rollout.usage.calls for one in done.values())


async def test_wrong_settings_are_raised_as_they_are_on_the_workers(folder: Path) -> None:
    spread = RayBatch(Settings(model="offline", docs=(folder / "none",)), [Question("a?")], address="local")
    with pytest.raises(UsageError, match="none"):
        _ = [one async for one in spread.each()]


def test_the_command_writes_the_same_file(folder: Path) -> None:
    err = io.StringIO()
    shell = Shell(io.StringIO(), io.StringIO(), err, {"HIRA_MODEL": "offline"}, folder, folder / "home")
    argv = ("ask", "--batch", "q.jsonl", "--output", "a.jsonl", "--docs", "docs", "--ray", "local", "--quiet")
    assert main(argv, shell) == 0, err.getvalue()
    lines = [json.loads(line) for line in (folder / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["question"] for line in lines] == QUESTIONS
    assert not (folder / "a.jsonl.runs").exists()


async def test_an_evaluation_is_asked_on_the_cluster(folder: Path) -> None:
    items = tuple(Item(name, text, (str(high),)) for (name, high), text in zip(TOWERS.items(), QUESTIONS, strict=True))
    settings = Settings(model="offline", docs=(folder / "docs",))
    plan = EvaluationPlan("towers", items, tuple(grid(["hira", "rag"], [], 1)), settings)
    evaluation = Evaluation(plan, folder / "out", match, ray="local")
    records = [one async for one in evaluation.each()]
    assert len(records) == 8
    assert all(one.score.correct for one in records)
    assert not evaluation.left
