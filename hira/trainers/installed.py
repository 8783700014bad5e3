"""Whether what a run needs is there: the training extra, and packages and devices that single options want."""

from collections.abc import Collection
from importlib.util import find_spec

from hira.core.errors import UsageError
from hira.policies.local.renamed import untold

NEEDED = ("torch", "transformers", "peft", "trl", "accelerate", "datasets")
REPORTERS = {"tensorboard": ("tensorboard", "tensorboardX"), "azure_ml": ("azureml",)}
"""Packages of which one has to be there for a reporter, where they have other names."""


def check_installed() -> None:
    """Raise `UsageError` if the training extra is not installed; else keep its libraries quiet."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f"{missing[0]} is not installed", fix="pip install 'hira[train]'")
    untold()
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def check_wanted(bits: int, report_to: Collection[str] = (), across: str = "") -> None:
    """Raise `UsageError` for an option that cannot be had on this machine: before anything is loaded or written."""
    if across == "zero2" and find_spec("deepspeed") is None:
        raise UsageError("--across zero2 wants DeepSpeed", fix="pip install deepspeed, or take --across ddp")
    check_bits(bits)
    if not report_to:
        return
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

    for name in set(report_to) - {"none", "all"}:
        if name not in INTEGRATION_TO_CALLBACK:
            fix = f"there are: {', '.join(sorted(INTEGRATION_TO_CALLBACK))}"
            raise UsageError(f"unknown reporter {name!r}", where="in train.report_to", fix=fix)
        packages = REPORTERS.get(name, (name,))
        if not any(find_spec(one) for one in packages):
            fix = f"pip install {packages[0]}, or leave it out: metrics.jsonl and hira-train show need none"
            raise UsageError(f"{packages[0]} is not installed", where="train.report_to wants it", fix=fix)


def check_bits(bits: int, where: str = "in model.bits") -> None:
    """Raise `UsageError` for a base in 4 bits where there is no GPU or no bitsandbytes."""
    if bits != 4:
        return
    what = "a base in 4 bits needs a GPU" if not gpus() else "a base in 4 bits needs bitsandbytes"
    if not gpus() or find_spec("bitsandbytes") is None:
        raise UsageError(what, where=where, fix="pip install bitsandbytes on a machine with CUDA, or set bits = 16")


def gpus() -> int:
    """How many GPUs torch sees here."""
    import torch

    return torch.cuda.device_count()
