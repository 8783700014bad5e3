"""The base and its adapters, as training takes them: one frozen base, one LoRA adapter for all roles or for each."""

from typing import Any

from hira.core.errors import UsageError
from hira.policies.local.renamed import untold
from hira.trainers.configuration import ModelConfig
from hira.trainers.installed import check_bits
from hira.trainers.preflight import check_starts
from hira.trainers.weights import all_trainable


def open_model(config: ModelConfig) -> tuple[Any, Any]:
    """The tokenizer of a model, and the model with its adapters; on a GPU if there is one.

    `config.bits` is the precision of the frozen base: 16 is bf16, 4 is nf4 and needs a GPU with bitsandbytes. On a CPU,
    where bf16 is slow, 16 is taken as 32. With 64 a reply is the same whichever others are decoded
    beside it: their sums differ in the sixteenth digit. Raises `UsageError` for a model that cannot be loaded or has no
    chat template.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    cuda = torch.cuda.is_available()
    name, bits = config.name, config.bits
    where = f"model {name!r}"
    check_bits(bits, where)
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        quantised = _quantised() if bits == 4 else None
        small = torch.bfloat16 if cuda else torch.float32
        kind = {32: torch.float32, 64: torch.float64}.get(bits, small)
        base = AutoModelForCausalLM.from_pretrained(name, dtype=kind, quantization_config=quantised)
    except (OSError, ValueError) as error:
        fix = "name a model's folder, or a model of the Hub that can be reached"
        raise UsageError(f"it cannot be loaded: {str(error).partition(chr(10))[0]}", where=where, fix=fix) from error
    if not tokenizer.chat_template:
        fix = "use the model's instruct version, or set tokenizer.chat_template and save the tokenizer"
        raise UsageError("the tokenizer has no chat template", where=where, fix=fix)
    if bits != 4:
        base = base.to("cuda" if cuda else "cpu")  # type: ignore[arg-type]
    made = add_adapters(base, config)
    return tokenizer, made.double() if bits == 64 else made


def add_adapters(base: Any, config: ModelConfig) -> Any:
    """The base with its adapters, all trainable: one for each name in `config.adapters`, that of `config.start` where
    it names a folder. One that begins anew has no effect at first.

    Without dropout: a sampler and a trainer that drop different units speak for different policies.
    """
    from peft import LoraConfig, PeftModel, get_peft_model

    untold()
    check_starts(config.start)
    targets = config.targets if isinstance(config.targets, str) else list(config.targets)
    lora = LoraConfig(
        r=config.rank, lora_alpha=config.alpha, lora_dropout=0.0, target_modules=targets, task_type="CAUSAL_LM"
    )
    model: Any = None
    for name in dict.fromkeys(config.adapters.values()):
        place = config.start.get(name)
        if place is None:
            model = model or get_peft_model(base, lora, adapter_name=name)
            if name not in model.peft_config:
                model.add_adapter(name, lora)
        elif model is None:
            model = PeftModel.from_pretrained(base, place, adapter_name=name, is_trainable=True)
        else:
            model.load_adapter(place, adapter_name=name, is_trainable=True)
    all_trainable(model)
    return model


def _quantised() -> Any:
    import torch
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=torch.bfloat16,
        bnb_4bit_use_double_quant=True,
    )
