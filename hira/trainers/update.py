"""What the rollouts of an update bring. Plain values, without torch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hira.trainers.group import Credited, Group


@dataclass(frozen=True, slots=True)
class Collected:
    """What the rollouts of one update brought: `groups` for credit, `measures` to tell, `samples` to be looked at."""

    groups: tuple[Group, ...]
    measures: Mapping[str, float] = field(default_factory=dict)
    samples: tuple[Mapping[str, Any], ...] = ()


Collect = Callable[[int], Collected]
"""Makes the rollouts of the update with that number, counted from 0. The same number brings the same questions and
seeds, so that a run that is resumed goes on as if it had not stopped."""


def samples(collected: Collected, credited: Credited, step: int) -> Iterator[dict[str, Any]]:
    """The samples of an update as records, each with the advantages of its conversations."""
    gained: dict[str, dict[str, float]] = {}
    for one in credited.rows:
        gained.setdefault(one.row.rollout, {})[one.row.conversation] = one.advantage
    for sample in collected.samples:
        yield {"step": step, **sample, "advantages": gained.get(str(sample.get("rollout")), {})}
