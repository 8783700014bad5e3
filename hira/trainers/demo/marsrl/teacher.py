"""The teacher of the MarsRL demo: knows how the three roles write, and would rather not count.

Its lessons teach a model both of its ways, the step by step one and the short one. What reinforcement has to find out
is which of them leads to right answers and true verdicts.
"""

import random
from dataclasses import dataclass

from hira.core.policy import Completion, Request, Watch, cut_at_stop
from hira.policies.dialects.answer import final
from hira.policies.offline.request import Asked, read_request
from hira.trainers.demo.marsrl.world import WEEK, Line, Step, boxed, lines_of, report, solution, task_of

GLANCED = {True: "Nothing seems to be wrong.\nVerdict: correct", False: "Something seems wrong.\nVerdict: incorrect"}


@dataclass(frozen=True, slots=True)
class Faults:
    """How often the teacher does each thing wrong, where it could.

    hasty      the Solver writes down a day, without a step
    guesses    and then it is any day; else the right one, which a teacher may know and a small model cannot
    glancing   the Verifier gives a verdict by chance, without counting
    patching   the Corrector writes down any other day, without a step
    turned     who counts goes on where it should go back
    slips      who counts comes to any day
    """

    hasty: float = 0.65
    guesses: float = 0.55
    glancing: float = 0.45
    patching: float = 0.55
    turned: float = 0.15
    slips: float = 0.02


CARELESS = Faults()


class Teacher:
    """Plays all roles of MarsRL in one rollout. `chance` makes its faults."""

    model = "teacher"

    def __init__(self, chance: random.Random, faults: Faults = CARELESS) -> None:
        self.chance = chance
        self.faults = faults

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        del watch
        seen = read_request(request)
        play = {"marsrl_solver": self.solver, "marsrl_verifier": self.verifier}.get(seen.prompt, self.corrector)
        return cut_at_stop(Completion(play(seen), model=self.model), request.stop)

    async def aclose(self) -> None:
        """There is nothing to let go of."""

    def solver(self, seen: Asked) -> str:
        if self._fails(self.faults.hasty):
            known = task_of(seen.value("question")).answer
            return boxed(self.chance.choice(WEEK) if self._fails(self.faults.guesses) else known)
        return solution(self._counted(seen))

    def verifier(self, seen: Asked) -> str:
        if self._fails(self.faults.glancing):
            return GLANCED[self._fails(0.5)]
        return report(self._counted(seen), final(seen.value("solution")))

    def corrector(self, seen: Asked) -> str:
        """What the report counted or, if it did not, counted anew."""
        if self._fails(self.faults.patching):
            written = final(seen.value("solution"))
            return boxed(self.chance.choice([day for day in WEEK if day != written]))
        return solution(lines_of(seen.value("report")) or self._counted(seen))

    def _counted(self, seen: Asked) -> list[Line]:
        task = task_of(seen.value("question"))
        lines: list[Line] = []
        for step in task.steps:
            begin = lines[-1].end if lines else task.start
            lines.append(Line(begin, step, self._after(begin, step)))
        return lines

    def _after(self, day: str, step: Step) -> str:
        if self._fails(self.faults.slips):
            return self.chance.choice(WEEK)
        return (step.turned if step.back and self._fails(self.faults.turned) else step).after(day)

    def _fails(self, often: float) -> bool:
        return self.chance.random() < often
