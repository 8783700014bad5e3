"""The demo of rubric generators: its world, teacher and judge, and in miniature the whole of it."""

import asyncio
import io
import json
import random
from pathlib import Path

import pytest
from later import needs

from hira.agents.rubrics.rubric import MOST, WEIGHTS, Rubric, faults
from hira.agents.rubrics.writer import WRITER
from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Rollout, Trajectory, Turn
from hira.cli import main as hira_main
from hira.cli.shell import Shell
from hira.cli.training import main
from hira.core.messages import user
from hira.core.policy import Completion, Request
from hira.evaluation.preferences.pairs import pairs_of
from hira.evaluation.rewards.reward import Score
from hira.evaluation.rewards.rubric_judge import quality, score
from hira.policies.local.template import Template
from hira.trainers import records
from hira.trainers.demo.recipe import Shown
from hira.trainers.demo.rubric import recipe, world
from hira.trainers.demo.rubric.exam import ordered, tried_on
from hira.trainers.demo.rubric.judge import Judge
from hira.trainers.demo.rubric.lessons import HELD_OUT, PAIRS, learn_tokenizer, renamed, show
from hira.trainers.demo.rubric.teacher import CARELESS, Faults, Teacher, item, written
from hira.trainers.exam import told
from hira.trainers.lessons import lessons_of

pytestmark = [needs("torch", "trl"), pytest.mark.filterwarnings("default")]
READER, MACHINE = "buyer", "pump"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def lessons(folder: Path) -> Shown:
    return show(folder, 0, 1)


def rubric_of(cares: dict[str, int]) -> Rubric:
    """A rubric of what matters, as far as weights can tell it."""
    items = [item(name, "key" if much >= 5 else "important", min(5, much)) for name, much in cares.items() if much > 0]
    return Rubric.of([*items, *(item(flaw, "error", -2) for flaw in world.FLAWS)])


def margin(rubric: Rubric, problem: world.Problem) -> float:
    team = RunContext({"*": RoleConfig(Judge())})

    async def scored() -> list[float]:
        found = [await score(team, rubric, problem.question, one, one[-9:]) for one in problem.references]
        return [one.normalised for one in found if one.normalised is not None]

    accepted, rejected = asyncio.run(scored())
    return accepted - rejected


def marked(rubric: Rubric, query: str) -> float:
    found = asyncio.run(quality(RunContext({"*": RoleConfig(Judge())}).conversation("judge"), query, rubric))
    assert found
    return found.reward


def test_no_reader_is_examined_on_a_machine_of_which_they_asked_in_training() -> None:
    for seed in range(4):
        here = world.made(seed)
        trained, held = here.combinations(held_out=False), here.combinations(held_out=True)
        assert (len(trained), len(held)) == (36, 12)
        assert not {*trained} & {*held}
        for part in (trained, held):
            assert {reader for reader, _ in part} == {*world.READERS}
        assert {machine for _, machine in trained} == {*world.MACHINES}
        names = {one.question.split()[6] for one in here.problems(2, held_out=False)}
        assert not names & {one.question.split()[6] for one in here.problems(2, held_out=True)}


def test_people_prefer_what_they_care_for_and_are_not_always_sure() -> None:
    here = world.made(0)
    problems = here.problems(8, held_out=True)
    ordered = [margin(rubric_of(here.cares(*one.id.split("-")[:2])), one) > 0 for one in problems]
    assert 0.85 < sum(ordered) / len(ordered) < 1.0
    assert here.problems(8, held_out=True) == problems
    assert world.made(1).machines != here.machines


def test_the_judge_rates_what_a_report_says_of_an_item_and_marks_by_the_reader() -> None:
    report = world.Report("The pump Liv", {"price": 1.0, "size": 0.5, "fuel": 0.0}, frozenset({"hearsay"}))
    items = [item(one, "key", 5) for one in ("price", "size", "fuel", "warranty", "mass", "noise")]
    rubric = Rubric.of([*items, item("hearsay", "error", -1)])
    query = world.asked(READER, MACHINE, "Liv")
    scores = asyncio.run(score(RunContext({"*": RoleConfig(Judge())}), rubric, query, report.text))
    assert scores.ratings == (10, 5, 1, 1, 1, 1, 10)
    assert marked(rubric, query) == pytest.approx(
        3 * 3 / 4 + 1
    )  # price, size, warranty of four; a fault; a weight of 5
    assert marked(rubric, world.asked("teacher", MACHINE, "Liv")) == 1.0
    strange = Rubric.of([{"title": f"T {at}", "description": f"Key Criterion: {at}.", "weight": 5} for at in range(7)])
    assert marked(strange, "Another query") == 0.5


def test_a_teacher_without_faults_writes_valid_rubrics_of_what_matters_and_a_careless_one_often_none() -> None:
    cares = world.made(0).cares(READER, MACHINE)
    wanted = {name for name, much in cares.items() if much > 0}
    good = Teacher(random.Random(0), cares, Faults(0, 0, 0, 0)).items()
    assert faults(good) == []
    assert wanted <= {str(one["title"]).split()[-1] for one in good}
    careless = [Teacher(random.Random(at), cares, CARELESS).items() for at in range(200)]
    assert 0.5 < sum(not faults(one) for one in careless) / 200 < 0.8
    assert all(json.loads(written(one))["items"] == one for one in careless)


def test_a_rubric_is_few_tokens_and_any_of_them_comes_back_as_it_was_written(lessons: Shown) -> None:
    tokenizer = learn_tokenizer(lessons.rollouts)
    template = Template(tokenizer)
    rows = [row for record in lessons.rollouts for row in lessons_of(record, template)]
    assert max(row.length for row in rows) < 100
    chance = random.Random(0)
    for _ in range(20):
        subjects = chance.sample(world.ASPECTS, 8)
        kinds = chance.choices(("key", "important", "optional"), k=8)
        items = [item(one, kind, WEIGHTS[kind][0]) for one, kind in zip(subjects, kinds, strict=True)]
        text = written([*items, item("hearsay", "error", -1)])
        ids = template.encode(text)
        assert template.decode(ids) == text
        assert len(ids) < 5 * 9 + 5, "an item is five tokens"
    row = rows[0]
    other = renamed(tokenizer)(row, random.Random(1))
    assert other.completion == row.completion
    changed = [at for at, (one, another) in enumerate(zip(row.prompt, other.prompt, strict=True)) if one != another]
    assert len(changed) == 1, "the machine's name and nothing else"


def test_the_pairs_lie_in_the_folder_as_the_recipe_reads_them(folder: Path, lessons: Shown) -> None:
    assert lessons.rollouts
    assert len(pairs_of(folder / "pairs.jsonl")) == 36 * PAIRS
    held = pairs_of(folder / "pairs_held_out.jsonl")
    assert [(one.accepted, one.rejected) for one in held] == [one.references for one in recipe.held_out(0)]
    assert len(held) == 12 * HELD_OUT


def test_the_reward_tells_its_parts_as_shares() -> None:
    problem = recipe.held_out(0)[0]
    rubric = rubric_of(world.made(0).cares(*problem.id.split("-")[:2]))

    def paid(text: str) -> Score:
        return asyncio.run(recipe.reward()(replied(problem.question, text), problem.references))

    good, bad = paid(json.dumps({"items": rubric.json()})), paid("no rubric")
    assert good.parts["valid"] == 1
    assert good.parts["liked"] == good.parts["quality"] / 4 == 1.0
    assert good.parts["ordered"] == good.parts["accuracy"]
    assert good.value == pytest.approx(good.parts["preference"] + 4.0)  # R_fmt is 0
    assert (bad.value, bad.parts["valid"], bad.parts["accuracy"]) == (-2.0, 0.0, 0.0)
    assert "ordered" not in bad.parts


@pytest.mark.heavy(seconds=2)
def test_an_exam_tries_a_rubric_on_many_pairs_with_the_scores_of_the_judge() -> None:
    here = world.made(3)
    problem = here.problems(1, held_out=True)[0]
    good = rubric_of(here.cares(*problem.id.split("-")[:2]))
    reader = rubric_of(
        {**world.READERS[problem.id.split("-")[0]], "cleaning": 3, "origin": 3, **dict.fromkeys(world.FLAWS, -1)}
    )
    many, few = tried_on(here, 60)[problem.question], tried_on(here, 2)[problem.question]
    assert 0.9 < ordered(good, many) <= 1.0
    assert ordered(good, many) > ordered(reader, many)
    asked_of = [one for one in here.problems(2, held_out=True) if one.id.rpartition("-")[0] == problem.id[:-2]]
    assert [ordered(reader, [pair]) for pair in few] == [float(margin(reader, one) > 0) for one in asked_of]
    (score, invalid) = (
        asyncio.run(recipe.exam(3)(replied(problem.question, text), problem.references))
        for text in (json.dumps({"items": good.json()}), "no rubric")
    )
    assert score.parts["ordered"] == ordered(good, tried_on(here)[problem.question])
    assert score.parts["accuracy"] in (0.0, 1.0), "of its own pair, as in training"
    assert "ordered" not in invalid.parts


def replied(query: str, text: str) -> Rollout:
    turn = Turn(Request((user(query),)), Completion(text))
    return Rollout("", query, "rubric", trajectories={WRITER: Trajectory(WRITER, WRITER, turns=[turn])})


def test_an_exam_tells_the_effect_size_of_margins() -> None:
    scores = [Score(1.0, {"margin": 0.1}), Score(1.0, {"margin": 0.3}), Score(-2.0, {"accuracy": 0.0})]
    assert told(scores, "greedy")["greedy/d"] == pytest.approx(0.2 / 0.02**0.5)  # mean .2, variance .02 (n - 1)
    assert told([Score(1.0, {"margin": 0.1})] * 2, "greedy")["greedy/d"] is None
    assert "greedy/d" not in told([Score(1.0)], "greedy")


@pytest.mark.heavy
def test_the_whole_demo_in_miniature_ends_with_a_generator_that_can_be_asked(tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    shell = Shell(io.StringIO(), out, err, {}, tmp_path, tmp_path)
    assert main(["demo", "--recipe", "rubric", "--small", "--output", "run"], shell) == 0, err.getvalue()
    run = tmp_path / "run"
    steps = [one for one in records.read(run / "metrics.jsonl") if "loss" in one]
    assert [one["step"] for one in steps] == [1, 2]
    exams = records.read(run / "exams.jsonl")
    assert {"sampled/preference", "sampled/quality", "sampled/format"} <= exams[-1].keys()
    query = recipe.held_out(0)[0].question
    said = io.StringIO()
    asking = Shell(io.StringIO(), said, err, {}, tmp_path, tmp_path)
    assert hira_main(["rubric", query, "--profile", str(run), "--json"], asking) == 0, err.getvalue()
    found = json.loads(said.getvalue())
    assert found["query"] == query
    assert 7 <= len(Rubric.of(found["items"]).items) <= MOST
