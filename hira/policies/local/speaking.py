"""Which adapter speaks, and the model as it was before once sampling is over."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from hira.core.errors import UsageError


def on_device(model: Any) -> AbstractContextManager[Any]:
    """The model's device as the current one: a new thread begins with the first."""
    device = next(model.parameters()).device
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


@contextmanager
def at_rest(model: Any) -> Iterator[None]:
    """Evaluation mode, without dropout; afterwards modes, active adapters and what is trained are as they were."""
    training = [module for module in model.modules() if module.training]
    trained = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    active = adapters_in(model) and list(model.active_adapters)
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
        if active:
            _activate(model, active)
        for parameter, was in trained:
            parameter.requires_grad_(was)


@contextmanager
def speaking(model: Any, adapter: str | None) -> Iterator[Any]:
    """The base model with this adapter in it, None with none. Nothing is merged into its weights."""
    known = adapters_in(model)
    if adapter is not None and adapter not in known:
        names = ", ".join(known) or "it has none"
        raise UsageError(f"the model has no adapter {adapter!r}", fix=f"its adapters: {names}")
    if not known:
        yield model
    elif adapter is None:
        model.base_model.disable_adapter_layers()
        try:
            yield model.get_base_model()
        finally:
            model.base_model.enable_adapter_layers()
    else:
        if list(model.active_adapters) != [adapter]:
            _activate(model, [adapter])
        yield model.get_base_model()


def adapters_in(model: Any) -> list[str]:
    """The names of the adapters of a PEFT model; none of any other."""
    return list(model.peft_config) if hasattr(model, "peft_config") and hasattr(model, "get_base_model") else []


def _activate(model: Any, adapters: list[str]) -> None:
    if len(adapters) == 1:
        model.set_adapter(adapters[0])
    else:
        model.base_model.set_adapter(adapters)
