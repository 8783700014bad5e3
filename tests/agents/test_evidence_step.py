"""The evidence step of a search: what the model that answers reads of many passages, and what becomes of citations."""

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from hira import Answer, Hira
from hira.core.errors import EndpointError, UsageError
from hira.core.events import Event, Notice
from hira.core.policy import Request
from hira.journal import Journal
from hira.runtime.replay import replay
from hira.runtime.settings import Settings
from hira.testing import ScriptedPolicy, calling

QUESTION = "How high is the lighthouse of Ahle?"
ANSWER = "The lighthouse of Ahle is 31 metres high [s1]."
PASSAGE = re.compile(r"^Passage (\d+): (.*?)(?=^Passage |^Question: )", re.MULTILINE | re.DOTALL)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(1, 20):
        text = f"The lighthouse of Port{number} is old. Lighthouse keepers of Ahle and Port{number} met."
        (folder / f"port{number:02d}.md").write_text(f"# Port{number}\n\n{text}\n")
    high = "Ships from the north fear the shoals. The lighthouse of Ahle is 31 metres high. Its keeper has a dog."
    (folder / "ahle.md").write_text(f"# Coast\n\n## Towers\n\n{high}\n")
    return folder


def score(request: Request) -> str:
    """Score each passage as a good model does: what says how high it is gets the highest score."""
    notes = []
    for number, text in PASSAGE.findall(request.messages[-1].text):
        helps = re.search(r"[^.]*31 metres[^.]*\.", text)
        notes.append({"number": int(number), "excerpt": helps[0].strip() if helps else "", "score": 9 if helps else 1})
    return json.dumps({"passages": notes})


def settings_of(docs: Path, **more: object) -> Settings:
    return Settings(docs=(str(docs),), verify="lexical", evidence=20, **more)


async def ask(settings: Settings, policy: ScriptedPolicy, events: list[Event] | None = None) -> Answer:
    async with Hira(settings=settings, policies={"*": policy}) as hira:
        run = hira.stream(QUESTION)
        told = [event async for event in run]
        if events is not None:
            events += told
        return run.answer


def read_by(policy: ScriptedPolicy, role: str) -> list[str]:
    """The last messages that a role was sent."""
    return [request.messages[-1].text for request in policy.requests if request.conversation.endswith(role)]


@pytest.mark.parametrize("workflow", ["rag", "react"])
async def test_the_best_of_many_passages_reach_the_answer_condensed_and_with_their_places(
    docs: Path, workflow: str
) -> None:
    search = [calling("search", query=QUESTION)] if workflow == "react" else []
    policy = ScriptedPolicy({"evidence": score, "reasoner": [*search, ANSWER]})
    answer = await ask(settings_of(docs, workflow=workflow), policy)
    assert sum(len(PASSAGE.findall(text)) for text in read_by(policy, "evidence")) == 20
    read = read_by(policy, "reasoner")[-1]
    assert read.index("31 metres high") < read.index("Port"), "the best passage is first"
    assert "fear the shoals" not in read
    assert len(re.findall(r"^\[s\d+\] ", read, re.MULTILINE)) == 5
    assert answer.status == "answered"
    assert [citation.place for citation in answer.citations] == ["section Towers, line 5"]
    assert answer.sources[0].location == "ahle.md"
    assert "fear the shoals" in answer.sources[0].evidence, "the whole passage is the evidence"


async def test_the_record_of_the_step_replays_without_a_model(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    policy = ScriptedPolicy({"evidence": score, "reasoner": [calling("search", query=QUESTION), ANSWER]})
    answer = await ask(settings_of(docs, workflow="react", journal=path), policy)
    with closing(Journal(path)) as journal:
        again = await replay(journal, answer.rollout.run)
    assert again.same
    assert again.answer.rollout.trajectories.keys() == answer.rollout.trajectories.keys()


async def test_a_query_that_is_repeated_is_scored_once(docs: Path) -> None:
    searches = [calling("search", query=QUESTION), calling("search", query=f" {QUESTION}")]
    policy = ScriptedPolicy({"evidence": score, "reasoner": [*searches, ANSWER]})
    await ask(settings_of(docs, workflow="react"), policy)
    assert len(read_by(policy, "evidence")) == 1


async def test_an_excerpt_with_words_that_the_passage_lacks_is_not_shown(docs: Path) -> None:
    def invent(request: Request) -> str:
        return score(request).replace("31 metres", "310 metres")

    policy = ScriptedPolicy({"evidence": invent, "reasoner": [ANSWER]})
    await ask(settings_of(docs, workflow="rag"), policy)
    read = read_by(policy, "reasoner")[-1]
    assert "310" not in read
    assert "fear the shoals. The lighthouse of Ahle is 31 metres high" in read


@pytest.mark.parametrize("reply", ["no record", EndpointError("the endpoint is gone")])
async def test_without_scores_the_first_passages_are_shown_as_they_were_found(
    docs: Path, reply: str | EndpointError
) -> None:
    policy = ScriptedPolicy({"evidence": [reply] * 4, "reasoner": [ANSWER]})
    events: list[Event] = []
    answer = await ask(settings_of(docs, workflow="rag"), policy, events)
    assert answer.status == "answered"
    assert len(re.findall(r"^\[s\d+\] ", read_by(policy, "reasoner")[-1], re.MULTILINE)) == 8
    told = [event.text for event in events if isinstance(event, Notice)]
    assert sum("the evidence step failed, so passages are shown as they were found" in text for text in told) == 1


async def test_few_passages_are_not_scored(tmp_path: Path) -> None:
    (tmp_path / "ahle.md").write_text("The lighthouse of Ahle is 31 metres high.")
    policy = ScriptedPolicy({"reasoner": [ANSWER]})
    assert (await ask(settings_of(tmp_path, workflow="rag"), policy)).status == "answered"


def test_a_negative_number_of_passages_is_refused() -> None:
    with pytest.raises(UsageError, match="evidence"):
        Settings(evidence=-1)
