"""A model of real size with random weights, and a workload that is real but for what the model says.

Random weights never delegate. So every turn is sampled for real, `thought` tokens of it, through the live policy and
its engine; then the turn ends with what hira's offline policy would say there: a call or an answer. The workflow, its
tools, its documents, the conversations and their lengths are those of a real run.
"""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Rollout
from hira.core.events import Events, Reader
from hira.core.policy import Completion, Policy, Request, Watch
from hira.evaluation.rewards.answers import RolloutScore
from hira.policies.dialects import DIALECTS
from hira.policies.local import LocalPolicy
from hira.policies.local.batching import BatchingEngine
from hira.policies.local.engine import Sampled, SampleRequest
from hira.policies.offline import OfflinePolicy
from hira.tools import Toolbox
from hira.tools.documents import Index, browse_documents, search_documents
from hira.trainers.demo.tiny import BEGIN, END, TEMPLATE
from hira.trainers.plan import DecoderShape
from hira.trainers.rollouts import OpenContext, Problem

ROOT = Path(__file__).parents[2]
DATA = ROOT / "hira" / "evaluation" / "mini"
QWEN_05B = DecoderShape(24, 896, 14, 2, 64, 4864, 151_936, tied=True, small=2 * 896 + 18 * 64)
TINY = DecoderShape(2, 64, 4, 2, 16, 128, 8_000, tied=True, small=2 * 64 + 8 * 16)
_NEXT: ContextVar[tuple[str, str | None]] = ContextVar("next")


def tokenizer(words: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE learned from hira's own prompts and pages, filled up to so many words that no text has."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "hira").rglob("*.md"))]
    texts += [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
    learning = Tokenizer(models.BPE())
    learning.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", BEGIN, END]
    trainer = trainers.BpeTrainer(
        vocab_size=min(words, 6_000), initial_alphabet=alphabet, special_tokens=special, show_progress=False
    )
    learning.train_from_iterator(texts, trainer)
    learned = json.loads(learning.to_str())["model"]
    vocabulary = dict(learned["vocab"])
    for at in range(len(vocabulary), words):
        vocabulary[f"w{at}Ġ"] = at
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(pair) for pair in learned["merges"]]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(special)
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=special[0])
    fast.chat_template = TEMPLATE
    return fast


def config(shape: DecoderShape, *, window: int = 32_768) -> Qwen2Config:
    return Qwen2Config(
        vocab_size=shape.words,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=window,
        tie_word_embeddings=shape.tied,
        rope_theta=1_000_000.0,
        use_cache=True,
    )


def model(shape: DecoderShape, adapters: Sequence[str], *, rank: int = 16) -> Any:
    """The model with its adapters: bf16 on a GPU, fp32 on a CPU."""
    torch.manual_seed(0)
    cuda = torch.cuda.is_available()
    with torch.device("cuda" if cuda else "cpu"):
        base = Qwen2ForCausalLM(config(shape))
    base = base.to(torch.bfloat16 if cuda else torch.float32)
    lora = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    made = get_peft_model(base, lora, adapter_name=adapters[0])
    for name in adapters[1:]:
        made.add_adapter(name, lora)
    return made


class Thinking:
    """An engine that samples `thought` tokens for real and then ends the turn with the text that was set for it."""

    def __init__(self, inner: BatchingEngine, words: Any, thought: int) -> None:
        self.inner = inner
        self.words = words
        self.thought = thought
        self.sampled = 0
        self.read = 0

    @property
    def window(self) -> int:
        return self.inner.window

    async def sample(self, request: SampleRequest) -> Sampled:
        sampling = replace(request.sampling, max_tokens=self.thought)
        found = await self.inner.sample(replace(request, sampling=sampling, stops=()))
        self.sampled += len(found.ids)
        self.read += len(request.prompt)
        text, stop = _NEXT.get()
        ends = self.words.eos_token_id
        kept = [(one, chance) for one, chance in zip(found.ids, found.logprobs, strict=True) if one != ends]
        said = self.words(text + (stop or ""), add_special_tokens=False)["input_ids"] + ([] if stop else [ends])
        ids = (*(one for one, _ in kept), *said)
        logprobs = (*(chance for _, chance in kept), *[-1.0] * len(said))
        return replace(found, ids=ids, logprobs=logprobs, finish="stop", stop=stop)

    async def aclose(self) -> None:
        await self.inner.aclose()


@dataclass
class Speaking:
    """The offline policy decides what ends a turn, the live policy says it."""

    policy: Policy
    offline: OfflinePolicy

    @property
    def model(self) -> str:
        return self.policy.model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        said = await self.offline.complete(request)
        _NEXT.set((said.text, said.stop))
        return await self.policy.complete(request, watch)

    async def aclose(self) -> None:
        await self.policy.aclose()


def contexts(live: LocalPolicy, index: Index) -> OpenContext:
    """Run contexts whose roles all speak through the live policy, with hira's own documents and tools."""
    tools = Toolbox(search=search_documents(index), browse=browse_documents(index))
    part = RoleConfig(Speaking(live, OfflinePolicy()), dialect=DIALECTS["xml"])

    @asynccontextmanager
    async def opened(run: str, question: str, _: Any, readers: Sequence[Reader]) -> AsyncIterator[RunContext]:
        record = Rollout(run, question, "matpo", began=1_800_000_000.0)
        yield RunContext({"*": part}, record, Events(*readers), tools=tools)

    return opened


def problems() -> list[Problem]:
    """The questions of the set `mini`, over its documents."""
    lines = (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    return [Problem(str(at), one["question"], ("",)) for at, one in enumerate(asked)]


async def every_other(rollout: Rollout, _references: tuple[str, ...]) -> RolloutScore:
    """Every other rollout of a question is right, so that all groups have a signal."""
    return RolloutScore(float(int(rollout.run.rpartition("-")[2]) % 2))
