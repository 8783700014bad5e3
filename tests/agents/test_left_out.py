"""What a model wrote and hira did not take: further calls of a reply, and the end of an answer."""

from dataclasses import replace
from pathlib import Path

import pytest

from hira import Hira, Settings, tool
from hira.core.events import Notice
from hira.core.messages import ToolCall
from hira.core.policy import Completion
from hira.testing import ScriptedPolicy

OFFLINE = Settings(model="offline")
CUT = Completion("The lamp costs 5 euros [s1]. The desk was made", finish="length")


@tool
def price(article: str) -> str:
    """Tell the price of an article."""
    return f"The {article} costs 5 euros."


@tool(name="price", pure=True)
def pure_price(article: str) -> str:
    """Tell the price of an article."""
    return f"The {article} costs 5 euros."


def call(*articles: str) -> Completion:
    """One reply with a native call for each article."""
    calls = [ToolCall(f"c{article}", "price", f'{{"article": "{article}"}}') for article in articles]
    return Completion("", calls=tuple(calls), finish="calls")


async def test_a_model_reads_how_many_calls_of_its_reply_were_not_made() -> None:
    script = ScriptedPolicy([call("lamp", "chair", "desk"), call("chair"), r"\boxed{5 euros [s1]}"])
    async with Hira(policies={"*": script}, workflow="react", tools=[price], settings=OFFLINE) as hira:
        await hira.ask("What do lamp, chair and desk cost?")
    _, after_three, after_one = script.requests
    assert "5 euros" in after_three.messages[-2].text
    assert after_three.messages[-1].text.startswith("Not called: 2 more of your last reply. A reply can make 1 call;")
    assert "5 euros" in after_one.messages[-1].text, "nothing was left out of the second reply"


async def test_it_reads_so_also_beside_another_remark() -> None:
    script = ScriptedPolicy([call("lamp"), call("chair"), call("lamp", "desk"), r"\boxed{5 euros [s1]}"])
    async with Hira(policies={"*": script}, workflow="react", tools=[pure_price], settings=OFFLINE) as hira:
        await hira.ask("What do lamp, chair and desk cost?")
    remark = script.requests[-1].messages[-1].text
    assert "You already made this call" in remark
    assert "Not called: 1 more of your last reply." in remark


@pytest.mark.parametrize("workflow", ["rag", "direct", "react"])
async def test_an_answer_that_is_cut_off_twice_is_partial_and_says_why(workflow: str, tmp_path: Path) -> None:
    (tmp_path / "lamp.txt").write_text("The lamp costs 5 euros.\n", encoding="utf-8")
    script = ScriptedPolicy([CUT] * 9)
    async with Hira(policies={"*": script}, workflow=workflow, docs=tmp_path, settings=OFFLINE) as hira:
        run = hira.stream("What does the lamp cost?")
        notices = [event.text async for event in run if isinstance(event, Notice)]
    assert run.answer.status == "partial"
    assert "cut off at the length limit of a reply" in run.answer.error
    assert any("cut off at the length limit of a reply" in notice for notice in notices)


async def test_an_answer_that_is_whole_at_the_second_try_is_not_partial(tmp_path: Path) -> None:
    (tmp_path / "lamp.txt").write_text("The lamp costs 5 euros.\n", encoding="utf-8")
    for cut in (CUT, replace(CUT, text="The lamp costs 5 euros [s1].")):
        script = ScriptedPolicy([cut, replace(CUT, text="The lamp costs 5 euros [s1].", finish="stop")])
        async with Hira(policies={"*": script}, workflow="rag", docs=tmp_path, settings=OFFLINE) as hira:
            assert (await hira.ask("What does the lamp cost?")).status == "answered"
