"""`hira-train` at the command line: errors in three lines, exit codes, and what needs no torch."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from terminal import Terminal

from hira.runtime.settings import Settings, load
from hira.trainers import records
from hira.trainers.assembly import TrainingPlan
from hira.trainers.configuration import Configuration, ModelConfig
from hira.trainers.profile import write_profiles
from hira.trainers.recipes import MATPO
from hira.workflows import WORKFLOWS


def test_what_is_wrong_is_told_in_three_lines_with_code_2(terminal: Terminal) -> None:
    for arguments, told in (
        (("dmeo",), ["invalid choice: 'dmeo'", "did you mean 'demo'?"]),
        (("grpo",), ["no configuration is named", "docs/training.md"]),
        (("help", "dmeo"), ["did you mean 'demo'?"]),
        (("grpo", "none.toml"), ["the configuration cannot be read", "none.toml"]),
        (("grpo", "--resume", "nowhere"), ["there is no such folder", "nowhere"]),
        (("grpo", "a.toml", "--set", "train.steps=3"), ["unrecognized arguments: --set", "without dashes: train.lr"]),
        (("grpo", "a.toml", "--steps", "3"), ["unrecognized arguments: --steps", "without dashes: train.steps=VALUE"]),
        (("grpo", "a.toml", "--gpu", "l4"), ["--gpu is for hira-train plan"]),
        (("plan", "model.name=x", "train.stepz=3"), ["unknown key 'stepz'", "on the command line", "'steps'?"]),
        (("demo", "--updates", "0"), ["'0' is not a number of 1 or more"]),
        (("demo", "--model", "nothing"), ["there is no model 'nothing'", "smollm2"]),
        (("show", "."), ["the folder does not hold a run", "output folder"]),
        (("eval", "run"), ["arguments are required: DATA"]),
        (("grpo", "model.name=x"), ["no questions to train on are named"]),
        (("plan", "model.name=nobody/nothing"), ["is not on this machine", "hf download"]),
        (("plan", "model.name=x", "workflow.max_subtask=3"), ["no option 'max_subtask'", "'max_subtasks'?"]),
        (("plan", "--gpu", "rtx-4091", "model.name=x"), ["unknown GPU 'rtx-4091'", "did you mean 'rtx-4090'?"]),
        (("serve", "nowhere"), ["there is no such folder", "nowhere"]),
        (("eval", "nowhere", "mini"), ["there is no such folder", "nowhere"]),
    ):
        assert terminal.train(*arguments) == 2
        assert terminal.err.startswith("hira-train: ")
        assert len(terminal.err.splitlines()) <= 3
        assert all(one in terminal.err for one in told), terminal.err
        assert not terminal.out


QWEN3_4B = {
    "model_type": "qwen3",
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151_936,
    "tie_word_embeddings": True,
}


def test_the_example_for_24_gb_has_room_there_and_its_sheet_in_the_docs_is_what_plan_prints(terminal: Terminal) -> None:
    root = Path(__file__).parents[3]
    (terminal.folder / "config.json").write_text(json.dumps(QWEN3_4B))
    file = root / "examples" / "training" / "one_24gb.toml"
    assert terminal.train("plan", str(file), "model.name=.", "--gpu", "rtx-4090") == 0, terminal.err
    assert terminal.out in (root / "docs" / "training.md").read_text(encoding="utf-8")
    assert "of 32 wanted; the others wait" in terminal.err
    assert terminal.train("plan", str(file), "model.name=.", "model.bits=16", "train.budget=200000", "--gpu", "l4") == 0
    assert "too small" in terminal.out
    assert "GiB" not in terminal.err
    assert terminal.train("plan", str(file), "model.name=.", "model.bits=32") == 0
    assert re.search(r"a CPU takes more, .*: this machine has \d+ GiB\n", terminal.err)


def test_without_the_extra_a_command_says_how_to_install_it(tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None; from hira.cli.training import main; sys.exit(main(['demo']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["hira-train: torch is not installed", "  pip install 'hira[train]'"]


def run_folder(folder: Path) -> Path:
    """What a run leaves, without its weights."""
    for name in ("planner", "worker"):
        place = folder / "adapters" / name
        place.mkdir(parents=True)
        (place / "adapter_config.json").write_text(json.dumps({"r": 24, "base_model_name_or_path": "some/base"}))
    (folder / "documents").mkdir()
    model = ModelConfig(name="some/base", adapters={"planner": "planner", "worker": "worker"})
    configuration = Configuration(model=model, workflow={"max_subtasks": 4})
    settings = Settings(workflow="matpo", docs=(folder / "documents", folder.parent / "elsewhere"))
    plan = TrainingPlan(configuration, MATPO, settings, WORKFLOWS["matpo"](), (), (), folder, began=0.0)
    write_profiles(plan, {"temperature": 0.0})
    return folder


def test_the_profiles_of_a_run_are_settings(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    here = load({"profile": run}, {}, tmp_path, tmp_path)
    assert (here.model, here.workflow, here.temperature) == ("hf:some/base", "matpo", 0.0)
    assert here.roles["worker"].adapter == str(run / "adapters" / "worker")
    assert here.workflows == {"matpo": {"max_subtasks": 4}}
    assert here.docs == (run / "documents",), "what lies elsewhere is not named by a profile"
    served = load({"profile": run, "base_url": "http://127.0.0.1:8000/v1"}, {}, tmp_path, tmp_path)
    assert (served.model, served.roles["worker"].model) == ("hira-base", "worker")


def test_serve_prints_the_command_with_each_adapter_by_its_name(terminal: Terminal) -> None:
    run = run_folder(terminal.folder / "run")
    for adapter in (run / "adapters").iterdir():
        (adapter / "chat_template.jinja").write_text("{{ '<tool_call>\\n' }}")
    assert terminal.train("serve", "run", "--port", "9000") == 0
    words = terminal.out.split()
    assert words[:3] == ["vllm", "serve", "some/base"]
    assert f"planner={run}/adapters/planner" in words
    assert words[words.index("--max-lora-rank") + 1] == "32"
    assert words[words.index("--port") + 1] == "9000"
    assert words[words.index("--tool-call-parser") + 1] == "hermes", "calls are read as they were in training"
    assert "--base-url http://127.0.0.1:9000/v1" in terminal.err


# --- show

STEP = {
    "step": 1, "loss": 0.1, "reward": 0.5, "reward/accuracy": 0.25, "planner/length": 30.0, "worker/length": 20.0,
    "planner/entropy": 1.0, "planner/clip_ratio/region": 0.1, "dead_groups": 0.5, "worker/tool_success/search": 0.9,
}  # fmt: skip
SAMPLE = {
    "step": 1, "rollout": "r", "question": "Who <b>?", "references": ["Ada"], "answer": "<script>alert(1)</script>",
    "reward": 0.9, "status": "ok", "error": "", "advantages": {"planner": 1.25},
    "conversations": [{"conversation": "planner", "role": "planner", "turns": 2, "tokens": 9,
                       "messages": [{"role": "user", "text": "Who?"}]}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "line"),
    [
        ((9.0, 3.0), "75% of the time goes to rollouts: updates wait for them"),
        ((1.0, 3.0), "75% of the time goes to updates: rollouts wait for them"),
    ],
)
def test_show_tells_which_side_waits_and_how_much_a_rollout_does(
    seconds: tuple[float, float], line: str, terminal: Terminal
) -> None:
    times = {"rollout_seconds": seconds[0], "update_seconds": seconds[1]}
    step = {**STEP, **times, "dead_groups": 0.25, "turns": 4.0, "tool_calls/search": 2.5}
    records.append_records(terminal.folder / "run" / "metrics.jsonl", [step])
    assert terminal.train("show", "run") == 0
    assert line in terminal.out.splitlines()
    shown = {line.split()[0]: float(line.split()[1]) for line in terminal.out.splitlines() if "→" in line}
    assert {"dead_groups": 0.25, "turns": 4.0, "tool_calls/search": 2.5}.items() <= shown.items()


def test_show_prints_exams_metrics_by_role_and_samples_as_harmless_text(terminal: Terminal) -> None:
    run = terminal.folder / "run"
    records.append_records(run / "metrics.jsonl", [STEP, {**STEP, "step": 2, "reward": 0.75}])
    records.append_records(run / "rollouts.jsonl", [{**SAMPLE, "answer": "Ada\x1b[2J"}])
    records.append_records(
        run / "exams.jsonl", [{"step": 0, "sampled": 0.1, "greedy": 0.2}, {"step": 2, "sampled": 0.8, "greedy": None}]
    )
    assert terminal.train("show", "run") == 0
    assert "step    2  held-out questions right: 80 % at temperature 1, unknown greedy" in terminal.out
    assert any(line.split()[:4] == ["reward", "0.5", "→", "0.75"] for line in terminal.out.splitlines())
    assert "planner/length" in terminal.out
    assert "worker/tool_success" not in terminal.out
    assert terminal.train("show", "run", "tool_success") == 0
    assert terminal.out.startswith("worker/tool_success/search")
    assert terminal.train("show", "run", "--samples", "1") == 0
    assert "### planner: 2 turns, 9 tokens, advantage +1.25" in terminal.out
    assert "\x1b" not in terminal.out
