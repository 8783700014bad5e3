"""Checks before anything is loaded or written: packages, GPUs, documents, adapters, the model's window."""

import asyncio
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.core.errors import EndpointError, UsageError, did_you_mean
from hira.core.sanitize import without_userinfo
from hira.journal.encoding import read_json
from hira.policies.local.loading import hide_renaming_warnings
from hira.policies.names import OPENAI_URL, has_own_place
from hira.policies.offline import OfflinePolicy
from hira.runtime.factory import open_session
from hira.tools.documents.walk import roots_of

if TYPE_CHECKING:
    from hira.trainers.assembly import TrainingPlan


UNLIMITED = 1_000_000
"""A declared window of this many tokens or more means that there is no limit."""


def check_inputs(plan: "TrainingPlan", folder: Path, *, conversations: bool = False) -> None:
    """Raise `UsageError` for documents, attached files, adapters, a model's folder or settings that are missing or
    unusable; with `conversations` also for the file of a cold start. Paths are relative to `folder`."""
    configuration = plan.configuration
    find_model_folder(configuration.model.name, folder)
    roots_of([*plan.settings.docs, *(file for problem in (*plan.problems, *plan.held_out) for file in problem.files)])
    check_starts(configuration.model.start)
    name = configuration.sft.conversations
    if conversations and name and not (folder / name).is_file():
        fix = f"write it with: hira runs export -o {name}"
        raise UsageError(f"there is no file {name!r}", where="sft.conversations", fix=fix)
    asyncio.run(_open_services(plan))


async def _open_services(plan: "TrainingPlan") -> None:
    """Open the tools of the rollouts once, and close them again. Raise `EndpointError` for a judge or a generator whose
    endpoint does not answer: no rollout would get a score."""
    from hira.policies.probe import probe  # loads httpx

    await (await open_session(plan.settings, policies={"*": OfflinePolicy()}, workflow=plan.workflow)).aclose()
    part = plan.configuration.reward
    for key, model, url in (("judge", part.judge, part.judge_url), ("generator", part.generator, part.generator_url)):
        if not model or (has_own_place(model) and not url):
            continue
        endpoint = await probe(url or OPENAI_URL)
        if not endpoint.status:
            where = f"reward.{key} {model!r} at {without_userinfo(url or OPENAI_URL)}"
            fix = f"start it, or correct reward.{key}_url"
            raise EndpointError(f"the {key} cannot be reached: {endpoint.error}", where=where, fix=fix)


def check_starts(start: Mapping[str, Path]) -> None:
    """Raise `UsageError` for a starting folder without an adapter."""
    for name, place in start.items():
        if not (place / "adapter_config.json").is_file():
            raise UsageError(f"there is no adapter in {place}", where=f"adapter {name!r}", fix="name its folder")


def find_model_folder(name: str, folder: Path) -> Path | None:
    """Return the local folder of a model, its own or that of the Hub's cache; None for a model of the Hub that is not
    here yet. Raises `UsageError` for a name that can only be a folder, and does not exist."""
    place = folder / Path(name).expanduser()
    if place.is_dir():
        return place
    fix = "name a folder with config.json, or a model of the Hub: model.name=OWNER/NAME"
    missing = UsageError(f"there is no folder {name!r}", fix=fix)
    if name.startswith(("/", ".", "~")):
        raise missing
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        cached = None
    else:
        try:
            cached = try_to_load_from_cache(name, "config.json")
        except HFValidationError:
            raise missing from None
    if isinstance(cached, str):
        return Path(cached).parent
    if "/" not in name:
        raise missing
    if place.parent.is_dir():
        there = sorted(path.name for path in place.parent.iterdir() if path.is_dir())
        missing.fix = did_you_mean(place.name, there) if there else fix
        raise missing
    return None


def own_window(name: str, folder: Path) -> int | None:
    """Return the tokens that the model takes by its own files, prompt and reply together; None if they do not say."""
    place = find_model_folder(name, folder)
    if place is None:
        return None
    config, tokenizer = _values(place / "config.json"), _values(place / "tokenizer_config.json")
    text = {**config, **(config.get("text_config") or {})}
    lengths = (text.get("max_position_embeddings"), tokenizer.get("model_max_length"))
    known = [int(length) for length in lengths if isinstance(length, int | float) and 0 < length < UNLIMITED]
    return min(known, default=None)


def explain_window(window: int, model_window: int | None) -> str:
    """Return what is wrong with rows of `window` tokens, "" if nothing is."""
    if model_window is None or window <= model_window:
        return ""
    return f"rollouts.window is {window:,} tokens, but the model takes only {model_window:,}"


def _values(path: Path) -> dict[str, Any]:
    try:
        values = read_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


NEEDED = ("torch", "transformers", "peft", "trl", "accelerate")


def check_installed() -> None:
    """Raise `UsageError` if the training extra is not installed; else keep its libraries quiet."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f"{missing[0]} is not installed", fix="pip install 'hira[train]'")
    hide_renaming_warnings()
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def check_options(bits: int, report_to: Collection[str] = ()) -> None:
    """Raise `UsageError` for an option that does not work on this machine, before anything is loaded or written."""
    check_bits(bits)
    if not report_to:
        return
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

    for name in set(report_to) - {"none", "all"}:
        if name not in INTEGRATION_TO_CALLBACK:
            fix = f"there are: {', '.join(sorted(INTEGRATION_TO_CALLBACK))}"
            raise UsageError(f"unknown reporter {name!r}", where="in train.report_to", fix=fix)


def check_bits(bits: int, where: str = "in model.bits") -> None:
    """Raise `UsageError` for a base in 4 bits where there is no GPU or no bitsandbytes."""
    if bits != 4:
        return
    what = "a base in 4 bits needs a GPU" if not gpus() else "a base in 4 bits needs bitsandbytes"
    if not gpus() or find_spec("bitsandbytes") is None:
        raise UsageError(what, where=where, fix="pip install bitsandbytes on a machine with CUDA, or set bits = 16")


def gpus() -> int:
    import torch

    return torch.cuda.device_count()
