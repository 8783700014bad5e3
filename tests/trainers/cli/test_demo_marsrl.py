"""The demo of MarsRL: its world, teacher, lessons and exam, and in miniature the whole of it."""

import asyncio
import io
import json
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from later import needs

from hira.agents.trajectory import Rollout
from hira.cli import main as hira_main
from hira.cli.ask import CODES
from hira.cli.shell import Shell
from hira.cli.training import main
from hira.core.policy import Completion, Policy, Request, Watch
from hira.evaluation.rewards.reward import Score
from hira.policies.local.template import Template
from hira.runtime.factory import open_session
from hira.trainers import records
from hira.trainers.configuration import RolloutConfig
from hira.trainers.demo.marsrl import world
from hira.trainers.demo.marsrl.exam import Alone, by_role, flawed, sound
from hira.trainers.demo.marsrl.lessons import WORKFLOW, by_teacher, learn_tokenizer, settings_of, shifted
from hira.trainers.demo.marsrl.teacher import CARELESS, Faults, Teacher
from hira.trainers.demo.marsrl.world import Line, Step, Task
from hira.trainers.exam import Exam, told
from hira.trainers.lessons import lessons_of, spoken
from hira.trainers.rollouts import Problem, teams_of

pytestmark = [needs("torch", "trl"), pytest.mark.filterwarnings("default")]
FAULTLESS = Faults(0, 0, 0, 0, 0, 0)
TASK = Task("Tuesday", (Step(3, back=False), Step(5, back=True), Step(2, back=False)))


def lessons(faults: Faults, most: int = 12) -> list[Rollout]:
    return by_teacher(Path(), world.problems(0, held_out=False)[:most], 1, 0, faults)


def examined(policy: Policy, asked: list[Problem], tell: Callable[[str], None] = lambda _: None) -> list[Score]:
    async def taken() -> list[Score]:
        team = await open_session(settings_of(Path()), policies={"*": policy}, workflow=WORKFLOW)
        try:
            exam = Exam(
                teams_of(team), Alone(WORKFLOW), asked, by_role, config=RolloutConfig(heartbeat_seconds=0.01), tell=tell
            )
            return await exam.scored()
        finally:
            await team.aclose()

    return asyncio.run(taken())


@dataclass(frozen=True)
class Believing:
    """A Verifier that accepts everything, and otherwise the faultless teacher."""

    model: str = "believing"

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        if request.messages[-1].prompt == "marsrl_verifier":
            return Completion("Nothing is wrong.\nVerdict: correct", model=self.model)
        return await Teacher(random.Random(0), FAULTLESS).complete(request, watch)

    async def aclose(self) -> None:
        return


def test_a_question_tells_its_task_and_its_answer() -> None:
    assert TASK.question == "It is Tuesday. Go 3 days on, then 5 days back, then 2 days on. Which day is it then?"
    assert world.task_of(TASK.question) == TASK
    assert [line.end for line in sound(TASK)] == ["Friday", "Sunday", "Tuesday"]
    assert TASK.answer == "Tuesday"
    assert world.lines_of(world.solution(sound(TASK))) == sound(TASK)


def test_no_question_of_training_is_held_out() -> None:
    trained, held = (world.problems(3, held_out=one) for one in (False, True))
    assert (len(trained), len(held)) == (world.PROBLEMS, world.HELD_OUT)
    assert not {one.question for one in trained} & {one.question for one in held}
    assert world.problems(3, held_out=True) == held != world.problems(4, held_out=True)


def test_a_flawed_solution_has_one_error_and_another_answer() -> None:
    for problem in world.problems(0, held_out=True):
        task = world.task_of(problem.question)
        lines = flawed(task)
        assert [line.right for line in lines].count(False) == 1
        assert lines[-1].end != task.answer
        assert flawed(task) == lines, "the same before and after"


def test_a_report_holds_what_was_counted_against_what_is_written() -> None:
    told = world.report(sound(TASK), "Monday").splitlines()
    assert told[0] == "Tuesday, 3 days on: Friday"
    assert told[-2:] == ["It ends with Monday and has to end with Tuesday: off by one.", "Verdict: incorrect"]
    right = world.report(sound(TASK), "Tuesday").splitlines()
    assert right[-2:] == ["It ends with Tuesday and has to end with Tuesday: off by nothing.", "Verdict: correct"]


def test_a_teacher_without_faults_is_accepted_at_once_and_a_careless_one_errs_in_each_role() -> None:
    good = lessons(FAULTLESS)
    assert all(list(one.trajectories) == ["1/solver", "2/verifier1/verifier"] for one in good)
    assert all(one.answer == world.task_of(one.question).answer for one in good)
    asked = world.problems(0, held_out=True)
    careless = told(examined(Teacher(random.Random(0), CARELESS), asked), "exam")
    for part in ("solver", "found", "accepted", "natural", "repaired", "accuracy"):
        assert 0.1 < (careless[f"exam/{part}"] or 0) < 0.95, part


def test_the_exam_finds_each_role_right_that_is_right() -> None:
    scores = examined(Teacher(random.Random(0), FAULTLESS), world.problems(0, held_out=True)[:8])
    all_right = {"accuracy": 1.0, "solver": 1.0, "found": 1.0, "accepted": 1.0, "natural": 1.0, "repaired": 1.0}
    assert [dict(score.parts) for score in scores] == [all_right] * 8


def test_the_exam_tells_a_verifier_that_believes_everything() -> None:
    scores = examined(Believing(), world.problems(0, held_out=True)[:8])
    assert {(score.parts["found"], score.parts["accepted"], score.parts["repaired"]) for score in scores} == {(0, 1, 1)}


@dataclass(frozen=True)
class Waiting:
    """The faultless teacher, who says nothing before the exam has told how far it is."""

    heard: threading.Event
    model: str = "waiting"

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        assert await asyncio.to_thread(self.heard.wait, 60), "nothing was told"
        return await Teacher(random.Random(0), FAULTLESS).complete(request, watch)

    async def aclose(self) -> None:
        pass


def test_an_exam_tells_how_far_it_is_while_its_answers_are_waited_for() -> None:
    lines: list[str] = []
    heard = threading.Event()

    def tell(line: str) -> None:
        lines.append(line)
        heard.set()

    assert len(examined(Waiting(heard), world.problems(0, held_out=True)[:2], tell)) == 2
    assert lines[0] == "0 of 2 answers of the exam at temperature 1"


def test_each_fault_spoils_the_part_of_its_role_alone() -> None:
    asked = world.problems(0, held_out=True)
    for fault, spoilt in (("hasty", {"solver"}), ("glancing", {"found", "accepted"}), ("patching", {"repaired"})):
        faults = replace(FAULTLESS, guesses=1.0, **{fault: 1.0})
        found = told(examined(Teacher(random.Random(0), faults), asked), "exam")
        alone = {part: found[f"exam/{part}"] for part in ("solver", "found", "accepted", "repaired")}
        assert {part for part, share in alone.items() if share != 1} == spoilt, fault


def test_lessons_are_the_run_time_prompts_and_what_the_teacher_said() -> None:
    rollouts = lessons(CARELESS)
    template = Template(learn_tokenizer(rollouts))
    for record in rollouts:
        for row, trajectory in zip(lessons_of(record, template), record.trajectories.values(), strict=True):
            assert template.decode(row.prompt) == template.prompt(trajectory.turns[0].request)
            assert template.decode(row.completion) == f"{spoken(trajectory)[-1].text}<|im_end|>"
            assert row.length < 90, "a prompt of the workflow is few tokens"


def test_another_lesson_of_one_is_as_right_as_that_was() -> None:
    rollouts = lessons(CARELESS)
    tokenizer = learn_tokenizer(rollouts)
    template, chance = Template(tokenizer), random.Random(0)
    rows = [row for record in rollouts for row in lessons_of(record, template)]
    changed = 0
    for row in rows:
        other = shifted(tokenizer)(row, chance)
        assert replace(other, prompt=row.prompt, completion=row.completion) == row
        before, after = (world.lines_of(template.decode((*one.prompt, *one.completion))) for one in (row, other))
        assert [line.right for line in before] == [line.right for line in after]
        changed += before != after
    assert changed > len(rows) / 2


def test_an_unknown_recipe_is_told_what_there_is(tmp_path: Path) -> None:
    err = io.StringIO()
    shell = Shell(io.StringIO(), io.StringIO(), err, {}, tmp_path, tmp_path)
    assert main(["demo", "--recipe", "marsl"], shell) == 2
    assert "'marsl'" in err.getvalue()
    assert "there are: matpo, marsrl, rubric, cited" in err.getvalue()
    assert not list(tmp_path.iterdir())


@pytest.mark.heavy
def test_the_whole_demo_in_miniature_has_curves_by_role_and_ends_with_a_model_that_can_be_asked(tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    shell = Shell(io.StringIO(), out, err, {}, tmp_path, tmp_path)
    assert main(["demo", "--recipe", "marsrl", "--small", "--output", "run"], shell) == 0, err.getvalue()
    run = tmp_path / "run"
    steps = [one for one in records.read(run / "metrics.jsonl") if "loss" in one]
    assert [one["step"] for one in steps] == [1, 2]
    assert {"solver/reward", "verifier1/reward", "verifier1/wrong", "dead_groups"} <= steps[0].keys()
    exams = records.read(run / "exams.jsonl")
    assert [one["step"] for one in exams] == [0, 2]
    assert {"sampled/found", "sampled/accepted", "sampled/natural", "sampled/repaired", "greedy/solver"} <= exams[
        0
    ].keys()
    assert "Verifier, wrong and right solutions alike" in err.getvalue()
    assert "known answer" not in err.getvalue()
    heard = io.StringIO()
    asked = Shell(io.StringIO(), heard, io.StringIO(), {}, tmp_path, tmp_path)
    code = hira_main(["ask", TASK.question, "--profile", "run", "--json", "--quiet"], asked)
    answer = json.loads(heard.getvalue())
    assert code in (0, 3, 4), "a model that was taught for seconds may write no answer, which is a failed run"
    assert code == CODES[answer["status"]]
    assert answer["workflow"] == "marsrl"
    assert answer["model"] == f"hf:{run}/model+{run}/adapters/default"


def test_a_line_that_counts_the_wrong_way_is_wrong() -> None:
    assert Line("Monday", Step(3, back=True), "Friday").right
    assert not Line("Monday", Step(3, back=True), "Thursday").right
