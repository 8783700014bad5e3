"""A tiny random model of transformers with a tokenizer of single characters: says nonsense, but through the real
thing."""

import string

CHATML = (
    "{% if tools %}<|im_start|>system\n"
    "{% if messages[0].role == 'system' %}{{ messages[0].content }}\n\n{% endif %}"
    "Tools:{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}<|im_end|>\n"
    "{% elif messages[0].role == 'system' %}<|im_start|>system\n{{ messages[0].content }}<|im_end|>\n{% endif %}"
    "{% for message in messages %}"
    "{% if message.role == 'system' and loop.first %}"
    "{% elif message.role == 'tool' %}"
    "<|im_start|>user\n<tool_response>\n{{ message.content }}\n</tool_response><|im_end|>\n"
    "{% elif message.tool_calls %}<|im_start|>assistant\n{{ message.content }}"
    "{% for call in message.tool_calls %}"
    "{% if message.content or not loop.first %}{{ '\\n' }}{% endif %}"
    '<tool_call>\n{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n'
    "</tool_call>{% endfor %}<|im_end|>\n"
    "{% else %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# no tools, and neither system messages nor two of one speaker in a row
PLAIN = (
    "{% for message in messages %}"
    "{% if message.role not in ('user', 'assistant') or (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('user and assistant alternate') }}{% endif %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# as Qwen3 does: thought leaves the prompt once the user has spoken again
FORGETFUL = (
    "{% set last = namespace(user=-1) %}"
    "{% for message in messages %}{% if message.role == 'user' %}{% set last.user = loop.index0 %}{% endif %}{% endfor %}"
    "{% for message in messages %}{% set told = message.content %}"
    "{% if message.role == 'assistant' and loop.index0 < last.user and '</think>' in told %}"
    "{% set told = told.split('</think>')[-1].lstrip() %}{% endif %}"
    "<|im_start|>{{ message.role }}\n{{ told }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIALS = ["<|pad|>", "<|im_start|>", "<|im_end|>"]


def tiny_tokenizer(template=CHATML, window=4096):
    """One token a character of ASCII; every other character is lost."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    characters = string.printable + "…–—’“”é"
    vocabulary = {piece: at for at, piece in enumerate([*SPECIALS, "�", *characters])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="�"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    inner.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<|im_end|>",
        pad_token="<|pad|>",
        unk_token="�",
        additional_special_tokens=["<|im_start|>"],
        model_max_length=window,
    )
    tokenizer.chat_template = template
    return tokenizer


def byte_pairs(texts, size=1_000):
    """Byte pairs learned from texts: an id may hold a word and more, and what is written apart may merge."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIALS, initial_alphabet=letters, show_progress=False
    )
    inner.train_from_iterator(texts, trainer)
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|pad|>", model_max_length=1_000_000
    )
    made.chat_template = CHATML
    return made


def tiny_model(tokenizer, *, seed=0, window=4096, **config):
    """A random Qwen2 of about a tenth of a million parameters, the same on every machine."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    shape = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "initializer_range": 0.2,
    }
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=config.pop("vocab_size", len(tokenizer)),
            max_position_embeddings=window,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            bos_token_id=None,
            **{**shape, **config},
        )
    ).eval()


def with_adapters(model, *names, seed=1):
    """The model with a LoRA adapter for each name, each of which says something else than the base."""
    import torch
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    whole = get_peft_model(model, config, adapter_name=names[0])
    for name in names[1:]:
        whole.add_adapter(name, config)
    torch.manual_seed(seed)
    for name, parameter in whole.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    for name in names:  # what is made last is trained, and so are the others
        whole.set_requires_grad(name)
    return whole
