"""Base models: open them for training, convert them from GGUF, merge them with an adapter."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hira.core.errors import UsageError, did_you_mean
from hira.policies.llama import TEMPLATE, find_file, read_model
from hira.policies.local.loading import hide_renaming_warnings, try_loading
from hira.policies.local.template import require_template
from hira.trainers.configuration import ModelConfig
from hira.trainers.preflight import check_bits, check_starts
from hira.trainers.profile import adapters_of
from hira.trainers.weights import all_trainable


def open_model(config: ModelConfig) -> tuple[Any, Any]:
    """Return the tokenizer of a model, and the model with its adapters; on a GPU if there is one.

    `config.bits` is the precision of the frozen base: 16 is bf16, 4 is nf4 and needs a GPU with bitsandbytes. On a CPU,
    where bf16 is slow, 16 means 32. With 64 a reply is the same in any batch: the sums of batches differ in the
    sixteenth digit. Raises `UsageError` for a model that cannot be loaded or has no chat template.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

    cuda = torch.cuda.is_available()
    name, bits = config.name, config.bits
    where = f"model {name!r}"
    check_bits(bits, where)
    quantised: Any = None
    if bits == 4:
        quantised = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=torch.bfloat16,
            bnb_4bit_use_double_quant=True,
        )
    kind = {32: torch.float32, 64: torch.float64}.get(bits, torch.bfloat16 if cuda else torch.float32)
    tokenizer = try_loading(name, lambda: AutoTokenizer.from_pretrained(name))
    base = try_loading(
        name, lambda: AutoModelForCausalLM.from_pretrained(name, dtype=kind, quantization_config=quantised)
    )
    require_template(tokenizer, where)
    if bits != 4:
        base = base.to("cuda" if cuda else "cpu")
    made = add_adapters(base, config)
    return tokenizer, made.double() if bits == 64 else made


def add_adapters(base: Any, config: ModelConfig) -> Any:
    """Return the base with its adapters, all trainable: one for each name in `config.adapters`, loaded from the folder
    in `config.start` if it has one. A new adapter has no effect at first.

    There is no dropout: if sampler and trainer drop different units, they are different policies.
    """
    from peft import LoraConfig, PeftModel, get_peft_model

    hide_renaming_warnings()
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


def find_gguf(name: str) -> Path:
    """Return the GGUF file of that name, with a chat template, which `write_base` can convert."""
    if find_spec("gguf") is None:
        raise UsageError("gguf is not installed", where="it reads GGUF files", fix="pip install gguf")
    path = find_file(name)
    if TEMPLATE not in read_model(path):
        raise UsageError("the file has no chat template", where=str(path), fix="use the instruct version of the model")
    return path


def write_base(name: str, folder: Path) -> int:
    """Write the model of a GGUF file to a folder as bf16 safetensors with its tokenizer; return its number of
    parameters.

    `name` is a path, or a model that an installed package holds, such as `smollm2`. The losses of quantisation remain:
    train on the original weights if you can get them. Raises `UsageError` for a file without a chat template, an
    architecture that transformers does not read, and a folder that is not empty.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    path = find_gguf(name)
    check_empty(folder)
    source = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    try:
        tokenizer = AutoTokenizer.from_pretrained(**source)
        read = AutoModelForCausalLM.from_pretrained(
            **source, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
        )
    except (ValueError, KeyError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        fix = "download the original weights of the model, and name their folder"
        raise UsageError(f"transformers cannot read it: {reason}", where=str(path), fix=fix) from error
    config = read.config
    vars(config).pop("quantization_config", None)
    # `save_pretrained` refuses a model that came from a quantised file, so a fresh one takes its weights
    fresh: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)  # type: ignore[no-untyped-call]
    fresh.load_state_dict(read.state_dict())
    tokenizer.model_max_length = int(config.max_position_embeddings)
    fresh.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return int(fresh.num_parameters())


def merge(run: Path, folder: Path, adapter: str = "") -> None:
    """Write the base with the adapter merged in, and its tokenizer, to a folder. Continue training from the adapter
    instead: in bf16 each merge rounds the weights.

    Raises `UsageError` for a folder that is not empty, and if a run has several adapters and `adapter` names none.
    """
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    known = adapters_of(run)
    name = adapter or next(iter(known))
    if name not in known or (len(known) > 1 and not adapter):
        what = f"the run has no adapter {name!r}" if adapter else f"the run has {len(known)} adapters"
        raise UsageError(what, where=str(run), fix=did_you_mean(adapter, known) if adapter else "name one: --adapter")
    check_empty(folder)
    tokenizer = AutoTokenizer.from_pretrained(known[name])
    values = json.loads((known[name] / "adapter_config.json").read_text(encoding="utf-8"))
    model = AutoModelForCausalLM.from_pretrained(str(values["base_model_name_or_path"]), dtype="auto")
    with torch.no_grad():
        whole = PeftModel.from_pretrained(model, known[name]).merge_and_unload()
    whole.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def check_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{str(folder)!r} exists already", fix="name another folder, or remove it")
