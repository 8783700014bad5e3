"""`recipe = "marsrl"` from a configuration: two updates of a tiny model, with documents, killed and gone on with."""

from pathlib import Path
from typing import Any

import pytest
from later import later, needs
from terminal import plan_in

from hira.trainers import records
from hira.trainers.assembly import TrainingPlan, credit_of
from hira.trainers.rows import Attempt, Group, Row

run_grpo = later("hira.trainers.training:run_grpo")
base, tokenizer = later("test_marsrl_training:base"), later("test_marsrl_training:tokenizer")
pytestmark = [needs("torch", "trl"), pytest.mark.filterwarnings("default")]
SLOW = pytest.mark.heavy
PIPELINE = {"marsrl.staleness": 2, "marsrl.groups": 2, "marsrl.problems": 2, "marsrl.segment": 8}


def plan(folder: Path, **overrides: Any) -> TrainingPlan:
    values = {
        "recipe": "marsrl",
        "model.name": str(folder / "model"),
        "data.train": "questions.jsonl",
        "rollouts.questions": 2,
        "rollouts.attempts": 4,
        "rollouts.window": 1024,
        "settings.docs": '["docs"]',
        "settings.max_tokens": 100_000,
        "train.steps": 2,
        "train.lr": 0.01,
        "model.bits": 32,
        "train.checkpointing": "false",
        "train.save_every": 1,
        **overrides,
    }
    return plan_in(folder, values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    base().save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    questions = [f'{{"question": "How many hills has river {at}?", "answer": "4"}}' for at in range(3)]
    (tmp_path / "questions.jsonl").write_text("\n".join(questions))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "rivers.md").write_text("# Rivers\n\nRiver 1 has 4 hills.\n")
    return tmp_path


def test_credit_is_of_the_chosen_roles_and_masks_what_is_mastered(folder: Path) -> None:
    def group(role: str) -> Group:
        rows = [Row("q", str(at), role, role, (1,), (2, 3), (1, 1), (-0.001, -0.1)) for at in range(2)]
        return Group(role, tuple(Attempt(at, (row,), float(at)) for at, row in enumerate(rows)))

    given = [group("solver"), group("verifier")]
    both = credit_of(plan(folder))(given)
    assert {one.row.role for one in both.rows} == {"solver", "verifier"}
    assert sorted(one.row.mask for one in both.rows) == [(0, 1), (0, 1), (1, 1), (1, 1)]
    only = credit_of(plan(folder, **{"marsrl.roles": '["verifier"]', "marsrl.masking": "false"}))(given)
    assert [(one.row.role, one.row.mask) for one in only.rows] == [("verifier", (1, 1))] * 2


def test_overlong_conversations_are_left_out_where_the_configuration_says_so(folder: Path) -> None:
    rows = [Row("q", str(at), "solver", "solver", (1,), (2, 3), (1, 1), (-1.0, -1.0), overlong=not at) for at in (0, 1)]
    given = [Group("solver", tuple(Attempt(at, (row,), float(at)) for at, row in enumerate(rows)))]
    assert [one.row.rollout for one in credit_of(plan(folder))(given).rows] == ["0", "1"]
    assert [one.row.rollout for one in credit_of(plan(folder, **{"train.mask_overlong": "true"}))(given).rows] == ["1"]


@SLOW
def test_two_updates_in_the_pipeline_and_on_after_a_kill_between_them(folder: Path) -> None:
    class Killed(Exception):
        """The process is gone."""

    def stop(one: Any) -> None:
        if one.get("step") == 2:
            raise Killed

    with pytest.raises(Killed):
        run_grpo(plan(folder, **PIPELINE, out="run"), resume=False, on_step=stop)
    run_grpo(plan(folder, **PIPELINE, out="run"), resume=True)
    told = [one for one in records.read(folder / "run" / records.METRICS) if "reward" in one]
    assert [one["step"] for one in told] == [1, 2]
    assert all(one["infra_failed"] == one["unscored"] == one["problems_lost"] == 0 for one in told)
    assert told[0]["solver/groups"] >= 1
    assert all(one["staleness/most"] <= 2 and one["groups"] >= 2 for one in told)
    assert (folder / "run" / "adapters" / "default" / "adapter_config.json").is_file()
