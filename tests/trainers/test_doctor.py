"""Each rule of the doctor: a healthy run passes all of them, and each is made to fail."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from terminal import Terminal

from hira.trainers import records
from hira.trainers.assembly import write_configuration
from hira.trainers.configuration import Configuration, load_configuration
from hira.trainers.demo.matpo import MATPO_DEMO
from hira.trainers.demo.recipe import Demo
from hira.trainers.doctor import RunFiles, examine

STEPS = 30


def configured(*overrides: str) -> Configuration:
    return load_configuration(None, ["model.name=m", "data.train=a.jsonl", "data.held_out=b.jsonl", *overrides])


def step(number: int, **other: Any) -> dict[str, Any]:
    share = number / STEPS
    healthy = {"loss": 0.01, "reward": 0.3 + 0.3 * share, "reward/accuracy": 0.3 + 0.3 * share,
               "reward/format/planner": 0.5, "dead_groups": 0.2, "group_size/8": 4, "infra_failed": 0.0,
               "unscored": 0.0, "rows_dropped": 0.0, "entropy": 0.5 - 0.2 * share, "planner/length": 60,
               "planner/broken": 0.0, "planner/overlong": 0.0, "planner/sampler_drift": 1e-4}  # fmt: skip
    return {"step": number, **healthy, **other}


HEALTHY = RunFiles(
    configured(),
    [step(at) for at in range(1, STEPS + 1)],
    [{"step": 0, "greedy": 0.4}, {"step": 30, "greedy": 0.6}],
    problems=500,
    window=32_768,
    notices=(),
)


def with_step(**other: Any) -> RunFiles:
    """The healthy run with these figures in its last twenty steps."""
    return replace(HEALTHY, steps=[*HEALTHY.steps[:10], *(step(at, **other) for at in range(11, STEPS + 1))])


def with_run(*overrides: str) -> RunFiles:
    return replace(HEALTHY, configuration=configured(*overrides))


FORGETFUL = "the chat template removes earlier thoughts from the prompt"
NO_TOOLS = ("the chat template has no place for tools: calls are written as text",)
BROKEN: list[tuple[str, str, RunFiles]] = [
    (
        "chat template",
        "warning",
        replace(HEALTHY, notices=(FORGETFUL,)),
    ),
    ("chat template", "warning", replace(with_run("recipe=grpo"), notices=NO_TOOLS)),
    ("chat template", "fault", replace(with_run("settings.dialect=native"), notices=NO_TOOLS)),
    ("questions", "fault", replace(HEALTHY, problems=5)),
    ("questions", "warning", replace(HEALTHY, problems=20)),
    ("held-out questions", "warning", replace(with_run("data.held_out="), exams=())),
    ("held-out questions", "fault", with_run("data.held_out=a.jsonl")),
    ("held-out questions", "warning", replace(HEALTHY, shared=3)),
    ("held-out questions", "fault", with_run('data.held_out={own="a.jsonl", other="b.jsonl"}')),
    ("held-out questions", "warning", replace(with_run('data.held_out={other="c.jsonl"}'), shared=3)),
    ("window", "fault", replace(HEALTHY, window=4096)),
    ("prefixes", "fault", replace(with_step(**{"planner/broken": 0.9}), notices=None)),
    ("prefixes", "fault", replace(with_step(**{"planner/broken": 0.9}), notices=(FORGETFUL,))),
    ("prefixes", "warning", with_step(**{"planner/broken": 0.9})),
    ("tokens", "warning", with_step(rows_dropped=0.1)),
    ("singletons", "fault", with_step(**{"group_size/1": 30})),
    ("dead groups", "fault", with_step(dead_groups=1.0)),
    ("failed rollouts", "fault", with_step(infra_failed=0.6)),
    ("cut replies", "fault", with_step(**{"planner/overlong": 1.0})),
    ("drift", "fault", with_step(**{"planner/sampler_drift": 0.9})),
    ("entropy", "warning", with_step(entropy=0.01)),
    ("entropy", "warning", with_step(entropy=3.0)),
    ("reward hacking", "fault", replace(HEALTHY, exams=[{"greedy": 0.6}, {"greedy": 0.4}])),
    ("reward hacking", "warning", with_step(**{"reward/format/planner": 0.9, "reward/accuracy": 0.1})),
]


def test_a_healthy_run_passes_every_rule() -> None:
    without_calls = replace(with_run("recipe=grpo", "settings.workflow=rag"), notices=NO_TOOLS)
    for seen in (HEALTHY, without_calls):
        assert [one for one in examine(seen) if one.verdict != "ok"] == []


def test_each_rule_finds_what_it_is_there_for_and_says_what_to_do() -> None:
    for rule, verdict, seen in BROKEN:
        (one,) = [one for one in examine(seen) if one.rule == rule]
        assert one.verdict == verdict, one
        assert one.found
        assert one.fix


def test_the_command_ends_with_1_where_there_is_a_fault(terminal: Terminal, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    began = {"began": 0.0, "configuration": configured("out=run", "train.steps=30").to_json()}
    (folder / "configuration.json").write_text(json.dumps(began))
    records.append_records(folder / records.METRICS, [step(at, dead_groups=1.0) for at in range(1, STEPS + 1)])
    assert terminal.train("doctor", "run") == 1
    assert "FAULT    dead groups: 100 % of the groups have no signal" in terminal.out
    assert "hira-train curate" in terminal.out


def test_the_folder_of_a_demo_is_examined_like_that_of_any_run(terminal: Terminal, tmp_path: Path) -> None:
    demo = Demo(tmp_path / "demo", MATPO_DEMO, 0, MATPO_DEMO.small)
    write_configuration(demo.plan)
    demo.place.mkdir()
    (demo.place / "config.json").write_text(json.dumps({"max_position_embeddings": MATPO_DEMO.shape.window}))
    records.append_records(tmp_path / "demo" / records.METRICS, HEALTHY.steps)
    records.append_records(tmp_path / "demo" / records.EXAMS, HEALTHY.exams)
    assert terminal.train("doctor", "demo") == 0
    assert "held-out questions: 2 exams" in terminal.out
    assert "window: 256 tokens; the model itself takes 256" in terminal.out
    assert "skipped  questions: the run names no file of questions" in terminal.out


def test_the_rules_that_wait_for_steps_say_so_and_when_to_check_them(terminal: Terminal, tmp_path: Path) -> None:
    write_configuration(Demo(tmp_path / "demo", MATPO_DEMO, 0, MATPO_DEMO.small).plan)
    records.append_records(tmp_path / "demo" / records.METRICS, [step(1)])
    assert terminal.train("doctor", "demo") == 0
    assert "skipped  entropy, reward hacking: 20 steps are needed, 1 made" in terminal.out
    assert "during or after the run: hira-train doctor demo" in terminal.out
    assert terminal.train("doctor", "demo", "train.lr=1") == 2
