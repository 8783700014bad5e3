"""Bases and adapters: converted from GGUF, merged, and a fingerprint that sees every change of their weights."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from later import later, needs
from terminal import Terminal
from tiny_llama import make_model

from hira.core.errors import UsageError
from hira.trainers.configuration import ModelConfig
from hira.trainers.profile import ADAPTERS

torch, transformers = later("torch"), later("transformers")
models, fingerprint = later("hira.trainers.models"), later("hira.trainers.weights:fingerprint")
model, tokenizer = later("tiny:model"), later("tiny:tokenizer")
pytestmark = [needs("torch", "peft", "trl", "gguf"), pytest.mark.filterwarnings("default")]


@pytest.mark.heavy
def test_a_merged_model_says_what_base_and_adapter_say(tmp_path: Path) -> None:
    words = tokenizer()
    words.chat_template = "{% for message in messages %}{{ message.content }} {% endfor %}"
    for one in (words, model().unload()):
        one.save_pretrained(tmp_path / "base")
    words, made = models.open_model(ModelConfig(name=str(tmp_path / "base"), rank=2))
    for name, one in made.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(one, std=0.1)
    run, ids = tmp_path / "run", torch.tensor([[3, 4, 5]])
    for one in (made, words):
        one.save_pretrained(run / ADAPTERS / "default")
    models.merge(run, run / "whole")
    merged = transformers.AutoModelForCausalLM.from_pretrained(run / "whole").eval()
    assert torch.allclose(merged(input_ids=ids).logits, made.eval()(input_ids=ids).logits, atol=1e-4)
    with pytest.raises(UsageError, match="exists already"):
        models.merge(run, run / "whole")
    with pytest.raises(UsageError, match="no adapter 'planer'"):
        models.merge(run, run / "other", "planer")


@pytest.mark.heavy
def test_a_gguf_file_becomes_a_base_that_can_be_saved_and_opened_with_an_adapter(
    terminal: Terminal, tmp_path: Path
) -> None:
    make_model(tmp_path / "tiny.gguf")
    command = [sys.executable, "-m", "hira.cli.training", "base", "tiny.gguf", "made"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "model.name=made\n"
    first, last = done.stderr.splitlines()
    assert first == "hira-train: converting tiny.gguf", "no bar is drawn into a pipe"
    assert last.startswith("hira-train: wrote ")
    known = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="tiny.gguf").state_dict()
    words, adapted = models.open_model(ModelConfig(name=str(tmp_path / "made")))
    saved = {name.removeprefix("base_model.model.").replace(".base_layer", ""): one
             for name, one in adapted.state_dict().items() if "lora_" not in name}  # fmt: skip
    assert saved.keys() == known.keys()
    assert all(one.allclose(saved[name].float(), rtol=2**-8) for name, one in known.items())
    assert (words.model_max_length, bool(words.chat_template)) == (16384, True)


def test_what_cannot_become_a_base_is_told_before_anything_is_written(terminal: Terminal, tmp_path: Path) -> None:
    make_model(tmp_path / "tiny.gguf")
    make_model(tmp_path / "bare.gguf", base=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    for arguments, told in (
        (("none.gguf", "made"), "there is no model 'none.gguf'"),
        (("bare.gguf", "made"), "no chat template"),
        (("tiny.gguf", "full"), "exists already"),
    ):
        assert terminal.train("base", *arguments) == 2
        assert told in terminal.err
        assert not (tmp_path / "made").exists()


def weights(kind: Any, change: Any = lambda values: values) -> Any:
    """A module of random values, which are the same each time but for the change."""
    values = torch.randn(5_003, generator=torch.Generator().manual_seed(0)).to(kind)
    return torch.nn.ParameterList([torch.nn.Parameter(change(values), requires_grad=False)])


def test_a_fingerprint_sees_one_changed_weight_and_two_that_changed_places() -> None:
    def change(values: Any, place: int) -> Any:
        values[place] *= 1.5
        return values

    def exchange(values: Any, place: int) -> Any:
        values[[place, place + 1]] = values[[place + 1, place]]
        return values

    def cut(values: Any, place: int) -> Any:
        return values[: place - 1]

    for kind in (torch.float32, torch.bfloat16):
        own = fingerprint(weights(kind))
        assert fingerprint(weights(kind)) == own
        for place in (0, 5_001):
            assert own not in [fingerprint(weights(kind, partial(one, place=place))) for one in (change, exchange, cut)]
