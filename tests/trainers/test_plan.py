"""The plan against what is known of models, and against what really lies in memory."""

import json
from typing import Any

import pytest

from hira.trainers.plan import GIB, DecoderShape, TrainingWork, sheet
from hira.trainers.profile import count_slots

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
    assert DecoderShape.of(QWEN_05B).parameters == 494_032_768
    assert DecoderShape.of(QWEN_7B).parameters == 7_615_616_512
    assert DecoderShape.of(QWEN_7B).lora(16) == 40_370_176


SMALL = {
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
}
FAMILIES: list[tuple[str, dict[str, Any]]] = [
    ("qwen3", {"head_dim": 32}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("gemma3_text", {"head_dim": 32}),
    ("olmo2", {"eos_token_id": 1}),
]


def test_parameters_are_those_of_the_model_that_transformers_makes_of_the_config() -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    for family, own in FAMILIES:
        for tied in (True, False):
            config = transformers.CONFIG_MAPPING[family](**SMALL, **own, tie_word_embeddings=tied)
            with torch.device("meta"):
                made = transformers.AutoModelForCausalLM.from_config(config)
            written = json.loads(config.to_json_string())
            assert DecoderShape.of(written).parameters == sum(one.numel() for one in made.parameters()), family


def test_the_sheet_of_seven_billion_parameters_is_the_one_worked_out_by_hand() -> None:
    planned = sheet(DecoderShape.of(QWEN_7B), TrainingWork(budget=8192, longest=8192, at_once=32))
    assert planned.update["base weights"] / GIB == pytest.approx(14.2, abs=0.05)
    assert (
        planned.update["adapters"] + planned.update["optimiser"] + planned.update["gradients"]
    ) / GIB == pytest.approx(0.6, abs=0.1)
    assert planned.rollout["keys and values"] == 32 * (8192 + 128) * 56 * 1024
    assert planned.update["activations kept"] / GIB == pytest.approx(1.5, abs=0.05)
    linear, others = 6_525_288_448, 1_090_328_064
    nf4 = linear / 2 + linear / 64 + linear / 64 / 256 * 4 + 2 * others
    assert sheet(DecoderShape.of(QWEN_7B), TrainingWork(bits=4)).update["base weights"] == pytest.approx(nf4, abs=1)


def test_a_vllm_server_needs_a_slot_for_each_version_of_an_adapter_that_may_be_sampled() -> None:
    """MarsRL's three roles, with replies up to four updates old, need 18."""
    assert [count_slots(*case) for case in ((0, 1), (0, 3), (4, 3))] == [2, 6, 18]
