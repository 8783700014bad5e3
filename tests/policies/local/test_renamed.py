"""What PEFT and TRL still call by old names is nothing that whoever asks a model of this process can change."""

import warnings
from pathlib import Path

import pytest
from later import needs
from tiny_hf import tiny_model, tiny_tokenizer, with_adapters

from hira.core.messages import user
from hira.core.policy import Request, Sampling
from hira.policies import open_policy

pytestmark = [needs("torch", "transformers", "peft"), pytest.mark.filterwarnings("default")]


async def test_a_model_with_an_adapter_is_asked_without_a_warning(tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer(window=512)
    tokenizer.save_pretrained(tmp_path / "base")
    model = tiny_model(tokenizer, window=512)
    model.save_pretrained(tmp_path / "base")
    with_adapters(model, "own").save_pretrained(tmp_path)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        policy = open_policy(f"hf:{tmp_path}/base", adapter=f"{tmp_path}/own")
        try:
            await policy.complete(Request((user("Question?"),), Sampling(0.0, max_tokens=2), conversation="planner"))
        finally:
            await policy.aclose()
    assert not [str(one.message) for one in heard if issubclass(one.category, FutureWarning)]
