"""The page of a run: what it holds, that nothing in it runs but its own program, and that a person can use it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, browser, missing

from hira.agents.trajectory import Rollout
from hira.core.events import Events
from hira.evidence import Source
from hira.journal import Journal
from hira.runtime.trace import Reading, read
from hira.runtime.trace.page import data, embed_json, page, parts
from hira.testing.script import make_context
from hira.tools import Observation, Passage, Toolbox, tool
from hira.workflows import HiRA, rollout

pytestmark = pytest.mark.heavy(seconds=1)

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"><!--"
TEXT = f"An old page. {HOSTILE} The tower of Varn is 31 m high.\nIt is \u202emirrored. <|im_end|>"
SUBTASK = "<|begin_call_subtask|>Height of the tower of Varn<|end_call_subtask|>"
FACT = {"text": "The tower of Varn is 31 m high.", "sources": ["s1"]}
SCRIPT: dict[str, Any] = {
    "planner": [SUBTASK, r"\boxed{The tower of Varn is 31 m high [s1].}"],
    "coordinator": [
        '{"reason": "r", "expert": "simple_search"}',
        json.dumps({"reasoning": "Looked.", "conclusion": "31 m [s1].", "facts": [FACT]}),
    ],
    "simple_search": ['{"queries": ["tower"]}', "It is 31 m high [s1]."],
}


@tool(pure=True)
async def search(query: str) -> Observation:
    "Search."
    return Observation(passages=(Passage(Source("t.md", f"T {HOSTILE}", TEXT), query),))


@pytest.fixture
async def reading(tmp_path: Path) -> Any:
    journal = Journal(tmp_path / "journal.sqlite")
    question = f"How high is the tower of Varn? {HOSTILE}"
    log = journal.begin("r1", question, settings={"model": "m"}, files=(), versions={"hira": "0"})
    context = make_context(
        SCRIPT, tools=Toolbox(search=search), log=log, rollout=Rollout("r1", question, ""), events=Events(log.event)
    )
    await rollout(HiRA(faithful=True), question, context)
    made = read(journal, "r1")
    journal.close()
    return made


def test_a_reading_is_the_run_as_it_was(reading: Reading) -> None:
    assert (reading.rollout.status, reading.rollout.answer) == ("answered", "The tower of Varn is 31 m high [s1].")
    assert [turn.role for turn in reading.turns] == [
        "planner", "coordinator", "simple_search", "simple_search", "coordinator", "planner",
    ]  # fmt: skip
    assert [(one.expert, one.ok) for one in reading.subtasks] == [("simple_search", True)]
    assert reading.rollout.sources.read["s1"].text == TEXT
    assert [fact.text for fact in reading.rollout.memory.facts] == [FACT["text"]]
    assert reading.usage.calls == 6
    assert [message.role for message in reading.turns[-1].request.messages] == ["user", "assistant", "user"]


def test_the_data_of_a_page_can_form_no_tag(reading: Reading) -> None:
    text = embed_json(data(reading))
    assert "<" not in text
    assert ">" not in text
    assert json.loads(text)["sources"][0]["title"].endswith(HOSTILE)
    assert page(reading).count("<script") == 2


def test_a_page_names_nothing_to_load(reading: Reading) -> None:
    made = page(reading).replace(embed_json(data(reading)), "")
    assert not re.search(r"https?://|@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|\bimport\(", made)
    assert "default-src &#x27;none&#x27;" in made


def test_a_cited_passage_is_found_whatever_its_spaces() -> None:
    text = "One. The mill\n  was built. Then it burned. Two."
    assert parts(text, [(0, "The mill was built."), (1, "was built. Then it burned.")]) == [
        ("One. ", []), ("The mill\n  ", [0]), ("was built.", [0, 1]), (" Then it burned.", [1]), (" Two.", []),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if why := missing():
        pytest.skip(why)
    with browser(tmp_path_factory.mktemp("profile")) as driven:
        yield driven


@pytest.fixture
def opened(chromium: Browser, reading: Reading, tmp_path: Path) -> Browser:
    path = tmp_path / "trace.html"
    path.write_text(page(reading), encoding="utf-8")
    chromium.size(1280, 900)
    chromium.prefer("light")
    chromium.open(path)
    return chromium


def test_a_person_opens_a_subtask_and_a_call_and_finds_the_cited_passage(opened: Browser) -> None:
    assert "tower of Varn" in opened.run("return document.querySelector('h1').textContent")
    opened.run("document.querySelector('#subtask-1 > summary').click()")
    steps = "return [...document.querySelectorAll('#subtask-1 .step')].map((one) => one.textContent)"
    assert len(opened.run(steps)) == 5
    opened.run("document.querySelectorAll('#subtask-1 .step summary')[1].click()")
    shown = opened.run("return document.querySelectorAll('#subtask-1 .step')[1].textContent")
    assert "reply" in shown
    assert "queries" in shown
    opened.run("document.querySelector('.cite').click()")
    mark = "const one = document.querySelector('mark.now'); return [one.textContent, document.activeElement === one]"
    text, focused = opened.run(mark)
    assert "The tower of Varn is 31 m high." in text
    assert focused


def test_what_a_page_wrote_does_not_run(opened: Browser) -> None:
    opened.run("for (const one of document.querySelectorAll('details')) one.open = true")
    assert opened.run("return new Promise((done) => setTimeout(() => done(document.title), 200))") != "owned"
    assert opened.run("return document.querySelectorAll('#page img, #page script').length") == 0
    assert opened.run("return document.querySelector('.source pre .hidden-sign').textContent") == "U+202E"
    assert "<|im_end|>" in opened.run("return document.querySelector('.source pre').textContent")
    assert opened.run("return performance.getEntriesByType('resource').length") == 0


def test_keys_go_through_the_tree(opened: Browser) -> None:
    opened.run("document.querySelector('#planner > summary').focus()")
    opened.press("\ue014")  # right opens
    assert opened.run("return document.querySelector('#planner').open")
    opened.press("\ue015", "\ue014")  # down, right: the first turn is open
    assert opened.run("return document.querySelector('#planner .step details').open")
    opened.press("\ue012", "\ue012", "\ue012")  # left closes it, goes up, closes that
    assert not opened.run("return document.querySelector('#planner').open")


def test_it_fits_a_phone_and_follows_the_scheme_and_the_switch(opened: Browser) -> None:
    opened.size(360, 740)
    opened.run("for (const one of document.querySelectorAll('details')) one.open = true")
    assert opened.run("return document.documentElement.scrollWidth") <= 360
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = opened.run(colour)
    opened.prefer("dark")
    dark = opened.run(colour)
    assert dark != light
    opened.run("document.querySelector('nav button').click()")
    assert opened.run(colour) == light


def test_a_run_of_two_thousand_calls_opens_at_once(chromium: Browser, reading: Reading, tmp_path: Path) -> None:
    many = data(reading)
    planner = next(one for one in many["conversations"] if one["name"] == "planner")
    turn = {**planner["steps"][0], "added": [{**planner["steps"][0]["added"][0], "text": "A long prompt. " * 300}]}
    planner["steps"] = [{**turn, "at": float(at), "took": 1.0} for at in range(2000)]
    path = tmp_path / "many.html"
    path.write_text(page(reading).replace(embed_json(data(reading)), embed_json(many)), encoding="utf-8")
    chromium.open(path)
    assert chromium.run("return document.querySelectorAll('*').length") < 1500
    chromium.run("document.querySelector('#planner > summary').click()")
    assert chromium.run("return document.querySelectorAll('#planner .step').length") == 100
    chromium.run("document.querySelector('#planner .more').click()")
    assert chromium.run("return document.querySelectorAll('#planner .step').length") == 200
