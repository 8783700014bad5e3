"""Many questions at once, from Python."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings
from hira.core.errors import AccessDenied, UsageError
from hira.core.events import Event, RunEnded
from hira.core.policy import Completion, Request, Watch
from hira.runtime.batch import Batch, Question
from hira.testing import ScriptedPolicy


class Echo:
    """A workflow of one call: what the policy says to the question."""

    name = "echo"

    async def run(self, question: str, context: Any) -> str:
        from hira.core.messages import user

        said: str = await context.conversation("planner").reply(user(question))
        return said


def echoing(policy: Any, **more: Any) -> Hira:
    return Hira(workflow=Echo(), policies={"*": policy}, settings=Settings(model="offline", **more))


def said(request: Request) -> str:
    return f"about {request.messages[0].text}"


class Counting:
    """A policy that takes a moment, and knows how many waited for it at once."""

    model = "counting"

    def __init__(self) -> None:
        self.now = self.most = 0

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.005)
        self.now -= 1
        return Completion(said(request))

    async def aclose(self) -> None:
        pass


async def test_every_question_is_answered_so_many_at_a_time() -> None:
    policy = Counting()
    async with echoing(policy) as hira:
        answers = [answer async for answer in hira.batch([f"q{at}" for at in range(20)], concurrency=4)]
    assert {answer.rollout.question: answer.text for answer in answers} == {
        f"q{at}": f"about q{at}" for at in range(20)
    }
    assert policy.most == 4


async def test_questions_are_taken_only_when_there_is_room_for_them() -> None:
    taken = []

    def questions() -> Any:
        for at in range(100):
            taken.append(at)
            yield f"q{at}"

    async with echoing(Counting()) as hira:
        async for _ in hira.batch(questions(), concurrency=3):
            break
    assert len(taken) <= 3


@pytest.mark.parametrize("concurrency", [2, 8])
async def test_questions_that_break_off_leave_the_answers_that_were_begun(concurrency: int) -> None:
    def read_rows() -> Iterator[str]:
        yield from ("q0", "q1", "q2")
        raise ValueError("row 3 is broken")

    async with echoing(ScriptedPolicy([said] * 3)) as hira:
        answers = aiter(hira.batch(read_rows(), concurrency=concurrency))
        assert sorted([(await anext(answers)).rollout.question for _ in range(3)]) == ["q0", "q1", "q2"]
        with pytest.raises(ValueError, match="row 3 is broken"):
            await anext(answers)


async def test_a_question_that_fails_is_an_answer_with_its_error_and_the_others_go_on() -> None:
    def reply(request: Request) -> str:
        if request.messages[0].text == "bad":
            raise ValueError("no such thing")
        return "fine"

    async with echoing(ScriptedPolicy(reply)) as hira:
        answers = {answer.rollout.question: answer async for answer in hira.batch(["a", "bad", "b"], concurrency=2)}
    assert {answers[name].text for name in "ab"} == {"fine"}
    assert answers["bad"].status == "failed"
    assert "no such thing" in answers["bad"].error
    assert answers["bad"].json()["question"] == "bad"


async def test_a_question_that_is_wrong_itself_ends_no_other() -> None:
    async with echoing(ScriptedPolicy(said)) as hira:
        answers = [answer async for answer in hira.batch(["", "Where?", "  ", "When?", "Who?"], concurrency=1)]
    assert [answer.status for answer in answers].count("failed") == 2
    assert len(answers) == 5


async def test_questions_come_from_any_iterable_and_one_text_is_not_many_questions() -> None:
    async def wait() -> AsyncIterator[str]:
        yield "Where?"

    async with echoing(ScriptedPolicy(said)) as hira:
        answers = [answer async for answer in hira.batch(text for text in ("Where?", "When?"))]
        assert [answer.status for answer in answers].count("failed") == 0
        wrong: Any
        for wrong in ("Where?", 7, None, {"Where?": 1}):
            with pytest.raises(UsageError, match="must be a list or another iterable of questions"):
                hira.batch(wrong)
        waited: Any = wait()
        with pytest.raises(UsageError, match="question async for question in"):
            hira.batch(waited)
        wrong = [7, {"question": "Where?"}]
        failed = [answer async for answer in hira.batch(wrong)]
        assert [answer.status for answer in failed] == ["failed"] * 2
        assert all("Question(" in answer.error for answer in failed)


async def test_a_refused_key_ends_the_batch_and_not_every_question_one_by_one() -> None:
    policy = ScriptedPolicy([AccessDenied("the key is refused", status=401)] * 2)
    async with echoing(policy) as hira:
        batch = hira.batch([f"q{at}" for at in range(50)], concurrency=2)
        answers = [answer async for answer in batch]
    assert len(answers) <= 2
    assert isinstance(batch.failure, AccessDenied)


async def test_wrong_settings_are_told_before_any_question_is_asked() -> None:
    for wrong in (0, 2.5):
        with pytest.raises(UsageError, match=f"`concurrency` must be a whole number of at least 1, got {wrong}"):
            Batch(Hira(settings=Settings(model="offline")), ["a"], concurrency=wrong)
    hira = Hira(settings=Settings(model="offline", docs=(Path("nowhere"),)))
    with pytest.raises(UsageError, match="nowhere"):
        _ = [answer async for answer in hira.batch(["a"])]
    await hira.aclose()


async def test_a_stopped_batch_answers_what_is_in_flight_and_begins_nothing_else() -> None:
    heard: list[Event] = []

    def begins(question: Question, run: str) -> Sequence[Any]:
        return [heard.append]

    class Stuck(Counting):
        async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
            if request.messages[0].text != "q0":
                await asyncio.sleep(60)
            return Completion("well")

    async with echoing(Stuck()) as hira:
        batch = Batch(hira, [f"q{at}" for at in range(50)], concurrency=3, begins=begins)
        statuses = []
        async for answer in batch:
            statuses.append(answer.status)
            batch.stop()
    assert statuses == ["unverified", "interrupted", "interrupted"]
    assert sum(isinstance(event, RunEnded) for event in heard) == 3


async def test_a_question_goes_on_with_its_run_if_that_asks_the_same(tmp_path: Path) -> None:
    policy = ScriptedPolicy(said)
    async with echoing(policy, journal=tmp_path / "j.sqlite") as hira:
        (first,) = [answer async for answer in hira.batch(["a"])]
        asked = len(policy.requests)
        again = [Question("a", run=first.rollout.run), Question("b", run=first.rollout.run), Question("c", run="none")]
        answers = {answer.rollout.question: answer async for answer in hira.batch(again)}
    assert answers["a"].rollout.run == first.rollout.run
    assert answers["a"].text == "about a"
    assert answers["b"].text == "about b"
    assert len(policy.requests) == asked + 2


async def test_a_question_whose_run_is_going_on_elsewhere_is_not_paid_for_twice(tmp_path: Path) -> None:
    """Two processes with one journal, here by two objects: the second leaves the run to the first."""
    asked, answer_now = asyncio.Event(), asyncio.Event()

    class Waiting(Counting):
        async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
            if request.messages[0].text == "a":
                asked.set()
                await answer_now.wait()
            return Completion(said(request))

    place = tmp_path / "j.sqlite"
    policy = ScriptedPolicy(said)
    async with echoing(Waiting(), journal=place) as first, echoing(policy, journal=place) as second:
        run = first.stream("a")
        working = asyncio.create_task(run.work())
        await asked.wait()
        batch = second.batch([Question("a", run=run.id), "b"])
        answers = {answer.rollout.question: answer async for answer in batch}
        answer_now.set()
        await working
    assert answers["a"].status == "failed"
    assert "is still running" in str(answers["a"].rollout.failure)
    assert answers["b"].text == "about b"
    assert batch.failure is None
    assert len(policy.requests) == 1
    assert run.answer.text == "about a"


async def test_a_run_that_this_program_cannot_go_on_with_is_told_and_not_asked_anew(tmp_path: Path) -> None:
    policy = ScriptedPolicy(said)
    async with echoing(policy, journal=tmp_path / "j.sqlite") as hira:
        (first,) = [answer async for answer in hira.batch(["a"])]
    async with Hira(settings=Settings(model="offline", journal=tmp_path / "j.sqlite")) as other:
        batch = other.batch([Question("a", run=first.rollout.run)])
        (answer,) = [answer async for answer in batch]
    assert answer.status == "failed"
    assert "which this Hira does not have" in str(batch.failure)
