"""The files of a run for its users: adapters with their tokenizer, profiles, and the command that serves them.

`profile.toml` is for this process, `served.toml` for a server of the adapters (`hira-train serve`). Both have the form
of hira.toml, with paths relative to the run's folder.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hira.core.errors import UsageError
from hira.runtime.settings import PROFILE, SERVED
from hira.trainers.assembly import TrainingPlan, open_run

ADAPTERS, BEST = "adapters", "best"
BASE = "hira-base"
"""The name of the base at a server."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def save_adapters(plan: TrainingPlan, model: Any, tokenizer: Any, below: str = ADAPTERS) -> None:
    """Save each adapter as it is now in a folder of its name, with its tokenizer."""
    for name in dict.fromkeys(plan.configuration.model.adapters.values()):
        place = plan.folder / below / name  # PEFT creates this folder itself, except for the adapter `default`
        model.save_pretrained(place if name == "default" else place.parent, selected_adapters=[name])
        tokenizer.save_pretrained(place)


def count_slots(staleness: int, adapters: int) -> int:
    """Return the `--max-loras` of a vLLM server that samples for a run: each adapter in the versions whose replies may
    still be in progress, in the newest one, and in the next one while it is loaded."""
    return (staleness + 2) * adapters


def write_profiles(plan: TrainingPlan, sampling: Mapping[str, Any] | None = None, limits: str = "") -> None:
    """Write both profiles of a run. `sampling` has more settings for users, such as a temperature; `limits` says what
    the model cannot do."""
    folder, settings, adapters = plan.folder, plan.settings, plan.configuration.model.adapters
    general: dict[str, Any] = {"workflow": settings.workflow, **(sampling or {})}
    if settings.dialect:
        general["dialect"] = settings.dialect
    docs = [doc for doc in settings.docs if doc.resolve().is_relative_to(folder.resolve())]
    if docs:
        general["docs"] = [os.path.relpath(doc.resolve(), folder.resolve()) for doc in docs]
    other = adapters.get("*", "")
    named = {role: name for role, name in adapters.items() if role != "*"}
    workflow_options = dict(plan.configuration.workflow)
    options = {f"workflows.{settings.workflow}": workflow_options} if workflow_options else {}
    here = {"model": f"hf:{relative_model(plan.configuration.model.name, folder)}", **general}
    if other:
        here["adapter"] = f"./{ADAPTERS}/{other}"
    roles = {f"roles.{role}": {"adapter": f"./{ADAPTERS}/{name}"} for role, name in named.items()}
    _write(folder / PROFILE, ["For this process: hira ask --profile FOLDER", limits], here, {**roles, **options})
    there = {"model": other or BASE, "base_url": "http://127.0.0.1:8000/v1", **general}
    roles = {f"roles.{role}": {"model": name} for role, name in named.items()}
    heading = ["For a server of the adapters: hira-train serve FOLDER", limits]
    _write(folder / SERVED, heading, there, {**roles, **options})


def relative_model(model: str, folder: Path) -> str:
    """Return a model's folder within the run's as `./…`, any other folder as a full path, a name of the Hub as it
    is."""
    place = Path(model).expanduser()
    if not place.is_dir():
        return model
    whole = place.resolve()
    return f"./{whole.relative_to(folder.resolve())}" if whole.is_relative_to(folder.resolve()) else str(whole)


def _write(
    path: Path, heading: Sequence[str], values: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]
) -> None:
    lines = [f"# {line}" for line in heading if line]
    for table, entries in {"": values, **tables}.items():
        if table:
            keys = [key if _BARE_KEY.fullmatch(key) else json.dumps(key) for key in table.split(".", 1)]
            lines += ["", f"[{'.'.join(keys)}]"]
        # TOML writes text, numbers, truth values and lists as JSON does
        lines += [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entries.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def adapters_of(run: Path) -> dict[str, Path]:
    """Return the adapters that a run saved, by name. Raises `UsageError` without any."""
    adapters = {path.parent.name: path.parent for path in sorted(run.glob(f"{ADAPTERS}/*/adapter_config.json"))}
    if not adapters:
        raise explain_unfinished(run)
    return adapters


def explain_unfinished(run: Path) -> UsageError:
    """Return the error about a folder whose run has not ended. Raises `UsageError` if it does not hold a run."""
    open_run(run)
    fix = "to finish it, repeat the command that began it"
    return UsageError("the run has not ended, so it has no trained model yet", where=str(run), fix=fix)


PARSERS = {"[TOOL_CALLS]": "mistral", "<tool_call>": "hermes", "<|python_tag|>": "llama3_json"}
"""The names of vLLM's call parsers, by the marks in a chat template."""
RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks that vLLM accepts."""


def serve_command(run: Path, port: int) -> list[str]:
    """Return `vllm serve` with the run's base and adapters. Without a call parser it would refuse every request with
    tools."""
    adapters = adapters_of(run)
    configs = [json.loads((place / "adapter_config.json").read_text(encoding="utf-8")) for place in adapters.values()]
    base = str(configs[0]["base_model_name_or_path"])
    needed = max(int(config["r"]) for config in configs)
    rank = next((rank for rank in RANKS if rank >= needed), needed)
    first = next(iter(adapters.values()))
    return ["vllm", "serve", base, "--served-model-name", BASE, "--tokenizer", str(first), "--enable-lora",
            "--max-loras", str(len(adapters)), "--max-lora-rank", str(rank), "--port", str(port),
            *_calls(first), "--lora-modules", *(f"{name}={place}" for name, place in adapters.items())]  # fmt: skip


def _calls(tokenizer: Path) -> list[str]:
    """Return the flags for reading native calls as in training; none if the chat template has no known marks."""
    paths = [tokenizer / name for name in ("chat_template.jinja", "tokenizer_config.json")]
    template = "".join(path.read_text(encoding="utf-8") for path in paths if path.is_file())
    call_parser = next((parser for mark, parser in PARSERS.items() if mark in template), None)
    return ["--enable-auto-tool-choice", "--tool-call-parser", call_parser] if call_parser else []
