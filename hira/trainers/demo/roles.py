"""`hira-train demo --model smollm2 --roles`: planner and worker of MATPO, each an adapter of one pretrained model.

A question takes two steps, and two pages: "Which river flows through the town where Ulf works?". The planner asks a
worker for the town, reads its report, asks for the river, and answers. 72 rollouts of a careless teacher show
both roles the form, with the teacher's faults; reinforcement rewards right answers alone. No training question is about
a person or a town of the exam. The notes about towns have no word of the questions ("Kolmar has a riverbank on the
Cress."), so that a search with the question finds the person's note and never the town's.

`--roles planner` and `--roles worker` reinforce one of the pair while the other keeps its lessons. Two more train one
role alike, with the same questions, updates and rollouts: `--roles rag` searches once, with the question; `--roles
single` searches twice itself.

Expected, before any run of the reported seeds 2 and 3: of held-out questions at temperature 1, fewer than 10 % right by
the pretrained model, 35 to 70 % after the lessons, and after reinforcement at least 60 %; of `rag` with the same number
of updates and rollouts at most 25 %, because it can only guess one of twelve rivers or hills; of `single`, which reads
both notes, at least 40 %, and nothing is expected about whether it or the pair is better; at most 60 CPU minutes a run.
The results are in benchmarks/results/training_roles.md.
"""

import random
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from hira.core.policy import Completion, Request
from hira.evaluation.rewards.answers import ByWords
from hira.evaluation.rewards.match import exact
from hira.policies.offline import Act
from hira.policies.offline import OfflineRequest as Seen
from hira.runtime.settings import Settings
from hira.trainers.demo.matpo import (
    LINKS,
    QUESTION,
    REPORTED,
    THINGS,
    MatpoTeacher,
    MatpoTeacherFaults,
    find_parts,
    make_world,
)
from hira.trainers.demo.recipe import PRETRAINED, PRETRAINED_MINIATURE, DemoRecipe, Reply, errs
from hira.trainers.recipes import GRPO, Recipe
from hira.trainers.recipes import MATPO as RECIPE
from hira.trainers.rollouts import Problem
from hira.workflows import BuiltIn
from hira.workflows.baselines.single import Rag
from hira.workflows.matpo import MATPO

PAIR = MATPO(max_subtasks=2, worker_calls=1, summary=False, recap=False, brief=True)
SINGLE = replace(PAIR, planner=False, worker_calls=2)
WORKFLOWS: Mapping[str, BuiltIn] = {"pair": PAIR, "single": SINGLE, "rag": Rag()}
REPLY = 64
"""The most tokens of a reply; the longest right one takes about 45."""


def problems(seed: int, *, held_out: bool = False) -> list[Problem]:
    """Return the problems in an order of the seed. An answer may say what the value is: "the river Cress"."""
    asked = [
        replace(problem, references=(value, f"{problem.id.rpartition('-')[2]} {value}"))
        for problem in make_world(seed, apart=True).problems(held_out=held_out)
        for value in problem.references
    ]
    return random.Random(seed).sample(asked, len(asked))  # noqa: S311 - a repeatable order


FAULTS = MatpoTeacherFaults(hasty=0.2, mistaken=0.05, misread=0.1)


_LAST = re.compile(r"(?:in|the) \w+ \[s\d+\]$")


class PairTeacher(MatpoTeacher):
    """Answers where MATPO's teacher waits to be asked for a summary, and writes calls and plain sentences alone:
    a small model repeats headings and boxes without end. Names follow a space wherever they are copied, so that their
    tokens stay the same."""

    def planner(self, seen: Seen) -> Act:
        act = super().planner(seen)
        return Act("", act.calls) if act.calls else _answer(seen.results[-1][1] if seen.results else "")

    def worker(self, seen: Seen) -> Act:
        act = super().worker(seen)
        for _, arguments in act.calls:
            return _search(str(arguments["query"]))
        return Act(act.text.removeprefix("## Conclusion\n"))


class SingleTeacher(PairTeacher):
    """One role that searches for the person, reads the town, and searches for it: with the faults of the pair."""

    def worker(self, seen: Seen) -> Act:
        thing, person, link = find_parts(QUESTION, seen.value("task"))
        if not seen.results:
            return _search(person)
        if len(seen.results) == 1:
            report = self.report(person, self.or_other(link, tuple(LINKS.values())).split()[-1], seen)
            known = REPORTED.search(report)
            if known is None or errs(self.chance, self.faults.hasty):
                return _answer(report)
            return _search(known[1])
        town = str(seen.results[-1][0].arguments["query"]).split()[-1]
        return _answer(self.report(town, self.or_other(thing, tuple(THINGS)), seen))


def _search(name: str) -> Act:
    return Act("", (("search", {"query": f"about {name}"}),))


def _answer(report: str) -> Act:
    last = _LAST.search(report)
    return Act(last[0] if last else "unknown")


TEACHERS = {"pair": PairTeacher, "single": SingleTeacher}


def play_teacher(name: str, seed: int, chance: random.Random, problem: Problem) -> Reply:
    """Return the teacher of a comparison. The one of `rag` is as often right as that of the pair, and else names the
    thing of another town. It knows what its prompt does not show."""
    if name in TEACHERS:
        return TEACHERS[name](chance, FAULTS).reply
    right, kind = problem.references[0], problem.id.rpartition("-")[2]
    things = make_world(seed, apart=True).thing
    others = sorted({value for (_, thing), value in things.items() if thing == kind and value != right})

    def reply(request: Request) -> Completion:
        del request
        faults = (FAULTS.hasty, *2 * (FAULTS.mistaken, FAULTS.misread))
        wrong = any(errs(chance, often) for often in faults)
        return Completion(f"the {chance.choice(others) if wrong else right}")

    return reply


def settings_of(workflow: str, folder: Path) -> Settings:
    return Settings(
        model="offline",
        docs=(folder / "documents",),
        workflow=workflow,
        dialect="json",
        sandbox="off",
        max_reply_tokens=REPLY,
    )


def _make(name: str, recipe: Recipe, adapters: Mapping[str, str], norm: str) -> DemoRecipe:
    workflow = WORKFLOWS[name]
    return DemoRecipe(
        name="roles",
        about=f"{recipe.name.upper()} GRPO of {workflow.name}",
        recipe=recipe,
        workflow=workflow,
        adapters=adapters,
        credit={"norm": norm},
        settings=partial(settings_of, workflow.name),
        write=lambda folder, seed: make_world(seed, apart=True).write(folder / "documents", bare=True),
        teacher=partial(play_teacher, name),
        problems=problems,
        reward=ByWords(exact),
        sizes=SIZES,
        small=PRETRAINED_MINIATURE,
        examined="held-out questions of two steps right",
    )


SIZES = replace(PRETRAINED, learning=24, batch=6, updates=8, questions=8, attempts=4, rate=2e-4, budget=4096)
ADAPTERS = {"planner": "planner", "worker": "worker"}
ROLES = {
    "pair": _make("pair", RECIPE, ADAPTERS, "token_mean"),
    "planner": _make("pair", replace(RECIPE, roles=frozenset({"planner"})), ADAPTERS, "token_mean"),
    "worker": _make("pair", replace(RECIPE, roles=frozenset({"worker"})), ADAPTERS, "token_mean"),
    "single": _make("single", GRPO, {"*": "default"}, "dapo"),
    "rag": _make("rag", GRPO, {"*": "default"}, "dapo"),
}
"""The recipes by the roles that are reinforced. Each averages over the tokens of an update: means of each rollout first
would weigh the tokens of short rollouts more. Those are wrong, so that they would make the first call, which is the
same in all rollouts of a question and right in most, less likely."""
