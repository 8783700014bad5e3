"""`hira-train demo --model … --roles`: planner and worker of MATPO, each with an adapter of one pretrained model."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from later import needs
from terminal import Terminal
from tiny_llama import make_model

from hira.agents.trajectory import Rollout
from hira.evaluation.rewards.answers import RolloutScore
from hira.policies.local.engine import Sampled, SampleRequest
from hira.runtime.factory import open_session
from hira.trainers import records
from hira.trainers.demo.matpo import TOWNS
from hira.trainers.demo.recipe import LESSONS, Demo, record_demonstrations
from hira.trainers.demo.roles import ROLES, problems
from hira.trainers.rows import Row
from hira.workflows.workflow import rollout

pytestmark = pytest.mark.filterwarnings("default")


def test_no_person_and_no_town_of_the_exam_is_in_training() -> None:
    trained, held = problems(3), problems(3, held_out=True)
    assert (len(trained), len(held)) == (72, 24)
    assert not {problem.id.split("-")[0] for problem in trained} & {problem.id.split("-")[0] for problem in held}


def test_the_teacher_of_each_comparison_is_right_in_part(tmp_path: Path) -> None:
    known = {problem.question: problem.references for problem in problems(4)}
    for name in ("pair", "single", "rag"):
        rollouts = record_demonstrations(ROLES[name], tmp_path / name, 4, 1)
        scores = [asyncio.run(ROLES[name].reward(rollout, known[rollout.question])) for rollout in rollouts]
        assert 0.15 < sum(score.value or 0 for score in scores) / len(scores) < 0.8, name


def test_one_search_with_the_question_shows_the_note_about_the_person_and_none_about_a_town(tmp_path: Path) -> None:
    for record in record_demonstrations(ROLES["rag"], tmp_path, 4, 1):
        (conversation,) = record.trajectories.values()
        notes = conversation.turns[-1].request.messages[-1].text
        person = record.question.split(" where ")[1].split()[0]
        assert f"{person} works in " in notes
        assert not [town for town in TOWNS if f"{town} has " in notes]


def test_the_single_role_makes_both_searches_itself_and_no_planner_takes_part(tmp_path: Path) -> None:
    rollouts = record_demonstrations(ROLES["single"], tmp_path, 4, 1)
    assert {trajectory.role for record in rollouts for trajectory in record.trajectories.values()} == {"worker"}
    searches = {sum(trajectory.calls for trajectory in record.trajectories.values()) for record in rollouts}
    assert searches == {1, 2}, "a hasty teacher answers after the first"


@needs("torch", "trl", "gguf")
def test_roles_without_a_pretrained_model_are_refused(terminal: Terminal) -> None:
    assert terminal.train("demo", "--roles") == 2
    assert "--model smollm2" in terminal.err


@pytest.mark.heavy(seconds=60)
@needs("torch", "trl", "gguf")
def test_both_adapters_change_and_the_profile_answers(terminal: Terminal, tmp_path: Path) -> None:
    make_model(tmp_path / "tiny.gguf")
    assert terminal.train("demo", "--model", "tiny.gguf", "--roles", "--small", "--output", "run") == 0, terminal.err
    exams = records.read(tmp_path / "run" / records.EXAMS)
    assert [exam["step"] for exam in exams] == [-1, 0, 1]
    for name in ("planner", "worker"):
        weights = read_adapter(tmp_path / "run" / LESSONS / name)
        assert any(bool(tensor.any()) for key, tensor in weights.items() if "lora_B" in key), f"{name} has learned"
    profile = (tmp_path / "run" / "profile.toml").read_text(encoding="utf-8")
    assert "[roles.planner]" in profile
    assert "brief = true" in profile
    code = terminal.hira("ask", problems(0)[0].question, "--profile", "run", "--max-reply-tokens", "8", "--quiet")
    assert code in (0, 4, 5), terminal.err


async def score_letters(rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
    """A reward that answers without a meaning earn too, each another one."""
    del references
    return RolloutScore(sum(map(ord, rollout.answer)) % 97 / 97)


@pytest.mark.heavy(seconds=60)
@needs("torch", "trl", "gguf")
def test_reinforcement_begins_with_the_lessons_and_changes_the_roles_that_took_part(tmp_path: Path) -> None:
    make_model(tmp_path / "tiny.gguf")
    recipe = replace(ROLES["pair"], reward=score_letters)
    Demo(tmp_path / "run", recipe, 5, recipe.small, str(tmp_path / "tiny.gguf")).run()
    before, after = (read_adapter(tmp_path / "run" / part / "planner") for part in (LESSONS, "adapters"))
    changes = [float((after[key] - weights).abs().max()) for key, weights in before.items()]
    assert 0 < max(changes) <= 1.01 * recipe.small.rate, "one step of the optimiser from the lessons"
    before, after = (read_adapter(tmp_path / "run" / part / "worker") for part in (LESSONS, "adapters"))
    assert all(bool((after[key] == weights).all()) for key, weights in before.items()), "nobody asked this worker"


class LessonEngine:
    """Replies what the lessons have after the same tokens; other prompts are errors."""

    window = 8192

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = [((*row.prompt, *row.completion), (*[0] * len(row.prompt), *row.mask)) for row in rows]

    async def sample(self, request: SampleRequest) -> Sampled:
        prompt, start = request.prompt, len(request.prompt)
        for ids, mask in self.rows:
            if ids[:start] == prompt and start < len(ids) and mask[start]:
                end = next((place for place in range(start, len(ids)) if not mask[place]), len(ids))
                return Sampled(ids[start:end], (0.0,) * (end - start), "stop")
        raise AssertionError("no lesson has these tokens")

    async def aclose(self) -> None:
        """There is nothing to close."""


@pytest.mark.heavy(seconds=20)
@needs("torch", "trl", "gguf")
def test_prompts_of_rollouts_are_those_of_the_lessons_token_by_token(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    from hira.policies.local import LocalPolicy
    from hira.policies.local.template import Template
    from hira.trainers.demonstrations import demonstrations_of
    from hira.trainers.models import write_base

    make_model(tmp_path / "tiny.gguf")
    write_base(str(tmp_path / "tiny.gguf"), tmp_path / "base")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "base")
    lessons = record_demonstrations(ROLES["pair"], tmp_path, 4, 1)
    taught = next(record for record in lessons if len(record.findings) == 2)
    template = Template(tokenizer)
    engine = LessonEngine(demonstrations_of(taught, template))

    async def repeat() -> Rollout:
        policy = LocalPolicy("tiny", template, engine, {"planner": "planner", "worker": "worker"})
        settings = ROLES["pair"].settings(tmp_path)
        session = await open_session(settings, policies={"*": policy}, workflow=ROLES["pair"].workflow)
        try:
            async with session.open_context("again", taught.question, (), ()) as context:
                return await rollout(ROLES["pair"].workflow, taught.question, context)
        finally:
            await session.aclose()

    again = asyncio.run(repeat())
    assert again.failure is None
    assert again.answer == taught.answer
    assert [finding.conclusion for finding in again.findings] == [finding.conclusion for finding in taught.findings]


def read_adapter(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "adapter_model.safetensors")
