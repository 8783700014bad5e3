"""Adapters run the published code paths over tiny random weights: the inputs are right, the verdicts mean nothing."""

from pathlib import Path

import pytest

from hira.evidence import Source, SourcedClaim, Verifier
from hira.evidence.adapters import LettuceDetect, MiniCheck
from tests.tiny_hf import tiny_tokenizer

CLAIMS = [
    SourcedClaim("The weir was mended in 1911.", (Source("a", "A", "The weir was mended in 1911. " * 90, id="s1"),)),
    SourcedClaim("Otto rowed.", (Source("b", "B", "Nobody rowed.", id="s2"), Source("c", "C", "Otto slept.", id="s3"))),
]
TINY = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def saved(folder: Path, kind: str) -> str:
    """A model with random weights and a tokenizer of characters in a folder."""
    import torch
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertForTokenClassification,
        T5Config,
        T5ForConditionalGeneration,
    )

    torch.manual_seed(3)
    tokenizer = tiny_tokenizer(window=512)
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=4096, num_labels=2, **TINY)
    if kind == "t5":
        sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
        model = T5ForConditionalGeneration(T5Config(vocab_size=256, **sizes))
    else:
        model = (BertForTokenClassification if kind == "tokens" else BertForSequenceClassification)(config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["classes", "t5"])
async def test_minicheck_judges_each_claim_by_its_likeliest_piece(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    verifier = MiniCheck(saved(tmp_path, kind))
    assert isinstance(verifier, Verifier)
    found = await verifier.verify(CLAIMS, "Who mended the weir?")
    assert [one.by for one in found] == ["minicheck", "minicheck"]
    assert all(0 < one.score < 1 and (one.verdict == "supported") == (one.score > 0.5) for one in found)
    alone = [verifier.score(SourcedClaim(CLAIMS[1].text, (source,))) for source in CLAIMS[1].sources]
    assert found[1].score == pytest.approx(max(alone), abs=1e-5)
    assert found[0].quote == "The weir was mended in 1911."


@pytest.mark.heavy
async def test_lettucedetect_supports_a_claim_without_marked_words(tmp_path: Path) -> None:
    pytest.importorskip("lettucedetect")
    verifier = LettuceDetect(saved(tmp_path, "tokens"))
    assert isinstance(verifier, Verifier)
    found = await verifier.verify(CLAIMS, "Who mended the weir?")
    assert [one.by for one in found] == ["lettucedetect", "lettucedetect"]
    assert all((one.verdict == "supported") == (one.score > 0.5) for one in found)
