"""Exams during training: which adapters are kept, and when a run ends because it gets no better."""

from pathlib import Path

import pytest
from later import later, needs

from hira.runtime.settings import Settings
from hira.trainers import records
from hira.trainers.assembly import TrainingPlan
from hira.trainers.configuration import load_configuration
from hira.trainers.recipes import MATPO
from hira.workflows import WORKFLOWS

Training = later("hira.trainers.training:Training")
find_best_exam = later("hira.trainers.training:find_best_exam")
model, tokenizer = later("tiny:model"), later("tiny:tokenizer")
pytestmark = [needs("torch", "trl"), pytest.mark.filterwarnings("default")]


def exams(*shares: float | None) -> list[dict[str, float | None]]:
    """One exam before training, and one after each update."""
    return [{"step": step, "sampled": share} for step, share in enumerate(shares)]


@pytest.mark.parametrize(
    ("shares", "best", "later"),
    [
        ((), 0, 0),
        ((0.9,), 0, 0),
        ((0.9, 0.1), 1, 0),
        ((0.0, 0.2, 0.5, 0.4), 2, 1),
        ((0.0, 0.5, 0.5, 0.5), 1, 2),
        ((0.0, None, 0.5, None), 2, 0),
        ((0.0, 0.0, 0.0), 1, 1),
    ],
)
def test_the_best_exam_is_the_first_with_the_highest_share_after_training_began(
    shares: tuple[float | None, ...], best: int, later: int
) -> None:
    assert find_best_exam(exams(*shares)) == (best, later)


@pytest.mark.parametrize("best", [True, False])
def test_only_a_new_best_exam_saves_the_adapters_and_patience_ends_the_run(tmp_path: Path, best: bool) -> None:
    given = ["model.name=m", f"exam.best={str(best).lower()}", "exam.patience=2"]
    plan = TrainingPlan(
        load_configuration(None, given), MATPO, Settings(), WORKFLOWS["matpo"](), (), (), tmp_path, began=0.0
    )
    training = Training(plan=plan, model=model(), tokenizer=tokenizer(), reward=None, credit=None)
    kept, over = [], []
    for exam in exams(0.9, 0.2, 0.5, 0.5, 0.4)[1:]:
        records.append_records(tmp_path / records.EXAMS, [exam])
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
        over.append(training.finish_exam(exam["step"]))
        kept.append({path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")} != before)
    assert kept == [best, best, False, False]
    assert over == [False, False, False, True], "two exams without a gain"
