"""`hira-train base`: what a GGUF file says and what the base made of it says are the same."""

import io
from pathlib import Path

import pytest
from later import needs
from tiny_llama import make_model

from hira.cli.shell import Shell
from hira.cli.training import main

pytestmark = [needs("torch", "peft", "trl", "gguf"), pytest.mark.filterwarnings("default")]


def train(folder: Path, *arguments: str) -> tuple[int, str]:
    said = io.StringIO()
    return main(list(arguments), Shell(io.StringIO(), said, said, {}, folder, folder)), said.getvalue()


@pytest.mark.heavy
def test_a_gguf_file_becomes_a_base_that_can_be_saved_and_opened_with_an_adapter(tmp_path: Path) -> None:
    make_model(tmp_path / "tiny.gguf")
    code, said = train(tmp_path, "base", "tiny.gguf", "made")
    assert (code, said.splitlines()[-1]) == (0, "model.name=made")
    from transformers import AutoModelForCausalLM

    from hira.trainers.configuration import ModelConfig
    from hira.trainers.models import open_model

    known = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="tiny.gguf").state_dict()
    tokenizer, adapted = open_model(ModelConfig(name=str(tmp_path / "made")))
    saved = {name.removeprefix("base_model.model.").replace(".base_layer", ""): one
             for name, one in adapted.state_dict().items() if "lora_" not in name}  # fmt: skip
    assert saved.keys() == known.keys()
    assert all(one.allclose(saved[name].float(), rtol=2**-8) for name, one in known.items())
    assert (tokenizer.model_max_length, bool(tokenizer.chat_template)) == (16384, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("none.gguf", "made"), "there is no file 'none.gguf'"),
        (("bare.gguf", "made"), "no chat template"),
        (("tiny.gguf", "full"), "exists already"),
    ],
)
def test_what_cannot_become_a_base_is_told_before_anything_is_written(
    arguments: tuple[str, str], told: str, tmp_path: Path
) -> None:
    make_model(tmp_path / "tiny.gguf")
    make_model(tmp_path / "bare.gguf", base=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    code, said = train(tmp_path, "base", *arguments)
    assert (code, told in said) == (2, True), said
    assert not (tmp_path / "made").exists()
