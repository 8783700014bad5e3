"""What one subtask wrote is there for the next."""

import asyncio
import json
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings
from hira.agents.calls import use
from hira.agents.coordinator import Coordinator
from hira.agents.experts import Code
from hira.agents.trajectory import Subtask
from hira.journal import Journal
from hira.runtime.replay import replay
from hira.testing import ScriptedPolicy, calling
from hira.testing.script import make_context
from hira.tools import Observation, Toolbox
from hira.tools.files import files_tool
from hira.tools.python import open_python, refusal


def distilled(conclusion: str, resources: Sequence[Any] = ()) -> str:
    return json.dumps({"reasoning": "It was done.", "conclusion": conclusion, "resources": list(resources)})


@pytest.mark.skipif(bool(refusal()), reason=refusal())
async def test_a_file_that_one_subtask_wrote_is_remembered_and_opened_by_the_next(tmp_path: Path) -> None:
    def program(code: str) -> str:
        return f"<|begin_code_call|>{code}<|end_code_call|>"

    table = {"description": "sales by month", "path": "../1/sales.csv"}
    script: dict[str, Any] = {
        "1/code": [program("open('sales.csv', 'w').write('May,4242')"), "It is written."],
        "2/code": [program("open('../1/sales.csv').read()"), "4242 were sold in May."],
        "coordinator": [distilled("It is written.", [table]), distilled("4242")],
    }
    policy = ScriptedPolicy(script)
    context = make_context(policy, tools=Toolbox(python=open_python(tmp_path)))
    coord, memory = Coordinator(context, [Code()], faithful=True), context.rollout.memory
    await coord.delegate([Subtask("1", "Write the sales by month to a file.")], memory)
    await coord.delegate([Subtask("2", "How much was sold in May, by the sales by month?")], memory)
    first = next(
        request for request in policy.requests if request.conversation == "1/code" and len(request.messages) > 1
    )
    assert "wrote ../1/sales.csv" in first.messages[-1].text
    begun, seen = [request for request in policy.requests if request.conversation == "2/code"]
    assert "../1/sales.csv" in begun.messages[0].text
    assert "May,4242" in seen.messages[-1].text


async def test_a_replay_offers_later_subtasks_the_python_that_their_run_offered(tmp_path: Path) -> None:
    script: dict[str, Any] = {
        "planner": [calling("subtask", task="6 * 7?"), calling("subtask", task="7 * 8?"), "42 and 56."],
        "1/code": ["It is 42."],
        "2/code": ["It is 56."],
    }
    settings = Settings(workflow="hira", journal=tmp_path / "j.sqlite", without=frozenset({"search"}), verify="off")
    policy = ScriptedPolicy(script)
    async with Hira(settings=settings, policies={"*": policy}) as hira:
        run = hira.stream("What are 6 * 7 and 7 * 8?")
        await run.work()
    first, later = (request.tools for request in policy.requests if request.conversation.endswith("/code"))
    assert first != later, "only a later one may find files"
    journal = Journal(tmp_path / "j.sqlite")
    again = await replay(journal, run.id)
    journal.close()
    assert (again.same, again.answer.text) == (True, "42 and 56.")


class Killed(GeneratorExit):
    """Ends a run the way nothing in hira expects."""


@pytest.mark.skipif(bool(refusal()), reason=refusal())
async def test_a_subtask_that_broke_off_after_its_first_program_opens_the_files_of_earlier_ones(tmp_path: Path) -> None:
    def program(code: str) -> str:
        return f"<|begin_code_call|>{code}<|end_code_call|>"

    def dies(_: object) -> str:
        raise Killed

    written = {"1/code": [program("open('sales.csv', 'w').write('May,4242')"), "It is written."]}
    begun = {**written, "2/code": [program("month = 'May'"), dies], "coordinator": [distilled("It is written.")]}
    rest = {"2/code": [program("month in open('../1/sales.csv').read()"), "It is."], "coordinator": [distilled("Yes.")]}
    journal = Journal(tmp_path / "j.sqlite")
    policies = [ScriptedPolicy(begun), ScriptedPolicy(rest)]
    for folder, policy in zip(("before", "resumed"), policies, strict=True):
        (tmp_path / folder).mkdir()
        resumes = folder == "resumed"
        log = journal.resume("r1") if resumes else journal.begin("r1", settings={}, files=(), versions={})
        context = make_context(policy, tools=Toolbox(python=open_python(tmp_path / folder)), log=log)
        coord, memory = Coordinator(context, [Code()], faithful=True), context.rollout.memory
        await coord.delegate([Subtask("1", "Write the sales by month to a file.")], memory)
        work = coord.delegate([Subtask("2", "Was there a May?")], memory)
        if resumes:
            await work
        else:
            with pytest.raises(Killed):
                await work
    assert "True" in policies[1].requests[1].messages[-1].text
    policies[1].assert_done()
    journal.close()


@pytest.mark.skipif(bool(refusal()), reason=refusal())
async def test_a_document_that_a_program_wrote_is_read_with_the_tool_for_files_in_the_next_turn(tmp_path: Path) -> None:
    given = tmp_path / "given.docx"
    with zipfile.ZipFile(given, "w") as archive:
        body = "<w:body><w:p><w:r><w:t>The mill was sold in 1742.</w:t></w:r></w:p></w:body>"
        space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{space}">{body}</w:document>')
    work = tmp_path / "work"
    box = Toolbox(python=open_python(work, readable=(given,)), files=files_tool([given], work))
    replies = [
        calling("python", code=f"import shutil; shutil.copy({str(given)!r}, 'copy.docx')"),
        calling("files", path="../1/copy.docx"),
        "\\boxed{In 1742 [s1].}",
    ]
    policy = ScriptedPolicy({"1/code": replies, "coordinator": [distilled("In 1742.")]})
    context = make_context(policy, dialect="native", tools=box)
    coord = Coordinator(context, [Code()], faithful=True)
    await coord.delegate([Subtask("1", "When was the mill sold, by the document?")], context.rollout.memory)
    written, read = [request.messages[-1].text for request in policy.requests if len(request.messages) > 1][:2]
    assert "wrote ../1/copy.docx" in written
    assert "The mill was sold in 1742." in read


async def test_a_file_that_was_being_read_when_the_run_broke_off_is_read_again_without_a_warning(
    tmp_path: Path,
) -> None:
    given, journal, reached = tmp_path / "a.txt", Journal(tmp_path / "j.sqlite"), asyncio.Event()
    given.write_text("The mill was sold in 1742.", encoding="utf-8")
    whole = files_tool([given], tmp_path)

    async def stuck(_: dict[str, Any]) -> Observation:
        reached.set()
        await asyncio.Event().wait()
        return Observation()

    for tool in (replace(whole, run=stuck), whole):
        log = journal.begin("r1", settings={}, files=(), versions={}) if tool is not whole else journal.resume("r1")
        context = make_context(ScriptedPolicy([]), tools=Toolbox(files=tool), log=log)
        reading = asyncio.create_task(use(context.conversation("reader"), tool, {"path": str(given)}))
        if tool is not whole:
            await reached.wait()
            reading.cancel()
            await asyncio.wait([reading])
    assert "1742" in (await reading).text
    assert not log.unfinished
    journal.close()
