"""An environment package of verifiers: questions, flags, and the code that runs hira on them."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from hira.core.errors import UsageError
from hira.trainers.assembly import TrainingPlan
from hira.trainers.records import append

CODE = Path(__file__).with_name("environment.py")
README = Path(__file__).with_name("environment_readme.txt")
PROJECT = Path(__file__).with_name("environment_project.toml")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def write_package(plan: TrainingPlan, folder: Path, name: str) -> list[Path]:
    """Write the package `name` into the folder; what was written is returned.

    Raises `UsageError` for a name that is no module, for a folder that holds something, and for a reward that the
    environment does not know: it pays for right answers.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name of a module", fix="use small letters, digits and _")
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} holds something already", fix="name another folder with --output")
    if plan.recipe.judged is not None or plan.configuration.reward.judge:
        what = "only rewards by words are exported"
        raise UsageError(what, fix="write the judge into the environment's `right`, with vf.Judge")
    if not plan.problems:
        raise UsageError("there is no question to train on", fix='write train = "questions.jsonl" below [data]')
    package = folder / name
    rows = [{"id": one.id, "question": one.question, "answers": list(one.references)} for one in plan.problems]
    append(package / "questions.jsonl", rows)
    (package / "flags.json").write_text(json.dumps(flags_of(plan), indent=2) + "\n", encoding="utf-8")
    (package / "__init__.py").write_text(CODE.read_text(encoding="utf-8"), encoding="utf-8")
    part = plan.configuration
    values = {
        "name": name,
        "model": part.model.name,
        "questions": str(part.rollouts.questions * part.rollouts.attempts),
        "attempts": str(part.rollouts.attempts),
        "steps": str(part.train.steps),
        "lr": f"{part.train.lr:g}",
        "rank": str(part.model.rank),
        "alpha": str(part.model.alpha),
        "window": str(part.rollouts.window),
    }
    for source, target in ((PROJECT, "pyproject.toml"), (README, "README.md")):
        (folder / target).write_text(fill_slots(source.read_text(encoding="utf-8"), values), encoding="utf-8")
    return sorted(path for path in folder.rglob("*") if path.is_file())


def fill_slots(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: values[slot[1]], text)


def flags_of(plan: TrainingPlan) -> Sequence[str]:
    """The settings of the rollouts as flags of `hira ask`, with whole paths."""
    settings, flags = plan.settings, ["--workflow", plan.settings.workflow]
    if settings.dialect:
        flags += ["--dialect", settings.dialect]
    for place in settings.docs:
        flags += ["--docs", str(Path(place).resolve())]
    if settings.search:
        flags += ["--search", settings.search]
    if settings.max_subtasks:
        flags += ["--max-subtasks", str(settings.max_subtasks)]
    for option, value in plan.configuration.workflow.items():
        flags += ["--set", f"{settings.workflow}.{option}={value}"]
    return flags
