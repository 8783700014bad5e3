"""Local models by name: a folder, or a model of the Hub. Each is loaded once, at its first use.

All users of one base share its weights and its engine; adapters are added to it, and never merged.
"""

import asyncio
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from hira.core.errors import HiraError, UsageError, of_the_machine
from hira.core.policy import Completion, Request, Watch
from hira.policies.local import SECONDS, LocalPolicy
from hira.policies.local.template import Template

_WHERE = "name a folder with config.json, tokenizer and weights, or a model of the Hub that can be reached"
_BASES: "WeakValueDictionary[tuple[str, str], Base]" = WeakValueDictionary()
_OPENING = Lock()


_OLD = r"`(is_gradient_checkpointing|gradient_checkpointing_(en|dis)able)` is deprecated"


def hide_renaming_warnings() -> None:
    """Leave out what transformers 5.23 says of old names that PEFT 0.21 and TRL 1.16 still call, and nothing else."""
    warnings.filterwarnings("ignore", message=_OLD, category=FutureWarning)


class Base:
    """One model and its engine; `adapters` are the folders that were added to it, each under its own path."""

    def __init__(self, name: str, tokens_from: str) -> None:
        self.name = name
        self._tokens_from = tokens_from
        self._lock = Lock()
        self._loaded: tuple[Template, Any] | None = None

    def policy(self, model: str, adapter: str, seconds: float) -> LocalPolicy:
        """A policy with that adapter, none if it is empty. Blocks while the weights are read."""
        with self._lock:
            template, engine = self._loaded = self._loaded or self._load()
            if adapter:
                with engine.pause():
                    engine.model = _with_adapter(engine.model, adapter)
            return LocalPolicy(model, template, engine, adapter_name(adapter) or None, seconds=seconds)

    def _load(self) -> tuple[Template, Any]:
        """Tokenizer and weights: bfloat16 on a GPU that has it, else float32 on the CPU."""
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging

        from hira.policies.local.batching import BatchingEngine

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        cuda = torch.cuda.is_available()
        kind = (torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16) if cuda else torch.float32
        tokenizer = try_loading(self.name, lambda: AutoTokenizer.from_pretrained(self._tokens_from))
        model = try_loading(self.name, lambda: AutoModelForCausalLM.from_pretrained(self.name, dtype=kind))
        model = model.to("cuda" if cuda else "cpu").eval()
        ends = model.generation_config.eos_token_id if model.generation_config else None
        ends = [ends] if isinstance(ends, int) else ends or ()
        template = Template(tokenizer, where=f"model {self.name!r}", ends=ends)
        return template, BatchingEngine(model, template)


class OpenedLocally:
    """The policy of `hf:NAME`, which reads the weights when it is first asked. `name` may be the folder of an adapter,
    which names its base; `seconds` bounds a call."""

    def __init__(self, name: str, adapter: str = "", seconds: float = SECONDS) -> None:
        self._seconds = seconds
        name, self._adapter, tokens_from = _resolve(name, adapter)
        self.model = f"hf:{name}" + (f"+{self._adapter}" if self._adapter else "")
        with _OPENING:
            key = (name, tokens_from)
            self._base = _BASES.get(key) or _BASES.setdefault(key, Base(*key))
        self._policy: LocalPolicy | None = None

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        if self._policy is None:
            self._policy = await asyncio.to_thread(self._base.policy, self.model, self._adapter, self._seconds)
        return await self._policy.complete(request, watch)

    def count(self, text: str) -> int:
        """Tokens of a text, by the model's own tokenizer. Blocks while the weights are read."""
        if self._policy is None:
            self._policy = self._base.policy(self.model, self._adapter, self._seconds)
        return self._policy.count(text)

    async def aclose(self) -> None:
        """Free the weights; they are read again if the policy is used again."""
        self._policy = None


def _resolve(name: str, adapter: str) -> tuple[str, str, str]:
    """Base, adapter and where the tokenizer is: an adapter that was saved with its own has the template of training."""
    name, adapter = (str(Path(path).expanduser()) if path.startswith("~") else path for path in (name, adapter))
    if not name:
        raise UsageError("hf: does not name a model", fix="write hf:FOLDER, or hf:OWNER/NAME for one of the Hub")
    if name.startswith((".", "/")) and not Path(name).is_dir():
        raise UsageError(f"there is no folder {name!r}", fix=_WHERE)
    config = Path(name, "adapter_config.json")
    if config.is_file() and not Path(name, "config.json").exists():
        base = json.loads(config.read_text(encoding="utf-8")).get("base_model_name_or_path")
        if not base:
            fix = "name both: --model hf:BASE (or model=) and --adapter FOLDER"
            raise UsageError(f"{config} does not name a base model", fix=fix)
        adapter, name = adapter or name, str(base)
    has_tokenizer = adapter and Path(adapter, "tokenizer_config.json").is_file()
    return name, adapter, adapter if has_tokenizer else name


def _with_adapter(model: Any, adapter: str) -> Any:
    """Add the adapter to the model, its path as its name. Raises `UsageError` if it does not fit the model."""
    from peft import PeftConfig, PeftModel

    hide_renaming_warnings()
    name, base = adapter_name(adapter), model.name_or_path

    def add() -> Any:
        if not isinstance(model, PeftModel):
            return PeftModel.from_pretrained(model, adapter, adapter_name=name).eval()
        if name not in model.peft_config:
            model.load_adapter(adapter, adapter_name=name)
        return model

    try:
        return try_loading(adapter, add)
    except UsageError as error:
        if not isinstance(error.__cause__, RuntimeError):  # what torch raises for weights of another shape
            raise
        what = f"the adapter {adapter!r} does not fit the model {base!r}"
        trained_on = PeftConfig.from_pretrained(adapter).base_model_name_or_path or "unknown"
        raise UsageError(what, fix=f"use it with the model it was trained on: {trained_on}") from error


def adapter_name(adapter: str) -> str:
    """Return the name of an adapter in its model: names of modules contain no dots."""
    return adapter.replace(".", "_")


def try_loading(name: str, read: Callable[[], Any]) -> Any:
    """Return what `read` loads. Any exception of the libraries becomes an error with its first line."""
    try:
        return read()
    except HiraError:
        raise
    except Exception as error:
        if limit := of_the_machine(error):
            raise limit from error
        message = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UsageError(f"{name!r} cannot be loaded: {message}", fix=_WHERE) from error
