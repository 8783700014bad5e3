"""Runs with little time and few calls, and runs that somebody stops early, over real HTTP."""

import asyncio
import json
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings
from hira.core.events import Event, Notice, TurnText
from hira.core.policy import Completion, Request, Usage
from hira.runtime.answer_json import usage_as_json
from hira.runtime.run import Run
from hira.testing import Endpoint, calling
from hira.testing.faults import Fault, delta, flows
from hira.testing.server import Exchange
from tests.cli.command import Command, at

QUESTION = "When was ASEAN founded?"
FACT = "ASEAN was founded on 8 August 1967"
ANSWER = f"{FACT} [s1]."
CLOSING = "No more calls"


@pytest.fixture
def place(tmp_path: Path) -> Command:
    hira = Command(tmp_path, {"HIRA_VERIFY": "lexical"})
    hira.write(asean=f"{FACT} in Bangkok.")
    return hira


def prompts(endpoint: Endpoint) -> str:
    return "\n".join(str(call.body["messages"]) for call in endpoint.calls)


@pytest.mark.parametrize("workflow", ["auto", "rag", "hira", "direct"])
def test_a_model_that_is_too_slow_for_the_time_of_the_run_ends_it_with_its_budget(
    place: Command, workflow: str
) -> None:
    with Endpoint(faults=lambda _: "s-ping-only") as endpoint:
        said = place("ask", QUESTION, "--docs", "docs", "--workflow", workflow, "--max-time", "1.5", *at(endpoint))
    assert said.code == 5, said.err
    assert "hira: the budget of 1.5 seconds is used up" in said.err
    assert "no token came" not in said.err
    reads = workflow in ("auto", "rag")
    assert (FACT in said.out, "nothing was read or written yet; raise the limit" in said.err) == (reads, not reads)
    assert "--max-time N" in said.err


def test_what_had_come_of_the_only_call_is_the_answer_when_the_time_is_over(place: Command) -> None:
    words = ["ASEAN ", "was ", "founded ", *["long ago, "] * 1000]
    slowly = flows(lambda: [b"data: " + json.dumps(delta(word)).encode() + b"\n\n" for word in words], 0.05)
    with Endpoint(faults=lambda _: slowly) as endpoint:
        said = place("ask", QUESTION, "--docs", "docs", "--workflow", "rag", "--max-time", "2", *at(endpoint))
        assert len(endpoint.calls) == 1
    assert said.code == 5
    assert said.out.startswith("ASEAN was founded long ago")
    assert "the budget of 2 seconds is used up" in said.err


def test_what_had_come_before_the_stream_fell_silent_is_the_answer_when_the_time_is_over(place: Command) -> None:
    def pieces() -> Iterator[bytes]:
        for piece in (delta(None, role="assistant"), delta("ASEAN was founded")):
            yield b"data: " + json.dumps(piece).encode() + b"\n\n"
        time.sleep(3)

    with Endpoint(faults=lambda _: flows(pieces, 0.2)) as endpoint:
        said = place("ask", QUESTION, "--docs", "docs", "--workflow", "rag", "--max-time", "2", *at(endpoint))
    assert (said.code, said.out.startswith("ASEAN was founded")) == (5, True)


@pytest.mark.parametrize(("workflow", "code"), [("auto", 0), ("rag", 0), ("direct", 4)])
def test_a_budget_of_one_call_pays_for_a_workflow_of_one_call(place: Command, workflow: str, code: int) -> None:
    with Endpoint([ANSWER]) as endpoint:
        said = place("ask", QUESTION, "--docs", "docs", "--workflow", workflow, "--max-calls", "1", *at(endpoint))
        assert CLOSING not in prompts(endpoint)
        endpoint.assert_done()
    assert (said.code, FACT in said.out) == (code, True)
    assert "budget" not in said.err


def test_auto_says_that_its_budget_pays_for_no_second_look(place: Command) -> None:
    with Endpoint(["ASEAN was founded in 1999 [s1]."]) as endpoint:
        said = place("ask", QUESTION, "--docs", "docs", "--max-calls", "2", *at(endpoint))
        assert said.code == 4
        assert "the budget pays for no more work on it; to continue, resume the run with a larger limit" in said.err
        assert place("replay", "last", "--quiet").code == 4
        again = place("resume", "last")
        assert (again.code, again.out, "has already ended" in again.err) == (4, said.out, True)


@pytest.mark.parametrize("limit", ["--max-calls", "--max-tokens"])
def test_an_unverified_run_of_auto_takes_its_second_look_with_a_larger_budget(place: Command, limit: str) -> None:
    def reply(request: Request) -> Any:
        return answer_hira(request) if bill.served.calls else "ASEAN was founded in 1999 [s1]."

    bill = Bill(reply)
    small, large = ("2", "20") if limit == "--max-calls" else ("1900", "60000")
    with Endpoint(bill) as endpoint:
        said = place("ask", QUESTION, "--docs", "docs", limit, small, *at(endpoint))
        assert (said.code, bill.served.calls) == (4, 1), said.err
        again = place("resume", "last", limit, large)
        assert (again.code, FACT in again.out) == (0, True), again.err
        assert bill.served.calls > 2
        bill.check(usage_in(place, "show"))
        before = len(endpoint.calls)
        assert place("resume", "last", limit, "100000").code == 0
        assert len(endpoint.calls) == before, "an answered run has ended"
    assert place("replay", "last", "--quiet").out == again.out


def test_one_call_may_take_the_tokens_that_two_would_need(place: Command) -> None:
    with Endpoint([ANSWER]) as endpoint:
        said = place("ask", QUESTION, "--docs", "docs", "--workflow", "rag", "--max-tokens", "700", *at(endpoint))
    assert said.code == 0, said.err


@pytest.mark.heavy(seconds=5)
def test_an_endpoint_that_began_its_reply_has_all_of_the_time_for_it(place: Command) -> None:
    async def think(exchange: Exchange) -> None:
        await exchange.begin()
        await asyncio.sleep(4.55)
        await exchange.chunk(b"data: " + json.dumps(delta(ANSWER, "stop")).encode() + b"\n\ndata: [DONE]\n\n")
        await exchange.end()

    with Endpoint(faults=lambda _: Fault(think)) as endpoint:
        said = place("ask", QUESTION, "--docs", "docs", "--workflow", "rag", "--max-time", "5", *at(endpoint))
        assert len(endpoint.calls) == 1
    assert FACT in said.out


@pytest.mark.heavy(seconds=6)
def test_a_subtask_that_has_no_time_for_its_call_leaves_it_to_the_answer(place: Command) -> None:
    def reply(request: Request) -> Any:
        return ANSWER if CLOSING in str(request.messages) else answer_hira(request)

    with Endpoint(reply, delay=1.5) as endpoint:
        said = place("ask", QUESTION, "--docs", "docs", "--workflow", "hira", "--max-time", "5.5", *at(endpoint))
        assert len(endpoint.calls) == 3
        assert f"{FACT} in Bangkok" in str(endpoint.calls[-1].body["messages"]), "the planner reads what was found"
        assert "the budget of 5.5 seconds has no time left for another call" in said.err
        assert said.code == 5
        resumed = place("resume", "last", "--max-time", "60")
        assert (resumed.code, FACT in resumed.out, len(endpoint.calls)) == (0, True, 5)


def test_a_run_whose_time_ends_before_anything_was_read_says_so(place: Command) -> None:
    def reply(request: Request) -> Any:
        return calling("subtask", task="Quxland mayor") if request.tools else '{"expert": "simple_search"}'

    with Endpoint(reply, faults=lambda number: "silent" if number > 2 else "") as endpoint:
        limits = ("--workflow", "hira", "--max-time", "2")
        said = place("ask", "Quxland mayor?", "--docs", "docs", *limits, *at(endpoint))
    assert (said.code, said.out) == (5, "")
    assert "subtask 1 done: Nothing was found" in said.err
    assert "the budget of 2 seconds is used up\n  nothing was read or written yet; raise the limit\n" in said.err
    assert "--max-time N" in said.err


def test_a_dry_run_counts_the_tokens_of_as_many_calls_as_are_allowed(place: Command) -> None:
    def most(*limits: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(place("ask", QUESTION, "--dry-run", "--json", *limits).out)
        return value

    whole, three, one = most(), most("--max-calls", "3"), most("--max-calls", "1")
    assert (three["calls"], one["calls"]) == (3, 1)
    assert 3 * one["tokens"] <= three["tokens"] < whole["tokens"] / 10


async def stop_in_call(
    endpoint: Endpoint, settings: Settings, number: int, notices: list[str], *, resumes: str = "", written: int = 0
) -> Run:
    """Run until the call of this number is under way and has `written` so many pieces, and stop the run there; 0 for
    not at all."""
    pieces: list[Event] = []

    def hear(event: Event) -> None:
        if isinstance(event, Notice):
            notices.append(event.text)
        elif isinstance(event, TurnText):
            pieces.append(event)

    async with Hira(settings=settings) as hira:
        run = await hira.resume(resumes) if resumes else hira.stream(QUESTION)
        working = asyncio.create_task(run.work(hear, stream=True))
        async with asyncio.timeout(30):
            while number and not (len(endpoint.calls) >= number and endpoint.in_flight and len(pieces) >= written):
                await asyncio.sleep(0.01)
            if number:
                run.stop()
            await working
    return run


def settings_of(endpoint: Endpoint, place: Command, **more: Any) -> Settings:
    given = {"model": endpoint.model, "base_url": endpoint.base_url, "docs": (place.folder / "docs",), "cache": None}
    return Settings(**{**given, "journal": place.folder / "journal.sqlite", "verify": "lexical", **more})


def silent_in(number: int) -> Callable[[int], str]:
    return lambda asked: "silent" if asked == number else ""


async def test_a_stop_in_the_first_call_of_rag_asks_its_question_and_no_closing_one(place: Command) -> None:
    with Endpoint([ANSWER], faults=silent_in(1)) as endpoint:
        run = await stop_in_call(endpoint, settings_of(endpoint, place, workflow="rag"), 1, [])
        assert CLOSING not in prompts(endpoint)
    assert (run.answer.status, run.answer.text) == ("interrupted", ANSWER)


@pytest.mark.parametrize("workflow", ["hira", "direct"])
async def test_a_stop_before_anything_was_read_asks_nothing_more(place: Command, workflow: str) -> None:
    with Endpoint(faults=silent_in(1)) as endpoint:
        run = await stop_in_call(endpoint, settings_of(endpoint, place, workflow=workflow), 1, [])
        assert len(endpoint.calls) == 1
    assert (run.answer.status, run.answer.text) == ("interrupted", "")


async def test_a_closing_request_that_is_repeated_with_more_words_is_no_answer(place: Command) -> None:
    echo = "No more calls: interrupted; answering from the results so far. I will answer now."
    with Endpoint([calling("search", query="ASEAN"), echo], faults=silent_in(2)) as endpoint:
        run = await stop_in_call(endpoint, settings_of(endpoint, place, workflow="react"), 2, [])
    assert (run.answer.status, echo in run.answer.text) == ("interrupted", False)


async def test_auto_that_is_stopped_in_the_check_returns_the_answer_that_it_has(place: Command) -> None:
    rebuilt, notices = "ASEAN came into being in the late sixties.", list[str]()
    with Endpoint([rebuilt], faults=silent_in(2)) as endpoint:
        settings = settings_of(endpoint, place, verify="model", verifier_exam=True)
        run = await stop_in_call(endpoint, settings, 2, notices)
        assert len(endpoint.calls) == 2
    assert (run.answer.status, run.answer.text) == ("interrupted", rebuilt)
    assert not [notice for notice in notices if "budget" in notice or "hira continues" in notice]


def answer_hira(request: Request) -> Any:
    """The replies of HiRA's roles; asked to close, the planner writes a call, so that it is asked again."""
    text = str([message.text for message in request.messages])
    if CLOSING in text:
        return calling("subtask", task="again")
    if request.schema:
        known = {"expert": {"reason": "", "expert": "simple_search"}, "queries": {"queries": ["ASEAN"]}}
        reply = next((reply for name, reply in known.items() if name in str(request.schema)), None)
        return json.dumps(reply or {"reasoning": "", "conclusion": ANSWER})
    return calling("subtask", task=QUESTION) if len(request.messages) == 1 and request.tools else ANSWER


@pytest.mark.parametrize("number", [2, 3])
async def test_a_run_that_was_stopped_in_a_subtask_resumes_without_a_word_about_changed_settings(
    place: Command, number: int
) -> None:
    notices: list[str] = []
    with Endpoint(answer_hira, faults=silent_in(number)) as endpoint:
        settings = settings_of(endpoint, place, workflow="hira")
        run = await stop_in_call(endpoint, settings, number, notices)
        assert (run.answer.status, CLOSING in prompts(endpoint)) == ("interrupted", True)
        again = await stop_in_call(endpoint, settings, 0, notices, resumes=run.id)
    assert (again.answer.status, again.answer.text) == ("answered", ANSWER)
    assert not [notice for notice in notices if "differs from its record" in notice]
    shown = await asyncio.to_thread(place, "show", run.id, "--json", "--journal", str(settings.journal))
    planned = [turn for turn in json.loads(shown.out)["turns"] if turn["conversation"] == "planner"]
    assert len(planned) == 2, "the two calls that the stop forced are none of its turns"


@pytest.mark.parametrize(("workflow", "number"), [("rag", 1), ("auto", 1), ("react", 2)])
async def test_a_run_that_was_stopped_goes_on_without_the_answer_that_this_forced(
    place: Command, workflow: str, number: int
) -> None:
    answers = ["It was founded long ago.", ANSWER]
    calls = [calling("search", query="ASEAN")] if workflow == "react" else []
    with Endpoint([*calls, *answers], faults=silent_in(number)) as endpoint:
        settings = settings_of(endpoint, place, workflow=workflow)
        run = await stop_in_call(endpoint, settings, number, [])
        assert (run.answer.status, run.answer.text) == ("interrupted", answers[0])
        replayed = await asyncio.to_thread(place, "replay", run.id, "--quiet", "--journal", str(settings.journal))
        assert (replayed.code, answers[0][:-1] in replayed.out) == (130, True)
        again = await stop_in_call(endpoint, settings, 0, [], resumes=run.id)
        endpoint.assert_done()
    assert (again.answer.status, again.answer.text) == ("answered", ANSWER)
    assert again.answer.rollout.usage.calls == number + 1, "the forced call was paid for"
    shown = await asyncio.to_thread(place, "show", run.id, "--json", "--journal", str(settings.journal))
    assert json.loads(shown.out)["usage"]["calls"] == number + 1


async def test_a_run_that_was_stopped_twice_goes_on_all_the_same(place: Command) -> None:
    with Endpoint(["First.", ANSWER], faults=lambda number: "silent" if number in (1, 3) else "") as endpoint:
        settings = settings_of(endpoint, place, workflow="rag")
        run = await stop_in_call(endpoint, settings, 1, [])
        again = await stop_in_call(endpoint, settings, 3, [], resumes=run.id)
        assert (run.answer.text, again.answer.text) == ("First.", "First."), "the forced answer is not paid for twice"
        last = await stop_in_call(endpoint, settings, 0, [], resumes=run.id)
        endpoint.assert_done()
    assert (last.answer.status, last.answer.text) == ("answered", ANSWER)
    assert last.answer.rollout.usage.calls == 2


class Bill:
    """What an endpoint has served: `reply` makes the text of a reply, and each has other tokens."""

    def __init__(self, reply: Callable[[Request], Any]) -> None:
        self.reply = reply
        self.served = Usage()

    def __call__(self, request: Request) -> Completion:
        number = self.served.calls + 1
        made = self.reply(request)
        completion = made if isinstance(made, Completion) else Completion(made)
        tokens = request.sampling.max_tokens or 0
        usage = Usage(1, 1000 + number, tokens if completion.finish == "length" else 10 * number)
        self.served += usage
        return replace(completion, usage=usage)

    def check(self, usage: Mapping[str, Any]) -> None:
        names = ("calls", "prompt_tokens", "completion_tokens")
        assert [usage[name] for name in names] == [getattr(self.served, name) for name in names]


def usage_in(place: Command, *command: str) -> Mapping[str, Any]:
    """The cost of the last run as a command prints it."""
    usage: Mapping[str, Any] = json.loads(place(*command, "last", "--json").out)["usage"]
    return usage


def test_replies_that_a_resumed_run_makes_anew_still_count(place: Command) -> None:
    def reply(request: Request) -> Completion:
        cut = (request.sampling.max_tokens or 0) < 99
        return Completion("ASEAN was", finish="length") if cut else Completion(ANSWER)

    bill, limit = Bill(reply), "--max-reply-tokens"
    with Endpoint(bill) as endpoint:
        assert place("ask", QUESTION, "--docs", "docs", "--workflow", "rag", limit, "50", *at(endpoint)).code == 5
        bill.check(usage_in(place, "show"))
        for tokens, code in (("60", 5), ("70", 5), ("600", 0)):
            assert place("resume", "last", limit, tokens).code == code
            bill.check(usage_in(place, "show"))
    bill.check(usage_in(place, "replay"))
    assert len(json.loads(place("show", "last", "--json").out)["turns"]) == 2, "the others are none of its turns"


@pytest.mark.parametrize("limit", ["--max-calls", "--max-tokens"])
def test_a_run_that_its_budget_ended_twice_costs_what_was_served(place: Command, limit: str) -> None:
    def reply(request: Request) -> Any:
        if CLOSING in str(request.messages):
            return f"{FACT}, as far as I read [s1]."
        return ANSWER if bill.served.calls > 8 else calling("search", query=f"ASEAN {bill.served.calls}")

    bill = Bill(reply)
    small, more, most = ("3", "6", "30") if limit == "--max-calls" else ("6000", "9000", "60000")
    with Endpoint(bill) as endpoint:
        first = place("ask", QUESTION, "--docs", "docs", "--workflow", "react", limit, small, *at(endpoint))
        assert first.code == 5
        before = bill.served
        again = place("resume", "last")
        assert (again.code, again.out, bill.served) == (5, first.out, before), (
            "it ends there again, and pays for nothing"
        )
        bill.check(usage_in(place, "show"))
        assert place("replay", "last", "--quiet").out == first.out
        assert place("resume", "last", limit, more).code == 5
        bill.check(usage_in(place, "show"))
        spent = bill.served.calls if limit == "--max-calls" else bill.served.tokens
        assert spent <= int(more), "forced answers count in the budget of the resumed run"
        last = place("resume", "last", limit, most)
        assert (last.code, FACT in last.out) == (0, True), last.err
        bill.check(usage_in(place, "show"))
    bill.check(usage_in(place, "replay"))


def test_a_closing_call_that_failed_is_made_again(place: Command) -> None:
    def reply(request: Request) -> Any:
        closing = CLOSING in str(request.messages)
        return f"{FACT}, as far as I read [s1]." if closing else calling("search", query=f"ASEAN {bill.served.calls}")

    bill, down = Bill(reply), [True]
    with Endpoint(bill, faults=lambda number: "500" if down and number >= 3 else "") as endpoint:
        first = place("ask", QUESTION, "--docs", "docs", "--workflow", "react", "--max-calls", "3", *at(endpoint))
        assert (first.code, "as far as I read" in first.out) == (3, False), first.err
        down.clear()
        again = place("resume", "last")
    assert (again.code, "as far as I read" in again.out) == (5, True), again.err


async def test_runs_that_were_stopped_in_different_calls_cost_what_was_served(place: Command) -> None:
    def reply(request: Request) -> Any:
        if CLOSING in str(request.messages):
            return f"Forced {bill.served.calls} [s1]."
        return ANSWER if len(request.messages) > 6 else calling("search", query=f"ASEAN {len(request.messages)}")

    bill = Bill(reply)
    with Endpoint(bill, faults=lambda number: "silent" if number in (2, 5) else "") as endpoint:
        settings = settings_of(endpoint, place, workflow="react")
        run = await stop_in_call(endpoint, settings, 2, [])
        again = await stop_in_call(endpoint, settings, 5, [], resumes=run.id)
        assert (run.answer.status, again.answer.status) == ("interrupted", "interrupted")
        assert run.answer.text != again.answer.text
        last = await stop_in_call(endpoint, settings, 0, [], resumes=run.id)
    assert last.answer.text == ANSWER
    bill.check(usage_as_json(last.answer.rollout.usage))
    bill.check(await asyncio.to_thread(usage_in, place, "show", "--journal", str(settings.journal)))


async def test_a_reply_that_broke_off_counts_in_the_runs_that_resume_it(place: Command) -> None:
    slowly = flows(lambda: [b"data: " + json.dumps(delta("long ago, ")).encode() + b"\n\n"] * 1000, 0.01)
    with Endpoint(["Forced.", ANSWER], faults=lambda number: slowly if number == 1 else "") as endpoint:
        settings = settings_of(endpoint, place, workflow="rag")
        run = await stop_in_call(endpoint, settings, 1, [], written=20)
        cost = run.answer.rollout.usage
        assert (cost.calls, cost.completion_tokens > 20) == (2, True)
        last = await stop_in_call(endpoint, settings, 0, [], resumes=run.id)
    final = last.answer.rollout.usage
    assert (last.answer.text, final.calls) == (ANSWER, 3)
    assert final.completion_tokens > cost.completion_tokens
    replayed = await asyncio.to_thread(usage_in, place, "replay", "--journal", str(settings.journal))
    assert (replayed["calls"], replayed["completion_tokens"]) == (3, final.completion_tokens)


@pytest.mark.parametrize("limit", ["--max-time", "--max-reply-tokens"])
def test_a_reply_that_a_limit_cut_off_is_written_anew_under_a_larger_one(place: Command, limit: str) -> None:
    small, slow = ("2" if limit == "--max-time" else "50"), limit == "--max-time"
    words = ["ASEAN ", "was ", "founded ", *["long ago, "] * 1000]
    slowly = flows(lambda: [b"data: " + json.dumps(delta(word)).encode() + b"\n\n" for word in words], 0.05)

    def reply(request: Request) -> Completion:
        tokens = request.sampling.max_tokens or 0
        return (
            Completion("ASEAN was", finish="length", usage=Usage(1, 9, tokens)) if tokens < 99 else Completion(ANSWER)
        )

    with Endpoint(reply, faults=lambda number: slowly if slow and number == 1 else "") as endpoint:
        asked = ("ask", QUESTION, "--docs", "docs", "--workflow", "rag", limit, small, *at(endpoint))
        assert place(*asked).code == 5
        before = len(endpoint.calls)
        said = place("resume", "last", limit, "600")
        assert (said.code, FACT in said.out, len(endpoint.calls) - before) == (0, True, 1)
        assert place("resume", "last", limit, "700").code == 0
        assert len(endpoint.calls) - before == 1, "an answered run has ended"


def test_a_question_that_does_not_fit_the_window_is_not_to_be_resumed(place: Command) -> None:
    with Endpoint(
        [calling("search", query="ASEAN")], faults=lambda number: "400-overflow" if number > 1 else ""
    ) as one:
        said = place("ask", QUESTION, "--docs", "docs", "--workflow", "react", *at(one))
    assert said.code != 0
    assert "hira resume" not in said.err, "it would only meet the same window again"


@pytest.mark.heavy(seconds=3)
def test_the_terminal_says_once_that_a_run_was_interrupted(place: Command) -> None:
    with Endpoint([ANSWER], faults=silent_in(1)) as endpoint:
        asked = ("ask", QUESTION, "--docs", "docs", "--workflow", "rag", *at(endpoint))
        with place.start(*asked) as process:
            while not endpoint.calls:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out.startswith(FACT)) == (130, True)
    assert err.count("interrupted") == 1
    assert re.search(r"hira: interrupted\n  this answer uses the results so far\n  to resume: hira resume \S+\n$", err)
