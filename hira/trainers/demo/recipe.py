"""What a demo is made of beside the stages that all of them have: one `DemoRecipe` for each of `hira-train demo
--recipe`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.agents.trajectory import Rollout
from hira.evaluation.rewards.reward import Reward
from hira.runtime.settings import Settings
from hira.trainers.configuration import StageConfig
from hira.trainers.credit import Credit
from hira.trainers.demo.model import SHAPE, Shape
from hira.trainers.recipes import Recipe
from hira.trainers.rollouts import Problem
from hira.workflows import BuiltIn
from hira.workflows.workflow import Workflow

if TYPE_CHECKING:
    from hira.trainers.sft import Changed

TINY = "tiny"
"""The base that is made at random."""
DAY = 1_767_225_600.0  # 2026-01-01: rollouts of every day have the same prompts


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is done. `lessons` are rollouts of the teacher a question, `learning` steps of supervised training on
    rows, `updates` steps of reinforcement with `questions` x `attempts` rollouts each. An exam
    takes every `thin`-th question that is held out, `exam` times."""

    lessons: int = 3
    learning: int = 180
    batch: int = 32
    learning_rate: float = 5e-3
    matrices: float = 0.02
    updates: int = 40
    questions: int = 8
    attempts: int = 8
    rate: float = 1.5e-3
    rank: int = 8
    exam: int = 4
    thin: int = 1
    every: int = 0


MINIATURE = Sizes(lessons=1, learning=12, updates=2, questions=4, attempts=4, exam=1)
"""Enough to go all the way through, too little to learn anything."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The cold start's lessons: the teacher's rollouts, and a line that tells of them."""

    rollouts: Sequence[Rollout]
    told: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A command of `hira` that asks what was trained, without the flags for its profile, and what is told after it."""

    command: tuple[str, ...]
    known: str = ""


@dataclass(frozen=True, slots=True)
class DemoRecipe:
    """One demo. `recipe` is the one whose roles are trained by its credit, unless the demo names a `credit` of its own.

    `settings` are those of runs in a folder, in which `show` first writes what they need and plays the teacher's
    lessons of a seed, so many a question. A `pretrained` model learns them as an adapter; a tiny one begins at random,
    with the `tokenizer` that is learned from them; `varied` makes other lessons of one, and `dealt` says how often
    those of a role come where others come once. `problems` are those of training, `held_out` those of exams, by seed.
    `reward` pays. It also examines what the workflow answers, unless there is an `exam`, by seed, or, in the workflow's
    place, `examining`; `examined` says what the accuracy is. `asked` are commands for the end, by seed. `workflow` runs
    with `options` unlike its defaults, which the profile keeps. `curves` names metrics of updates that are drawn;
    `figures` those of exams that are told before and after, `sampled/PART` and `greedy/PART` of its scores: the mean,
    where they are several. `note` says under them what is not to be expected.
    """

    name: str
    about: str
    recipe: Recipe
    workflow: BuiltIn
    settings: Callable[[Path], Settings]
    show: Callable[[Path, int, int], Shown]
    problems: Callable[[int], Sequence[Problem]]
    held_out: Callable[[int], Sequence[Problem]]
    reward: Callable[[], Reward]
    asked: Callable[[int], Sequence[Asked]]
    tokenizer: Callable[[Sequence[Rollout]], Any] | None = None
    pretrained: bool = False
    dealt: Mapping[str, int] = field(default_factory=dict)
    exam: Callable[[int], Reward] | None = None
    examining: Workflow | None = None
    varied: "Callable[[Any], Changed] | None" = None
    options: Mapping[str, bool | int] = field(default_factory=dict)
    credit: Credit | None = None
    stages: StageConfig = field(default=StageConfig())
    shape: Shape = SHAPE
    sizes: Sizes = Sizes()
    small: Sizes = MINIATURE
    examined: str = "held-out questions right"
    curves: Mapping[str, str] = field(default_factory=lambda: {"right answers in training": "reward/accuracy"})
    figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""
