"""`hira-train sft` and `grpo` with a tiny model: what they write, that a run goes on as if it had not stopped, and that
two processes make the step of one."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from safetensors.torch import load_file  # noqa: E402

from hira.trainers import records  # noqa: E402

if TYPE_CHECKING:
    from small_place import Place

torch.set_num_threads(1)
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.heavy]


def weights(folder: Path) -> dict[str, dict[str, torch.Tensor]]:
    return {path.parent.name: load_file(path) for path in folder.glob("adapters/*/adapter_model.safetensors")}


def test_grpo_leaves_adapters_and_a_profile_and_goes_on_exactly(first_place: "Place", tmp_path: Path) -> None:
    place = first_place.copy(tmp_path)
    given = ("grpo", "run.toml", "model.bits=64", "rollouts.attempts=2", "out=run",
             'model.adapters={planner="planner", "*"="worker"}')  # fmt: skip
    assert place.train(*given) == 0, place.err
    run = place.folder / "run"
    assert place.out == f'hira ask "…" --profile {run}\n'
    before = weights(run)
    assert set(before) == {"planner", "worker"}
    for name, own in before.items():
        assert all(value.any() for key, value in own.items() if "lora_B" in key), f"{name} was trained"
    assert [one["step"] for one in records.read(run / "metrics.jsonl")] == [1, 2]
    assert not (run / "README.md").exists(), "no model card of TRL's"
    shutil.rmtree(run / "checkpoint-2")
    shutil.rmtree(run / "adapters")
    assert place.train(*given) == 0, place.err
    assert "resuming in" in place.err
    for name, own in weights(run).items():
        assert all(torch.equal(value, before[name][key]) for key, value in own.items()), name
    assert [one["step"] for one in records.read(run / "exams.jsonl")] == [0, 2]
    assert place.train(*given, "train.lr=0.02") == 2
    assert "another 'train'" in place.err


def test_a_run_leaves_the_adapters_of_its_best_exam_and_ends_when_it_gets_no_better(
    first_place: "Place", tmp_path: Path
) -> None:
    place = first_place.copy(tmp_path)
    given = ("grpo", "run.toml", "model.bits=64", "rollouts.attempts=2", "out=run", "exam.every=1", "exam.best=true",
             "exam.patience=1", "train.steps=8", "train.save_every=1", "train.keep=9",
             'data.held_out={known="questions.jsonl", other="held_out.jsonl"}')  # fmt: skip
    assert place.train(*given) == 0, place.err
    run = place.folder / "run"
    shares = {one["step"]: one["sampled"] for one in records.read(run / "exams.jsonl") if one["step"] > 0}
    assert list(shares) == list(range(1, max(shares) + 1)), "an exam after each update"
    assert all({"known/sampled", "other/greedy"} <= set(exam) for exam in records.read(run / "exams.jsonl"))
    assert re.search(r"greedy; known \d+ %; other \d+ %", place.err)
    best = max(shares, key=shares.__getitem__)
    assert max(shares) == min(8, best + 1), "one exam without a gain ends it"
    kept = load_file(run / f"checkpoint-{best}" / "adapter_model.safetensors")
    left = weights(run)["default"]
    assert all(torch.allclose(value.double(), left[name].double()) for name, value in kept.items())


def test_a_run_whose_prompts_never_fit_is_stopped_and_says_so(place: "Place") -> None:
    long = {"question": f"Which river flows through {'Qu' * 200}?", "answer": "Vell"}
    (place.folder / "questions.jsonl").write_text(json.dumps(long) + "\n")
    assert place.train("grpo", "run.toml", "data.held_out=", "rollouts.window=256", "out=run") == 1
    assert "rollouts ended before the model wrote anything" in place.err
    assert re.search(r"the prompt has [\d,]+ tokens, and the model's window takes 256; ", place.err)
    assert "rollouts.window, up to the model's own" in place.err


def test_an_exam_whose_prompts_never_fit_has_no_result_and_says_so(place: "Place") -> None:
    long = {"question": f"Which river flows through {'Qu' * 600}?", "answer": "Vell"}
    (place.folder / "long.jsonl").write_text(json.dumps(long) + "\n")
    assert place.train("grpo", "run.toml", "data.held_out=long.jsonl", "train.steps=1", "out=run") == 0, place.err
    assert "the exam has no result: 1 of 1 rollouts ended before the model wrote anything" in place.err
    assert all(exam["greedy"] is None for exam in records.read(place.folder / "run" / "exams.jsonl"))
    assert re.search(r"unknown greedy", place.err), "it is not shown as a result of 0 %"


def test_a_model_without_a_chat_template_and_a_file_without_conversations_are_refused(place: "Place") -> None:
    assert place.train("sft", "run.toml", "sft.conversations=questions.jsonl", "out=a") == 2
    assert "line 1 is not a conversation" in place.err
    assert place.train("sft", "run.toml", "data.train=", "out=b") == 2
    assert "there is nothing to learn from" in place.err
    (place.folder / "model" / "chat_template.jinja").unlink()
    assert place.train("grpo", "run.toml", "out=c") == 2
    assert "no chat template" in place.err


def command(place: "Place", *given: str, **environ: str) -> subprocess.CompletedProcess[str]:
    known = {"PATH": os.environ["PATH"], "HOME": str(place.folder), "OMP_NUM_THREADS": "1", **environ}
    return subprocess.run([sys.executable, "-m", *given], cwd=place.folder, env=known, text=True, capture_output=True,
                          check=False, timeout=500)  # fmt: skip


@pytest.mark.skipif(torch.cuda.is_available(), reason="this is about machines without a GPU")
def test_two_processes_make_the_step_that_one_makes(place: "Place") -> None:
    given = ("run.toml", "model.bits=64", "data.held_out=", "train.steps=1")
    assert place.train("grpo", *given, "out=one") == 0, place.err
    done = command(place, "hira.cli.training", "grpo", *given, "out=two", "--processes", "2")
    assert done.returncode == 0, done.stderr
    one, two = (records.read(place.folder / name / records.METRICS)[0] for name in ("one", "two"))
    assert two["tokens"] == one["tokens"] > 0, "the rollouts of both processes are those of one"
    assert two["reward"] == pytest.approx(one["reward"])
    assert two["micro_batches"] > 0
    assert two["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-6)
    before, after = (weights(place.folder / name)["default"] for name in ("one", "two"))
    apart = max(float((value - before[name]).abs().max()) for name, value in after.items())
    moved = max(float(value.abs().max()) for name, value in before.items() if "lora_B" in name)
    assert moved > 0
    assert apart < 1e-6 * moved
    assert len([line for line in done.stdout.splitlines() if line.startswith("hira ask")]) == 1, done.stdout
    assert len(re.findall(r"  step 1 of 1: reward", done.stderr)) == 1, "one process speaks for both"
    again = command(place, "hira.cli.training", "grpo", *given, "out=two", "--processes", "2")
    assert again.returncode == 0, again.stderr
    assert "resuming in" in again.stderr
