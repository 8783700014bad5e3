"""The weights in training behind the policy seam: workflows as they are, prompts as at run time, rows from turns."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tiny_hf import tiny_tokenizer
from told_engine import Speaking, ToldEngine

from hira.chosen import made_workflow
from hira.dialects import DIALECTS
from hira.policies.local.template import Template
from hira.settings import Settings
from hira.team import Part, Team
from hira.tools import Toolbox
from hira.tools.documents import Index, browse_documents, search_documents
from hira.tools.python import open_python
from hira.trainers.live import LivePolicy
from hira.trajectory import Rollout
from hira.workflows import WORKFLOWS, rollout

ASEAN = Path(__file__).parent.parent / "data" / "asean"
QUESTION = "What is the capital of Myanmar?"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny_tokenizer(window=1_000_000)


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[Toolbox]:
    index = Index([ASEAN])
    yield Toolbox(search=search_documents(index), browse=browse_documents(index), python=open_python(tmp_path))
    index.close()


async def ran(name: str, dialect: str, live: LivePolicy, tools: Toolbox, *, chain: bool = False) -> Rollout:
    part = Part(Speaking(live), dialect=DIALECTS[dialect], continuation="chain" if chain else "turns")
    return await rollout(made_workflow(Settings(workflow=name)), QUESTION, Team({"*": part}, tools=tools))


def shown(record: Rollout, template: Template) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """For every turn the ids of its prompt, and those of the run-time prompt made anew from its request."""
    turns = [turn for trajectory in record.trajectories.values() for turn in trajectory.turns]
    assert all(turn.completion.tokens for turn in turns)
    return [
        (turn.completion.tokens.prompt, tuple(template.encode(template.prompt(turn.request))))  # type: ignore[union-attr]
        for turn in turns
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", WORKFLOWS)
async def test_a_rollout_sees_the_token_ids_of_the_run_time_prompt(
    name: str, dialect: str, tokenizer: Any, tools: Toolbox
) -> None:
    live = LivePolicy("tiny", tokenizer, ToldEngine(tokenizer))
    record = await ran(name, dialect, live, tools)
    assert record.failure is None
    assert [seen for seen, _ in shown(record, live.template)] == [made for _, made in shown(record, live.template)]
    assert live.counts["turns"] == len(shown(record, live.template))
