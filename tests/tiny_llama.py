"""A real llama.cpp server with a tiny random model: says nonsense, but through the real thing.

    python tests/tiny_llama.py FOLDER [base]

makes the model in the folder, serves it on a free port of this machine, and prints its address. A `base` model has no
chat template, and no marks of one in its vocabulary; an encoder is one that says how to pool its vectors.
"""

import sys
import time
from pathlib import Path

WIDTH, LAYERS, HEADS, KV_HEADS, HIDDEN, CONTEXT, ENCODED = 128, 2, 4, 2, 256, 16384, 256
CORPUS = "the quick brown fox jumps over the lazy dog and asks what one two three four five six seven are " * 4
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def vocabulary(specials):
    """Byte-level BPE: the tokens in order, and the merges."""
    import json

    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=specials, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())
    )
    tokenizer.train_from_iterator([CORPUS], trainer)
    learned = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(learned["vocab"], key=learned["vocab"].get)
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in learned["merges"]]
    return tokens, merges


def make_model(path: Path, *, base: bool = False, encoder: bool = False) -> None:
    """Write a random Qwen2 of about half a million parameters; the same on every machine."""
    import gguf
    import numpy as np

    specials = ["<|endoftext|>"] if base else ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens, merges = vocabulary(specials)
    random = np.random.default_rng(7)
    writer = gguf.GGUFWriter(str(path), "qwen2")
    writer.add_name("tiny-random")
    writer.add_context_length(ENCODED if encoder else CONTEXT)
    if encoder:
        writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10_000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if token in specials else gguf.TokenType.NORMAL for token in tokens])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(tokens.index(specials[-1]))
    writer.add_bos_token_id(tokens.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    if not base:
        writer.add_chat_template(TEMPLATE)

    def add(name, *shape, scale=0.05):
        writer.add_tensor(name, (random.standard_normal(shape) * scale).astype(np.float32))

    def ones(name, size):
        writer.add_tensor(name, np.ones(size, np.float32))

    kv = WIDTH // HEADS * KV_HEADS
    add("token_embd.weight", len(tokens), WIDTH, scale=0.5)
    ones("output_norm.weight", WIDTH)
    add("output.weight", len(tokens), WIDTH, scale=0.2)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        ones(f"{block}.attn_norm.weight", WIDTH)
        ones(f"{block}.ffn_norm.weight", WIDTH)
        for part, size in (("q", WIDTH), ("k", kv), ("v", kv)):
            add(f"{block}.attn_{part}.weight", size, WIDTH)
            add(f"{block}.attn_{part}.bias", size)
        add(f"{block}.attn_output.weight", WIDTH, WIDTH)
        add(f"{block}.ffn_gate.weight", HIDDEN, WIDTH)
        add(f"{block}.ffn_up.weight", HIDDEN, WIDTH)
        add(f"{block}.ffn_down.weight", WIDTH, HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(path: Path) -> None:
    import xllamacpp

    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(path)
    wanted.n_ctx = CONTEXT
    wanted.n_parallel = 2
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = 0
    wanted.warmup = False
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1  # two wait for each other at work
    server = xllamacpp.Server(wanted)
    print(f"listening {server.listening_address}", flush=True)  # noqa: T201 - who started it reads where it listens
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    model = Path(sys.argv[1]) / "tiny.gguf"
    if not model.exists():
        make_model(model, base="base" in sys.argv[2:])
    serve(model)
