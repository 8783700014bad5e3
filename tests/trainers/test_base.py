"""A base and its adapters: opened once, or a clear word on why not."""

from pathlib import Path
from typing import Any

import pytest
from later import later, needs

from hira.core.errors import UsageError

torch = later("torch")
Lora, adapted = later("hira.trainers.base:Lora"), later("hira.trainers.base:adapted")
opened = later("hira.trainers.base:opened")
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
def test_a_model_is_opened_with_an_adapter_for_each_role(folder: Path) -> None:
    _, made = opened(str(folder), ["planner", "worker"], Lora(rank=2))
    assert list(made.peft_config) == ["planner", "worker"]
    trained = {name for name, one in made.named_parameters() if one.requires_grad}
    assert all("lora_" in name for name in trained)
    assert any(".planner." in name for name in trained)
    assert any(".worker." in name for name in trained)
    assert torch.equal(said(made, "planner"), said(made, "worker"))


@pytest.mark.heavy
def test_an_adapter_is_gone_on_with_where_it_was_saved(folder: Path, tmp_path: Path) -> None:
    first = model(("planner",))
    first.save_pretrained(tmp_path / "saved")
    start = {"planner": tmp_path / "saved" / "planner"}
    made = adapted(model(("other",)).unload(), ["worker", "planner"], Lora(rank=2, start=start))
    assert torch.equal(said(made, "planner"), said(first, "planner"))
    assert not torch.equal(said(made, "worker"), said(made, "planner"))


def test_a_tokenizer_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    tokenizer().save_pretrained(tmp_path)
    model().unload().save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="no chat template"):
        opened(str(tmp_path), ["default"])


@pytest.mark.heavy
def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be loaded"):
        opened(str(tmp_path), ["default"])


def test_a_base_in_four_bits_needs_a_gpu(folder: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(UsageError, match="4 bits needs a GPU"):
        opened(str(folder), ["default"], bits=4)


@pytest.mark.heavy
def test_an_adapter_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no adapter in"):
        adapted(model().unload(), ["default"], Lora(start={"default": tmp_path}))


@pytest.mark.heavy
def test_somebody_has_to_be_trained() -> None:
    with pytest.raises(UsageError, match="no adapter to train"):
        adapted(model().unload(), [])
