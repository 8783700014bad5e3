"""A base and its adapters: opened once, or a clear word on why not."""

from pathlib import Path
from typing import Any

import pytest
from later import later, needs

from hira.core.errors import UsageError
from hira.trainers.configuration import ModelConfig

torch = later("torch")
add_adapters, open_model = later("hira.trainers.models:add_adapters"), later("hira.trainers.models:open_model")
model, tokenizer = later("tiny:model"), later("tiny:tokenizer")
pytestmark = [needs("torch", "peft", "trl"), pytest.mark.filterwarnings("default")]
IDS = [[3, 4, 5]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    words = tokenizer()
    words.chat_template = "{% for message in messages %}{{ message.content }} {% endfor %}"
    words.save_pretrained(tmp_path)
    model().unload().save_pretrained(tmp_path)
    return tmp_path


def said(made: Any, adapter: str) -> Any:
    made.set_adapter(adapter)
    return made.eval()(input_ids=torch.tensor(IDS)).logits


@pytest.mark.heavy
def test_a_merged_model_says_what_base_and_adapter_say(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    from transformers import AutoModelForCausalLM

    from hira.trainers.models import merge
    from hira.trainers.profile import ADAPTERS

    run = tmp_path_factory.mktemp("run")
    words, made = open_model(ModelConfig(name=str(folder), rank=2))
    for name, one in made.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(one, std=0.1)
    for one in (made, words):
        one.save_pretrained(run / ADAPTERS / "default")
    merge(run, run / "whole")
    merged = AutoModelForCausalLM.from_pretrained(run / "whole").eval()(input_ids=torch.tensor(IDS)).logits
    assert torch.allclose(merged, said(made, "default"), atol=1e-4)
    with pytest.raises(UsageError, match="exists already"):
        merge(run, run / "whole")
    with pytest.raises(UsageError, match="no adapter 'planer'"):
        merge(run, run / "other", "planer")
