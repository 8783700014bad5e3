"""Every fault of an endpoint, through a whole question: an answer or a clear ending, in three lines, in time."""

import asyncio
import io
from collections.abc import Container
from contextlib import closing
from pathlib import Path

import pytest
from virtual import quick_policy

from hira import Hira
from hira.cli import ENDPOINT, OK, PARTIAL, code_of, main
from hira.cli.output import CODES
from hira.cli.shell import Shell
from hira.core.events import Notice
from hira.core.policy import Completion, Request
from hira.journal import Journal
from hira.runtime.replay import replay
from hira.runtime.run import Run
from hira.runtime.settings import Settings
from hira.testing import Endpoint, calling
from hira.workflows import HiRA

QUESTION = "When was ASEAN founded?"
ANSWER = "ASEAN was founded on 8 August 1967 [s1]."
DISTILLED = '{"reasoning": "", "conclusion": "ASEAN was founded on 8 August 1967 [s1]."}'
# the six calls of the run, by number
PLANNER, ASSIGN, PLAN, EXPERT, DISTIL, CONCLUDE = range(1, 7)
DEADLINE = 10.0


def script(request: Request) -> str | Completion:
    """Whoever asks, and however often, gets what fits its prompt."""
    first = request.messages[0].text
    if "names above" in first or '"expert"' in first:
        return '{"reason": "a page states it", "expert": "simple_search"}'
    if '"queries"' in first and len(request.messages) == 1:
        return '{"queries": ["ASEAN founded"]}'
    if '"conclusion"' in first:
        return DISTILLED
    planning = any(tool["function"]["name"] == "subtask" for tool in request.tools)
    if planning and "1967" not in " ".join(message.text for message in request.messages):
        return calling("subtask", task=QUESTION)
    return ANSWER


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "asean.txt").write_text("ASEAN was founded on 8 August 1967 in Bangkok.\n", encoding="utf-8")
    return tmp_path / "docs"


async def asked(base_url: str, docs: Path) -> Run:
    """The run of the question, ended."""
    policy = quick_policy(base_url)
    async with Hira(settings=Settings(docs=(docs,)), policies={"*": policy}, workflow=HiRA(faithful=True)) as hira:
        run = hira.stream(QUESTION)
        async with asyncio.timeout(DEADLINE):
            await run.work()
        await policy.aclose()
    return run


def code(run: Run) -> int:
    return code_of(run.failure) if run.failure else CODES[run.answer.status]


@pytest.mark.parametrize("fault", ["429", "reset-before", "bad-json", "empty-content", "tool-bad-json", "silent"])
async def test_a_fault_that_passes_costs_no_answer(fault: str, docs: Path) -> None:
    with Endpoint(script, faults=lambda number: fault if number in (PLANNER, EXPERT + 1) else "") as endpoint:
        run = await asked(endpoint.base_url, docs)
    assert (code(run), run.answer.text) == (OK, ANSWER)


@pytest.mark.parametrize("fault", ["500", "401", "finish-filter"])
async def test_an_endpoint_that_goes_down_in_the_middle_leaves_what_was_known(fault: str, docs: Path) -> None:
    with Endpoint(script, faults=lambda number: fault if number >= CONCLUDE else "") as endpoint:
        run = await asked(endpoint.base_url, docs)
    assert (code(run), run.answer.status) == (ENDPOINT, "failed")
    assert "8 August 1967" in run.answer.text
    assert len(run.answer.error.splitlines()) <= 3


async def test_a_reply_that_an_expert_was_refused_is_not_its_finding(docs: Path) -> None:
    with Endpoint(script, faults=lambda number: "finish-filter" if number == EXPERT else "") as endpoint:
        run = await asked(endpoint.base_url, docs)
    (first, *_) = run.answer.rollout.findings
    assert not first.ok
    assert "kept its reply back" in first.conclusion
    assert code(run) == OK


async def test_an_answer_that_was_cut_off_is_asked_for_once_more_shortly(docs: Path) -> None:
    replies = [Completion("ASEAN was founded on 8 Aug", finish="length"), ANSWER]
    with Endpoint([calling("subtask", task=QUESTION), *_lookup(), *replies]) as endpoint:
        run = await asked(endpoint.base_url, docs)
        assert "Your reply was cut off" in endpoint.calls[-1].body["messages"][-1]["content"]
        endpoint.assert_done()
    assert (code(run), run.answer.text) == (OK, ANSWER)


def _lookup() -> list[str]:
    return ['{"reason": "x", "expert": "simple_search"}', '{"queries": ["ASEAN founded"]}', ANSWER, DISTILLED]


# --- the command itself


def command(docs: Path, base_url: str, *argv: str, **environ: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    shell = Shell(io.StringIO(), out, err, environ, docs.parent, docs.parent / "home")
    given = ["ask", QUESTION, "--docs", "docs", "--base-url", base_url, "--model", "scripted", "--quiet"]
    given += ["--workflow", "hira", "--set", "hira.faithful=true", *argv]
    return main(given, shell), out.getvalue(), err.getvalue()


@pytest.mark.parametrize(
    ("fault", "numbers", "ends"),
    [
        ("429", {EXPERT}, OK),
        ("401", range(99), ENDPOINT),
        ("429-ra-huge", range(CONCLUDE, 99), ENDPOINT),
        ("silent", range(EXPERT, 99), PARTIAL),
    ],
)
def test_the_command_ends_with_the_right_code_and_three_lines_at_most(
    fault: str, numbers: Container[int], ends: int, docs: Path
) -> None:
    with Endpoint(script, faults=lambda number: fault if number in numbers else "") as endpoint:
        code, out, err = command(docs, endpoint.base_url, "--max-time", "1.5")
    assert code == ends, err
    assert len(err.strip().splitlines()) <= 3
    assert code != OK or ANSWER in out


def test_the_next_model_answers_when_the_first_is_refused(docs: Path) -> None:
    with Endpoint(script) as good, Endpoint(faults=["401"] * 9) as bad:
        code, out, err = command(docs, bad.base_url, "--model", f"first,second@{good.base_url}", "--role", "planner=a")
        assert (code, out) == (ENDPOINT, "")
        both = f"first,second@{good.base_url}"
        code, out, err = command(docs, bad.base_url, "--model", both, "--role", f"planner={both}", OPENAI_API_KEY="k")
        models = {call.body["model"] for call in good.calls}
        keys = [call.headers.get("authorization") for call in good.calls]
    assert (code, err) == (OK, "")
    assert ANSWER in out
    assert models == {"second"}
    assert set(keys) == {None}, "a key goes to the endpoint it was given for and to no other"


async def test_a_run_that_fell_back_and_shortened_is_replayed_from_its_record(docs: Path, tmp_path: Path) -> None:
    heard: list[str] = []
    (docs / "long.txt").write_text("ASEAN founded. " + "The meeting went on and on. " * 800, encoding="utf-8")
    with (
        Endpoint(faults=["401"]) as bad,
        Endpoint(script, faults=lambda number: "400-overflow" if number == EXPERT else "") as good,
    ):
        model = f"first@{bad.base_url},second@{good.base_url}"
        settings = Settings(model=model, docs=(docs,), journal=tmp_path / "journal.sqlite", workflow="hira")
        async with Hira(settings=settings) as hira:
            run = hira.stream(QUESTION)
            await run.work(lambda event: heard.append(event.text) if isinstance(event, Notice) else None)
    with closing(Journal(tmp_path / "journal.sqlite")) as journal:
        again = await replay(journal, run.id)
    assert (again.ends, again.same, again.answer.text) == ("", True, ANSWER)
    assert [event["text"] for event in again.events if event["event"] == "Notice"] == heard
    assert "second is used from now on" in heard[0]
    assert "longer than the model's window" in heard[1]
