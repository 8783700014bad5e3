"""A run's adapter merged into its base: one model for those who serve or convert it without adapters."""

import json
from pathlib import Path

from hira.core.errors import UsageError
from hira.runtime.settings import did_you_mean
from hira.trainers.profile import adapters_of


def merge(run: Path, folder: Path, adapter: str = "") -> None:
    """Write the base with the adapter merged in, and its tokenizer, to a folder. Training goes on from the adapter, not
    from this: in bf16 each merge rounds the weights.

    Raises `UsageError` for a folder that holds something, and where a run of several adapters does not say which.
    """
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    known = adapters_of(run)
    name = adapter or next(iter(known))
    if name not in known or (len(known) > 1 and not adapter):
        what = f"the run has no adapter {name!r}" if adapter else f"the run has {len(known)} adapters"
        raise UsageError(what, where=str(run), fix=did_you_mean(adapter, known) if adapter else "name one: --adapter")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{str(folder)!r} exists already", fix="name another folder, or remove it")
    tokenizer = AutoTokenizer.from_pretrained(known[name])
    told = json.loads((known[name] / "adapter_config.json").read_text(encoding="utf-8"))
    base = str(told["base_model_name_or_path"])
    model = AutoModelForCausalLM.from_pretrained(base, dtype="auto")
    with torch.no_grad():
        whole = PeftModel.from_pretrained(model, known[name]).merge_and_unload()
    whole.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
