"""The memory that a training run will take, by phase, before anything is loaded.

It is computed from a model's `config.json` alone, without torch. Bytes are those of CUDA's allocator at its peak
(`torch.cuda.max_memory_allocated`); the driver's few hundred MiB come on top. The counts per token follow the
operations of transformers' decoder layers with PEFT's adapters, for SwiGLU layers in bf16 and, for a base in 32 or 64
bits, in those.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hira.core.errors import UsageError
from hira.journal.encoding import read_json, validate

GIB = 2**30
LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The modules that `all-linear` adapts, which exclude the head."""
# The tiles of TRL's scorer, in tokens and in words; the workspace of cuBLAS (on Hopper).
TILE_TOKENS, TILE_WORDS = 4096, 32_768
WORKSPACE = 32 * 2**20
# The engine's growth of a row's keys and values, and its prompt tokens per pass.
GROWTH, READS = 128, 16_384
SIZES = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
ATTENDS = {"full_attention", "sliding_attention", "chunked_attention"}
"""Layer types of plain decoders: they differ in attention, not in weights."""


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """A decoder's sizes. `small` counts the parameters of a layer outside its matrices: norms and biases."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    inner: int
    words: int
    tied: bool
    small: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "DecoderShape":
        """Read the values of `config.json`, those of the text model if there are several. Raises `UsageError` for other
        kinds."""
        entries = {**config, **config.get("text_config", {})}
        fix = "plan knows dense decoders such as Qwen, Llama and Mistral"
        if any(entries.get(name) for name in EXPERTS):
            raise UsageError("config.json is that of a mixture of experts", fix=fix)
        if other := set(entries.get("layer_types") or ()) - ATTENDS:
            raise UsageError(f"config.json has layers of the kind {min(other)!r}", fix=fix)
        try:
            layers, hidden, heads, inner, words = (int(entries[name]) for name in SIZES)
            kv_heads = int(entries.get("num_key_value_heads") or heads)
            head = int(entries.get("head_dim") or hidden // heads)
            tied = bool(entries.get("tie_word_embeddings", True))
            small = _small(entries, hidden, inner, heads * head, kv_heads * head, head)
            return cls(layers, hidden, heads, kv_heads, head, inner, words, tied, small)
        except KeyError as missing:
            raise UsageError(f"config.json has no {missing.args[0]}", fix=fix) from None

    @classmethod
    def read(cls, folder: Path) -> "DecoderShape":
        where, fix = str(folder), "name the model's folder"
        try:
            config = read_json((folder / "config.json").read_bytes())
            return cls.of(validate(dict[str, Any], config))
        except OSError as error:
            raise UsageError(f"there is no config.json: {error.strerror}", where=where, fix=fix) from error
        except (ValueError, TypeError, ArithmeticError) as error:
            raise UsageError(f"config.json cannot be read: {error}", where=where, fix=fix) from None

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """The input and output sizes of the linear layers of one decoder layer."""
        query, key = self.heads * self.head, self.kv_heads * self.head
        return {
            "q_proj": (self.hidden, query),
            "k_proj": (self.hidden, key),
            "v_proj": (self.hidden, key),
            "o_proj": (query, self.hidden),
            "gate_proj": (self.hidden, self.inner),
            "up_proj": (self.hidden, self.inner),
            "down_proj": (self.inner, self.hidden),
        }

    @property
    def linear(self) -> int:
        """The parameters of all linear layers but the head."""
        return self.layers * sum(taken * given for taken, given in self.matrices.values())

    @property
    def embedding(self) -> int:
        """The parameters of the embedding, and of the head if it is another matrix."""
        return self.words * self.hidden * (1 if self.tied else 2)

    @property
    def rest(self) -> int:
        """The parameters of norms and biases, the last norm's included."""
        return self.layers * self.small + self.hidden

    @property
    def parameters(self) -> int:
        return self.linear + self.embedding + self.rest

    def lora(self, rank: int, targets: Collection[str] = LINEAR) -> int:
        """Return the number of parameters of one adapter."""
        return self.layers * rank * sum(sum(self.matrices[name]) for name in targets)


def _small(config: Mapping[str, Any], hidden: int, inner: int, query: int, key: int, head: int) -> int:
    """Count the norms and biases of a layer. Configs do not list a family's norms other than the two of the hidden
    width: Qwen3 and Gemma 3 norm queries and keys by head, OLMo 2 as a whole."""
    kind = str(config.get("model_type", ""))
    norms = 4 if kind.startswith(("gemma2", "gemma3")) else 2
    small = norms * hidden
    if kind.startswith(("qwen3", "gemma3")):
        small += 2 * head
    elif kind.startswith("olmo2"):
        small += query + key
    if kind.startswith("qwen2") or config.get("attention_bias"):
        small += query + 2 * key
    if config.get("attention_bias"):
        small += hidden
    return small + (2 * inner + hidden if config.get("mlp_bias") else 0)


@dataclass(frozen=True, slots=True)
class TrainingWork:
    adapters: int = 1
    """The number of adapters that are trained at once."""
    rank: int = 16
    targets: tuple[str, ...] = LINEAR
    budget: int = 16_384
    """The most tokens of a micro-batch."""
    longest: int = 8_192
    """The most tokens of a row."""
    at_once: int = 64
    """The number of rows that are sampled together."""
    scored: float = 0.5
    """The share of a micro-batch's tokens that are trained."""
    bits: int = 16
    """The precision of the base."""
    checkpointing: bool = True


@dataclass(frozen=True, slots=True)
class Sheet:
    """Parameters by kind, and bytes by purpose in each phase. A phase's peak is the sum of its lines."""

    parameters: Mapping[str, int]
    rollout: Mapping[str, int]
    update: Mapping[str, int]

    @property
    def peak(self) -> int:
        return max(sum(self.rollout.values()), sum(self.update.values()))

    def __str__(self) -> str:
        rows = [f"{name}: {count:,} parameters" for name, count in self.parameters.items()]
        for phase, lines in (("rollout", self.rollout), ("update", self.update)):
            rows += ["", f"{phase:<40}{sum(lines.values()) / GIB:8.2f} GiB"]
            rows += [f"  {name:<38}{size / GIB:8.2f}" for name, size in lines.items()]
        return "\n".join([*rows, "", f"{'peak':<40}{self.peak / GIB:8.2f} GiB"])


def sheet(shape: DecoderShape, work: TrainingWork) -> Sheet:
    """Return the memory of a LoRA GRPO run with this model."""
    if work.bits not in WIDTHS:
        raise UsageError(f"a base of {work.bits} bits", fix="plan knows 4 (nf4), 16 (bf16), 32 and 64")
    per_adapter = shape.lora(work.rank, work.targets)
    held = {"base weights": base(shape, work.bits), **adapters(shape, work)}
    parameters = {"base": shape.parameters, "one adapter": per_adapter, "trained": per_adapter * work.adapters}
    return Sheet(parameters, held | _rollout(shape, work), held | _update(shape, work))


WIDTHS = {4: 2, 16: 2, 32: 4, 64: 8}
"""Bytes of a number in computation, by the bits of the base."""
TRAINED_WIDTHS = {4: 2, 16: 4, 32: 4, 64: 8}


def base(shape: DecoderShape, bits: int) -> int:
    """Return the bytes of the frozen weights. In 4 bits, embedding, norms and biases stay bf16; a block of 64 has a
    scale of one byte, and 256 scales share one of four bytes (QLoRA's double quantisation, as in
    `hira.trainers.models`)."""
    if bits == 4:
        return 2 * (shape.embedding + shape.rest) + round(shape.linear * (0.5 + (1 + 4 / 256) / 64))
    return WIDTHS[bits] * shape.parameters


def adapters(shape: DecoderShape, work: TrainingWork) -> dict[str, int]:
    """Return the bytes of adapters and optimiser. Adapters are fp32 over bf16, bf16 over 4 bits, else as the base; Adam
    keeps two values for each."""
    trained = TRAINED_WIDTHS[work.bits] * shape.lora(work.rank, work.targets) * work.adapters
    return {"adapters": trained, "optimiser": 2 * trained}


def _rollout(shape: DecoderShape, work: TrainingWork) -> dict[str, int]:
    """Return the bytes of rollouts. Keys and values exist twice while rows join or leave a batch. Reading a prompt
    passes through an MLP whose adapter computes in fp32 over bf16; choosing a token needs three more fp32 copies of a
    row's logits."""
    width = WIDTHS[work.bits]
    cache = work.at_once * (work.longest + GROWTH) * 2 * shape.layers * shape.kv_heads * shape.head * width
    read = min(READS, work.at_once * work.longest)
    a_token = 12 * shape.inner + 10 * shape.hidden if width == 2 else 4 * width * (shape.inner + shape.hidden)
    return {
        "keys and values": cache,
        "keys and values, moved": cache,
        "reading prompts": read * a_token + _measure_unpacked(shape, work.bits),
        "choosing tokens": (width + 12) * work.at_once * shape.words,
        "workspace": WORKSPACE,
    }


def _update(shape: DecoderShape, work: TrainingWork) -> dict[str, int]:
    """Return the bytes of an update. The peak is in the backward pass: of the last layer, or of the scoring of tokens,
    whichever is more."""
    tokens, width = max(work.budget, work.longest), WIDTHS[work.bits]
    trained = shape.lora(work.rank, work.targets)
    kept = width * shape.hidden * shape.layers * tokens
    layer = tokens * count_layer_bytes(shape, work.rank, width)
    if not work.checkpointing:
        kept = shape.layers * tokens * count_layer_bytes(shape, work.rank, width, saved=True)
        layer = tokens * (6 if width == 2 else 7 * width // 4) * (shape.inner + shape.hidden)
    scored = round(tokens * work.scored)
    scoring = width * (min(scored, TILE_TOKENS) * TILE_WORDS + 4 * scored * shape.hidden + 2 * tokens * shape.hidden)
    return {
        "gradients": (TRAINED_WIDTHS[work.bits] * work.adapters + 2) * trained,
        "activations kept": kept,
        "one layer, or scoring": max(layer, scoring) + _measure_unpacked(shape, work.bits),
        "batch": tokens * 60,
        "workspace": WORKSPACE,
    }


def count_layer_bytes(shape: DecoderShape, rank: int, width: int, *, saved: bool = False) -> int:
    """Return the bytes per token at the peak of one layer's backward pass, its recomputed forward pass included; with
    `saved` those that it keeps for its backward pass without recomputation. `width` is the bytes of a number.

    In bf16: five copies of the MLP's inner width and one in fp32; about eighteen of the hidden width, four of them by
    the norms in fp32; keys and values; the adapters' narrow outputs. Wider numbers need no wider copies: six and seven.
    """
    rest = 8 * shape.kv_heads * shape.head + 14 * rank + 4 * shape.heads + 256
    if width == 2:
        inner, hidden = (8, 24) if saved else (14, 36)
        return inner * shape.inner + hidden * shape.hidden + rest
    inner, hidden = (4, 6) if saved else (6, 7)
    return width * (inner * shape.inner + hidden * shape.hidden) + rest * width // 4


def _measure_unpacked(shape: DecoderShape, bits: int) -> int:
    """Return the bytes of one matrix of a 4-bit base, unpacked for its product."""
    return 2 * max(taken * given for taken, given in shape.matrices.values()) if bits == 4 else 0


DEVICES = {
    "h200": 140 * 10**9,
    "h100": 80 * 10**9,
    "a100-80": 80 * 10**9,
    "a100-40": 40 * 10**9,
    "l40s": 48 * 10**9,
    "rtx-4090": 24 * 10**9,
    "rtx-3090": 24 * 10**9,
    "l4": 24 * 10**9,
}
"""Bytes of memory, by a device's common name."""
USABLE = 0.94
"""The usable share of a device's memory: the driver and fragmentation take the rest."""


def at_once(shape: DecoderShape, work: TrainingWork, memory: int) -> int:
    """Return how many rows of the whole window fit in `memory` bytes at once, without the driver's part; the engine
    queues the others. 0 if not even one fits, or the update does not."""
    room = USABLE * memory
    if sum(sheet(shape, work).update.values()) > room:
        return 0
    held = (sheet(shape, replace(work, at_once=rows)).rollout for rows in range(1, work.at_once + 1))
    return sum(sum(lines.values()) <= room for lines in held)
