"""`hira-train demo --model …`: a pretrained model learns to name the source of every statement."""

import io
from pathlib import Path

import pytest
from later import needs
from tiny_llama import make_model

from hira.agents.trajectory import Rollout
from hira.cli.shell import Shell
from hira.cli.training import main
from hira.evidence import Source
from hira.trainers import records
from hira.trainers.demo.cited import CITED, Faults, problems, questions, score_cited, teach

pytestmark = pytest.mark.filterwarnings("default")
FAULTLESS = Faults(0, 0, 0)
REFERENCES = ("Arle", "Brevik")
RIVER, MAYOR = "The river Arle flows through Brevik", "Corin is the mayor of Brevik"


async def paid(answer: str) -> tuple[float, float]:
    """The reward of an answer and whether it counts as right, where s1 is Brevik's page and s2 that of Selje."""
    record = Rollout("run", "question", "rag")
    for town in ("Brevik", "Selje"):
        record.sources.add(Source(f"{town}.md", town, ""))
    record.answer = answer
    score = await score_cited(record, REFERENCES)
    assert score.value is not None
    return score.value, score.parts["accuracy"]


@pytest.mark.parametrize(
    ("answer", "reward", "right"),
    [
        (f"{RIVER} [s1].", 1.0, 1.0),
        (f"{RIVER}. [s1]", 1.0, 1.0),
        (f"{RIVER} [s2].", 0.5, 0.0),
        (f"{RIVER} [s1][s2].", 0.5, 0.0),
        (f"{RIVER}.", 0.5, 0.0),
        (f"{RIVER} [s1]. {MAYOR}.", 0.75, 0.0),
        (f"{MAYOR} [s1].", 0.0, 0.0),
        ("The river Lahn flows through Brevik [s1].", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
async def test_the_fact_and_its_source_are_paid_for_and_more_than_was_asked_costs(
    answer: str, reward: float, right: float
) -> None:
    assert await paid(answer) == (reward, right)


def test_no_town_of_the_exam_is_in_a_question_of_training() -> None:
    trained, held = ({fact.town for fact in questions(5, held_out=one).values()} for one in (False, True))
    assert (len(trained), len(held), trained & held) == (18, 6, set())
    assert questions(5, held_out=True) != questions(6, held_out=True)


async def earned(rollouts: list[Rollout]) -> list[float]:
    references = {one.question: one.references for one in problems(0)}
    scores = [await score_cited(record, references[record.question]) for record in rollouts]
    return [score.value or 0.0 for score in scores]


def test_a_teacher_without_faults_earns_all_and_a_careless_one_some(tmp_path: Path) -> None:
    import asyncio

    good = teach(tmp_path / "good", 0, 1, FAULTLESS).rollouts
    assert set(asyncio.run(earned(list(good)))) == {1.0}
    assert {record.status for record in good} == {"answered"}
    careless = asyncio.run(earned(list(teach(tmp_path / "careless", 0, 1).rollouts)))
    assert 0.3 < sum(careless) / len(careless) < 0.7
    assert sum(one == 1 for one in careless) < len(careless) / 2


@pytest.mark.heavy(seconds=60)
@needs("torch", "trl", "gguf")
def test_a_gguf_file_goes_the_whole_way_from_a_base_to_a_profile(tmp_path: Path) -> None:
    make_model(tmp_path / "tiny.gguf")
    err = io.StringIO()
    shell = Shell(io.StringIO(), io.StringIO(), err, {}, tmp_path, tmp_path)
    assert main(["demo", "--model", "tiny.gguf", "--small", "--output", "run"], shell) == 0, err.getvalue()
    exams = records.read(tmp_path / "run" / records.EXAMS)
    assert [one["step"] for one in exams] == [-1, 0, CITED.small.updates], "before the lessons, after them, at the end"
    assert "before any training, held-out questions" in err.getvalue()
    profile = (tmp_path / "run" / "profile.toml").read_text(encoding="utf-8")
    assert 'workflow = "rag"' in profile
    assert (tmp_path / "run" / "adapters" / "default" / "adapter_model.safetensors").is_file()
