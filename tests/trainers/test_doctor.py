"""Each rule of the doctor: a healthy run passes all of them, and each is made to fail."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hira.trainers import records
from hira.trainers.configuration import Configuration, load
from hira.trainers.doctor import RULES, examine, worst
from hira.trainers.doctor.seen import Seen, as_json, read

STEPS = 30


def configured(*overrides: str) -> Configuration:
    return load(None, ["model.name=m", "data.train=a.jsonl", "data.held_out=b.jsonl", *overrides])


def step(number: int, **other: Any) -> dict[str, Any]:
    share = number / STEPS
    return {
        "step": number,
        "loss": 0.01,
        "grad_norm": 0.5,
        "learning_rate": 2e-5,
        "reward": 0.3 + 0.3 * share,
        "reward/accuracy": 0.3 + 0.3 * share,
        "reward/format/planner": 0.5,
        "tokens": 900,
        "rows": 16,
        "normaliser": 8.0,
        "dead_groups": 0.2,
        "singletons": 0,
        "group_size/8": 4,
        "infra_failed": 0.0,
        "unscored": 0.0,
        "row_breaks": 0.0,
        "rows_dropped": 0.0,
        "entropy": 0.5 - 0.2 * share,
        "planner/length": 60,
        "planner/turns": 3.0,
        "planner/tokens_per_turn": 20.0,
        "planner/broken": 0.0,
        "planner/overlong": 0.0,
        "planner/advantage_size": 0.9,
        "planner/sampler_drift": 1e-4,
        "rollout_peak_gib": 10.0,
        "update_peak_gib": 12.0,
        "rollout_seconds": 20.0,
        "update_seconds": 10.0,
        **other,
    }


def sample(number: int, reward: float = 1.0, **other: Any) -> dict[str, Any]:
    messages = [{"role": "user", "text": "Who built it?"}, {"role": "assistant", "text": "Ida Berg built it in 1901."}]
    talk = {"conversation": "planner", "role": "planner", "turns": 1, "tokens": 9, "messages": messages}
    return {
        "step": number,
        "question": "Who?",
        "reward": reward,
        "advantages": {"planner": 1.0 if reward else -1.0, "1/worker": 1.0 if reward else -1.0},
        "conversations": [talk],
        **other,
    }


HEALTHY = Seen(
    configured(),
    [step(at) for at in range(1, STEPS + 1)],
    [sample(1, float(at % 2)) for at in range(8)],
    [{"step": 0, "greedy": 0.4}, {"step": 30, "greedy": 0.6}],
    {10: "abc", 20: "abc"},
    problems=500,
    window=32_768,
    notices=(),
    quiet=20.0,
)


def with_step(**other: Any) -> Seen:
    """The healthy run with these figures in its last twenty steps."""
    return replace(HEALTHY, steps=[*HEALTHY.steps[:10], *(step(at, **other) for at in range(11, STEPS + 1))])


def with_run(*overrides: str) -> Seen:
    return replace(HEALTHY, configuration=configured(*overrides))


def talk(**other: Any) -> Seen:
    one = sample(1)
    return replace(HEALTHY, rollouts=[{**one, "conversations": [{**one["conversations"][0], **other}]}])


NO_TOOLS = ("the chat template has no place for tools: calls are written as text",)
BROKEN: list[tuple[str, str, Seen]] = [
    ("learning rate of LoRA", "warning", with_run("train.lr=5e-7")),
    ("learning rate of LoRA", "warning", with_run("train.lr=0.01")),
    ("schedule of the rate", "fault", with_run("train.warmup=100")),
    ("schedule of the rate", "warning", with_run("train.warmup=60")),
    ("deadlines", "fault", with_run("rollouts.call_seconds=4000")),
    ("sampling of trained roles", "warning", with_run("settings.top_p=0.9")),
    ("budget of a micro-batch", "warning", with_run("rollouts.window=32768")),
    ("steps on one set of rollouts", "warning", with_run("train.iterations=5")),
    (
        "chat template",
        "warning",
        replace(HEALTHY, notices=("the chat template removes earlier thoughts from the prompt",)),
    ),
    ("chat template", "warning", replace(with_run("recipe=grpo"), notices=NO_TOOLS)),
    ("chat template", "fault", replace(with_run("settings.dialect=native"), notices=NO_TOOLS)),
    ("questions", "fault", replace(HEALTHY, problems=5)),
    ("questions", "warning", replace(HEALTHY, problems=20)),
    ("held-out questions", "warning", with_run("data.held_out=")),
    ("held-out questions", "fault", with_run("data.held_out=a.jsonl")),
    ("held-out questions", "warning", replace(HEALTHY, shared=3)),
    ("window", "fault", replace(HEALTHY, window=4096)),
    ("masks", "fault", talk(tokens=300)),
    ("prefixes", "warning", with_step(**{"planner/broken": 0.2})),
    ("prefixes", "fault", with_step(**{"planner/broken": 0.9})),
    ("ids and log-probabilities", "warning", with_step(rows_dropped=0.1)),
    ("groups", "fault", replace(HEALTHY, rollouts=[sample(1), sample(1, advantages={"planner": 0.4})])),
    ("singletons", "fault", with_step(**{"group_size/1": 30})),
    ("size of advantages", "fault", with_step(**{"planner/advantage_size": 7428.0})),
    ("dead groups", "warning", with_step(dead_groups=0.8)),
    ("dead groups", "fault", with_step(dead_groups=1.0)),
    ("failed rollouts", "warning", with_step(unscored=0.2)),
    ("failed rollouts", "fault", with_step(infra_failed=0.6)),
    ("cut replies", "warning", with_step(**{"planner/overlong": 0.3})),
    ("cut replies", "fault", with_step(**{"planner/overlong": 1.0})),
    ("adapters", "fault", replace(HEALTHY, steps=[step(at, grad_norm=0.0) for at in range(1, 6)])),
    ("adapters", "warning", with_step(grad_norm=0.0)),
    ("drift", "warning", with_step(**{"planner/sampler_drift": 0.05})),
    ("drift", "fault", with_step(**{"planner/sampler_drift": 0.9})),
    ("staleness", "fault", with_step(**{"staleness/most": 3})),
    ("base weights", "fault", replace(HEALTHY, bases={10: "abc", 20: "abd"})),
    ("steps", "fault", replace(HEALTHY, steps=[*HEALTHY.steps, HEALTHY.steps[-1]])),
    ("steps", "fault", replace(HEALTHY, steps=HEALTHY.steps[3:])),
    ("finite numbers", "fault", replace(HEALTHY, steps=[{k: v for k, v in HEALTHY.steps[0].items() if k != "loss"}])),
    ("normaliser", "fault", with_step(normaliser=0.0)),
    (
        "tokens a turn",
        "warning",
        with_step(**{"planner/tokens_per_turn": 4.0, "planner/turns": 6.0, "reward": 0.3}),
    ),
    ("entropy", "warning", with_step(entropy=0.01)),
    ("entropy", "warning", with_step(entropy=3.0)),
    ("memory", "warning", with_step(update_peak_gib=20.0)),
    ("reward hacking", "fault", replace(HEALTHY, exams=[{"greedy": 0.6}, {"greedy": 0.4}])),
    ("reward hacking", "warning", with_step(**{"reward/format/planner": 0.9, "reward/accuracy": 0.1})),
    ("heartbeat", "warning", replace(HEALTHY, quiet=400.0)),
    ("heartbeat", "fault", replace(HEALTHY, quiet=9000.0)),
]


def test_a_healthy_run_passes_every_rule() -> None:
    found = examine(HEALTHY)
    assert [one for one in found if one.verdict != "ok"] == []
    assert worst(found) == "ok"


@pytest.mark.parametrize(("rule", "verdict", "seen"), BROKEN, ids=[f"{rule}: {verdict}" for rule, verdict, _ in BROKEN])
def test_each_rule_finds_what_it_is_there_for_and_says_what_to_do(rule: str, verdict: str, seen: Seen) -> None:
    (one,) = [one for one in examine(seen) if one.rule == rule]
    assert one.verdict == verdict, one
    assert one.told
    assert one.fix
    assert worst(examine(seen)) == verdict or verdict == "warning"


def test_every_rule_is_made_to_fail_here() -> None:
    names = [one.rule for one in examine(HEALTHY)]
    assert len(names) == len(set(names)) == len(RULES)
    assert set(names) == {rule for rule, _, _ in BROKEN}


def test_before_a_run_there_is_nothing_to_say_of_it() -> None:
    found = {one.rule: one.verdict for one in examine(Seen(configured(), problems=500))}
    assert found["dead groups"] == found["masks"] == found["drift"] == found["heartbeat"] == "unseen"
    assert found["schedule of the rate"] == "ok"


def test_a_quarter_of_a_samples_text_that_was_cut_is_no_wrong_mask() -> None:
    said = [{"role": "assistant", "text": "a\n… 40000 characters …\nb"}]
    masks = next(one for one in examine(talk(tokens=9000, messages=said)) if one.rule == "masks")
    assert masks.verdict == "unseen"


def test_what_a_run_left_is_read_from_its_folder(tmp_path: Path) -> None:
    records.append(tmp_path / records.METRICS, HEALTHY.steps)
    records.append(tmp_path / records.METRICS, [{"step": STEPS, "train_runtime": 3.0}])
    records.append(tmp_path / records.ROLLOUTS, HEALTHY.rollouts)
    records.append(tmp_path / "checkpoint-10" / "complete.json", [{"step": 10, "base": "abc"}])
    now = (tmp_path / records.METRICS).stat().st_mtime + 30
    seen = read(tmp_path, configured(), now)
    assert seen.bases == {10: "abc"}
    assert seen.quiet == pytest.approx(30)
    assert all(one.verdict in ("ok", "unseen") for one in examine(seen))
    assert read(tmp_path, configured("train.steps=30"), now).quiet is None
    assert len(json.loads(as_json(examine(seen)))) == len(RULES)


def test_the_command_ends_with_1_where_there_is_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import os

    from hira.cli.training import main

    folder = tmp_path / "run"
    began = {"began": 0.0, "configuration": configured("out=run", "train.steps=30").shown()}
    folder.mkdir()
    (folder / "configuration.json").write_text(json.dumps(began))
    spoilt: Callable[[int], dict[str, Any]] = lambda at: step(at, dead_groups=1.0)  # noqa: E731
    records.append(folder / records.METRICS, map(spoilt, range(1, STEPS + 1)))
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert main(["doctor", "run"]) == 1
    finally:
        os.chdir(here)
    told = capsys.readouterr().out
    assert "FAULT    dead groups: 100 % of groups have no signal" in told
    assert "hira-train curate" in told


@pytest.mark.parametrize("overrides", [["recipe=grpo", "settings.dialect=tags"], ["recipe=matpo"]])
def test_a_template_without_tools_is_well_where_calls_are_written_as_text(overrides: list[str]) -> None:
    found = {one.rule: one for one in examine(replace(with_run(*overrides), notices=NO_TOOLS))}
    assert found["chat template"].verdict == "ok"
