"""A trainable base from a GGUF file, read by transformers."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hira.core.errors import UsageError
from hira.policies.llama.header import TEMPLATE
from hira.policies.llama.policy import find_file, read_model


def write_base(name: str, folder: Path) -> int:
    """Write the model of a GGUF file to a folder as bf16 safetensors with its tokenizer; return its parameters.

    `name` is a path, or a model that an installed package holds, such as `smollm2`. What quantisation has taken away
    stays away: train on the original weights if you can get them. Raises `UsageError` for a file without a chat
    template, one whose architecture transformers does not read, and a folder that holds something already.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    if find_spec("gguf") is None:
        raise UsageError("gguf is not installed", where="it reads GGUF files", fix="pip install gguf")
    path = find_file(name)
    if TEMPLATE not in read_model(path):
        raise UsageError("the file has no chat template", where=str(path), fix="take the instruct version of the model")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{str(folder)!r} exists already", fix="name another folder, or remove it")
    source = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    try:
        tokenizer = AutoTokenizer.from_pretrained(**source)
        read = AutoModelForCausalLM.from_pretrained(
            **source, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
        )
    except (ValueError, KeyError, NotImplementedError) as error:
        told = str(error).partition("\n")[0]
        fix = "download the original weights of the model, and name their folder"
        raise UsageError(f"transformers cannot read it: {told}", where=str(path), fix=fix) from error
    config = read.config
    vars(config).pop("quantization_config", None)
    # `save_pretrained` refuses a model that came from a quantised file, so a fresh one takes its weights
    fresh: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)  # type: ignore[no-untyped-call]
    fresh.load_state_dict(read.state_dict())
    tokenizer.model_max_length = int(config.max_position_embeddings)
    fresh.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return int(fresh.num_parameters())
