"""The demo: its world and teacher, the way from text to tokens and back, and in miniature the whole of it."""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from later import later, needs
from terminal import Terminal

from hira.cli.shell import Shell
from hira.cli.training.demo import ask_held_out
from hira.policies.local.template import Template
from hira.trainers import records
from hira.trainers.assembly import write_configuration
from hira.trainers.demo import matpo
from hira.trainers.demo.cited import CITED
from hira.trainers.demo.matpo import MATPO_DEMO, MatpoTeacher, MatpoTeacherFaults, learn_tokenizer
from hira.trainers.demo.recipe import Demo, record_demonstrations
from hira.trainers.demonstrations import demonstrations_of, list_messages
from hira.trainers.profile import write_profiles

torch = later("torch")
pytestmark = [needs("torch", "trl"), pytest.mark.filterwarnings("default")]


def begin(folder: Path, **sizes: int) -> Demo:
    """A folder as it is when the demo `--small` has written its configuration."""
    demo = Demo(folder, MATPO_DEMO, 0, replace(MATPO_DEMO.small, **sizes))
    write_configuration(demo.plan)
    return demo


def test_a_folder_that_a_demo_cannot_have_says_whose_it_is(terminal: Terminal, tmp_path: Path) -> None:
    begin(tmp_path / "stopped", updates=8)
    for name in ("finished", "half"):
        begin(tmp_path / name)
        (tmp_path / name).rename(tmp_path / f"moved-{name}")
    (tmp_path / "moved-finished" / "profile.toml").touch()
    begin(tmp_path / "finished")
    (tmp_path / "finished" / "profile.toml").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.md").touch()
    (tmp_path / "file").touch()
    for given, said, fix in (
        (("finished",), "the demo in 'finished' is finished", "hira-train show finished"),
        (("finished", "--seed", "1"), "was started with --seed 0 --updates 2 --small", "hira-train show finished"),
        (("stopped",), "was started with --seed 0 --updates 8 --small", "to resume it, use these flags"),
        (("moved-finished",), "the demo in 'moved-finished' is finished", "hira-train show moved-finished"),
        (("moved-half",), f"the demo in 'moved-half' was started in {tmp_path / 'half'}", "move it back"),
        (("other",), "'other' already exists, and holds no demo", "another folder"),
        (("file",), "'file' already exists, and holds no demo", "another folder"),
    ):
        assert terminal.train("demo", "--small", "--output", *given) == 2
        assert said in terminal.err, terminal.err
        assert fix in terminal.err, terminal.err


def test_ctrl_c_says_what_the_same_command_does_next(terminal: Terminal, tmp_path: Path) -> None:
    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    assert terminal.demo(replace(MATPO_DEMO, teacher=interrupt), "--small", "--output", "run") == 130
    assert terminal.err.splitlines()[-1] == (
        "hira-train: interrupted; the same command starts over, because there is no checkpoint yet"
    )
    checkpoint = tmp_path / "run" / "checkpoint-2"
    checkpoint.mkdir()
    (checkpoint / "complete.json").touch()
    interrupted = replace(MATPO_DEMO, problems=lambda seed, *, held_out: interrupt(seed, held_out))
    assert terminal.demo(interrupted, "--small", "--output", "run") == 130
    assert "interrupted; the same command resumes from checkpoint-2" in terminal.err


def test_the_profile_of_a_tiny_model_says_what_it_can_be_asked(tmp_path: Path) -> None:
    demo = begin(tmp_path)
    write_profiles(demo.plan, limits=demo.limits)
    for name in ("profile.toml", "served.toml"):
        lines = (tmp_path / name).read_text(encoding="utf-8").splitlines()
        assert lines[1].startswith("# The model knows only questions like the demo's own, and takes 256 tokens")
    assert not replace(demo, recipe=CITED).limits, "a pretrained model reads what it is asked"


def demonstrations(folder: Path, faults: MatpoTeacherFaults, most: int = 12) -> list:
    recipe = replace(MATPO_DEMO, lessons=most, teacher=lambda _, chance, __: MatpoTeacher(chance, faults).reply)
    return record_demonstrations(recipe, folder, 0, 1)


def test_no_one_who_is_asked_about_in_training_is_asked_about_later() -> None:
    here = matpo.make_world(3)
    trained, held = here.problems(held_out=False), here.problems(held_out=True)
    assert (len(trained), len(held)) == (72, 24)
    assert not {one.id.split("-")[0] for one in trained} & {one.id.split("-")[0] for one in held}
    assert matpo.make_world(3) == here
    assert matpo.make_world(4) != here


def test_demonstrations_are_the_run_time_prompts_and_what_the_teacher_said(tmp_path: Path) -> None:
    rollouts = demonstrations(tmp_path, MatpoTeacherFaults(0, 0, 0), 4)
    template = Template(learn_tokenizer(rollouts))
    for record in rollouts:
        for row, trajectory in zip(demonstrations_of(record, template), record.trajectories.values(), strict=True):
            said = [template.decode([one]) for one, own in zip(row.completion, row.mask, strict=True) if own]
            texts = [message.text for message in list_messages(trajectory) if message.role == "assistant"]
            assert "".join(said) == "".join(f"{text}<|im_end|>" for text in texts)
            assert template.decode(row.prompt) == template.prompt(trajectory.turns[0].request)
            assert len(row.prompt) < 40, "a prompt of the workflow is few tokens"


def test_a_demo_whose_model_cannot_be_asked_ends_with_the_exit_code_of_the_command_that_failed(tmp_path: Path) -> None:
    err = io.StringIO()
    shell = Shell(io.StringIO(), io.StringIO(), err, {}, tmp_path, tmp_path)
    assert ask_held_out(Demo(tmp_path / "nothing", MATPO_DEMO, 0, MATPO_DEMO.small), shell) == 2
    assert err.getvalue().count("known answer") == 3


@pytest.mark.heavy
def test_a_demo_that_is_stopped_goes_on_as_if_nothing_had_happened_to_a_model_that_can_be_asked(
    terminal: Terminal, tmp_path: Path
) -> None:
    sizes = replace(MATPO_DEMO.small, updates=6)
    Demo(tmp_path / "whole", MATPO_DEMO, 0, sizes).run()

    def stopped(told: Mapping[str, Any]) -> None:
        if "loss" in told and told.get("stage") != "sft" and told["step"] == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Demo(tmp_path / "half", MATPO_DEMO, 0, sizes, on_step=stopped).run()
    assert not (tmp_path / "half" / "adapters").exists()
    again = ["demo", "--small", "--updates", "6", "--output", "half"]
    assert terminal.train(*again, "--seed", "1") == 2
    assert "was started with --seed 0 --updates 6 --small" in terminal.err
    assert terminal.train(*again) == 0, terminal.err
    assert "resuming from checkpoint-5" in terminal.err
    assert "so it is not asked" in terminal.err, "what has learned next to nothing is not asked"
    assert "hira ask" not in terminal.out, "nor is its user told to ask it"
    assert "# The model knows only" in (tmp_path / "half" / "profile.toml").read_text(encoding="utf-8")
    assert terminal.train(*again) == 2, "a demo that has ended is not made anew"
    for name in ("adapters/default/adapter_model.safetensors", records.EXAMS, records.ROLLOUTS):
        half, whole = ((tmp_path / one / name).read_bytes() for one in ("half", "whole"))
        assert half.replace(b"/half/", b"/whole/") == whole, name
    steps = [one for one in records.read(tmp_path / "half" / records.METRICS) if "loss" in one]
    assert [one["step"] for one in steps] == [1, 2, 3, 4, 5, 6]
    assert {"planner/length", "worker/length", "reward", "dead_groups"} <= steps[0].keys()
    terminal.hira("ask", "Which river flows through the town where Vigdis works?", "--profile", "half", "--json")
    answer = json.loads(terminal.out)
    assert answer["usage"]["completion_tokens"] > 0, "it is the model that spoke"
    assert answer["model"] == f"hf:{tmp_path}/half/model+{tmp_path}/half/adapters/default"
