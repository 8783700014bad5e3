"""A long conversation: what no longer fits is summed up once, kept with the conversation, and never taken as evidence."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings
from hira.agents.history import LONGEST_HISTORY, LONGEST_MESSAGE, Earlier, split_history
from hira.core.events import Notice, Remembered
from hira.journal import Journal
from hira.runtime.replay import replay
from hira.runtime.settings import RoleSettings
from hira.runtime.trace.reading import read_conversation
from hira.testing import Endpoint
from tests.cli.command import Command

SHIP, NAME = "My ship is called Rosalinde. What is a ketch?", "What is my ship called?"
LONG = " ".join(f"Ketch number {number} has two masts." for number in range(54))
SUMMARY = "The user's ship is called Rosalinde."
FILLS = [f"{number}: {LONG}" for number in range(1, 6)]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(
        {"scripted": [*FILLS, *FILLS, *FILLS], "small": [SUMMARY, f"{SUMMARY} Ketches were discussed."]}
    ) as it:
        yield it


def configure(endpoint: Endpoint, path: Path | None = None, **more: Any) -> Settings:
    given: dict[str, Any] = {
        "model": "scripted",
        "base_url": endpoint.base_url,
        "workflow": "direct",
        "verify": "lexical",
        "journal": path,
        "roles": {"evidence": RoleSettings(model="small")},
    }
    return Settings(**{**given, **more})


def prompts_of(endpoint: Endpoint, model: str = "scripted") -> list[str]:
    bodies = [call.body for call in endpoint.calls if call.body["model"] == model]
    return ["\n".join(message["content"] for message in body["messages"]) for body in bodies]


async def ask(hira: Hira, questions: Sequence[str], run: str = "") -> Any:
    chat = hira.chat(run)
    for question in questions:
        await chat.ask(question)
    return chat


QUESTIONS = [SHIP, *(f"Question {number}?" for number in range(2, 6)), NAME]


async def test_the_model_sees_the_summary_and_the_latest_turns_and_one_call_makes_it(endpoint: Endpoint) -> None:
    async with Hira(settings=configure(endpoint)) as hira:
        chat = await ask(hira, QUESTIONS[:5])
        assert prompts_of(endpoint, "small") == []  # all fits
        await chat.ask(QUESTIONS[5])
    (asked,) = prompts_of(endpoint, "small")
    assert (SHIP in asked, "Question 2?" in asked, "Question 5?" in asked) == (True, True, False)
    assert '"status": "unverified"' in asked
    last = prompts_of(endpoint)[-1]
    assert (json.dumps(SUMMARY) in last, SHIP in last, '{"role": "user", "text": "Question 5?"}' in last) == (
        True,
        False,
        True,
    )
    assert chat.runs[-1].answer.rollout.usage.calls == 2


async def test_a_second_overflow_is_added_to_the_summary_and_turns_between_cost_no_call(endpoint: Endpoint) -> None:
    later = f"{SUMMARY} Ketches were discussed."
    async with Hira(settings=configure(endpoint)) as hira:
        chat = await ask(hira, [*QUESTIONS, "Question 7?", "Question 8?"])
        assert len(prompts_of(endpoint, "small")) == 1
        await chat.ask("Question 9?")
    first, second = prompts_of(endpoint, "small")
    assert (SHIP in first, SHIP in second, json.dumps(SUMMARY) in second) == (True, False, True)
    assert json.dumps(later) in prompts_of(endpoint)[-1]


async def test_a_summary_is_no_source_and_supports_no_claim(endpoint: Endpoint) -> None:
    with Endpoint({"scripted": [*FILLS, "The ship is called Rosalinde."], "small": [SUMMARY]}) as it:
        async with Hira(settings=configure(it)) as hira:
            chat = await ask(hira, QUESTIONS)
    answer = chat.runs[-1].answer
    assert (answer.text, answer.status, list(answer.sources)) == ("The ship is called Rosalinde.", "unverified", [])


async def test_resume_replay_and_a_later_process_repeat_no_summary(endpoint: Endpoint, tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    async with Hira(settings=configure(endpoint, path, max_calls=2)) as hira:  # both are used up before the run resumes
        chat = await ask(hira, QUESTIONS)
        run = chat.runs[-1].id
        count = len(endpoint.calls)
        resumed = await (await hira.resume(run)).finish()
        assert (resumed.text, len(endpoint.calls)) == (chat.runs[-1].answer.text, count)
    journal = Journal(path)
    assert (await replay(journal, run)).same
    kept = read_conversation(journal, run)
    assert (kept.summary, kept.messages[-2]) == (SUMMARY, ("user", NAME))
    journal.close()
    async with Hira(settings=configure(endpoint, path)) as hira:
        await ask(hira, ["And its rig?"], run)
    assert len(prompts_of(endpoint, "small")) == 1
    assert json.dumps(SUMMARY) in prompts_of(endpoint)[-1]


@pytest.mark.parametrize(("model", "fault"), [("small", ""), ("small", "400-bad"), ("offline", "")])
async def test_after_a_failed_call_the_oldest_messages_are_left_out_as_with_offline(model: str, fault: str) -> None:
    faults = (lambda number: fault if number == 6 else "") if fault else ()
    with Endpoint({"scripted": FILLS * 2, "small": ["", ""]}, faults=faults) as it:
        settings = configure(it, roles={"evidence": RoleSettings(model=model)})
        async with Hira(settings=settings) as hira:
            chat = await ask(hira, QUESTIONS[:5])
            run = await chat.stream(NAME)
            events = [event async for event in run]
        notices = [event.text for event in events if isinstance(event, Notice)]
        assert any("the oldest messages of the conversation are left out" in text for text in notices) == (
            model == "small"
        )
        assert not any(isinstance(event, Remembered) for event in events)
        assert run.answer.text
        last = prompts_of(it)[-1]
        assert (SHIP in last, "Question 5?" in last, "summed up" in last) == (False, True, False)


async def test_a_budget_too_small_for_a_summary_still_pays_for_the_answer(endpoint: Endpoint, tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    without = configure(endpoint, path, roles={"evidence": RoleSettings(model="offline")})
    async with Hira(settings=without) as hira:
        chat = await ask(hira, [f"Question {number}?" for number in range(10)])
    async with Hira(settings=configure(endpoint, path, max_tokens=5_500)) as hira:
        run = await hira.chat(chat.runs[-1].id).stream(NAME)
        notices = [event.text async for event in run if isinstance(event, Notice)]
    assert any("are left out: the budget of 5,500 tokens" in text for text in notices)
    assert (prompts_of(endpoint, "small"), run.answer.status, run.answer.error) == ([], "unverified", "")


def test_the_latest_exchange_stays_whole_and_an_answer_stays_with_its_question() -> None:
    short = [("user", "a"), ("assistant", "b")]
    assert split_history(short) == ((), short)
    longest = [("user", "q" * 9_000), ("assistant", "a" * 9_000)]
    assert split_history([*longest, *longest]) == (longest, longest)
    talk = [(role, f"{number} " + "x" * 600) for number in range(10) for role in ("user", "assistant")]
    older, latest = split_history(talk)
    assert [*older, *latest] == talk
    assert latest[0][0] == "user"
    assert sum(len(text) for _, text in latest) < LONGEST_HISTORY / 2 + LONGEST_MESSAGE


def test_a_client_that_sends_its_messages_gets_the_summary_only_with_the_questions_after_it() -> None:
    sent = [("user", SHIP), ("assistant", LONG), ("user", "Then?"), ("assistant", "It *sank*.")]
    known = Earlier("r1", (("user", "Then?"), ("assistant", "It sank.")), (), (), (), summary=SUMMARY)
    same = Earlier.of_messages(sent, known)
    assert (same.summary, same.messages) == (SUMMARY, tuple(sent[2:]))
    assert Earlier.of_messages(same.messages, known) == same  # as a resumed run reads it
    other = Earlier.of_messages([*sent[:2], ("user", "What else?"), sent[3]], known)
    assert (other.summary, len(other.messages)) == ("", 4)


def test_the_command_line_carries_the_summary_on(tmp_path: Path) -> None:
    with Endpoint({"scripted": FILLS * 2, "small": [SUMMARY]}) as it:
        hira = Command(tmp_path)
        flags = ("--base-url", it.base_url, "--model", "scripted", "--role", "evidence=small", "--verify", "lexical")
        hira("chat", "-q", "--workflow", "direct", *flags, stdin="\n".join(QUESTIONS))
        hira("ask", "-q", "--continue", "last", "And its rig?")
        assert len(prompts_of(it, "small")) == 1
        assert json.dumps(SUMMARY) in prompts_of(it)[-1]
        assert "And its rig?" in prompts_of(it)[-1]
