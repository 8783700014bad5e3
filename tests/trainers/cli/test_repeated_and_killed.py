"""Runs that are repeated, and runs that are killed and go on: real processes, with the small model of `small_place`.

All is in double precision (`model.bits=64`), where a reply does not hang on which others are decoded beside it.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from safetensors.torch import load_file  # noqa: E402

from hira.trainers import records  # noqa: E402

if TYPE_CHECKING:
    from small_place import Place

torch.set_num_threads(1)
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.heavy]
TIMED = ("seconds", "per_second", "runtime")
GRPO = ("grpo", "run.toml", "model.bits=64", "data.held_out=", "rollouts.attempts=2")

KILLED = """
import os, signal, sys
from hira.cli.training import main

name, wanted, function, *command = sys.argv[1:]
path, _, times = wanted.partition(":")
left = {"opened": int(times or 1), "called": 2}

def killed():
    sys.setprofile(None)
    os.kill(os.getpid(), getattr(signal, name))

def called(frame, event, _):
    if event == "call" and frame.f_code.co_name == function:
        left["called"] -= 1
        left["called"] or killed()

def opened(event, told):
    if event == "open" and str(told[0]).endswith(path) and told[1] and set(told[1]) & set("wa"):
        left["opened"] -= 1
        if not left["opened"]:
            sys.setprofile(called) if function else killed()

sys.addaudithook(opened)
sys.exit(main(command))
"""


def process(place: "Place", *command: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(place.folder), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *command], cwd=place.folder, env=environ, text=True, capture_output=True,
                          check=False, timeout=500)  # fmt: skip


def killed(place: "Place", at: str, *command: str, amid: str = "") -> None:
    """Run the command until a file whose path ends with `at` is opened to be written (`PATH:N`, for the Nth time), or
    from then on until the function `amid` is called a second time, and kill it there."""
    done = process(place, "-c", KILLED, "SIGKILL", at, amid, *command)
    assert done.returncode == -signal.SIGKILL, done.stderr


def untimed(file: Path) -> list[str]:
    """The lines of metrics as they stand in the file, without what a clock told."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in file.read_text().splitlines()]
    return [json.dumps({name: one[name] for name in one if not name.endswith(TIMED)}) for one in lines]


def same(one: Path, other: Path) -> None:
    """Both runs told the same and trained the same, to the last bit."""
    for name in ("metrics.jsonl", "sft/planner/metrics.jsonl", "sft/worker/metrics.jsonl"):
        if (one / name).exists() or (other / name).exists():
            assert untimed(one / name) == untimed(other / name), name
    for name in ("rollouts.jsonl", "demonstrations.jsonl"):
        if (one / name).exists() or (other / name).exists():
            assert (one / name).read_bytes() == (other / name).read_bytes(), name
    weights = sorted(path.relative_to(one) for path in one.glob("adapters/*/adapter_model.safetensors"))
    assert weights
    for path in weights:
        first, second = load_file(one / path), load_file(other / path)
        assert all(torch.equal(value, second[name]) for name, value in first.items()), path


@pytest.fixture(scope="module")
def exact(first_place: "Place", tmp_path_factory: pytest.TempPathFactory) -> "Place":
    """A folder with two runs: `whole`, and `half`, which was killed amid the rollouts of its second update.

    Prompts name the day, so that on some days a seed's few rollouts all earn the same and teach nothing: the first seed
    is taken with which both updates learn.
    """
    place = first_place.copy(tmp_path_factory.mktemp("exact"))
    run = (place.folder / "run.toml").read_text()
    for seed in range(8):
        (place.folder / "run.toml").write_text(f"seed = {seed}\n{run}")
        assert place.train(*GRPO, "out=whole") == 0, place.err
        if all(one["grad_norm"] > 0 for one in records.read(place.folder / "whole" / records.METRICS)):
            break
        shutil.rmtree(place.folder / "whole")
    killed(place, "half/checkpoint-1/complete.json", *GRPO, "out=half", amid="_completion")
    return place


def gone_on(place: "Place", name: str) -> None:
    """The run goes on in this process, to an end that is the same as if it had never been killed."""
    assert place.train(*GRPO, f"out={name}") == 0, place.err
    assert "resuming in" in place.err
    same(place.folder / "whole", place.folder / name)


def test_the_same_seed_gives_the_same_curve_whatever_is_decoded_side_by_side(exact: "Place") -> None:
    done = process(exact, "-m", "hira.cli.training", *GRPO, "rollouts.concurrency=1", "out=alone")
    assert done.returncode == 0, done.stderr
    same(exact.folder / "whole", exact.folder / "alone")
    told = [json.loads(line) for line in untimed(exact.folder / "whole" / "metrics.jsonl")]
    assert [one["step"] for one in told] == [1, 2]
    assert all(one["grad_norm"] > 0 for one in told), "what was learned in the first could differ in the second"


def test_a_run_that_is_killed_amid_rollouts_and_amid_an_update_goes_on_as_if_it_had_not(exact: "Place") -> None:
    folder = shutil.copytree(exact.folder / "half", exact.folder / "update")
    assert len((folder / "rollouts.jsonl").read_text().splitlines()) == 4, "those of the second update were under way"
    killed(exact, "update/rollouts.jsonl", *GRPO, "out=update", amid="compute_loss")
    assert len((folder / "rollouts.jsonl").read_text().splitlines()) == 8, "its rollouts had been made"
    assert [path.name for path in folder.glob("checkpoint-*")] == ["checkpoint-1"]
    gone_on(exact, "update")


ROLES = 'model.adapters={planner="planner", "*"="worker"}'


def test_ctrl_c_ends_with_130_and_the_same_command_resumes(exact: "Place") -> None:
    name = "stopped"
    done = process(exact, "-c", KILLED, "SIGINT", f"{name}/rollouts.jsonl", "compute_loss", *GRPO, f"out={name}")
    assert done.returncode == 130, done.stderr
    assert "interrupted; the same command starts over, because there is no checkpoint yet" in done.stderr
    assert "Traceback" not in done.stderr
    assert exact.train(*GRPO, f"out={name}") == 0, exact.err
    same(exact.folder / "whole", exact.folder / name)


def test_a_cold_start_that_is_killed_goes_on_as_if_it_had_not(place: "Place") -> None:
    command = ("sft", "run.toml", "sft.conversations=conversations.jsonl", "sft.steps=6", "sft.batch=2",
               "sft.save_every=2", ROLES)  # fmt: skip
    assert place.train(*command, "out=whole") == 0, place.err
    killed(place, "worker/checkpoint-4/trainer_state.json", *command, "out=killed")
    folder = place.folder / "killed"
    assert (folder / "sft" / "worker" / "checkpoint-4").is_dir()
    assert place.train(*command, "out=killed") == 0, place.err
    assert "resuming in" in place.err
    same(place.folder / "whole", folder)
