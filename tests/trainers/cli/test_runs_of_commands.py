"""`hira-train sft` and `grpo` with a tiny model: what they write, and that a run goes on as if it had not stopped."""

import io
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from safetensors.torch import load_file  # noqa: E402

from hira.cli.shell import Shell  # noqa: E402
from hira.cli.training import main  # noqa: E402
from hira.trainers import records  # noqa: E402
from hira.trainers.demo import matpo  # noqa: E402
from hira.trainers.demo.matpo import (  # noqa: E402
    Faults,
    by_teacher,
    learn_tokenizer,
)
from hira.trainers.demo.tiny import make_model  # noqa: E402
from hira.trainers.lessons import list_messages  # noqa: E402

if TYPE_CHECKING:
    from small_place import Place as UsersPlace

torch.set_num_threads(1)
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.heavy]


class Place:
    """A folder with documents, questions, conversations and a random model, and a command line in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        here = matpo.make_world(0)
        here.write(folder / "documents")
        problems = here.problems(held_out=False)[:4]
        rollouts = by_teacher(folder, problems, 1, 0, Faults(0, 0, 0))
        tokenizer = learn_tokenizer(rollouts)
        make_model(tokenizer, 0).save_pretrained(folder / "model")
        tokenizer.save_pretrained(folder / "model")
        self._write("questions.jsonl", [{"question": one.question, "answer": one.references[0]} for one in problems])
        self._write(
            "conversations.jsonl",
            [
                {
                    "conversation": name,
                    "role": one.role,
                    "messages": [{"role": said.role, "content": str(said.text)} for said in list_messages(one)],
                }
                for record in rollouts
                for name, one in record.trajectories.items()
            ],
        )

    def _write(self, name: str, lines: list[dict[str, object]]) -> None:
        (self.folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    def __call__(self, command: str, *given: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        shell = Shell(io.StringIO(), out, err, {}, self.folder, self.folder)
        common = [
            "model.name=model",
            'settings.docs=["documents"]',
            "settings.sandbox=off",
            "model.bits=32",
            "model.rank=2",
        ]
        return main([command, *common, *given], shell), out.getvalue(), err.getvalue()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def weights(folder: Path) -> dict[str, dict[str, torch.Tensor]]:
    return {path.parent.name: load_file(path) for path in folder.glob("adapters/*/adapter_model.safetensors")}


def test_grpo_leaves_adapters_and_a_profile_and_goes_on_exactly(first_place: "UsersPlace", tmp_path: Path) -> None:
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
    first_place: "UsersPlace", tmp_path: Path
) -> None:
    place = first_place.copy(tmp_path)
    given = ("grpo", "run.toml", "model.bits=64", "rollouts.attempts=2", "out=run", "exam.every=1", "exam.best=true",
             "exam.patience=1", "train.steps=8", "train.save_every=1", "train.keep=9")  # fmt: skip
    assert place.train(*given) == 0, place.err
    run = place.folder / "run"
    shares = {one["step"]: one["sampled"] for one in records.read(run / "exams.jsonl") if one["step"] > 0}
    best = max(shares, key=shares.__getitem__)
    assert max(shares) == min(8, best + 1), "one exam without a gain ends it"
    kept = load_file(run / f"checkpoint-{best}" / "adapter_model.safetensors")
    left = weights(run)["default"]
    assert all(torch.allclose(value.double(), left[name].double()) for name, value in kept.items())


def test_a_run_whose_prompts_never_fit_is_stopped_and_says_so(place: Place) -> None:
    code, _, err = place("grpo", "data.train=questions.jsonl", "rollouts.window=256", "out=run")
    assert code == 1
    assert "rollouts ended before the model said a word" in err
    assert re.search(r"the prompt has [\d,]+ tokens, and the model's window takes 256; ", err)
    assert "rollouts.window" in err


def test_sft_learns_conversations_and_its_adapter_is_gone_on_with(place: Place) -> None:
    code, out, err = place(
        "sft", "sft.conversations=conversations.jsonl", "sft.steps=6", "sft.batch=4", "sft.lr=0.02", "out=cold"
    )
    assert code == 0, err
    adapter = place.folder / "cold" / "adapters" / "default"
    assert out == f"hira-train grpo … model.start.default={adapter}\n"
    losses = [one["loss"] for one in records.read(place.folder / "cold" / "sft" / "default" / "metrics.jsonl")]
    assert losses[-1] < losses[0]
    code, _, err = place("sft", "sft.conversations=questions.jsonl", "out=other")
    assert code == 2
    assert "line 1 is no conversation" in err
    code, _, err = place("sft", "out=third")
    assert "there is nothing to learn from" in err
    code, _, err = place("grpo", "data.train=questions.jsonl", f"model.start.default={place.folder}", "out=fourth")
    assert code == 2
    assert "there is no adapter in" in err


def test_a_model_that_is_not_there_or_has_no_chat_template_is_told_of(place: Place) -> None:
    code, _, err = place("grpo", "data.train=questions.jsonl", "model.name=./nowhere", "out=a")
    assert code == 2
    assert "./nowhere" in err
    (place.folder / "model" / "chat_template.jinja").unlink()
    code, _, err = place("grpo", "data.train=questions.jsonl", "out=b")
    assert code == 2
    assert "no chat template" in err
