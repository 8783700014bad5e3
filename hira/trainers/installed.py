"""Whether the training extra is there."""

from importlib.util import find_spec

from hira.errors import UsageError
from hira.policies.local.renamed import untold

NEEDED = ("torch", "transformers", "peft", "trl", "accelerate", "datasets")


def check_installed() -> None:
    """Raise `UsageError` if the training extra is not installed; else keep its libraries quiet."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f"{missing[0]} is not installed", fix="pip install 'hira[train]'")
    untold()
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def gpus() -> int:
    """How many GPUs torch sees here."""
    import torch

    return torch.cuda.device_count()
