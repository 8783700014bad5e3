"""The Python API, run on scripted policies and real documents."""

import asyncio
import json
import logging
import pickle
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest

from hira import Answer, Hira, Settings, tool
from hira.agents.coordinator import Coordinator
from hira.agents.expert import Account, Task
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Subtask
from hira.core.errors import AccessDenied, EndpointError, UsageError
from hira.core.events import Notice, RunEnded, RunStarted, SourceRead, TurnText
from hira.core.policy import Completion, Request, Watch
from hira.journal import Journal
from hira.runtime.replay import replay
from hira.runtime.trace.reading import read
from hira.testing import Endpoint, ScriptedPolicy, calling

QUESTION = "When was ASEAN founded?"
OFFLINE = Settings(model="offline", workflow="hira")
CONTRACT = {
    "question", "answer", "status", "citations", "sources", "facts", "resources", "subtasks", "usage", "workflow",
    "model", "run_id", "error", "answers_question", "notices",
}  # fmt: skip


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "asean.txt").write_text("ASEAN was founded on 8 August 1967 in Bangkok.\n", encoding="utf-8")
    return folder


def script(**changed: Any) -> ScriptedPolicy:
    """One subtask, done by simple search."""
    return ScriptedPolicy(
        {
            "planner": [calling("subtask", task=QUESTION), "ASEAN was founded on 8 August 1967 [s1]."],
            "coordinator": ['{"reason": "a page states it", "expert": "simple_search"}'],
            "simple_search": ["ASEAN was founded on 8 August 1967 [s1]."],
            **changed,
        }
    )


class Stuck:
    """A policy that never answers; `asked` is set once it is asked, `let_go` when the call is dropped."""

    model = "stuck"

    def __init__(self) -> None:
        self.asked, self.let_go, self.closed = asyncio.Event(), asyncio.Event(), False

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        self.asked.set()
        try:
            await asyncio.sleep(3600)
        finally:
            self.let_go.set()
        raise AssertionError

    async def aclose(self) -> None:
        self.closed = True


@pytest.fixture
async def hira(docs: Path) -> AsyncIterator[Hira]:
    async with Hira(docs=docs, policies={"*": script()}, settings=OFFLINE) as made:
        yield made


@pytest.fixture
def hira_offline(docs: Path) -> Iterator[Hira]:
    with Hira(docs=docs, settings=OFFLINE) as made:
        yield made


async def test_a_question_is_answered_with_checked_citations(hira: Hira) -> None:
    answer = await hira.ask(QUESTION)
    assert isinstance(answer, Answer)
    assert (answer.text, answer.status) == ("ASEAN was founded on 8 August 1967 [s1].", "answered")
    assert [(one.source, one.verdict) for one in answer.citations] == [("s1", "supported")]
    assert [source.location for source in answer.sources] == ["asean.txt"]
    with pytest.raises(UsageError, match="no source 's9'\nit has s1"):
        answer.source("s9")
    with pytest.raises(KeyError):
        answer.source("s9")
    assert answer.cited == answer.sources
    assert set(answer.rollout.trajectories) >= {"planner", "1/simple_search"}


async def test_an_answer_has_its_usage_and_the_id_of_its_run(hira: Hira) -> None:
    answer = await hira.ask("When was the tower of Varn built?")
    assert answer.usage == answer.rollout.usage
    assert answer.run_id == answer.rollout.run != ""


async def test_the_answer_as_json_has_exactly_the_keys_of_the_contract(hira: Hira) -> None:
    said = json.loads(json.dumps((await hira.ask(QUESTION)).json()))
    assert set(said) == CONTRACT
    assert set(said["usage"]) == {"calls", "prompt_tokens", "completion_tokens", "cost", "seconds"}
    assert said["citations"] == [
        {
            "id": "s1",
            "source": "asean.txt",
            "claim": "ASEAN was founded on 8 August 1967",
            "quote": "ASEAN was founded on 8 August 1967 in Bangkok.",
            "verdict": "supported",
            "score": said["citations"][0]["score"],
            "by": "lexical",
            "attributed": False,
            "missing": [],
            "lacking": [],
            "place": "",
            "page": None,
        }
    ]
    assert said["subtasks"] == [
        {"text": QUESTION, "expert": "simple_search", "conclusion": "ASEAN was founded on 8 August 1967 [s1]."}
    ]
    assert said["facts"][0]["sources"] == ["s1"]
    assert said["resources"] == []
    assert (said["question"], said["workflow"], said["model"]) == (QUESTION, "hira", "scripted")


async def test_an_answer_has_the_notices_of_its_run_and_so_has_its_record(docs: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal.sqlite"
    wrong = script(planner=[calling("subtask", task=QUESTION), "ASEAN was founded on 8 August 1967 [s1] [s9]."])
    async with Hira(docs=docs, policies={"*": wrong}, settings=OFFLINE, journal=journal) as hira:
        run = hira.stream(QUESTION)
        shown = [event.text async for event in run if isinstance(event, Notice)]
    assert "dropped citations of sources that do not exist: s9" in shown
    assert list(run.answer.notices) == run.answer.json()["notices"] == shown
    with closing(Journal(journal)) as recorded:
        assert list(read(recorded, run.id).answer.notices) == shown
        assert list((await replay(recorded, run.id)).answer.notices) == shown


async def test_a_stream_gives_every_event_the_end_of_the_run_last_and_then_the_answer(hira: Hira) -> None:
    run = hira.stream(QUESTION)
    events = []
    async for event in run:
        events.append(event)
        if isinstance(event, RunEnded):
            assert run.answer.text == event.answer, "the answer is there with the last event"
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunEnded)
    assert sum(isinstance(event, RunEnded) for event in events) == 1
    assert "".join(event.text for event in events if isinstance(event, TurnText) and event.conversation == "planner")
    assert any(isinstance(event, SourceRead) for event in events)
    assert run.answer.status == "answered"
    assert run.id == run.answer.json()["run_id"]


async def test_the_answer_of_a_run_that_has_not_ended_is_a_mistake(hira: Hira) -> None:
    run = hira.stream(QUESTION)
    with pytest.raises(UsageError, match="iterate over it to its end"):
        _ = run.answer
    await run.finish()
    with pytest.raises(UsageError, match="asks its question once"):
        await run.finish()


async def test_a_stream_that_is_left_early_has_an_interrupted_answer_once_it_is_closed(docs: Path) -> None:
    stuck = Stuck()
    async with Hira(docs=docs, policies={"*": stuck}, settings=OFFLINE) as hira:
        run = hira.stream(QUESTION)
        async with aclosing(aiter(run)) as events:
            async for _ in events:
                await stuck.asked.wait()
                break
        assert stuck.let_go.is_set()
        assert not stuck.closed
        assert (run.answer.status, run.answer.text) == ("interrupted", "")
        assert run.answer.json()["question"] == QUESTION


async def test_entering_opens_so_that_wrong_settings_are_told_there_and_can_be_mended(docs: Path) -> None:
    late = docs / "late.txt"
    hira = Hira(docs=late, policies={"*": script()}, settings=OFFLINE)
    with pytest.raises(UsageError, match=r"no such file or folder: .*late\.txt"):
        async with hira:
            raise AssertionError
    late.write_text("ASEAN was founded on 8 August 1967 in Bangkok.\n", encoding="utf-8")
    async with hira:
        assert (await hira.ask(QUESTION)).status == "answered"


async def test_a_run_that_is_stopped_answers_from_what_is_known(docs: Path) -> None:
    stuck = Stuck()
    answer = "ASEAN was founded on 8 August 1967 [s1]."
    policies = {"*": script(planner=[calling("subtask", task=QUESTION), answer]), "code": stuck}
    async with Hira(docs=docs, policies={**policies, "simple_search": stuck}, settings=OFFLINE) as hira:
        run = hira.stream(QUESTION)

        async def stopping() -> None:
            await stuck.asked.wait()
            run.stop()

        stopper = asyncio.create_task(stopping())
        _ = [event async for event in run]
        await stopper
    assert run.answer.status == "interrupted"
    assert run.failure is None
    assert stuck.let_go.is_set()


async def test_a_run_that_is_stopped_while_it_reads_its_documents_ends_at_once_without_an_answer(
    docs: Path, tmp_path: Path
) -> None:
    settings = Settings(model="offline", cache=tmp_path, journal=tmp_path / "journal.sqlite")
    async with Hira(docs=docs, settings=settings) as hira:
        (index,) = tmp_path.glob("documents-*.sqlite")
        with closing(sqlite3.connect(index)) as other:
            other.execute("begin immediate")  # nothing can be indexed meanwhile
            run = hira.stream(QUESTION)
            asking = asyncio.create_task(run.finish())
            await asyncio.sleep(0.05)
            run.stop()
            answer = await asking
        assert (answer.status, answer.text) == ("interrupted", "")
        assert answer.error == "interrupted before the question was asked"
        resumed = await (await hira.resume(run.id)).finish()
    assert resumed.status == "answered"


def test_ask_sync_answers_outside_a_loop_more_than_once(hira_offline: Hira) -> None:
    assert hira_offline.ask_sync(QUESTION).status == "answered"
    assert hira_offline.ask_sync("Who wrote Hamlet?").status == "insufficient_evidence"


async def test_an_endpoint_that_breaks_late_leaves_what_was_found(docs: Path) -> None:
    planner = [calling("subtask", task=QUESTION), EndpointError("gone", status=502)]
    async with Hira(docs=docs, policies={"*": script(planner=planner)}, settings=OFFLINE) as hira:
        answer = await hira.ask(QUESTION)
    assert answer.status == "failed"
    assert "founded on 8 August 1967" in answer.text
    assert answer.error == "gone"


async def test_a_refused_key_is_raised_where_there_is_nothing_to_answer_from(docs: Path) -> None:
    refused = AccessDenied("the key is refused", where="at …", fix="set another", status=401)
    async with Hira(docs=docs, policies={"*": ScriptedPolicy([refused])}, settings=OFFLINE) as hira:
        with pytest.raises(AccessDenied, match="the key is refused"):
            await hira.ask(QUESTION)


@pytest.mark.parametrize("workflow", ["rag", "auto"])
async def test_a_failure_before_the_first_reply_is_raised_and_one_after_it_keeps_the_passages(
    docs: Path, workflow: str
) -> None:
    def make(endpoint: Endpoint) -> Hira:
        return Hira(endpoint.model, base_url=endpoint.base_url, docs=docs, settings=OFFLINE, workflow=workflow)

    for fault in ("401", "404-model"):
        with Endpoint(faults=[fault] * 4) as endpoint:
            async with make(endpoint) as hira:
                with pytest.raises(EndpointError):
                    await hira.ask(QUESTION)
    with Endpoint(["…"] * 20, faults=["null-content"] * 20) as endpoint:
        async with make(endpoint) as hira:
            answer = await hira.ask(QUESTION)
    assert answer.status == "failed"
    assert "the model wrote no answer" in answer.error
    assert "8 August 1967" in answer.text


async def test_a_notice_of_a_wait_is_shown_and_not_kept(docs: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal.sqlite"
    with Endpoint(["ASEAN was founded on 8 August 1967 [s1]."], faults=["503"]) as endpoint:
        where = {"base_url": endpoint.base_url, "docs": docs, "settings": OFFLINE, "workflow": "rag"}
        async with Hira(endpoint.model, journal=journal, **where) as hira:
            run = hira.stream(QUESTION)
            shown = [event.text async for event in run if isinstance(event, Notice)]
    assert "trying again" in " ".join(shown)
    assert run.answer.notices == ()
    with closing(Journal(journal)) as recorded:
        assert read(recorded, run.id).answer.notices == ()
        assert (await replay(recorded, run.id)).answer.notices == ()


async def test_the_four_limits_of_a_question_are_arguments(docs: Path) -> None:
    async with Hira(docs=docs, policies={"*": script()}, settings=OFFLINE, max_calls=1, max_tokens=10**6) as hira:
        run = hira.stream(QUESTION)
        (limits,) = [event.limits async for event in run if isinstance(event, RunStarted)]
    assert limits == {"tokens": 10**6, "calls": 1}
    assert run.answer.rollout.usage.calls == 1


async def test_a_closed_one_says_so_when_it_is_asked_again(docs: Path) -> None:
    async with Hira("offline", docs=docs) as hira:
        assert (await hira.ask(QUESTION)).status == "answered"
    with pytest.raises(UsageError, match="this Hira is closed"):
        await hira.ask(QUESTION)
    with Hira("offline", docs=docs) as hira:
        assert hira.ask_sync(QUESTION).status == "answered"
    with pytest.raises(UsageError, match="this Hira is closed"):
        hira.ask_sync(QUESTION)
    with pytest.raises(UsageError, match="this Hira is closed"):
        await hira.ask(QUESTION)


def test_one_object_serves_one_loop_after_another(docs: Path) -> None:
    hira = Hira(docs=docs, settings=OFFLINE)

    async def once() -> str:
        async with hira:
            return (await hira.ask(QUESTION)).status

    assert [asyncio.run(once()) for _ in range(2)] == ["answered", "answered"]


async def test_ones_own_expert_is_given_subtasks(docs: Path) -> None:
    class Oracle:
        name, description, ability, cost = "oracle", "knows when things were founded", "oracle", 1
        needs: frozenset[str] = frozenset()

        async def work(self, task: Task, context: RunContext) -> Account:
            return Account("I just know.", "in 1967")

    policy = script(coordinator=['{"reason": "", "expert": "oracle"}', '{"reasoning": "", "conclusion": "in 1967"}'])
    async with Hira(docs=docs, experts=[Oracle()], policies={"*": policy}, settings=OFFLINE) as hira:
        answer = await hira.ask(QUESTION)
    assert [finding.expert for finding in answer.rollout.findings] == ["oracle"]


async def test_that_an_expert_came_to_no_conclusion_is_no_answer() -> None:
    class Lost:
        name, description, ability, cost, needs = "lost", "finds nothing", "finding", 1, frozenset[str]()

        async def work(self, task: Task, context: RunContext) -> Account:
            return Account(f"Looked for {task.text} in run {context.rollout.run}.", "")

    class Delegating:
        name = "delegating"

        async def run(self, question: str, context: RunContext) -> str:
            await Coordinator(context, [Lost()], distils=False).delegate(
                [Subtask("1", question)], context.rollout.memory
            )
            return ""

    async with Hira(policies={"*": script()}, workflow=Delegating(), settings=OFFLINE) as hira:
        run = hira.stream(QUESTION)
        await run.work()
    assert [one.conclusion for one in run.answer.rollout.findings] == ["The expert came to no conclusion."]
    assert (run.answer.text, run.answer.status) == ("", "failed")


async def test_a_workflow_that_returns_no_text_and_a_policy_without_a_completion_are_told_as_mistakes() -> None:
    class Numbers:
        name = "numbers"

        async def run(self, question: str, context: RunContext) -> str:
            return len(question)  # type: ignore[return-value]

    class Texts:
        model = "texts"

        async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
            return "text"  # type: ignore[return-value]

        async def aclose(self) -> None:
            return None

    async with Hira(workflow=Numbers(), settings=OFFLINE) as hira:
        with pytest.raises(UsageError, match="workflow 'numbers' returned no text: 4"):
            await hira.ask("Who?")
    async with Hira(policies={"*": Texts()}, settings=OFFLINE) as hira:
        with pytest.raises(UsageError, match="policy 'texts' must return a Completion, got 'text'"):
            await hira.ask("Who?")


async def test_a_missing_file_is_told_before_any_call(docs: Path) -> None:
    policy = ScriptedPolicy([])
    async with Hira(docs=docs, policies={"*": policy}, settings=OFFLINE) as hira:
        with pytest.raises(UsageError, match="does not exist"):
            await hira.ask(QUESTION, files=docs / "none.txt")
    assert not policy.requests


async def test_what_is_given_beside_settings_wins_over_them() -> None:
    hira = Hira("mine", search="crossref", settings=Settings(model="theirs", parallel=3))
    assert hira.settings
    assert (hira.settings.model, hira.settings.search, hira.settings.parallel) == ("mine", "crossref", 3)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"workflow": "ragg"}, "unknown workflow 'ragg'"),
        ({"search": "crosref"}, "there is no search service 'crosref'"),
        ({"search": "gogle"}, "(?s)there is no search service 'gogle'.*did you mean 'serper_google'"),
        ({"search": "bing"}, "(?s)choose from: documents, arxiv, crossref, .*, wikipedia, brave, exa, .*, tavily$"),
        ({"search": "tavily"}, "the search service 'tavily' needs a key"),
        ({"roles": {"coordinater": "offline"}}, "unknown role 'coordinater'"),
    ],
)
def test_a_name_that_does_not_exist_is_an_error_before_any_question(given: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        Hira(settings=Settings(model="offline"), **given)


@pytest.mark.parametrize(
    ("journal", "variable", "made"),
    [
        (None, "", ""),
        (True, "", "state/hira/journal.sqlite"),
        ("own.sqlite", "", "own.sqlite"),
        (None, "named.sqlite", "named.sqlite"),
        (False, "named.sqlite", ""),
    ],
)
def test_a_program_records_runs_only_where_it_or_its_settings_name_a_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: bool | str | None, variable: str, made: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HIRA_JOURNAL", variable)
    with Hira("offline", journal=journal) as hira:
        assert hira.ask_sync("What is 2 + 3?").status == "answered"

    files = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.sqlite")]
    assert [one for one in files if "cache" not in one and not one.startswith("home/")] == ([made] if made else [])


def test_an_answer_is_pickled_with_tools_present_and_shown_in_a_notebook(docs: Path) -> None:
    @tool
    def depth(lake: str) -> str:
        """The depth of a lake."""
        return f"{lake}: 251 m"

    with Hira(settings=Settings(model="offline", docs=(docs,), workflow="react"), tools=[depth]) as hira:
        answer = hira.ask_sync(QUESTION)
    again = pickle.loads(pickle.dumps(answer))  # noqa: S301 - it was made here

    assert again.json() == answer.json()
    (claim,) = answer.citations
    assert again._repr_markdown_() == (
        f"{answer.flagged}\n\n- [s1] asean — asean.txt\n\n- supported: {claim.claim} [s1]"
    )
    assert str(again) == f"{answer.text}\n(answered)\nsupported: {claim.claim} [s1]"


async def test_the_log_shows_requests_without_keys(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "hira"), Endpoint(["4"]) as endpoint:
        settings = Settings(
            model="m", base_url=endpoint.base_url, api_key="sk-secret-key", workflow="direct", verify="off"
        )
        async with Hira(settings=settings) as hira:
            await hira.ask("What is 2 + 2?")

    assert f"POST {endpoint.base_url}/chat/completions" in caplog.text
    assert "What is 2 + 2?" in caplog.text
    assert "secret" not in caplog.text
