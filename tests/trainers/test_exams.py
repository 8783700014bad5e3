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
model, tokenizer = later("tiny:model"), later("tiny:tokenizer")
pytestmark = [needs("torch", "trl"), pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("best", [True, False])
@pytest.mark.parametrize(
    ("shares", "patience", "kept", "ended"),
    [
        ((0.9, 0.2, 0.5, 0.5, 0.4), 2, [1, 2], [4]),
        ((0.9, 0.2, 0.5, 0.5, 0.4), 1, [1, 2], [3, 4]),
        ((0.9, 0.2, 0.5, 0.5, 0.4), 0, [1, 2], []),
        ((0.0, 0.0, 0.0, 0.3), 2, [1, 3], []),
        ((0.0, None, 0.5, None, 0.4), 1, [2], [4]),
        ((None, None, None), 1, [], []),
    ],
)
def test_a_new_best_exam_saves_the_adapters_and_exams_without_a_gain_end_the_run(
    tmp_path: Path, best: bool, shares: tuple[float | None, ...], patience: int, kept: list[int], ended: list[int]
) -> None:
    """The shares of right answers before training and after each update; the first exam is nobody's success."""
    given = ["model.name=m", f"exam.best={str(best).lower()}", f"exam.patience={patience}"]
    plan = TrainingPlan(
        load_configuration(None, given), MATPO, Settings(), WORKFLOWS["matpo"](), (), (), tmp_path, began=0.0
    )
    training = Training(plan=plan, model=model(), tokenizer=tokenizer(), reward=None)
    records.append_records(tmp_path / records.EXAMS, [{"step": 0, "sampled": shares[0]}])
    saved, over = [], []
    for step, share in enumerate(shares[1:], 1):
        records.append_records(tmp_path / records.EXAMS, [{"step": step, "sampled": share}])
        over += [step] * training.finish_exam(step)
        weights = list(tmp_path.rglob("*.safetensors"))
        saved += [step] * bool(weights)
        for path in weights:
            path.unlink()
    assert saved == (kept if best else [])
    assert over == ended
