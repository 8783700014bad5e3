"""What a rule looks at, and what it says."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from hira.trainers import records
from hira.trainers.configuration import Configuration
from hira.trainers.records import COMPLETE, step_of

Verdict = Literal["ok", "warning", "fault", "unseen"]
Metrics = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule says. `unseen` where there was nothing to look at yet."""

    rule: str
    verdict: Verdict
    told: str
    fix: str = ""


@dataclass(frozen=True)
class Seen:
    """A configuration, and what its run has left by now. `steps` are lines of metrics.jsonl, one an update.

    `notices` are what the chat template does to conversations, None where it was not loaded; `quiet` is how many
    seconds ago the run wrote something, None if it has ended or not begun; `bases` are the base's fingerprints by
    checkpoint. `shared` are the held-out questions that are trained on, too; `unasked` those of the training file that
    are left out because nothing is known of their answer; `window` are the tokens that the model itself takes, None
    where that is not known."""

    configuration: Configuration
    steps: Sequence[Metrics] = ()
    rollouts: Sequence[Mapping[str, Any]] = ()
    exams: Sequence[Mapping[str, Any]] = ()
    bases: Mapping[int, str] = field(default_factory=dict)
    problems: int | None = None
    shared: int = 0
    unasked: int = 0
    window: int | None = None
    notices: tuple[str, ...] | None = None
    quiet: float | None = None

    @cached_property
    def roles(self) -> list[str]:
        return sorted({name.removesuffix("/length") for one in self.steps for name in one if name.endswith("/length")})

    def values(self, name: str) -> list[float]:
        """The metric over the steps that have it."""
        return [float(one[name]) for one in self.steps if isinstance(one.get(name), int | float)]

    def latest(self, name: str, many: int = 20) -> float | None:
        """The mean of the metric over the last steps that have it."""
        return mean(self.values(name)[-many:])


def mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return sum(known) / len(known) if known else None


def read(folder: Path, configuration: Configuration, now: float | None = None) -> Seen:
    """What the run in a folder has left."""
    lines = [one for one in records.read(folder / records.METRICS) if "train_runtime" not in one]
    bases = {}
    for path in folder.glob(f"checkpoint-*/{COMPLETE}"):
        for one in records.read(path):
            bases[step_of(path.parent)] = str(one.get("base", ""))
    path = folder / records.METRICS
    done = bool(lines) and int(lines[-1].get("step", 0)) >= configuration.train.steps
    quiet = None if done or not path.is_file() else (time.time() if now is None else now) - path.stat().st_mtime
    rollouts = records.read(folder / records.ROLLOUTS)
    return Seen(configuration, lines, rollouts, records.read(folder / records.EXAMS), bases, quiet=quiet)


def as_json(found: Sequence[Finding]) -> str:
    told = [{"rule": one.rule, "verdict": one.verdict, "told": one.told, "fix": one.fix} for one in found]
    return json.dumps(told, indent=2, ensure_ascii=False)
