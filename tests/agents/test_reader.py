"""Files and tools that the user gave are used, whatever else is missing; tools by name reach whom they are for."""

from pathlib import Path
from typing import Any

import pytest

from hira.agents.expert import Task
from hira.agents.experts import Multimodal
from hira.core.errors import UsageError
from hira.policies.offline import OfflinePolicy
from hira.testing import ScriptedPolicy, calling, make_context
from hira.tools import Observation, Tool, Toolbox, tool
from hira.tools.files import files_tool
from hira.tools.python import open_python
from hira.workflows import HiRA, rollout


@tool(pure=True)
def high_water(harbour: str) -> str:
    "Today's time of high water in a harbour."
    return f"High water in {harbour} is at 13:40."


def named(toolbox: Toolbox) -> list[str]:
    return [expert.name for expert in HiRA().available(make_context([], tools=toolbox))]


async def _nothing(_: dict[str, Any]) -> Observation:
    return Observation("nothing")


SEARCH = Tool("search", "search", {"type": "object", "properties": {"query": {"type": "string"}}}, _nothing)


def test_the_reader_is_there_only_where_nobody_else_is_given_files_and_tools(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    files = files_tool([tmp_path / "a.txt"])
    python = open_python(tmp_path)
    assert named(Toolbox(files=files)) == ["reader"]
    assert named(Toolbox(extra=(high_water,))) == ["reader"]
    assert named(Toolbox(scoped={"reader": (high_water,)})) == ["reader"]
    assert named(Toolbox(files=files, python=python)) == ["code"]
    assert named(Toolbox(extra=(high_water,), search=SEARCH)) == ["simple_search", "deep_search"]
    with pytest.raises(UsageError, match="no expert is left"):
        named(Toolbox())


@pytest.mark.parametrize("role", ["code", "multimodal", "deep_search", "reader"])
async def test_a_question_is_answered_with_nothing_but_a_tool(role: str) -> None:
    policy = ScriptedPolicy(
        {
            "planner": [calling("subtask", task="When is high water in Husum?"), "High water is at 13:40."],
            role: [calling("high_water", harbour="Husum"), r"\boxed{High water is at 13:40.}"],
        }
    )
    context = make_context(policy, dialect="native", tools=Toolbox(scoped={role: (high_water,)}))
    done = await rollout(HiRA(), "When is high water in Husum?", context)
    assert done.answer == "High water is at 13:40."
    policy.assert_done()
    shown = next(one for one in policy.requests if one.conversation == f"1/{role}")
    assert [spec["function"]["name"] for spec in shown.tools] == ["high_water"]


async def test_the_multimodal_expert_is_given_tools_as_well_as_eyes() -> None:
    policy = ScriptedPolicy(["It is not to be seen."])

    def never(path: str) -> Any:
        raise AssertionError(path)

    box = Toolbox(media=never, visible=("a.png",), extra=(high_water,))
    await Multimodal().work(Task("1", "See."), make_context(policy, dialect="native", tools=box))
    assert [spec["function"]["name"] for spec in policy.requests[0].tools] == ["look", "high_water"]


async def test_offline_reads_an_attached_file_where_python_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mill.txt"
    path.write_text("The mill on the Orva was built in 1742 by Ida Lorn.\n", encoding="utf-8")
    context = make_context(OfflinePolicy(), dialect="native", tools=Toolbox(files=files_tool([path])), files=(path,))
    done = await rollout(HiRA(), "When was the mill on the Orva built?", context)
    assert done.status == "answered"
    assert "1742" in done.answer
    assert {finding.expert for finding in done.findings} == {"reader"}
