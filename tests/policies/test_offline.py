from pathlib import Path

import pytest

from hira.dialects import NATIVE, TAGS
from hira.policies.offline import OfflinePolicy
from hira.policy import Policy
from hira.team import Part, Team
from hira.tools import Toolbox
from hira.tools.documents import Index, browse_documents, search_documents
from hira.trajectory import Rollout
from hira.workflows import HiRA, rollout

PAGES = {
    "lakes.md": "# Lakes\n\nLake Sempach was surveyed in 1911 by Otto Amrein. Its greatest depth is 87 metres.\n\n"
    "Lake Hallwil was surveyed in 1930 by a team from Aarau.",
    "bridges.md": "# Bridges\n\nThe Kornhaus bridge crosses the Aare. It was built by Paul Simons between 1895 and 1898.",
    "湖.txt": "青海湖位于青海省。青海湖的面积是4625平方公里。它是中国最大的湖泊。",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture(params=[(NATIVE, "turns"), (TAGS, "turns"), (TAGS, "chain")], ids=["native", "tags", "chain"])
def part(request: pytest.FixtureRequest) -> Part:
    dialect, continuation = request.param
    return Part(OfflinePolicy(), dialect=dialect, continuation=continuation)


async def asked(question: str, folder: Path, part: Part, workflow: HiRA | None = None) -> Rollout:
    index = Index([folder])
    tools = Toolbox(search=search_documents(index), browse=browse_documents(index))
    return await rollout(workflow or HiRA(), question, Team({"*": part}, tools=tools))


def test_it_is_a_policy() -> None:
    assert isinstance(OfflinePolicy(), Policy)


async def test_a_direct_question_is_answered_with_a_sentence_and_a_citation_that_holds(
    folder: Path, part: Part
) -> None:
    run = await asked("When was Lake Sempach surveyed?", folder, part)
    assert run.answer == "Lake Sempach was surveyed in 1911 by Otto Amrein. [s1]"
    assert (run.status, run.citations[0].verdict) == ("answered", "supported")
    assert len(run.findings) == 1


@pytest.mark.parametrize(
    "question",
    ["When was Lake Geneva surveyed?", "What is the salary of Otto Amrein?", "How many fish live in Lake Sempach?"],
)
async def test_it_says_so_when_the_documents_do_not_hold_the_answer(question: str, folder: Path, part: Part) -> None:
    run = await asked(question, folder, part)
    assert (run.status, run.citations) == ("insufficient_evidence", [])
    assert "do not hold" in run.answer
    assert [finding.expert for finding in run.findings] == ["simple_search", "deep_search"]


async def test_a_chinese_question_is_answered_from_a_chinese_document(folder: Path, part: Part) -> None:
    run = await asked("青海湖的面积是多少？", folder, part)
    assert run.answer.startswith("青海湖的面积是4625平方公里。")
    assert run.status == "answered"
