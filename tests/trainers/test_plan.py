"""The plan against what is known of models, and against what really lies in memory."""

import json
import weakref
from typing import Any

import pytest

from hira.trainers.plan import GIB, Shape, Work, layer_bytes, saved_bytes, sheet

QWEN_7B = {
    "model_type": "qwen2",
    "num_hidden_layers": 28,
    "hidden_size": 3584,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "intermediate_size": 18_944,
    "vocab_size": 152_064,
    "tie_word_embeddings": False,
}
QWEN_05B = {
    "model_type": "qwen2",
    "num_hidden_layers": 24,
    "hidden_size": 896,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "intermediate_size": 4864,
    "vocab_size": 151_936,
    "tie_word_embeddings": True,
}


def test_parameters_are_those_that_are_published() -> None:
    assert Shape.of(QWEN_05B).parameters == 494_032_768
    assert Shape.of(QWEN_7B).parameters == 7_615_616_512
    assert Shape.of(QWEN_7B).lora(16) == 40_370_176


SMALL = {
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
}
FAMILIES: list[tuple[str, dict[str, Any]]] = [
    ("qwen2", {}),
    ("qwen3", {"head_dim": 32}),
    ("qwen3", {"head_dim": 32, "attention_bias": True}),
    ("llama", {}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("mistral", {}),
    ("gemma2", {"head_dim": 32}),
    ("gemma3_text", {"head_dim": 32}),
    ("olmo2", {"eos_token_id": 1}),
]


@pytest.mark.parametrize(("family", "own"), FAMILIES, ids=[f"{one}{len(own)}" for one, own in FAMILIES])
def test_parameters_are_those_of_the_model_that_transformers_makes_of_the_config(
    family: str, own: dict[str, Any]
) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    for tied in (True, False):
        config = transformers.CONFIG_MAPPING[family](**SMALL, **own, tie_word_embeddings=tied)
        with torch.device("meta"):
            made = transformers.AutoModelForCausalLM.from_config(config)
        written = json.loads(config.to_json_string())
        assert Shape.of(written).parameters == sum(one.numel() for one in made.parameters())


def test_the_sheet_of_seven_billion_parameters_is_the_one_worked_out_by_hand() -> None:
    planned = sheet(Shape.of(QWEN_7B), Work(budget=8192, longest=8192, at_once=32))
    assert planned.update["base weights"] / GIB == pytest.approx(14.2, abs=0.05)
    assert (
        planned.update["adapters"] + planned.update["optimiser"] + planned.update["gradients"]
    ) / GIB == pytest.approx(0.6, abs=0.1)
    assert Shape.of(QWEN_7B).kv == 56 * 1024
    assert planned.rollout["keys and values"] / GIB == pytest.approx(14, rel=0.03)
    assert planned.update["activations kept"] / GIB == pytest.approx(1.5, abs=0.05)
    linear, others = 6_525_288_448, 1_090_328_064
    nf4 = linear / 2 + linear / 64 + linear / 64 / 256 * 4 + 2 * others
    assert sheet(Shape.of(QWEN_7B), Work(bits=4)).update["base weights"] == pytest.approx(nf4, abs=1)


def lying(torch: Any, config: dict[str, int], kind: str, *, checkpointing: bool) -> tuple[int, int]:
    """The bytes that lie in memory after a forward pass and at the peak of the backward pass, weights left out."""
    from peft import LoraConfig, get_peft_model
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    from transformers import Qwen2Config, Qwen2ForCausalLM

    class Lying(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self, known: list[Any]) -> None:
            super().__init__()
            self.sizes = {one.untyped_storage()._cdata: 0 for one in known}
            self.now = self.most = 0

        def gone(self, key: int) -> None:
            self.now -= self.sizes.pop(key, 0)

        def __torch_dispatch__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = function(*args, **(kwargs or {}))
            for one in tree_leaves(made):
                if isinstance(one, torch.Tensor) and (store := one.untyped_storage())._cdata not in self.sizes:
                    self.sizes[store._cdata] = store.nbytes()
                    self.now += store.nbytes()
                    weakref.finalize(store, self.gone, store._cdata)
            self.most = max(self.most, self.now)
            return made

    torch.set_num_threads(1)
    base = Qwen2ForCausalLM(Qwen2Config(**config)).to(getattr(torch, kind))
    made = get_peft_model(base, LoraConfig(r=8, target_modules="all-linear", task_type="CAUSAL_LM"))
    if kind == "float64":
        made.double()
    if checkpointing:
        made.gradient_checkpointing_enable()
    made.enable_input_require_grads()
    made.train()
    ids = torch.randint(0, config["vocab_size"], (2, 512))
    with Lying([*made.parameters(), *made.buffers(), ids]) as seen:
        with torch.autocast("cpu", torch.bfloat16, enabled=kind == "bfloat16"):
            said = made.get_base_model().model(input_ids=ids, use_cache=False).last_hidden_state
        kept = seen.now
        (said * said).sum().backward()
    return kept, seen.most


@pytest.mark.heavy
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("inner", [512, 1536])
@pytest.mark.parametrize(("kind", "width"), [("bfloat16", 2), ("float32", 4), ("float64", 8)])
def test_activations_are_within_a_tenth_of_what_really_lies_in_memory(inner: int, kind: str, width: int) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("peft")
    config = {
        "vocab_size": 100,
        "hidden_size": 256,
        "intermediate_size": inner,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    }
    shape, tokens = Shape.of({**config, "model_type": "qwen2"}), 1024
    _, most = lying(torch, config, kind, checkpointing=True)
    assert width * 256 * 4 * tokens + tokens * layer_bytes(shape, 8, width) == pytest.approx(most, rel=0.1)
    kept, _ = lying(torch, config, kind, checkpointing=False)
    assert 4 * tokens * saved_bytes(shape, 8, width) == pytest.approx(kept, rel=0.1)
