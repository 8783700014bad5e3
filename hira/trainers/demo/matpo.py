"""The tiny demo: half a million parameters learn two-hop questions over documents, as planner and as worker of MATPO.

The teacher knows the protocol and how to look facts up, and is careless: it often answers after the first report, and
now and then it misreads the question or the page. A model that imitates it learns the format and these faults;
reinforcement finds out which of its ways lead to right answers.

Expected, before the runs of the reported seeds 21 to 25: of held-out questions at temperature 1, 15 to 40 % right after
the demonstrations, and at least 65 % after reinforcement on every seed. The results are in
benchmarks/results/training_demo.md.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from hira.agents.trajectory import Rollout
from hira.core.policy import Completion, Request
from hira.evaluation.rewards.answers import ByWords, WithFormat
from hira.evaluation.rewards.match import exact
from hira.policies.offline import Act, read_request, write_act
from hira.policies.offline import OfflineRequest as Seen
from hira.runtime.settings import Settings
from hira.trainers.demo.recipe import DemoRecipe, DemoSizes, Reply, errs
from hira.trainers.demo.tiny import DAYS, IDS, READ, SHAPE, YEARS, find_phrases, make_tokenizer
from hira.trainers.demonstrations import list_messages
from hira.trainers.recipes import MATPO as RECIPE
from hira.trainers.rollouts import Problem
from hira.trainers.rows import Row
from hira.workflows.matpo import MATPO

PEOPLE = (
    "Adela Bertil Corin Dagny Eskil Fenja Gorm Hedvig Ivar Jorun Kettil Liv "
    "Magnus Nanna Orm Petra Quirin Runa Sigurd Torun Ulf Vigdis Wenzel Ylva"
).split()
TOWNS = (
    "Aldrum Brevik Calden Dorsten Elmshag Farlund Grindal Holmsey Isfeld Jarrow Kolmar Lunden "
    "Melby Norvik Ostrand Pelham Querum Rossby Selje Tarnow Ulvik Vardal Wexham Zehden"
).split()
RIVERS = "Arle Brenta Cress Dovra Eider Fulda Glomma Havel Isna Jagst Kocher Lahn".split()
HILLS = "Askfell Birka Croft Durrfell Ettinger Frauen Galten Horgen Ilmfell Jura Kalven Lochnar".split()
KINDS: tuple[tuple[str, ...], ...] = (tuple(PEOPLE), tuple(TOWNS), tuple(RIVERS), tuple(HILLS))
"""Names by kind: any name may replace any other of its kind."""

LINKS = {"born": "was born", "works": "works"}
THINGS = {"river": "flows through", "hill": "stands above"}
BARE = ("has a riverbank on the", "has a hilltop on the")


@dataclass(frozen=True, slots=True)
class World:
    """The town where each person was born and where each works, and the river and hill of each town. The last quarter
    of the people is held out of training."""

    town: dict[tuple[str, str], str]
    thing: dict[tuple[str, str], str]

    def write(self, folder: Path, *, bare: bool = False) -> None:
        """Write a document about each person and each town. In `bare` ones "river" and "hill" are parts of words, and
        the titles are numbers."""
        people = {
            person: f"{person} was born in {self.town[person, 'born']}. {person} works in {self.town[person, 'works']}."
            for person in PEOPLE
        }
        river, hill = BARE if bare else ("lies on the river", "lies below the hill")
        towns = {
            town: f"{town} {river} {self.thing[town, 'river']}. {town} {hill} {self.thing[town, 'hill']}."
            for town in TOWNS
        }
        folder.mkdir(parents=True, exist_ok=True)
        for number, (name, text) in enumerate({**people, **towns}.items(), 1):
            title = f"Note {number}" if bare else name
            folder.joinpath(f"{number if bare else name}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")

    def problems(self, *, held_out: bool) -> list[Problem]:
        """Return questions of two hops: from a person to a town, from the town to its river or hill."""
        edge = len(PEOPLE) * 3 // 4
        people = PEOPLE[edge:] if held_out else PEOPLE[:edge]
        problems = []
        for person, link, thing in product(people, LINKS, THINGS):
            question = f"Which {thing} {THINGS[thing]} the town where {person} {LINKS[link]}?"
            answer = self.thing[self.town[person, link], thing]
            problems.append(Problem(f"{person}-{link}-{thing}", question, (answer,)))
        return problems


def make_world(seed: int, *, apart: bool = False) -> World:
    """Make the world of that seed. Nobody works where they were born. `apart` lets the held-out people live in towns of
    their own, the last quarter."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable world
    town: dict[tuple[str, str], str] = {}
    edge = len(TOWNS) * 3 // 4
    for person in PEOPLE:
        towns = (TOWNS[:edge] if person in PEOPLE[:edge] else TOWNS[edge:]) if apart else TOWNS
        town[person, "born"], town[person, "works"] = chance.sample(towns, 2)
    things = {"river": RIVERS, "hill": HILLS}
    thing = {(place, kind): chance.choice(names) for place in TOWNS for kind, names in things.items()}
    return World(town, thing)


QUESTION = re.compile(r"Which (\w+) .+ the town where (\w+) (.+)\?")
_SUBTASK = re.compile(r"Where (?P<person>\w+) (?P<link>.+)\?|Which (?P<thing>\w+) .+ (?P<town>\w+)\?")
REPORTED = re.compile(r"(\w+) \[(s\d+)\]")
_PASSAGE = re.compile(r"\[(s\d+)\] [\w ]+ \(.*?\)\n(.*?)\n\[/s\d+\]", re.DOTALL)
_SENTENCE = re.compile(r"[A-Z][^.\n]*\.")
ENOUGH = "That is enough."


@dataclass(frozen=True, slots=True)
class MatpoTeacherFaults:
    """How often the teacher errs, where it could: it answers after the first report, mistakes the question, reports the
    wrong line."""

    hasty: float = 0.52
    mistaken: float = 0.12
    misread: float = 0.1


CARELESS = MatpoTeacherFaults()


@dataclass(eq=False)
class MatpoTeacher:
    """Plays planner and worker of MATPO in one rollout, in the dialect of the request. `chance` decides its faults."""

    chance: random.Random
    faults: MatpoTeacherFaults

    def reply(self, request: Request) -> Completion:
        seen = read_request(request)
        act = self.planner(seen) if seen.prompt == "matpo_question" else self.worker(seen)
        text, calls = write_act(act, seen)
        return Completion(text, calls=calls)

    def planner(self, seen: Seen) -> Act:
        thing, person, link = find_parts(QUESTION, seen.value("question"))
        reports = [REPORTED.search(text) for _, text in seen.results]
        known = reports[-1] if reports else None
        if seen.closing:
            return Act("## Conclusion\n\\boxed{" + (known[0] if known else "unknown") + "}")
        if not reports:
            return _subtask("First the town.", f"Where {person} {self.or_other(link, tuple(LINKS.values()))}?")
        if known is None or len(reports) > 1 or errs(self.chance, self.faults.hasty):
            return Act(ENOUGH)
        thing = self.or_other(thing, tuple(THINGS))
        return _subtask(f"Now the {thing}.", f"Which {thing} {THINGS[thing]} {known[1]}?")

    def worker(self, seen: Seen) -> Act:
        wanted = _SUBTASK.match(seen.value("task"))
        if not wanted:
            return Act("## Conclusion\nunknown" if seen.closing else ENOUGH)
        about = wanted["person"] or wanted["town"]
        if not seen.results:
            return Act("", (("search", {"query": about}),))
        if not seen.closing:
            return Act(ENOUGH)
        sought = (wanted["link"] or wanted["thing"]).split()[-1]
        return Act(f"## Conclusion\n{self.report(about, sought, seen)}")

    def report(self, about: str, sought: str, seen: Seen) -> str:
        pages = {text.partition(" ")[0]: (id_, text) for id_, text in _PASSAGE.findall(seen.results[-1][1])}
        if about not in pages:
            return "unknown"
        id_, text = pages[about]
        sentences = _SENTENCE.findall(text)
        right = next((sentence for sentence in sentences if sought in sentence), "unknown")
        statement = self.or_other(right, sentences, self.faults.misread)
        return f"{statement.rstrip('.')} [{id_}]"

    def or_other(self, right: str, known: Sequence[str], often: float | None = None) -> str:
        if not errs(self.chance, self.faults.mistaken if often is None else often):
            return right
        return self.chance.choice([name for name in known if name != right] or [right])


def _subtask(text: str, subtask: str) -> Act:
    return Act(text, (("search_and_browse", {"subtask": subtask}),))


def find_parts(pattern: "re.Pattern[str]", text: str) -> tuple[str, str, str]:
    match = pattern.match(text)
    return (match[1], match[2], match[3]) if match else ("", "", "")


WORKFLOW = MATPO(max_subtasks=4, worker_calls=3)
"""The paper's workflow with its recap and summaries, and room for the two subtasks of a question."""


def settings_of(folder: Path) -> Settings:
    return Settings(model="offline", docs=(folder / "documents",), workflow="matpo", sandbox="off")


def play_teacher(seed: int, chance: random.Random, problem: Problem) -> Reply:
    del seed, problem
    return MatpoTeacher(chance, CARELESS).reply


def learn_tokenizer(rollouts: Sequence[Rollout]) -> Any:
    """Return the tokenizer of these rollouts: names are tokens, and so are the phrases between them."""
    names = [name for names in KINDS for name in names]
    conversations = [list_messages(trajectory) for record in rollouts for trajectory in record.trajectories.values()]
    inserted = {record.question for record in rollouts}
    inserted |= {finding.subtask.text for record in rollouts for finding in record.findings}
    return make_tokenizer(find_phrases(conversations, names, sorted(inserted)), [*names, *READ], SHAPE.window)


def rename_demonstration(tokenizer: Any) -> Callable[[Row, random.Random], Row]:
    """Return a function that varies demonstrations: the same about other people and places, on another day, from other
    sources.

    Names are one token each, so exchanging them gives a demonstration of another world; the model has to learn to read
    names and cannot learn them by heart.
    """
    kinds = [[_id(tokenizer, name) for name in names] for names in (*KINDS, YEARS, DAYS)]
    sources = [[_id(tokenizer, f"{slash}s{index}") for index in range(1, IDS + 1)] for slash in ("", "/")]

    def vary(row: Row, chance: random.Random) -> Row:
        other = dict[int, int]()
        for ids in kinds:
            other.update(zip(ids, chance.sample(ids, len(ids)), strict=True))
        order = chance.sample(range(IDS), IDS)
        for ids in sources:
            other.update((token, ids[index]) for token, index in zip(ids, order, strict=True))

        def exchange(ids: Sequence[int]) -> tuple[int, ...]:
            return tuple(other.get(token, token) for token in ids)

        return replace(row, prompt=exchange(row.prompt), completion=exchange(row.completion))

    return vary


def _id(tokenizer: Any, text: str) -> int:
    (token,) = tokenizer(text, add_special_tokens=False)["input_ids"]
    return int(token)


def problems(seed: int, *, held_out: bool) -> list[Problem]:
    return make_world(seed).problems(held_out=held_out)


MATPO_DEMO = DemoRecipe(
    name="matpo",
    about="MATPO GRPO",
    recipe=RECIPE,
    workflow=WORKFLOW,
    settings=settings_of,
    write=lambda folder, seed: make_world(seed).write(folder / "documents"),
    teacher=play_teacher,
    tokenizer=learn_tokenizer,
    varied=rename_demonstration,
    problems=problems,
    reward=WithFormat(ByWords(exact)),
    sizes=DemoSizes(learning=220, updates=35, rate=2e-3, refill=2),
)
