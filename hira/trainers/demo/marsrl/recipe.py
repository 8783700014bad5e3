"""`hira-train demo --recipe marsrl`: Solver, Verifier and Corrector learn to count the days of the week.

Settings were chosen on seeds 0 and 1. Expected, before the run, of seeds 2 and 3, on which nothing was chosen, of
held-out questions at temperature 1: the Solver's own solutions right from about 30 to 40 % to 70 % or more; wrong
solutions made right by the Corrector from about 50 % to 75 % or more; verdicts on wrong and right solutions alike from
between 60 and 75 % to at least ten points more, with more errors found and more right solutions accepted; all together
at least as often right as the Solver alone, in the end. Within 300 seconds of one processor. What was found stands in
benchmarks/results/training_demo_marsrl.md.
"""

from hira.evaluation.rewards.accuracy import ByWords
from hira.evaluation.rewards.match import exact
from hira.evaluation.rewards.reward import Reward
from hira.trainers.configuration import StageConfig
from hira.trainers.demo.marsrl import world
from hira.trainers.demo.marsrl.exam import Alone, by_role
from hira.trainers.demo.marsrl.lessons import OPTIONS, TIMES, WORKFLOW, learn_tokenizer, settings_of, shifted, show
from hira.trainers.demo.recipe import Asked, DemoRecipe, Sizes
from hira.trainers.masking import masking
from hira.trainers.recipes.marsrl import RECIPE
from hira.trainers.rollouts import Problem

ASKED = 3


def problems(seed: int) -> list[Problem]:
    return world.problems(seed, held_out=False)


def held_out(seed: int) -> list[Problem]:
    return world.problems(seed, held_out=True)


def reward() -> Reward:
    return ByWords(exact)


def exam(seed: int) -> Reward:
    del seed
    return by_role


def asked(seed: int) -> list[Asked]:
    """Questions that were not asked in training."""
    return [Asked(("ask", one.question), f"known answer: {one.references[0]}") for one in held_out(seed)[:ASKED]]


MARSRL = DemoRecipe(
    name="marsrl",
    about="MarsRL GRPO",
    recipe=RECIPE,
    workflow=WORKFLOW,
    options=OPTIONS,
    settings=settings_of,
    show=show,
    tokenizer=learn_tokenizer,
    dealt=TIMES,
    varied=shifted,
    problems=problems,
    held_out=held_out,
    reward=reward,
    exam=exam,
    examining=Alone(WORKFLOW),
    asked=asked,
    credit=masking(RECIPE.credit),
    stages=StageConfig(sampling="balanced"),
    sizes=Sizes(lessons=2, learning=300, updates=15, questions=6, exam=2),
    small=Sizes(lessons=1, learning=36, batch=16, updates=2, questions=1, attempts=3, exam=1, thin=16),
    examined="held-out questions answered right by all roles together",
    curves={
        "Solver: right solutions": "solver/reward",
        "Verifier1: true verdicts": "verifier1/reward",
        "Corrector1: right solutions": "corrector1/reward",
        "Verifier2: true verdicts": "verifier2/reward",
        "Corrector2: right solutions": "corrector2/reward",
    },
    figures={
        f"{part}, {told}": tuple(f"{name}/{one}" for one in names)
        for name, told in (("sampled", "temperature 1"), ("greedy", "greedy"))
        for part, names in (
            ("Solver, its own solutions right", ("solver",)),
            ("Verifier, wrong and right solutions alike", ("found", "accepted")),
            ("Verifier, errors found", ("found",)),
            ("Verifier, right solutions accepted", ("accepted",)),
            ("Verifier, on the Solver's solutions as they come", ("natural",)),
            ("Corrector, wrong solutions made right", ("repaired",)),
        )
    },
)
