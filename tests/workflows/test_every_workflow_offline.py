"""The workflows on real documents with `offline`: answers with citations, every dialect, resume, budgets."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hira import Hira
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.core.errors import OutOfBudget, UsageError
from hira.core.policy import Completion, Policy, Request, Watch
from hira.policies.dialects import DIALECTS
from hira.policies.offline import OfflinePolicy
from hira.runtime.factory import open_session
from hira.runtime.settings import Settings
from hira.testing import ScriptedPolicy, calling
from hira.testing.script import make_context
from hira.tools import Toolbox
from hira.tools.documents import Index, browse_documents, search_documents
from hira.tools.files import files_tool
from hira.tools.python import open_python, refusal
from hira.workflows import MARS, MATPO, WORKFLOWS, HiRA, MaMs, MarsRL, rollout
from hira.workflows.baselines.plan_and_solve import PlanAndSolve
from hira.workflows.baselines.react_report import ReActReport
from hira.workflows.baselines.search_o1 import SearchO1
from hira.workflows.baselines.single import MultimodalAlone, Rag, ReAct
from hira.workflows.baselines.webthinker import WebThinker
from hira.workflows.bound import Sizes

LIBRARY = Path(__file__).parent.parent / "data" / "library"
FILES = sorted(LIBRARY.rglob("*.md"))
QUESTIONS = {
    "When was the lighthouse at Skerry Point built?": "1871",
    "Who was the last keeper of Skerry Point?": "Agnes Halloran",
    "Since when does Gull Rock run on solar panels?": "2009",
    "What is the fare of the ferry to the Isle of Wren?": "31 crowns",
    "Who asked whether the silt is contaminated?": "Brandt",
}
READING = (
    Rag(),
    SearchO1(),
    WebThinker(),
    WebThinker(report=True),
    MultimodalAlone(),
    PlanAndSolve(),
    ReAct(),
    HiRA(),
    MARS(),
    MarsRL(),
    MATPO(),
)
needs_python = pytest.mark.skipif(bool(refusal("auto")), reason=refusal("auto"))


def named(workflow: Any) -> str:
    return f"{workflow.name}-report" if getattr(workflow, "report", False) else str(workflow.name)


reading = pytest.mark.parametrize("workflow", READING, ids=named)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keeps the index of the documents: they are read once, not for each run."""
    return tmp_path_factory.mktemp("cache")


def settings(cache: Path, **more: Any) -> Settings:
    return Settings(model="offline", docs=(LIBRARY,), journal=None, cache=cache, **more)


def files_for(workflow: Any) -> list[Path]:
    """The multimodal baseline has no search: the documents are attached to its question."""
    return FILES if workflow.name == "multimodal" else []


@needs_python
@reading
async def test_questions_are_answered_from_documents_with_citations_that_hold(workflow: Any, cache: Path) -> None:
    async with Hira(settings=settings(cache), workflow=workflow) as hira:
        for question, answer in QUESTIONS.items():
            told = await hira.ask(question, files=files_for(workflow))
            assert told.status == "answered", (question, told.text)
            assert answer in told.text
            assert "supported" in {citation.verdict for citation in told.citations}
            for role, bound in workflow.bound(Sizes()).items():
                used = [one.usage for one in told.rollout.trajectories.values() if one.role == role]
                assert sum(usage.calls for usage in used) <= bound.calls
                assert sum(usage.tokens for usage in used) <= bound.tokens


async def test_what_no_document_holds_is_not_answered(cache: Path) -> None:
    for workflow in (Rag(), SearchO1(), WebThinker(), PlanAndSolve(), ReAct()):
        async with Hira(settings=settings(cache), workflow=workflow) as hira:
            told = await hira.ask("Who painted the ceiling of the Sistine Chapel?")
            assert told.status == "insufficient_evidence", (workflow.name, told.text)
            assert told.citations == ()


@pytest.mark.parametrize("name", [name for name in WORKFLOWS if name not in ("direct", "marsrl")])
async def test_without_the_tools_that_it_needs_a_run_fails_before_any_call_and_says_what_to_give_it(name: str) -> None:
    policy = ScriptedPolicy([])
    record = await rollout(WORKFLOWS[name](), "How high is it?", make_context(policy))
    assert isinstance(record.failure, UsageError)
    assert {"codeact": "hira doctor", "multimodal": "--file"}.get(name, "--docs") in record.failure.fix
    assert (record.status, policy.requests) == ("failed", [])


@pytest.mark.parametrize(
    ("workflow", "limits"),
    [
        (MARS, [{"window": 500}, {"queries": 0}, {"max_turns": 0}]),
        (MATPO, [{"max_subtasks": 0}, {"parallel": 0}, {"window": 10, "reply": 10}, {"results": "system"}]),
        (MaMs, [{"max_turns": 0}, {"several": 0}, {"chunk": 50}, {"chunk": 600, "window": 500}]),
        (MarsRL, [{"passes": 0}, {"rounds": 0}, {"tries": -1}]),
        (ReActReport, [{"max_turns": 1}]),
    ],
)
def test_limits_with_which_nothing_can_be_done_are_refused(workflow: Any, limits: list[dict[str, Any]]) -> None:
    for wrong in limits:
        with pytest.raises(UsageError):
            workflow(**wrong)


async def test_the_answer_to_a_question_that_stands_in_another_is_no_answer_to_the_other(cache: Path) -> None:
    question = "Who built the lighthouse whose last keeper was Agnes Halloran?"
    async with Hira(settings=settings(cache), workflow=SearchO1()) as hira:
        told = await hira.ask(question)
    assert told.status == "insufficient_evidence"
    assert told.rollout.usage.calls > 2


@pytest.fixture
async def tools(tmp_path: Path, cache: Path) -> AsyncIterator[Toolbox]:
    index = Index([LIBRARY], cache)
    box = Toolbox(search=search_documents(index), browse=browse_documents(index))
    yield (
        box
        if refusal("auto")
        else Toolbox(search=box.search, browse=box.browse, python=open_python(tmp_path, readable=(LIBRARY,)))
    )
    index.close()


@needs_python
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("workflow", [one for one in READING if one.name != "multimodal"], ids=named)
async def test_every_dialect_brings_the_same_answer(tools: Toolbox, workflow: Any, dialect: str) -> None:
    question = "Who was the last keeper of Skerry Point?"
    record = await rollout(workflow, question, make_context(OfflinePolicy(), dialect=dialect, tools=tools))
    assert record.status == "answered"
    assert "Agnes Halloran" in record.answer


class Killed(GeneratorExit):
    """Ends a run the way nothing in hira expects."""


@dataclass
class Cut:
    """The offline policy, until it is killed after so many calls."""

    after: int
    calls: int = 0
    policy: OfflinePolicy = field(default_factory=OfflinePolicy)
    model: str = "offline"

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        self.calls += 1
        if self.calls > self.after:
            raise Killed
        return await self.policy.complete(request, watch)

    async def aclose(self) -> None:
        pass


@needs_python
@reading
async def test_a_run_killed_after_a_call_resumes_to_the_same_answer_and_repeats_none(
    workflow: Any, tmp_path: Path, cache: Path
) -> None:
    question = "Who was the last keeper of Skerry Point?"
    recorded = settings(cache).model_copy(update={"journal": tmp_path / "journal.sqlite"})
    whole = await _asked(recorded, workflow, question, "whole", OfflinePolicy())
    total = whole.usage.calls
    cut = total // 2
    with pytest.raises(Killed):
        await _asked(recorded, workflow, question, "cut", Cut(after=cut))
    rest = Cut(after=total)
    resumed = await _asked(recorded, workflow, question, "cut", rest, resumed=True)
    assert (resumed.answer, resumed.status) == (whole.answer, "answered")
    assert [source.location for source in resumed.sources.read.values()] == [
        source.location for source in whole.sources.read.values()
    ]
    assert rest.calls == total - cut


async def _asked(
    settings: Settings, workflow: Any, question: str, run: str, policy: Policy, *, resumed: bool = False
) -> Rollout:
    files = files_for(workflow)
    made = await open_session(settings, policies={"*": policy}, workflow=workflow)
    assert made.journal is not None
    log = made.journal.resume(run) if resumed else made.begin_log(run, question, files, None, None)
    try:
        async with made.open_context(run, question, files, (), log=log) as context:
            return await rollout(workflow, question, context)
    finally:
        await made.aclose()


@needs_python
@reading
@pytest.mark.parametrize(
    "limit", [{"max_calls": 1}, {"max_calls": 2}, {"max_calls": 4}, {"max_tokens": 1_500}], ids=str
)
async def test_a_run_that_its_budget_ends_says_so(workflow: Any, limit: dict[str, int], cache: Path) -> None:
    """An answer, or an ending that names the budget. Calls are never more than allowed; of tokens the answer may take a
    little more, since this policy writes it as long as it is."""
    async with Hira(settings=settings(cache, **limit), workflow=workflow) as hira:
        told = await hira.ask("Who was the last keeper of Skerry Point?", files=files_for(workflow))
    spent = told.rollout.usage
    assert spent.calls <= limit.get("max_calls", spent.calls)
    assert spent.tokens <= 1.1 * limit.get("max_tokens", spent.tokens)
    assert told.status in {"answered", "unverified", "partial", "insufficient_evidence"}
    assert told.status != "partial" or "budget of" in told.error


@pytest.mark.parametrize("calls", [2, 3, 4, 5])
@pytest.mark.parametrize("workflow", [HiRA(), MATPO()], ids=named)
async def test_no_words_of_hira_are_a_claim_of_a_run_that_its_budget_ends(
    workflow: Any, calls: int, tmp_path: Path
) -> None:
    text = "# Catch\n\n| Boat | March catch |\n|---|---|\n| Tern | 40 |\n| Auk | 25 |\n"
    (docs := tmp_path / "docs").mkdir()
    (docs / "catch.md").write_text(text, "utf-8")
    run = Settings(model="offline", docs=(docs,), journal=None, cache=tmp_path, max_calls=calls)
    async with Hira(settings=run, workflow=workflow) as hira:
        told = await hira.ask("What was the March catch?")
    assert [citation.claim for citation in told.citations if citation.claim not in text] == []


async def test_a_run_that_is_stopped_answers_from_what_is_known(cache: Path) -> None:
    answers: list[str] = []
    for workflow in (SearchO1(), WebThinker(), PlanAndSolve(), ReAct()):
        made = await open_session(settings(cache), workflow=workflow)
        async with made.open_context("r", "q", (), ()) as context:
            _stop_after(context, 2)
            record = await rollout(workflow, "Who was the last keeper of Skerry Point?", context)
        await made.aclose()
        assert record.status == "interrupted"
        answers.append(record.answer)
    assert any(answers)


PLAN = "First I look for the keeper, then I compare."


class Planning:
    """Writes a plan and calls a tool, as long as it may, and then has no time left."""

    model = "planning"

    def __init__(self, calls: int) -> None:
        self.left = calls

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        self.left -= not request.schema
        if self.left < 0:
            raise OutOfBudget("the time is over")
        if request.schema:
            return Completion('{"reason": "", "expert": "deep_search", "queries": ["keeper"], "steps": ["a", "b"]}')
        if not request.tools:
            return Completion("<report>unchanged</report>")
        function = request.tools[0]["function"]
        fields = function["parameters"]["properties"].items()
        arguments = {name: ["keeper"] if one.get("type") == "array" else f"{name} {self.left}" for name, one in fields}
        return replace(calling(function["name"], **arguments), text=PLAN)

    async def aclose(self) -> None:
        pass


@needs_python
@pytest.mark.parametrize("calls", [1, 2, 3])
@pytest.mark.parametrize("name", [name for name in WORKFLOWS if name not in ("direct", "rag", "marsrl")])
async def test_a_plan_is_never_the_answer_when_the_time_is_over(name: str, calls: int, tools: Toolbox) -> None:
    box = replace(tools, files=files_tool(FILES[:1])) if name == "multimodal" else tools
    record = await rollout(
        WORKFLOWS[name](), "Who was the keeper?", make_context(Planning(calls), dialect="native", tools=box)
    )
    assert record.status == "partial"
    assert "First I look" not in record.answer


def _stop_after(context: RunContext, calls: int) -> None:
    from hira.core.errors import Interrupted
    from hira.core.events import Event, TurnEnded

    ended = 0

    def read(event: Event) -> None:
        nonlocal ended
        ended += isinstance(event, TurnEnded)
        if ended == calls:
            context.stop(Interrupted("stopped"))

    context.events.readers.append(read)


async def test_hira_costs_at_most_twice_what_rag_does_on_a_fact() -> None:
    docs = Path(__file__).parent.parent.parent / "docs"
    tokens = {}
    for name in ("rag", "hira"):
        async with Hira("offline", docs=docs, workflow=name) as hira:
            answer = await hira.ask("How many memory entries does the coordinator recall at most?")
        assert answer.status == "answered"
        tokens[name] = answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert tokens["hira"] <= 2 * tokens["rag"], tokens
