"""`hira-train demo --model smollm2`: a pretrained model learns to answer in one sentence with the id of its source.

The workflow is `rag`, as `hira ask --workflow rag --docs` runs it. Each page has four facts of a town, and a question
asks for one. A small model copies from its prompt, the wrong fact as often as the right one, and names no source. Some
dozen conversations of a careless teacher show it the form, with the teacher's faults; reinforcement finds out which
answers are rewarded. No training question is about a town of the exam.

Expected, before the runs of the reported seeds: of held-out questions at temperature 1, answered rightly in one
sentence with its source, nearly none by the pretrained model, at most 40 % after the demonstrations, and after
reinforcement at least 20 points more than after the demonstrations, and at least 60 %. The results are in
benchmarks/results/training_pretrained.md.
"""

import random
import re
from dataclasses import dataclass
from pathlib import Path

from hira.agents.trajectory import Rollout
from hira.core.policy import Completion, Request
from hira.evaluation.rewards.answers import RolloutScore
from hira.evaluation.rewards.match import contains
from hira.policies.offline import read_request
from hira.runtime.settings import Settings
from hira.trainers.demo.matpo import HILLS, PEOPLE, RIVERS, TOWNS
from hira.trainers.demo.recipe import PRETRAINED, PRETRAINED_MINIATURE, DemoRecipe, Reply, errs
from hira.trainers.recipes import GRPO as RECIPE
from hira.trainers.rollouts import Problem
from hira.workflows.baselines.single import Rag

MONTHS = "January February March April May June July August September October November December".split()
FACTS = {
    "river": ("The river {value} flows through {town}.", "Which river flows through {town}?", RIVERS),
    "hill": ("The hill {value} stands above {town}.", "Which hill stands above {town}?", HILLS),
    "mayor": ("{value} is the mayor of {town}.", "Who is the mayor of {town}?", PEOPLE),
    "fair": ("{value} is the month of the fair of {town}.", "In which month is the fair of {town}?", MONTHS),
}
"""For each kind of fact: its sentence on a town's page, its question, and its possible values."""
TRAINED = len(TOWNS) * 3 // 4
DEMONSTRATIONS = 48
REPLY = 48
"""The most tokens of a reply; the right answer takes about 15."""
_SENTENCE = re.compile(r"(?<=[.!?\]])\s+(?=[A-Z])")
_MARK = re.compile(r"\[(s\d+)\]")


@dataclass(frozen=True, slots=True)
class TownFact:
    town: str
    kind: str
    value: str

    @property
    def sentence(self) -> str:
        return FACTS[self.kind][0].format(value=self.value, town=self.town)

    @property
    def question(self) -> str:
        return FACTS[self.kind][1].format(town=self.town)


def world(seed: int) -> dict[str, list[TownFact]]:
    chance = random.Random(seed)  # noqa: S311 - a repeatable world
    return {
        town: [TownFact(town, kind, chance.choice(choices[2])) for kind, choices in FACTS.items()] for town in TOWNS
    }


def problems(seed: int, *, held_out: bool) -> list[Problem]:
    """Return the questions about the towns of training, or about the held-out towns, in an order of the seed. Their
    references are the value and the town."""
    towns = TOWNS[TRAINED:] if held_out else TOWNS[:TRAINED]
    facts = [fact for town in towns for fact in world(seed)[town]]
    random.Random(f"{seed} {held_out}").shuffle(facts)  # noqa: S311 - a repeatable order
    return [Problem(f"{fact.town}-{fact.kind}", fact.question, (fact.value, fact.town)) for fact in facts]


UNCITED, MISREAD, WORDY = 0.55, 0.2, 0.25
"""How often the teacher omits the source, gives another fact of the town, and adds one more."""


def play_teacher(seed: int, chance: random.Random, problem: Problem) -> Reply:
    """Return a teacher that answers from the page in its prompt, carelessly."""
    facts = world(seed)[problem.references[1]]
    (right,) = (fact for fact in facts if fact.question == problem.question)
    others = [fact for fact in facts if fact != right]

    def reply(request: Request) -> Completion:
        shown = read_request(request).value("documents")
        ids = {title: id_ for id_, title in re.findall(r"\[(s\d+)\] (\w+) \(", shown)}
        fact = chance.choice(others) if errs(chance, MISREAD) else right
        sentence = fact.sentence
        if fact.town in ids and not errs(chance, UNCITED):
            sentence = f"{sentence.removesuffix('.')} [{ids[fact.town]}]."
        if errs(chance, WORDY):
            sentence += f" {chance.choice(others).sentence}"
        return Completion(sentence)

    return reply


async def score_cited(rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
    """Score half for the right fact, half for its source and no other, less a quarter for more than one sentence;
    `accuracy` is 1 for all of it."""
    value, town = references
    titles = {source.id: source.title for source in rollout.sources.read.values()}
    sentences = [sentence for sentence in _SENTENCE.split(rollout.answer.strip()) if sentence]
    statement = next((sentence for sentence in sentences if contains(sentence, value) and contains(sentence, town)), "")
    told = float(bool(statement))
    sourced = float(bool(statement) and [titles.get(id_) for id_ in _MARK.findall(statement)] == [town])
    brief = float(len(sentences) <= 1)
    parts = {"accuracy": sourced * brief, "told": told, "sourced": sourced, "brief": brief}
    return RolloutScore(max(0.0, (told + sourced) / 2 - (1 - brief) / 4), parts)


def settings_of(folder: Path) -> Settings:
    return Settings(
        model="offline", docs=(folder / "documents",), workflow="rag", sandbox="off", max_reply_tokens=REPLY
    )


def write_pages(folder: Path, seed: int) -> None:
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    for town, facts in world(seed).items():
        text = " ".join(fact.sentence for fact in facts)
        (folder / "documents" / f"{town}.md").write_text(f"# {town}\n\n{text}\n", encoding="utf-8")


CITED = DemoRecipe(
    name="cited",
    about="GRPO on cited answers",
    recipe=RECIPE,
    workflow=Rag(),
    settings=settings_of,
    write=write_pages,
    teacher=play_teacher,
    lessons=DEMONSTRATIONS,
    problems=problems,
    reward=score_cited,
    sizes=PRETRAINED,
    small=PRETRAINED_MINIATURE,
    examined="held-out questions answered rightly in one sentence with its source",
    curves={"right and cited in training": "reward/accuracy", "right source": "reward/sourced"},
    figures={
        f"{part}, {told}": (f"{name}/{metric}",)
        for name, told in (("sampled", "temperature 1"), ("greedy", "greedy"))
        for part, metric in (("fact told", "told"), ("with its source", "sourced"), ("one sentence", "brief"))
    },
)
