"""The world of the MarsRL demo: days of the week, and questions of several steps on and back from one of them."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hira.trainers.rollouts import Problem

WEEK = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
STEPS = 3
NUMBERS = (2, 3, 4, 5)
"""Of so many days is a step; no number comes twice in a question."""
APART = ("nothing", "one", "two", "three", "four", "five", "six")
"""Days from the one that is written to the one that was counted."""
PROBLEMS, HELD_OUT = 400, 48
_DAY = "|".join(WEEK)
_START = re.compile(rf"It is ({_DAY})\.")
_STEP = re.compile(r"(\d) days (on|back)")
_LINE = re.compile(rf"^({_DAY}), (\d) days (on|back): ({_DAY})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """So many days on, or back."""

    number: int
    back: bool

    def after(self, day: str) -> str:
        return WEEK[(WEEK.index(day) + (-self.number if self.back else self.number)) % len(WEEK)]

    @property
    def text(self) -> str:
        return f"{self.number} days {'back' if self.back else 'on'}"

    @property
    def turned(self) -> "Step":
        return Step(self.number, not self.back)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a solution: from a day, by a step, to a day."""

    begin: str
    step: Step
    end: str

    @property
    def text(self) -> str:
        return f"{self.begin}, {self.step.text}: {self.end}"

    @property
    def right(self) -> bool:
        return self.step.after(self.begin) == self.end


@dataclass(frozen=True, slots=True)
class Task:
    """What a question asks."""

    start: str
    steps: tuple[Step, ...]

    @property
    def question(self) -> str:
        return f"It is {self.start}. Go {', then '.join(step.text for step in self.steps)}. Which day is it then?"

    @property
    def answer(self) -> str:
        day = self.start
        for step in self.steps:
            day = step.after(day)
        return day


def task_of(question: str) -> Task:
    start = _START.search(question)
    steps = (Step(int(number), way == "back") for number, way in _STEP.findall(question))
    return Task(start[1] if start else WEEK[0], tuple(steps))


def lines_of(text: str) -> list[Line]:
    """The lines of a solution or of a report."""
    return [Line(begin, Step(int(number), way == "back"), end) for begin, number, way, end in _LINE.findall(text)]


def boxed(day: str) -> str:
    return f"\\boxed{{{day}}}"


def solution(lines: Sequence[Line]) -> str:
    return "\n".join([*(line.text for line in lines), boxed(lines[-1].end)])


def report(lines: Sequence[Line], written: str) -> str:
    """What was counted, held against the day that is written in the solution.

    By how much they differ is told, and not only whether: seven distances are learned soon, two verdicts alone late or
    not at all (benchmarks/results/training_demo_marsrl.md).
    """
    own = lines[-1].end
    apart = APART[(WEEK.index(own) - WEEK.index(written)) % len(WEEK)]
    told = f"It ends with {written} and has to end with {own}: off by {apart}."
    return "\n".join([*(line.text for line in lines), told, f"Verdict: {'correct' if own == written else 'incorrect'}"])


def problems(seed: int, *, held_out: bool) -> list[Problem]:
    """The questions of training, or those that are held out: no question is in both."""
    chance = random.Random(seed)  # noqa: S311 - a world that can be made again
    tasks: dict[Task, None] = {}
    while len(tasks) < PROBLEMS + HELD_OUT:
        numbers = chance.sample(NUMBERS, STEPS)
        steps = tuple(Step(number, chance.random() < 0.5) for number in numbers)
        tasks[Task(chance.choice(WEEK), steps)] = None
    chosen = list(tasks)[PROBLEMS:] if held_out else list(tasks)[:PROBLEMS]
    kind = "held" if held_out else "train"
    return [Problem(f"{kind}{at}", one.question, (one.answer,)) for at, one in enumerate(chosen)]
