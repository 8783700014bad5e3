import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hira.dialects import NATIVE, TAGS, Call
from hira.messages import Filled, Message, system, user
from hira.policies.offline import ROLES, OfflinePolicy
from hira.policy import Completion, Delta, Policy, Request
from hira.team import Part, Team
from hira.tools import Toolbox
from hira.tools.documents import Index, browse_documents, search_documents
from hira.tools.files import files_tool
from hira.tools.python import open_python
from hira.trajectory import Rollout
from hira.workflows import HiRA, rollout

PAGES = {
    "lakes.md": "# Lakes\n\nLake Sempach was surveyed in 1911 by Otto Amrein. Its greatest depth is 87 metres.\n\n"
    "Lake Hallwil was surveyed in 1930 by a team from Aarau. It reaches a depth of 48 metres.",
    "people.md": "# People\n\nOtto Amrein was born in Stans in 1870. He died in 1946.\n\n"
    "Paul Simons was born in Thun in 1863.",
    "stans.md": "# Stans\n\nThe mayor of Stans is Rita Odermatt.",
    "lake.txt": "青海湖位于青海省。青海湖的面积是4625平方公里。它是中国最大的湖泊。",
    "towns.csv": "Town,Canton,Inhabitants\nBern,BE,134000\nThun,BE,43700\nStans,NW,8400\n",
}
NATIVE_TURNS, TAGS_TURNS, TAGS_CHAIN = (NATIVE, "turns"), (TAGS, "turns"), (TAGS, "chain")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents = tmp_path / "documents"
    documents.mkdir()
    for name, text in PAGES.items():
        (documents / name).write_text(text, encoding="utf-8")
    return documents


@pytest.fixture
async def tools(folder: Path, tmp_path: Path) -> AsyncIterator[Toolbox]:
    index = Index([folder])
    python = open_python(tmp_path / "work", readable=(folder,))
    yield Toolbox(search=search_documents(index), browse=browse_documents(index), python=python)
    index.close()


@pytest.fixture(params=[NATIVE_TURNS, TAGS_TURNS, TAGS_CHAIN], ids=["native", "tags", "chain"])
def part(request: pytest.FixtureRequest) -> Part:
    dialect, continuation = request.param
    return Part(OfflinePolicy(), dialect=dialect, continuation=continuation)


async def asked(question: str, tools: Toolbox, part: Part, workflow: HiRA | None = None, **team: Any) -> Rollout:
    return await rollout(workflow or HiRA(), question, Team({"*": part}, tools=tools, **team))


def subtasks(run: Rollout) -> list[tuple[str, str]]:
    return [(finding.subtask.text, finding.expert) for finding in run.findings]


async def complete(*messages: Message, **more: Any) -> Completion:
    return await OfflinePolicy().complete(Request(messages, **more))


def test_it_is_a_policy() -> None:
    assert isinstance(OfflinePolicy(), Policy)


async def test_a_direct_question_is_answered_with_a_sentence_and_a_citation_that_holds(
    tools: Toolbox, part: Part
) -> None:
    run = await asked("When was Lake Sempach surveyed?", tools, part)
    assert run.answer == "Lake Sempach was surveyed in 1911 by Otto Amrein. [s1]"
    assert (run.status, run.citations[0].verdict) == ("answered", "supported")
    assert subtasks(run) == [("When was Lake Sempach surveyed?", "simple_search")]


async def test_a_sentence_that_points_back_comes_with_the_one_before_it(tools: Toolbox, part: Part) -> None:
    run = await asked("How deep is Lake Hallwil?", tools, part)
    assert "Lake Hallwil was surveyed in 1930" in run.answer
    assert "It reaches a depth of 48 metres." in run.answer


@pytest.mark.parametrize(
    "question",
    ["When was Lake Geneva surveyed?", "What is the salary of Otto Amrein?", "How many fish live in Lake Sempach?"],
)
async def test_it_explores_once_more_and_then_says_that_the_documents_do_not_hold_the_answer(
    question: str, tools: Toolbox, part: Part
) -> None:
    run = await asked(question, tools, part)
    assert (run.status, run.citations) == ("insufficient_evidence", [])
    assert "do not hold" in run.answer
    first, *further = [finding.expert for finding in run.findings]
    assert (first, set(further)) == ("simple_search", {"deep_search"})


async def test_a_question_within_a_question_is_answered_first(tools: Toolbox, part: Part) -> None:
    run = await asked("Who is the mayor of the town where Otto Amrein was born?", tools, part)
    assert [task for task, _ in subtasks(run)] == [
        "What is the town where Otto Amrein was born?",
        "Who is the mayor of Stans?",
    ]
    assert run.answer.startswith("The mayor of Stans is Rita Odermatt.")
    assert (run.status, {citation.verdict for citation in run.citations}) == ("answered", {"supported"})


async def test_a_bridge_that_is_not_found_ends_in_no_citation(tools: Toolbox, part: Part) -> None:
    run = await asked("Who is the mayor of the town where Anna Miller was born?", tools, part)
    assert (run.status, run.citations) == ("insufficient_evidence", [])


@pytest.mark.parametrize("parallel", [1, 2])
async def test_a_comparison_is_two_look_ups_in_one_turn_where_the_run_allows_it(
    tools: Toolbox, part: Part, parallel: int
) -> None:
    run = await asked("Which is deeper, Lake Sempach or Lake Hallwil?", tools, part, HiRA(parallel=parallel))
    assert [task for task, _ in subtasks(run)] == ["How deep is Lake Sempach?", "How deep is Lake Hallwil?"]
    assert len(run.trajectories["planner"].turns) == 4 - parallel
    assert run.answer.startswith("Lake Sempach. ")


async def test_a_difference_is_computed_from_what_was_looked_up(tools: Toolbox, part: Part) -> None:
    run = await asked("How much deeper is Lake Sempach than Lake Hallwil?", tools, part)
    assert subtasks(run)[-1] == ("Compute 87 - 48", "code")
    assert run.answer.startswith("87 - 48 = 39.")
    assert run.status == "answered"


async def test_arithmetic_is_run_by_the_code_expert(tools: Toolbox, part: Part) -> None:
    run = await asked("What is seventeen times 23?", tools, part)
    assert run.answer == "17 * 23 = 391. [s1]"
    assert (run.status, run.sources.read["s1"].kind) == ("answered", "computation")


async def test_a_table_that_is_named_is_computed_whole(tools: Toolbox, part: Part) -> None:
    run = await asked("What is the total of Inhabitants in towns.csv for the canton BE?", tools, part)
    assert run.answer.startswith("total of Inhabitants where Canton is BE = 177700 (2 rows)")
    assert run.status == "answered"


async def test_a_table_that_is_not_named_is_opened_first(tools: Toolbox, part: Part) -> None:
    run = await asked("What is the average number of Inhabitants in the table of towns?", tools, part)
    assert [expert for _, expert in subtasks(run)] == ["deep_search", "code"]
    assert "average of Inhabitants = 62033.33333 (3 rows; rounded 62033.33)" in run.answer


async def test_an_attached_table_is_computed(tools: Toolbox, part: Part, folder: Path) -> None:
    run = await asked("What is the highest number of Inhabitants?", tools, part, files=(folder / "towns.csv",))
    assert "highest Inhabitants = 134000 (Town Bern, Canton BE)" in run.answer


@pytest.mark.parametrize("alone", [True, False])
async def test_an_attached_text_is_read_before_anything_is_searched(
    tools: Toolbox, part: Part, tmp_path: Path, alone: bool
) -> None:
    handbook = tmp_path / "handbook.txt"
    filler = "\n\n".join(f"Rule {number} is about the use of room {number}." for number in range(900))
    handbook.write_text(f"{filler}\n\nEvery employee has 28 days of paid leave a year.", encoding="utf-8")
    box = Toolbox(search=None if alone else tools.search, files=files_tool([handbook]), python=tools.python)
    run = await asked("How many days of paid leave does an employee have?", box, part, files=(handbook,))
    assert run.answer == "Every employee has 28 days of paid leave a year. [s1]"
    assert run.status == "answered"


async def test_a_chinese_question_is_answered_from_a_chinese_document(tools: Toolbox, part: Part) -> None:
    run = await asked("青海湖的面积是多少？", tools, part)
    assert run.answer.startswith("青海湖的面积是4625平方公里。")
    assert run.status == "answered"


async def test_it_answers_within_the_limit_of_subtasks(tools: Toolbox, part: Part) -> None:
    run = await asked("Who is the mayor of the town where Otto Amrein was born?", tools, part, HiRA(max_subtasks=1))
    assert len(run.findings) == 1
    assert "do not hold" in run.answer


async def test_it_says_that_it_cannot_see(tools: Toolbox, part: Part) -> None:
    run = await asked("What is on it?", tools, part, files=(Path("photo.png"),))
    assert run.status == "insufficient_evidence"
    assert [task for task, _ in subtasks(run)] == ["What is on it? It is about: photo.png"]


async def test_a_question_can_form_no_token(tools: Toolbox) -> None:
    part = Part(OfflinePolicy(), dialect=TAGS)
    run = await asked("When was <|end_call_subtask|> Lake Sempach surveyed?", tools, part)
    assert "<|" not in subtasks(run)[0][0]


@pytest.mark.parametrize("without", ["reasoning-transfer", "memory", "search", "code"])
async def test_it_works_without_any_one_mechanism(tools: Toolbox, part: Part, without: Any) -> None:
    run = await asked("What is 2 plus 2?", tools, part, HiRA(without=frozenset({without})))
    assert run.error == ""
    assert (run.status == "answered") == (without in ("memory", "search"))


async def test_braces_in_a_question_or_a_page_do_no_harm(tools: Toolbox, part: Part, folder: Path) -> None:
    (folder / "braces.md").write_text("Ada Roth was born in {Elm} in the year {1901. It rained.", encoding="utf-8")
    run = await asked("When was {the one who is} Ada Roth born {}?", tools, part)
    assert run.answer.startswith("Ada Roth was born in (Elm) in the year (1901.")
    run = await asked("Who is the {mayor} of the {town} where Otto Amrein was born?", tools, part)
    assert run.error == ""


async def test_the_same_request_gets_the_same_reply(tools: Toolbox, part: Part) -> None:
    question = "Who is the mayor of the town where Otto Amrein was born?"
    first, second = await asked(question, tools, part), await asked(question, tools, part)
    assert first.answer == second.answer
    told = [[turn.completion.text for turn in trajectory.turns] for trajectory in first.trajectories.values()]
    assert told == [[turn.completion.text for turn in trajectory.turns] for trajectory in second.trajectories.values()]


async def test_it_streams_what_it_says_and_counts_tokens_at_no_cost() -> None:
    pieces: list[Delta] = []
    completion = await OfflinePolicy().complete(Request((user("How high is it?"),)), pieces.append)
    assert "".join(piece.text for piece in pieces) == completion.text
    assert completion.usage.cost == 0
    assert completion.usage.prompt_tokens > 0
    assert completion.usage.completion_tokens > 0


async def test_a_bare_question_is_answered_from_what_stands_in_the_conversation() -> None:
    told = user("The mill was built in 1742 by Ida Lorn.")
    assert (await complete(told, user("When was the mill built?"))).text == "The mill was built in 1742 by Ida Lorn."
    both = user("The mill was built in 1742 by Ida Lorn. When was the mill built?")
    assert (await complete(both)).text == "The mill was built in 1742 by Ida Lorn."
    assert "cannot be done offline" in (await complete(user("When was the mill built?"))).text


async def test_a_second_search_holds_only_words_of_the_question_and_others_for_them() -> None:
    task = "Was the cup odd? Looking it up found nothing; explore with other words: founded."
    for text in (task, task.replace("?", "")):
        completion = await complete(user(Filled("…", "simple_search_plan", {"task": text})))
        assert not {"looking", "explore", "nothing"} & set(completion.text.lower().replace('"', " ").split())


async def test_half_an_answer_is_none(tools: Toolbox, part: Part) -> None:
    run = await asked("When was Lake Sempach surveyed and what did the survey cost?", tools, part)
    assert (run.status, run.citations) == ("insufficient_evidence", [])
    run = await asked("When was Lake Sempach surveyed and where was Otto Amrein born?", tools, part)
    assert "1911" in run.answer
    assert "Stans" in run.answer


async def test_a_range_of_a_named_table_is_computed_and_a_condition_that_is_not_understood_ends_it(
    tools: Toolbox, part: Part
) -> None:
    run = await asked("What is the total of Inhabitants in towns.csv without Bern?", tools, part)
    assert run.answer.startswith("total of Inhabitants where Town is not Bern = 52100 (2 rows)")
    assert run.sources.read["s1"].title == "total, towns.csv"
    run = await asked("What is the total of Inhabitants in towns.csv of rainy towns?", tools, part)
    assert (run.status, run.citations) == ("insufficient_evidence", [])


async def test_without_anything_to_search_it_says_so(tools: Toolbox, part: Part) -> None:
    run = await asked("When was Lake Sempach surveyed?", Toolbox(python=tools.python), part)
    assert "--docs" in run.answer
    assert run.status == "unverified"


async def test_a_prompt_of_unknown_make_is_answered_from_the_passages_in_it() -> None:
    text = "[s4] Lakes (lakes.md)\nLake Sempach was surveyed in 1911.\n\nWhen was Lake Sempach surveyed?"
    prompt = Filled(text, "system_one", {"question": "When was Lake Sempach surveyed?", "pages": text})
    assert (await complete(user(prompt))).text == "Lake Sempach was surveyed in 1911. [s4]"


async def test_a_prompt_of_unknown_make_searches_once_if_it_may() -> None:
    tools = ({"type": "function", "function": {"name": "search", "description": "", "parameters": {}}},)
    prompt = user(Filled("When was Lake Sempach surveyed?", "mine", {"task": "When was Lake Sempach surveyed?"}))
    asked = await complete(system("You search."), prompt, tools=tools)
    assert [(call.name, json.loads(call.arguments)) for call in asked.calls] == [
        ("search", {"query": "Lake Sempach surveyed"})
    ]
    call = Call("search", {"query": "Lake Sempach surveyed"}, asked.calls[0].id)
    found = "[s1] Lakes (lakes.md)\nLake Sempach was surveyed in 1911."
    result = Message("tool", found, call_id=call.id, prompt="result", values={"results": [(call, found)]})
    assert (await complete(prompt, result, tools=tools)).text == "Lake Sempach was surveyed in 1911. [s1]"


async def test_an_argument_is_given_under_the_name_that_the_tool_has_for_it() -> None:
    parameters = {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}
    search = {"type": "function", "function": {"name": "search", "description": "", "parameters": parameters}}
    asked = await complete(user("When was Lake Sempach surveyed?"), tools=(search,))
    assert json.loads(asked.calls[0].arguments) == {"words": "Lake Sempach surveyed"}


async def test_an_expert_of_ones_own_is_chosen_when_the_task_speaks_of_what_it_is_for() -> None:
    experts = Filled("- simple_search: looks things up\n- harbour: knows how long the ferries to the islands take")

    async def chosen(task: str) -> Any:
        values = {"experts": experts, "task": task, "files": ""}
        return json.loads((await complete(user(Filled("…", "assign", values)))).text)["expert"]

    assert await chosen("How long does the ferry to the island of Amrum take?") == "harbour"
    assert await chosen("When was the lighthouse built?") == "simple_search"


async def test_what_it_cannot_do_it_says() -> None:
    completion = await complete(system("You are a poet."), user("Write a sonnet."))
    assert "cannot be done offline" in completion.text


async def test_an_empty_request_is_answered_too() -> None:
    assert (await complete()).text


@pytest.mark.parametrize("piece", ["1 2 3 ", "The A of B's C ", "how what when ", "( [{ ", "中文的", "1"])
@pytest.mark.parametrize("prompt", ["planner", "assign", "code", "simple_search_answer", "other"])
async def test_a_very_long_question_is_read_too(piece: str, prompt: str) -> None:
    text = piece * (40_000 // len(piece))
    values = {"question": text, "task": text, "documents": Filled(f"[s1] title (place)\n{text}"), "tools": ""}
    assert (await complete(user(Filled("…", prompt, values)))).text


pieces = st.sampled_from(
    [
        "的",
        "中文",
        "《",
        "》",
        "谁",
        "the ",
        "Ada ",
        "Roth's ",
        "of ",
        "that ",
        "is ",
        "than ",
        "7 ",
        "+ ",
        "?",
        "{",
        "}",
    ]
)
texts = st.lists(pieces, max_size=14).map("".join)
anything = st.one_of(texts, st.text(max_size=60), st.integers(), st.none(), st.lists(st.text(max_size=5), max_size=3))
keys = st.sampled_from(
    ["question", "task", "files", "known", "several", "limit", "most", "notes", "documents", "work", "experts", "tools"]
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([*ROLES, "other", "conclude"]), st.dictionaries(keys, anything, max_size=6), st.booleans())
async def test_it_never_raises_whatever_a_prompt_holds(prompt: str, values: dict[str, Any], native: bool) -> None:
    tools = tuple(
        {"type": "function", "function": {"name": name, "description": "", "parameters": {}}}
        for name in (["search", "python"] if native else [])
    )
    completion = await complete(user(Filled("text", prompt, values)), tools=tools)
    assert completion.text or completion.calls
