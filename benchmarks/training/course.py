"""The course of a training run as it is seen from outside: tokens, ages, whether the engine decodes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, Self

from transformers import TrainerCallback

from hira.policies.local.batching import BatchingEngine
from hira.policies.local.engine import Sampled, SampleRequest
from hira.trainers.rows import Collected, Credited, Group
from hira.trainers.schedule import Gate


class Counting(BatchingEngine):
    """An engine that knows how much it sampled, in how many calls."""

    sampled = 0
    calls = 0

    async def sample(self, request: SampleRequest) -> Sampled:
        found = await super().sample(request)
        self.sampled += len(found.ids)
        self.calls += 1
        return found


class Draining(Gate):
    """A gate that knows how long closing took: the engine decoded for the last replies alone."""

    seconds = 0.0

    async def close(self) -> None:
        began = time.perf_counter()
        await super().close()
        self.seconds += time.perf_counter() - began


class Clock:
    """Looks at the engine every so many seconds: in which share of the looks of a phase it had made a step since."""

    def __init__(self, engine: BatchingEngine, every: float = 0.1) -> None:
        self.engine = engine
        self.every = every
        self.phase = ("", 0)
        self.looks: dict[str, list[bool]] = {"rollouts": [], "update": []}
        self._over = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def enter(self, phase: str) -> None:
        self.phase = (phase, self.phase[1] + 1)

    def share(self, phase: str) -> float | None:
        """None if no look fell into such a phase as a whole."""
        looks = self.looks[phase]
        return sum(looks) / len(looks) if looks else None

    def _look(self) -> None:
        before, steps = self.phase, self.engine.steps
        while not self._over.wait(self.every):
            now, made = self.phase, self.engine.steps
            if now == before and now[0] in self.looks:
                self.looks[now[0]].append(made > steps)
            before, steps = now, made


@dataclass
class Course:
    """What is seen of a run from outside, update by update."""

    clock: Clock
    began: float = field(default_factory=time.perf_counter)
    tokens: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    ages: list[int] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    decoded: int = 0

    def collecting(self, collect: Callable[[int], Collected]) -> Callable[[int], Collected]:
        """Rollouts, with the age in updates of each row's oldest token, as the row itself tells."""

        def collected(update: int) -> Collected:
            self.clock.enter("rollouts")
            found = collect(update)
            rows = [row for group in found.groups for attempt in group.attempts for row in attempt.rows]
            self.ages += [update - int(row.model.rpartition("@")[2]) for row in rows]
            self.decoded -= self.clock.engine.steps
            self.clock.enter("update")
            return found

        return collected

    def crediting(self, credit: Callable[[Sequence[Group]], Credited]) -> Callable[[Sequence[Group]], Credited]:
        """Credit, with the tokens that are trained on: those of rows with an advantage."""

        def credited(groups: Sequence[Group]) -> Credited:
            found = credit(groups)
            trained = [one.row for one in found.rows if one.advantage and one.weight]
            self.tokens.append(sum(row.tokens for row in trained))
            self.rows.append(len(trained))
            return found

        return credited

    def updating(self, updated: Callable[[int], None]) -> Callable[[int], None]:
        """The end of an update, before anything is sampled again."""

        def told(step: int) -> None:
            self.decoded += self.clock.engine.steps
            self.clock.enter("")
            self.ended.append(time.perf_counter() - self.began)
            print(f"  update {step}: {self.tokens[-1]:,} tokens of {self.rows[-1]} rows, {self.ended[-1]:.1f} s since "
                  f"the beginning, oldest token {max(self.ages, default=0)} updates", flush=True)  # fmt: skip
            updated(step)

        return told

    @property
    def steady(self) -> tuple[int, int, float]:
        """Tokens, updates and seconds after the first update; all of them where there is but one."""
        if len(self.ended) < 2:
            return sum(self.tokens), len(self.tokens), self.ended[-1]
        return sum(self.tokens[1:]), len(self.tokens) - 1, self.ended[-1] - self.ended[0]


class Ends(TrainerCallback):
    """Ends a run with the update after which the time is over."""

    def __init__(self, seconds: float) -> None:
        self.over = time.perf_counter() + seconds

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        del args, state
        control.should_training_stop = control.should_training_stop or time.perf_counter() > self.over
        return control
