"""Configurations of training runs: what is wrong with one is told before anything is loaded."""

import json
from pathlib import Path

import pytest

from hira.core.errors import UsageError
from hira.trainers.assembly import is_resumed, make_plan, write_configuration
from hira.trainers.configuration import Configuration, load_configuration
from hira.trainers.preflight import check_inputs, explain_window, own_window

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "training").glob("*.toml"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    row = {"question": "Who?", "answer": "Ada", "query": "Who?", "accepted": "It was Ada.", "rejected": "No."}
    (tmp_path / "questions.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "ada.md").write_text("# Ada\n\nIt was Ada.\n")
    return tmp_path


def run(*overrides: str) -> Configuration:
    return load_configuration(
        None, ["model.name=some/model", "data.train=questions.jsonl", 'settings.docs=["docs"]', *overrides]
    )


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_a_whole_configuration(file: Path, folder: Path) -> None:
    given = load_configuration(file, ["data.train=questions.jsonl", "data.held_out=questions.jsonl"])
    plan = make_plan(given, folder, {}, folder)
    assert set(plan.trained) == set(plan.recipe.roles or plan.workflow.roles)
    assert len(plan.problems) == 1


def test_held_out_questions_of_several_sets_keep_the_names_of_their_sets(folder: Path) -> None:
    """MATPO, Fig. 5: GAIA, WebWalkerQA and FRAMES along training."""
    given = run('data.held_out={gaia="questions.jsonl", frames="questions.jsonl"}', "recipe=grpo")
    held_out = make_plan(given, folder, {}, folder).held_out
    assert [(problem.set, problem.id) for problem in held_out] == [("gaia", "gaia/1"), ("frames", "frames/1")]


def test_overrides_are_numbers_lists_truth_values_and_text() -> None:
    found = load_configuration(
        None, ["train.lr=1e-5", "train.checkpointing=false", 'train.report_to=["wandb"]', "model.name=a/b", "seed=3"]
    )
    assert (found.train.lr, found.train.checkpointing, found.train.report_to) == (1e-5, False, ("wandb",))
    assert (found.model.name, found.seed) == ("a/b", 3)


def test_what_is_wrong_with_an_override_is_told_with_the_way_out() -> None:
    for override, what, fix in (
        ("train.step=1", "unknown key 'step'", "did you mean 'steps'?"),
        ("train.steps=0", "train.steps must be at least 1, got 0", "correct train.steps"),
        ("nothing", "'nothing' is not an override", "SECTION.KEY=VALUE"),
    ):
        with pytest.raises(UsageError) as raised:
            load_configuration(None, [override])
        assert raised.value.what.startswith(what)
        assert fix in raised.value.fix


def test_a_run_that_cannot_work_is_refused_before_anything_is_loaded(folder: Path) -> None:
    for override, what in (
        ("recipe=mapto", "unknown recipe 'mapto'"),
        ("model.name=", "no model is named"),
        ('model.adapters={planer="a", "*"="b"}', "model.adapters: workflow 'matpo' has no role 'planer'"),
        ('model.adapters={planner="a"}', "model.adapters: the role 'worker' has no adapter"),
        ("credit.nrom=x", "credit.nrom: matpo has no such option"),
        ("credit.norm=all", "credit.norm must be 'rollout_mean', 'role_mean' or 'token_mean', got 'all'"),
        ("settings.doc=x", "settings.doc is unknown"),
        ("data.train=nowhere.jsonl", "there is no file 'nowhere.jsonl'"),
    ):
        given = run(override)
        with pytest.raises(UsageError) as raised:
            make_plan(given, folder, {}, folder)
        assert raised.value.what == what
        assert raised.value.fix


def test_the_same_configuration_goes_on_in_its_folder_and_another_is_refused(folder: Path) -> None:
    plan = make_plan(run("out=here"), folder, {}, folder)
    assert not is_resumed(plan)
    write_configuration(plan)
    again = make_plan(run("out=here"), folder, {}, folder)
    assert is_resumed(again)
    assert again.began == plan.began, "prompts tell the day on which the run began"
    (folder / "here" / "rollouts.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match="holds a run with another 'train'"):
        is_resumed(make_plan(run("out=here", "train.lr=1"), folder, {}, folder))


def test_what_is_not_there_is_told_before_the_folder_is_written(folder: Path) -> None:
    for override, what in (
        ('settings.docs=["nodocs"]', "no such file or folder"),
        ("model.start.default=docs", "there is no adapter in"),
        ("model.name=docs/none", "there is no folder 'docs/none'"),
        ("sft.conversations=none.jsonl", "there is no file 'none.jsonl'"),
        ("settings.search=nobody", "nobody"),
    ):
        plan = make_plan(run("settings.sandbox=off", override), folder, {}, folder)
        with pytest.raises(UsageError, match=what) as raised:
            check_inputs(plan, folder, conversations=True)
        assert raised.value.fix


def test_the_window_is_that_of_the_models_own_files(folder: Path) -> None:
    model = folder / "model"
    model.mkdir()
    assert own_window("model", folder) is None
    (model / "config.json").write_text(json.dumps({"text_config": {"max_position_embeddings": 256}}))
    (model / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 1e30}))
    assert own_window("model", folder) == 256
    assert explain_window(2048, 256)
    assert not explain_window(256, 256)
    assert not explain_window(2048, own_window("some/model", folder))


def test_several_sources_are_drawn_from_and_mixed(folder: Path) -> None:
    """MARS, Table 6: so many questions of each set, by the run's seed."""
    rows = [{"id": at, "problem": f"{at}?", "answer": str(at)} for at in range(30)]
    (folder / "more.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def mixed(seed: int) -> list[str]:
        sources = 'data.sources=[{name = "more.jsonl", sample = 5}, {name = "questions.jsonl"}]'
        given = load_configuration(None, ["model.name=a/b", 'settings.docs=["docs"]', sources, f"seed={seed}"])
        return [problem.id for problem in make_plan(given, folder, {}, folder).problems]

    assert len(mixed(0)) == 6
    assert mixed(0)[-1] == "questions.jsonl/1"
    assert mixed(0) == mixed(0) != mixed(1)
    with pytest.raises(UsageError, match="both given"):
        run('data.sources=[{name = "more.jsonl"}]')


def test_a_limit_is_one_of_training_questions_and_leaves_the_exam_whole(folder: Path) -> None:
    rows = [{"id": at, "question": f"{at}?", "answer": str(at)} for at in range(9)]
    for name in ("questions.jsonl", "held_out.jsonl"):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = make_plan(run("data.limit=4", "data.held_out=held_out.jsonl"), folder, {}, folder)
    assert [problem.id for problem in plan.problems] == ["0", "1", "2", "3"]
    assert len(plan.held_out) == 9


def test_a_question_whose_answer_stands_under_another_name_is_told(folder: Path) -> None:
    rows = [{"question": "Who?", "answer": "Ada"}, {"question": "Where?", "town": "London"}]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UsageError, match=r"question '2' of questions\.jsonl has no answer") as failed:
        make_plan(run(), folder, {}, folder)
    assert "data.columns.answer" in failed.value.fix
