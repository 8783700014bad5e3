"""The commands of `hira-train` one after another, as a user gives them, with a small model that knows the workflow."""

import json
import re
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
ASKED = "Which river flows through Birkholm?"


def test_plan_counts_what_training_then_trains(first_run: "Place") -> None:
    assert first_run.train("plan", "run.toml", "--json") == 0, first_run.err
    told = json.loads(first_run.out)
    base = load_file(first_run.folder / "model" / "model.safetensors")
    adapter = load_file(first_run.folder / "runs" / "first" / "adapters" / "default" / "adapter_model.safetensors")
    assert told["parameters"]["base"] == sum(one.numel() for one in base.values())
    assert told["parameters"]["trained"] == sum(one.numel() for one in adapter.values())


def test_the_doctor_sees_the_configuration_before_a_run_and_the_run_after_it(first_run: "Place") -> None:
    assert first_run.train("doctor", "run.toml", "--json") == 0, first_run.err
    before = {one["rule"]: one for one in json.loads(first_run.out)}
    assert before["questions"]["found"] == "4 questions, 2 for each update"
    assert before["drift"]["verdict"] == "unseen"
    assert first_run.train("doctor", "runs/first", "--json") == 0, first_run.out
    after = {one["rule"]: one for one in json.loads(first_run.out)}
    assert after["questions"] == before["questions"]
    assert {after[name]["verdict"] for name in ("drift", "tokens")} == {"ok"}


def test_eval_asks_in_the_way_that_was_trained(first_run: "Place") -> None:
    assert first_run.train("eval", "runs/first", "held_out.jsonl", "--docs", "documents") == 0, first_run.err
    folder = first_run.folder / "eval" / "held_out-first"
    (record,) = records.read(folder / "records.jsonl")
    assert set(record["roles"]) == {"planner", "worker"}, "the workflow of the run, and both of its roles"
    assert record["tools"].keys() == {"search"}
    assert "flows through Arnby" in record["answer"]
    assert "/runs/first/adapters/default" in (folder / "manifest.json").read_text()


def test_a_cold_start_by_rejection_keeps_the_rollouts_that_earned_enough(place: "Place") -> None:
    given = ("sft", "run.toml", "sft.updates=2", "sft.steps=4", "sft.batch=4", "sft.least=0.5", "out=runs/own")
    assert place.train(*given) == 0, place.err
    counts = [tuple(map(int, one)) for one in re.findall(r"(\d+) of (\d+) rollouts earned 0.5 or more", place.err)]
    assert len(counts) == 2
    assert all(every == 6 for _, every in counts)
    kept = sum(many for many, _ in counts)
    assert 0 < kept < 12, "some are right and some are not, or this shows nothing"
    learned = int(re.search(r"adapter 'default': (\d+) conversations", place.err)[1])  # type: ignore[index]
    assert learned >= 2 * kept, "each has a planner and a worker at least"
    adapter = place.folder / "runs" / "own" / "adapters" / "default"
    moved = {name: one for name, one in load_file(adapter / "adapter_model.safetensors").items() if "lora_B" in name}
    assert all(one.any() for one in moved.values())
    assert place.train(*given[:-1], "sft.least=1", "reward.match=exact", "out=runs/none") == 1
    assert "no rollout earned 1 or more" in place.err
    assert "lower sft.least" in place.err


def test_a_cold_start_by_exported_runs_learns_the_last_replies_too(place: "Place") -> None:
    file = place.folder / "conversations.jsonl"
    told = [json.loads(line) for line in file.read_text().splitlines()]
    for one in (one for one in told if one["role"] == "planner"):
        last = one["turns"][-1]["completion"]
        assert one["messages"][-1]["role"] != "assistant"
        last["text"] = re.sub(r"boxed{.*}", r"boxed{Birkholm flows through}", last["text"])
    file.write_text("".join(json.dumps(one) + "\n" for one in told))
    given = ("sft", "run.toml", "sft.conversations=conversations.jsonl", "sft.steps=30", "sft.lr=0.03", "sft.batch=4")
    assert place.train(*given, "out=runs/cold") == 0, place.err
    start = place.out.split("model.start.default=")[1].strip()
    place.environ = {"HIRA_TEMPERATURE": "0"}
    place.hira("ask", ASKED, "--profile", "runs/cold", "--docs", "documents", "--json")
    assert json.loads(place.out)["answer"].startswith("Birkholm flows through")
    assert place.train("grpo", "run.toml", f"model.start.default={start}", "train.steps=1", "out=runs/after") == 0
    began = load_file(Path(start) / "adapter_model.safetensors")
    after = load_file(place.folder / "runs" / "after" / "adapters" / "default" / "adapter_model.safetensors")
    apart = max(float((after[name] - one).abs().max()) for name, one in began.items())
    assert 0 < apart <= 1.1e-3, "one step of Adam from where the cold start ended"
