"""The teacher of the MarsRL demo: knows how the three roles write, and counts back badly.

Its lessons teach a model the form of solutions, reports and corrections, and its faults with it. What reinforcement
has to find out is which of its ways lead to right answers and true verdicts.
"""

import random
from dataclasses import dataclass

from hira.policies.offline.conversation import Asked, read
from hira.policy import Completion, Request, Watch, cut_at_stop
from hira.trainers.demo.marsrl.world import WEEK, Line, Step, lines_of, solution, task_of

CORRECT, INCORRECT = "Verdict: correct", "Verdict: incorrect"


@dataclass(frozen=True, slots=True)
class Faults:
    """How often the teacher does each thing wrong, where it could.

    turned     the Solver counts on where it should count back
    unsure     the Verifier and the Corrector do
    slips      any of them comes to any other day
    lenient    the Verifier calls a line right that it has just found to be wrong
    patched    the Corrector corrects one line and leaves all that follows from it as it was
    """

    turned: float = 0.5
    unsure: float = 0.2
    slips: float = 0.02
    lenient: float = 0.4
    patched: float = 0.5


CARELESS = Faults()


class Teacher:
    """Plays all roles of MarsRL in one rollout. `chance` makes its faults."""

    model = "teacher"

    def __init__(self, chance: random.Random, faults: Faults = CARELESS) -> None:
        self.chance = chance
        self.faults = faults

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        del watch
        seen = read(request)
        play = {"marsrl_solver": self.solver, "marsrl_verifier": self.verifier}.get(seen.prompt, self.corrector)
        return cut_at_stop(Completion(play(seen), model=self.model), request.stop)

    async def aclose(self) -> None:
        """There is nothing to let go of."""

    def solver(self, seen: Asked) -> str:
        task = task_of(seen.value("question"))
        return solution(self._gone(task.start, task.steps, self.faults.turned))

    def verifier(self, seen: Asked) -> str:
        told = []
        for line in lines_of(seen.value("solution")):
            own = Line(line.begin, line.step, self._after(line.begin, line.step, self.faults.unsure))
            if own.end == line.end or self._fails(self.faults.lenient):
                told.append(f"{own.text}, right.")
            else:
                return "\n".join([*told, f"{own.text}, not {line.end}.", INCORRECT])
        return "\n".join([*told, CORRECT])

    def corrector(self, seen: Asked) -> str:
        """What the report found, up to its error, and from there on anew."""
        task, old = task_of(seen.value("question")), lines_of(seen.value("solution"))
        known = lines_of(seen.value("report"))
        left = task.steps[len(known) :]
        day = known[-1].end if known else task.start
        if not self._fails(self.faults.patched) or len(old) != len(task.steps):
            return solution([*known, *self._gone(day, left, self.faults.unsure)])
        kept = [line.end for line in old[len(known) :]]
        begins = [day, *kept]
        return solution([*known, *(Line(begins[at], step, kept[at]) for at, step in enumerate(left))])

    def _gone(self, day: str, steps: tuple[Step, ...], turned: float) -> list[Line]:
        lines: list[Line] = []
        for step in steps:
            lines.append(Line(day, step, self._after(day, step, turned)))
            day = lines[-1].end
        return lines

    def _after(self, day: str, step: Step, turned: float) -> str:
        if self._fails(self.faults.slips):
            return self.chance.choice(WEEK)
        return (step.turned if step.back and self._fails(turned) else step).after(day)

    def _fails(self, often: float) -> bool:
        return self.chance.random() < often
