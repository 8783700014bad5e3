"""A folder as a user has it: documents, questions, exported runs, a small model that has learned the workflow's
manners.

The runs are real ones of the `offline` policy, exported by `hira runs export`; the tokenizer takes each line of their
prompts as one token, so that a model of a hundred thousand parameters can read them within seconds on a CPU.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from terminal import Terminal

from hira.policies.local.template import Template
from hira.trainers.configuration import Configuration, ModelConfig, SftConfig, TrainConfig
from hira.trainers.demo.tiny import TinyShape, make_model, make_tokenizer
from hira.trainers.demonstrations import read_demonstrations
from hira.trainers.sft import DemonstrationOrder, SftTrainer
from hira.trainers.weights import Muon

RIVERS = {"Arnby": "Vell", "Birkholm": "Lorn", "Calden": "Tarn", "Dunmore": "Ruhl"}
WINDOW = 1024
UNSURE = 0.8
RUN = """
recipe = "matpo"
out = "runs/first"

[model]
name = "model"
bits = 32
rank = 4

[data]
train = "questions.jsonl"
held_out = "held_out.jsonl"

[settings]
docs = ["documents"]
sandbox = "off"

[workflow]
max_subtasks = 2
worker_calls = 2

[rollouts]
questions = 2
attempts = 3
window = 1024

[train]
steps = 2
lr = 1e-3
save_every = 1
"""


def question(town: str) -> str:
    return f"Which river flows through {town}?"


class Place(Terminal):
    """Commands as a user gives them in the folder."""

    def copy(self, folder: Path) -> "Place":
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Place(folder)


def made(folder: Path) -> Place:
    """The folder with everything in it, by the commands that docs/training.md names."""
    place = Place(folder)
    (folder / "documents").mkdir(parents=True)
    for town, river in RIVERS.items():
        (folder / "documents" / f"{town.lower()}.md").write_text(
            f"# {town}\n\nThe river {river} flows through {town}.\n"
        )
    asked = [json.dumps({"question": question(town), "answer": river}) for town, river in RIVERS.items()]
    (folder / "questions.jsonl").write_text("\n".join(asked) + "\n")
    (folder / "held_out.jsonl").write_text(asked[0] + "\n")
    (folder / "run.toml").write_text(RUN)
    (folder / "hira.toml").write_text("[workflows.matpo]\nmax_subtasks = 2\nworker_calls = 2\n")
    for town in RIVERS:
        given = ("--workflow", "matpo", "--model", "offline", "--docs", "documents", "--quiet")
        assert place.hira("ask", question(town), *given) == 0, place.err
    assert place.hira("runs", "export", "-o", "conversations.jsonl") == 0, place.err
    (folder / "hira.toml").unlink()
    tokenizer = _tokenizer(folder / "conversations.jsonl")
    model = _learned(tokenizer, folder)
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return place


def _tokenizer(conversations: Path) -> Any:
    """Letters; the lines of prompts that name no place, and the words of all that is said."""
    names = re.compile("|".join([*RIVERS, *(town.lower() for town in RIVERS), *RIVERS.values()]))
    pieces: dict[str, None] = {}
    for line in conversations.read_text(encoding="utf-8").splitlines():
        for turn in json.loads(line)["turns"]:
            texts = [(one["content"], one["role"] == "assistant") for one in turn["added"]]
            for text, own in [*texts, (turn["completion"]["text"], True)]:
                for one in re.findall(r"[^\n]*\n+|[^\n]+", text):
                    whole = not own and not names.search(one) and not re.search(r"\d{4}-\d\d-\d\d", one)
                    parts = [one] if whole else [part for found in re.findall(r"\w+|\W+", one) for part in [found]]
                    pieces.update(dict.fromkeys(parts))
    return make_tokenizer([one for one in pieces if len(one) > 1], [], WINDOW)


def _learned(tokenizer: Any, folder: Path) -> Any:
    base = make_model(tokenizer, 0, TinyShape(WINDOW, hidden=64, heads=2))
    rows, _ = read_demonstrations(folder / "conversations.jsonl", Template(tokenizer))
    whole = Configuration(
        model=ModelConfig(bits=32),
        train=TrainConfig(checkpointing=False),
        sft=SftConfig(steps=100, batch=4, lr=0.01, save_every=0),
    )
    muon = Muon(base, matrices=0.04, rate=whole.sft.lr)
    SftTrainer(base, tokenizer, DemonstrationOrder(rows, whole), whole, folder / "taught", optimizer=muon).train()
    with torch.no_grad():
        base.model.norm.weight.mul_(UNSURE)  # it knows the same, and says it less surely: rollouts differ
    return base
