"""The plan against what is known of models, and against what really lies in memory."""

import json
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hira.core.errors import UsageError
from hira.trainers.plan import DEVICES, GIB, USABLE, Shape, Work, at_once, layer_bytes, saved_bytes, sheet, times

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


def test_models_that_are_no_plain_decoders_are_refused() -> None:
    with pytest.raises(UsageError, match="mixture of experts"):
        Shape.of({**SMALL, "model_type": "qwen3_moe", "num_experts": 8})
    with pytest.raises(UsageError, match="layers of the kind 'linear_attention'"):
        Shape.of({**SMALL, "layer_types": ["linear_attention", "full_attention"]})


def test_a_base_of_32_or_64_bits_takes_as_many_bytes_as_its_numbers_have() -> None:
    shape = Shape.of(QWEN_05B)
    half, single, double = (sheet(shape, Work(bits=bits)) for bits in (16, 32, 64))
    assert half.update["base weights"] == 2 * shape.parameters
    assert single.update["base weights"] == 4 * shape.parameters
    assert double.update["base weights"] == 8 * shape.parameters
    for name in ("keys and values", "keys and values, moved"):
        assert (single.rollout[name], double.rollout[name]) == (2 * half.rollout[name], 4 * half.rollout[name])
    assert single.update["adapters"] == half.update["adapters"] == 4 * shape.lora(16)
    assert double.update["adapters"] == 8 * shape.lora(16)
    assert half.peak < single.peak < double.peak


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


def test_adapters_cost_by_their_number_and_the_base_once() -> None:
    one, two = (sheet(Shape.of(QWEN_05B), Work(adapters=many)) for many in (1, 2))
    assert two.update["adapters"] == 2 * one.update["adapters"]
    assert two.update["optimiser"] == 2 * one.update["optimiser"]
    assert two.update["base weights"] == one.update["base weights"]


def test_the_sheet_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN_05B))
    told = str(sheet(Shape.read(tmp_path), Work()))
    assert "base: 494,032,768 parameters" in told
    assert "activations kept" in told


def test_a_config_that_is_not_a_decoders_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no config"):
        Shape.read(tmp_path)
    with pytest.raises(UsageError, match="has no num_attention_heads"):
        Shape.of({"vocab_size": 3})
    with pytest.raises(UsageError, match="a base of 8 bits"):
        sheet(Shape.of(QWEN_05B), Work(bits=8))


def test_as_many_rows_have_room_at_once_as_the_sheet_of_so_many_allows() -> None:
    shape, device = Shape.of(QWEN_7B), DEVICES["a100-80"]
    wanted = Work(budget=8192, longest=8192, at_once=128)
    rows = at_once(shape, wanted, device)
    assert 1 < rows < 128
    assert sheet(shape, replace(wanted, at_once=rows)).peak <= USABLE * device.memory
    assert sheet(shape, replace(wanted, at_once=rows + 1)).peak > USABLE * device.memory
    assert at_once(shape, replace(wanted, at_once=2), device) == 2
    assert at_once(shape, replace(wanted, longest=4096, budget=4096), device) > rows
    assert at_once(shape, replace(wanted, longest=400_000), device) == 0, "not one row"
    assert at_once(shape, replace(wanted, budget=2_000_000), device) == 0, "no room for the update"


def test_more_rows_and_longer_ones_take_longer() -> None:
    shape, device = Shape.of(QWEN_05B), DEVICES["h200"]
    few = times(shape, Work(), device, rows=32, length=2000, sampled=500, turns=5)
    more = times(shape, Work(), device, rows=128, length=2000, sampled=500, turns=5)
    longer = times(shape, Work(), device, rows=32, length=8000, sampled=2000, turns=5)
    assert few.update < more.update < 5 * few.update
    assert few.rollout < more.rollout
    assert few.update < longer.update
    assert few.rollout < longer.rollout


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
