"""`hira-train demo --model …`: a pretrained model learns to name the source of every statement."""

from pathlib import Path

import pytest
from later import needs
from terminal import Terminal
from tiny_llama import make_model

from hira.agents.trajectory import Rollout
from hira.evidence import Source
from hira.trainers import records
from hira.trainers.demo.cited import CITED, score_cited

pytestmark = pytest.mark.filterwarnings("default")
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


async def test_the_fact_and_its_source_are_paid_for_and_more_than_was_asked_costs() -> None:
    for answer, reward, right in (
        (f"{RIVER} [s1].", 1.0, 1.0),
        (f"{RIVER} [s2].", 0.5, 0.0),
        (f"{RIVER}.", 0.5, 0.0),
        (f"{RIVER} [s1]. {MAYOR}.", 0.75, 0.0),
        (f"{MAYOR} [s1].", 0.0, 0.0),
    ):
        assert await paid(answer) == (reward, right)


@pytest.mark.heavy(seconds=60)
@needs("torch", "trl", "gguf")
def test_a_gguf_file_goes_the_whole_way_from_a_base_to_a_profile(terminal: Terminal, tmp_path: Path) -> None:
    make_model(tmp_path / "tiny.gguf")
    assert terminal.train("demo", "--model", "tiny.gguf", "--small", "--output", "run") == 0, terminal.err
    exams = records.read(tmp_path / "run" / records.EXAMS)
    assert [one["step"] for one in exams] == [-1, 0, CITED.small.updates], (
        "before the demonstrations, after them, at the end"
    )
    assert "before any training, held-out questions" in terminal.err
    profile = (tmp_path / "run" / "profile.toml").read_text(encoding="utf-8")
    assert 'workflow = "rag"' in profile
    assert (tmp_path / "run" / "adapters" / "default" / "adapter_model.safetensors").is_file()
