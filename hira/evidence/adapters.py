"""Adapters for two published fact checkers. Their weights come from the hub or from a folder of yours.

>>> Hira("gpt-5", docs="papers", verifier=MiniCheck())               # pip install 'hira[minicheck]'
>>> Hira("gpt-5", docs="papers", verifier=LettuceDetect("FOLDER"))   # pip install 'hira[lettucedetect]'

Both only distinguish supported claims from others: `contradicted` is never their verdict. The quote is the passage that
shares most words with the claim.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hira.evidence.citations import Judgement, SourcedClaim
from hira.evidence.lexical_verifier import LexicalVerifier
from hira.evidence.verdicts import Verdict

WORDS = 250
"""Words of a piece of a source: with its claim it fits into the 512 tokens of the smallest MiniCheck model."""
NO, YES = 3, 209
"""The tokens with which the T5 model answers (MiniCheck, released code)."""


@dataclass
class MiniCheck:
    """MiniCheck (Tang et al., 2024): the probability that a document supports a claim, the highest of its pieces."""

    model: str = "lytang/MiniCheck-RoBERTa-Large"
    name: str = "minicheck"

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> list[Judgement]:
        return await asyncio.to_thread(_judge, self, claims, question)

    def score(self, claim: SourcedClaim, question: str = "") -> float:  # noqa: ARG002 - MiniCheck reads no question
        """Return the probability that one of the claim's sources supports it."""
        import torch

        tokenizer, model, generates = self._loaded
        scores = [0.0]
        for piece in _pieces(claim):
            text = f"{piece}{tokenizer.eos_token}{claim.text}"
            inputs = tokenizer(f"predict: {text}" if generates else text, truncation=True, return_tensors="pt")
            with torch.no_grad():
                if generates:
                    logits = model(**inputs, decoder_input_ids=torch.zeros((1, 1), dtype=torch.long)).logits[0, 0]
                    logits = logits[[NO, YES]]
                else:
                    logits = model(**inputs).logits[0]
            scores.append(float(logits.softmax(-1)[1]))
        return max(scores)

    @cached_property
    def _loaded(self) -> tuple[Any, Any, bool]:
        from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, AutoTokenizer

        generates = bool(AutoConfig.from_pretrained(self.model).is_encoder_decoder)
        kind: Any = AutoModelForSeq2SeqLM if generates else AutoModelForSequenceClassification
        return AutoTokenizer.from_pretrained(self.model), kind.from_pretrained(self.model).eval(), generates


@dataclass
class LettuceDetect:
    """LettuceDetect (Kovács and Recski, 2025): marks the words of a claim that its sources do not support."""

    model: str = "KRLabsOrg/lettucedect-base-modernbert-en-v1"
    name: str = "lettucedetect"

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> list[Judgement]:
        return await asyncio.to_thread(_judge, self, claims, question)

    def score(self, claim: SourcedClaim, question: str = "") -> float:
        """Return one minus the highest confidence that a part of the claim is wrong."""
        options = {"question": question, "answer": claim.text, "output_format": "spans"}
        spans = self._loaded.predict(context=_pieces(claim), **options)
        return 1 - max((float(span["confidence"]) for span in spans), default=0.0)

    @cached_property
    def _loaded(self) -> Any:
        from lettucedetect.models.inference import HallucinationDetector  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return HallucinationDetector(method="transformer", model_path=self.model)


def _judge(checker: MiniCheck | LettuceDetect, claims: Sequence[SourcedClaim], question: str) -> list[Judgement]:
    judgements: list[Judgement] = []
    for claim, near in zip(claims, LexicalVerifier().judge(claims, question), strict=True):
        score = checker.score(claim, question)
        verdict = Verdict.SUPPORTED if score > 0.5 else Verdict.UNSUPPORTED
        missing = () if verdict.holds else near.missing
        judgements.append(
            replace(near, verdict=verdict, score=score, by=checker.name, reason="", missing=missing, lacking=())
        )
    return judgements


def _pieces(claim: SourcedClaim) -> list[str]:
    """Split the sources of a claim into pieces of `WORDS` words; the code or call of a source precedes its result."""
    texts = [f"{source.call}\n{source.evidence}".split() for source in claim.sources]
    return [" ".join(words[start : start + WORDS]) for words in texts for start in range(0, len(words), WORDS)]
