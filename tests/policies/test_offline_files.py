from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rows import telling

from hira.policies.offline import OfflinePolicy
from hira.policies.offline.attachments import speaks_of, unspoken
from hira.team import Part, Team
from hira.tools import Toolbox
from hira.tools.documents import Index, browse_documents, search_documents
from hira.tools.files import files_tool
from hira.tools.python import open_python
from hira.trajectory import Rollout
from hira.workflows import WORKFLOWS, rollout

FILES = {
    "crew.txt": "Crew of the Gull\n\nCaptain: Nora Stell\nCook: Lia Moor\n",
    "hours.csv": "name,team,hours\nAnna,kitchen,12\nBert,garden,7\nCem,kitchen,20\n",
    "order.json": '{"customer": "Hollis", "items": [{"article": "rope", "quantity": 40}, {"article": "buoy", "quantity": 6}]}',
    "plan.md": "# Plan\n\n| part | budget_eur |\n|---|---|\n| roof | 400 |\n| door | 120 |\n",
}
PAGES = {
    "gull.md": "# The Gull\n\nThe Gull was built in 1911 by Otto Vey. Otto Vey was born in Tarn. The cook of the Swan is Per Holm.",
}
EVERY = ("hira", "mars", "matpo", "webthinker", "codeact", "react", "plan-and-solve", "mams", "react-report")
"""Workflows that have the attached files and look into documents too."""
COMPUTING = ("hira", "mars", "codeact", "react")


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[tuple[Toolbox, Path]]:
    for name, text in {**PAGES, **FILES}.items():
        place = tmp_path / ("documents" if name in PAGES else "files") / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
    index = Index([tmp_path / "documents"])
    python = open_python(tmp_path / "work", readable=(tmp_path / "documents", tmp_path / "files"))
    box = Toolbox(search=search_documents(index), browse=browse_documents(index), python=python)
    yield box, tmp_path / "files"
    index.close()


async def asked(question: str, name: str, tools: tuple[Toolbox, Path], workflow: str = "hira") -> Rollout:
    box, folder = tools
    files = (folder / name,)
    given = Toolbox(search=box.search, browse=box.browse, python=box.python, files=files_tool(files))
    return await rollout(WORKFLOWS[workflow](), question, Team({"*": Part(OfflinePolicy())}, tools=given, files=files))


@pytest.mark.parametrize("workflow", EVERY)
async def test_the_attached_list_is_read_by_every_workflow_that_has_files(
    workflow: str, tools: tuple[Toolbox, Path]
) -> None:
    run = await asked("Who is the cook on the attached list?", "crew.txt", tools, workflow)
    assert run.status == "answered"
    assert "Lia Moor" in run.answer
    assert "Per Holm" not in run.answer


TABLES = [
    ("What is the sum of hours in the attached table?", "hours.csv", "= 39 "),
    ("What is the total of quantity in the attached order?", "order.json", "= 46 "),
    ("What is the total of budget_eur in the attached file?", "plan.md", "= 520 "),
]


@pytest.mark.parametrize(
    ("workflow", "question", "name", "figure"),
    telling(
        {f"{workflow} {row[1]}": (workflow, *row) for workflow in COMPUTING for row in TABLES},
        ["hira hours.csv", "hira order.json", "hira plan.md", "mars hours.csv", "codeact plan.md", "react order.json"],
    ),
)
async def test_attached_tables_are_computed(
    question: str, name: str, figure: str, workflow: str, tools: tuple[Toolbox, Path]
) -> None:
    run = await asked(question, name, tools, workflow)
    assert run.status == "answered"
    assert figure in run.answer


@pytest.mark.parametrize("workflow", EVERY)
@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who is the pilot on the attached list?", "crew.txt"),
        ("What is the total of tips in the attached table?", "hours.csv"),
    ],
)
async def test_what_an_attached_file_does_not_hold_is_not_answered(
    question: str, name: str, workflow: str, tools: tuple[Toolbox, Path]
) -> None:
    run = await asked(question, name, tools, workflow)
    assert (run.status, run.citations) == ("insufficient_evidence", [])


async def test_a_question_that_does_not_speak_of_the_file_is_looked_up_in_the_documents(
    tools: tuple[Toolbox, Path],
) -> None:
    assert "1911" in (await asked("When was the Gull built?", "hours.csv", tools)).answer
    assert "Tarn" in (await asked("Where was the builder of the Gull born?", "crew.txt", tools)).answer


@pytest.mark.parametrize("workflow", ["mams", "react-report", "react", "matpo", "webthinker"])
async def test_a_question_that_nothing_answers_ends_without_a_citation(
    workflow: str, tools: tuple[Toolbox, Path]
) -> None:
    run = await asked("How long is the mast of the Gull?", "crew.txt", tools, workflow)
    assert (run.status, run.citations) == ("insufficient_evidence", [])


def test_a_question_speaks_of_what_it_names_or_calls_attached() -> None:
    files = ["/a/crew.txt", "/a/hours.csv"]
    assert speaks_of("Who is the cook in crew.txt?", files) == ["/a/crew.txt"]
    assert speaks_of("Who is the cook on the attached list?", files) == files
    assert speaks_of("Who is the cook?", files) == []


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("Who is the cook on the attached list?", "Who is the cook?"),
        ("According to the attached price list, what does a rope cost?", "What does a rope cost?"),
        ("What is the total of hours in the table attached?", "What is the total of hours?"),
        ("Do the sources agree on when the Gull was built?", "When the Gull was built?"),
        ("Who is the cook?", "Who is the cook?"),
    ],
)
def test_where_an_answer_stands_is_no_part_of_what_is_asked(question: str, left: str) -> None:
    assert unspoken(question) == left
