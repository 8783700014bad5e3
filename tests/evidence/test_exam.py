"""The exam of a verifier: who passes it, what hira remembers of it, and what follows when nobody has passed."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hira import Hira
from hira.agents.exam import FACT, ExamPart, ExamScore, find_score, load_exam, pass_exam, read_score
from hira.agents.model_verifier import ModelVerifier
from hira.agents.ruling import ask_model
from hira.agents.run_context import RoleConfig, RunContext
from hira.core.budget import Budget
from hira.core.errors import RateLimited
from hira.core.events import Events, Notice
from hira.core.policy import Completion, Request
from hira.evidence import Source, SourcedClaim
from hira.evidence.passages import Passages
from hira.journal import Journal
from hira.policies.facts import EndpointFacts
from hira.runtime.replay import replay
from hira.runtime.settings import Settings
from hira.testing import Endpoint, ScriptedPolicy, make_context

HALL = Source(
    "hall.md",
    "The hall",
    "The guild hall of Orn burnt down in 1666. Its master, Ilse Varga, had it raised again within a decade.",
    id="s1",
)
PARAPHRASE = SourcedClaim("Ilse Varga rebuilt the guild hall", (HALL,))
QUOTE = "Its master, Ilse Varga, had it raised again within a decade."
QUESTION = "Who rebuilt the guild hall?"
URL = "http://127.0.0.1:9/v1"
Quotes = Callable[[ExamPart, str, bool], tuple[str, str]]
"""The quotation and the verdict for a claim of a part, of which it is known whether it is true."""


def find_part(request: Request) -> ExamPart | None:
    """The part of the exam that a request asks about, None if it asks about an answer of a run."""
    prompt = request.messages[0].text
    return next((part for part in load_exam() if part.question in prompt), None)


QUOTED = {
    "The Tarn viaduct was designed by Clara Whitlow.": "The engineer Clara Whitlow drew the plans",
    "The viaduct has eleven arches.": "its eleven arches",
    "Trains have crossed it since May 1876.": "crossed it on 9 May 1876",
    "The arches that were blown up were replaced by concrete ones.": "were blown up in 1944",
    "The province took over the coast railway in 1967.": "was bought by the province in 1967",
    "What used to be the school serves as a weather station.": "the building is now a weather station",
    "Hallsey exports more wool than lobster.": "wool remains the main export",
    "There are more sheep than people on Hallsey.": "Sheep outnumber people",
}
"""Parts of the sentences that say claims in other words; for the others the nearest sentence is the right one."""


def find_quote(part: ExamPart, claim: str) -> str:
    """The sentence of the sources that shares most words with a claim, or that `QUOTED` names."""
    sentences = [one for source in part.sources for one in Passages(source.text).sentences]
    wanted = set(re.findall(r"\w+", claim.lower()))

    def rate(sentence: str) -> tuple[bool, int]:
        return QUOTED.get(claim, "\n") in sentence, len(wanted & set(re.findall(r"\w+", sentence.lower())))

    return max(sentences, key=rate)


def reply(part: ExamPart, rule: Quotes, answers: bool | None = None) -> str:
    listed = []
    for number, (claim, true) in enumerate(part.claims, 1):
        quote, verdict = rule(part, claim, true)
        listed.append({"number": number, "quote": quote, "verdict": verdict})
    right = part.answers if answers is None else answers
    return json.dumps({"claims": listed, "answers": "yes" if right else "no"})


def knows(part: ExamPart, claim: str, true: bool) -> tuple[str, str]:
    return find_quote(part, claim), "supported" if true else "contradicted"


def says_yes(part: ExamPart, claim: str, true: bool) -> tuple[str, str]:
    return find_quote(part, claim), "supported"


def says_no(part: ExamPart, claim: str, true: bool) -> tuple[str, str]:
    return "", "unsupported"


def quotes_another_source(part: ExamPart, claim: str, true: bool) -> tuple[str, str]:
    return QUOTE, "supported" if true else "contradicted"


def quotes_three_words(part: ExamPart, claim: str, true: bool) -> tuple[str, str]:
    return " ".join(find_quote(part, claim).split()[:3]), "supported"


def judge_hall(request: Request) -> str:
    return json.dumps({"claims": [{"number": 1, "quote": QUOTE, "verdict": "supported"}], "answers": "yes"})


def verifier(rule: Quotes = knows, answers: bool | None = None) -> Callable[[Request], str]:
    """A model that takes the exam by a rule and judges the hall as it is."""

    def complete(request: Request) -> str:
        part = find_part(request)
        return reply(part, rule, answers) if part else judge_hall(request)

    return complete


def examine(
    script: Any, facts: EndpointFacts | None = None, *, notices: list[str] | None = None, **context: Any
) -> tuple[RunContext, ScriptedPolicy]:
    """A run context whose verifier follows the script."""

    def note(event: object) -> None:
        if isinstance(event, Notice) and notices is not None:
            notices.append(event.text)

    policy = ScriptedPolicy({"verifier": script})
    known = (facts or EndpointFacts()).about(URL, policy.model)
    return RunContext({"*": RoleConfig(policy, facts=known)}, events=Events(note), **context), policy


def test_the_exam_has_two_dozen_short_claims_half_of_them_true_and_one_answer_that_answers() -> None:
    parts = load_exam()
    truths = [true for part in parts for _, true in part.claims]
    assert (len(truths), sum(truths)) == (24, 12)
    assert [part.answers for part in parts] == [True, False]
    assert max(len(claim) for part in parts for claim, _ in part.claims) < 100
    assert not {claim for claim in QUOTED} - {claim for part in parts for claim, _ in part.claims}  # noqa: C416


def test_no_false_claim_of_the_exam_is_a_copy_of_its_sources() -> None:
    from hira.evidence import LexicalVerifier

    for part in load_exam():
        false = [SourcedClaim(claim, part.sources) for claim, true in part.claims if not true]
        assert [judged.verdict.holds for judged in LexicalVerifier().judge(false)] == [False] * len(false)


async def test_a_verifier_that_knows_its_sources_passes_in_two_calls() -> None:
    context, policy = examine(verifier())
    score = await find_score(context)
    assert score == ExamScore(12, 12, 12, 12, answers_right=True, model="scripted")
    assert score.passed
    assert score.describe() == "12 of 12 true claims recognised, 12 of 12 false claims rejected"
    assert len(policy.requests) == 2


async def test_the_exam_costs_two_calls_and_a_few_thousand_tokens() -> None:
    context, _ = examine(verifier())
    await find_score(context)
    assert 2_000 < context.rollout.usage.tokens < 5_000


@pytest.mark.parametrize(
    ("rule", "answers", "calls", "reason"),
    [
        (says_yes, None, 1, r"[0-4] of 6 false claims rejected"),
        (says_no, None, 1, "0 of 6 true claims recognised, 6 of 6 false claims rejected"),
        (quotes_another_source, None, 1, "0 of 6 true claims recognised"),
        (quotes_three_words, None, 1, r"[0-4] of 6 false claims rejected"),
        (knows, True, 2, "12 of 12 false claims rejected, and was wrong about what answers a question"),
        (knows, False, 1, "wrong about what answers a question"),
    ],
)
async def test_a_verifier_fails_that_agrees_denies_invents_quotes_or_finds_every_answer_good(
    rule: Quotes, answers: bool | None, calls: int, reason: str
) -> None:
    notices: list[str] = []
    context, policy = examine(verifier(rule, answers), notices=notices)
    judged = await ModelVerifier(context).verify([PARAPHRASE], QUESTION)
    assert [(one.verdict, one.by) for one in judged] == [("unsupported", "lexical")]
    assert len(policy.requests) == calls, "the second answer is asked about only if the model may still pass"
    assert re.search(f"did not pass the exam of verifiers .*(?:{reason}).*: words alone decide", "\n".join(notices))


@pytest.mark.parametrize("text", ["yes", '{"claims": [{"number": 1, "quote": "The Ta', '{"claims": []}'])
async def test_a_verifier_whose_replies_cannot_be_read_has_failed_and_that_is_remembered(
    text: str, tmp_path: Path
) -> None:
    context, policy = examine(lambda request: text, EndpointFacts(tmp_path))
    score = await find_score(context)
    assert score is not None
    assert (score.passed, score.true_right, score.false_right) == (False, 0, 0)
    asked = len(policy.requests)
    again, silent = examine([], EndpointFacts(tmp_path))
    assert not await pass_exam(again)
    assert (silent.requests, asked <= 2) == ([], True)


async def test_an_endpoint_that_fails_or_is_too_slow_leaves_the_exam_for_another_time(tmp_path: Path) -> None:
    for script in ([RateLimited("too many requests")], [TimeoutError()]):
        notices: list[str] = []
        context, _ = examine(script, EndpointFacts(tmp_path), notices=notices)
        assert await find_score(context) is None
        assert any("the verifier's exam failed" in notice for notice in notices)
        assert EndpointFacts(tmp_path).about(URL, "scripted").get(FACT) is None


async def test_without_budget_nothing_is_stored_and_words_decide(tmp_path: Path) -> None:
    for calls in (0, 1, 3):  # its two, the verdict that it is for, and the reserve
        notices: list[str] = []
        context, _ = examine(verifier(), EndpointFacts(tmp_path), notices=notices, budget=Budget(calls=calls))
        (judged,) = await ModelVerifier(context).verify([PARAPHRASE], QUESTION)
        assert (judged.verdict, judged.by) == ("unsupported", "lexical")
        assert notices == ["too little of the budget is left for the verifier's exam: words alone checked the claims"]
        assert EndpointFacts(tmp_path).about(URL, "scripted").get(FACT) is None


async def test_the_score_is_remembered_for_an_endpoint_and_a_model_and_not_asked_for_twice(tmp_path: Path) -> None:
    context, policy = examine(verifier(), EndpointFacts(tmp_path))
    assert await pass_exam(context)
    assert len(policy.requests) == 2
    again, policy = examine([judge_hall], EndpointFacts(tmp_path))
    (judged,) = await ModelVerifier(again).verify([PARAPHRASE], QUESTION)
    assert (judged.verdict, judged.by, len(policy.requests)) == ("supported", "model", 1)
    elsewhere = EndpointFacts(tmp_path)
    assert elsewhere.about(URL, "another").get(FACT) is None
    assert elsewhere.about("http://127.0.0.1:10/v1", "scripted").get(FACT) is None


async def test_a_known_score_can_be_read_without_taking_the_exam() -> None:
    context, policy = examine([])
    assert await find_score(context, taking=False) is None
    assert policy.requests == []


@pytest.mark.parametrize("stored", [None, 3, {}, {"true_right": 12}, {"true_right": "x", "true_asked": None}])
def test_a_score_that_cannot_be_read_counts_as_unknown(stored: object) -> None:
    assert read_score(stored) is None


def test_a_score_of_another_version_of_the_exam_counts_as_unknown() -> None:
    stored = {"true_right": 12, "true_asked": 12, "false_right": 12, "false_asked": 12, "answers_right": True}
    assert read_score(stored) is not None
    assert read_score({**stored, "version": 0}) is None


def named(script: Callable[[Request], str], model: str) -> Callable[[Request], Completion]:
    """The replies of an endpoint that reports this model, whatever it was asked for."""
    return lambda request: Completion(script(request), model=model)


async def test_another_model_under_the_same_name_takes_the_exam_again_and_may_fail(tmp_path: Path) -> None:
    good, _ = examine(named(verifier(), "judge-1"), EndpointFacts(tmp_path))
    assert await pass_exam(good)
    notices: list[str] = []
    changed, policy = examine(named(verifier(says_yes), "judge-2"), EndpointFacts(tmp_path), notices=notices)
    (judged,) = await ModelVerifier(changed).verify([PARAPHRASE], QUESTION)
    assert (judged.verdict, judged.by) == ("unsupported", "lexical")
    assert len(policy.requests) == 2
    assert any("now serves 'judge-2', not 'judge-1'" in notice for notice in notices)
    assert EndpointFacts(tmp_path).about(URL, "scripted").get(FACT)["model"] == "judge-2"


async def test_another_model_under_the_same_name_that_passes_again_goes_on_judging(tmp_path: Path) -> None:
    assert await pass_exam(examine(named(verifier(), "judge-1"), EndpointFacts(tmp_path))[0])
    changed, _ = examine(named(verifier(), "judge-2"), EndpointFacts(tmp_path))
    (judged,) = await ModelVerifier(changed).verify([PARAPHRASE], QUESTION)
    assert (judged.verdict, judged.by) == ("supported", "model")


async def test_without_an_exam_the_verdicts_of_any_model_count() -> None:
    context = make_context({"verifier": [judge_hall]}, exam=False)
    (judged,) = await ModelVerifier(context).verify([PARAPHRASE], QUESTION)
    assert (judged.verdict, judged.by) == ("supported", "model")


async def test_the_exam_is_asked_as_a_run_asks() -> None:
    part = load_exam()[0]
    context, policy = examine(verifier())
    claims = [SourcedClaim(claim, part.sources) for claim, _ in part.claims]
    ruled = await ask_model(context, "verifier", claims, part.question, "the answer")
    assert [judged.verdict.holds for judged in ruled.judged] == [true for _, true in part.claims]
    assert (ruled.model, policy.requests[0].sampling.temperature) == ("scripted", 0.0)


def settings(folder: Path, base_url: str, **more: Any) -> Settings:
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "hall.md").write_text(HALL.text, encoding="utf-8")
    given = {"base_url": base_url, "model": "scripted", "workflow": "rag", "docs": (folder / "docs",)}
    return Settings(**{**given, "cache": folder / "cache", "journal": folder / "journal.sqlite", **more})


def by_role(script: Callable[[Request], str]) -> Callable[[Request], str]:
    answer = "Ilse Varga, its master, rebuilt the hall that the fire took."
    return lambda request: script(request) if request.schema else answer


async def test_a_run_takes_the_exam_once_and_the_next_run_does_not(tmp_path: Path) -> None:
    with Endpoint(by_role(verifier())) as endpoint:
        answers = []
        for _ in range(2):
            async with Hira(settings=settings(tmp_path, endpoint.base_url)) as hira:
                answers.append(await hira.ask(QUESTION))
        assert len(endpoint.calls) == 4 + 2
    assert [answer.status for answer in answers] == ["answered"] * 2
    assert [answer.rollout.usage.calls for answer in answers] == [4, 2]
    stored = json.loads((tmp_path / "cache" / "endpoints.json").read_text(encoding="utf-8"))
    assert stored[f"{endpoint.base_url} scripted"][FACT]["true_right"] == 12


@pytest.mark.parametrize("limit", [{"max_calls": 4}, {"max_time": 4.0}, {"max_tokens": 3_000}])
async def test_a_run_starts_no_exam_that_its_budget_cannot_pay_for(tmp_path: Path, limit: dict[str, Any]) -> None:
    with Endpoint(by_role(verifier()), delay=0.5) as endpoint:
        async with Hira(settings=settings(tmp_path, endpoint.base_url, **limit)) as hira:
            answer = await hira.ask(QUESTION)
        assert len(endpoint.calls) == 1
    too_little = "too little of the budget is left for the verifier's exam: words alone checked the claims"
    assert answer.rollout.notices == [too_little]
    assert (answer.status, answer.citations[0].by) == ("unverified", "lexical")
    journal = Journal(tmp_path / "journal.sqlite")
    again = await replay(journal, answer.rollout.run)
    assert (again.same, again.answer.citations) == (True, answer.citations)
    journal.close()


async def test_only_the_run_that_takes_the_exam_says_how_the_model_failed_it(tmp_path: Path) -> None:
    with Endpoint(by_role(verifier(says_yes))) as endpoint:
        said = []
        for _ in range(2):
            async with Hira(settings=settings(tmp_path, endpoint.base_url)) as hira:
                run = hira.stream(QUESTION)
                shown = [event.text async for event in run if isinstance(event, Notice)]
                said.append(run.answer.rollout.notices)
                early = [text for text in shown if text not in said[-1]]
                assert early == ([] if len(said) > 1 else [f"the answer, not checked yet: {run.answer.text}"])
    failed = "the model did not pass the exam of verifiers"
    assert said[0][1].startswith(f"{failed} (6 of 6 true claims recognised")
    assert said[1] == [f"{failed}: words alone decide"]


@pytest.mark.parametrize(("rule", "status"), [(knows, "answered"), (says_yes, "unverified")])
async def test_the_replay_of_a_run_that_took_the_exam_has_its_citations_and_asks_nobody(
    tmp_path: Path, rule: Quotes, status: str
) -> None:
    with Endpoint(by_role(verifier(rule))) as endpoint:
        runs = []
        for _ in range(2):
            async with Hira(settings=settings(tmp_path, endpoint.base_url)) as hira:
                runs.append(await hira.ask(QUESTION))
        asked = len(endpoint.calls)
    journal = Journal(tmp_path / "journal.sqlite")
    for answer in runs:
        assert answer.status == status
        again = await replay(journal, answer.rollout.run)
        assert again.same
        assert (again.answer.citations, again.answer.status) == (answer.citations, status)
    assert len(endpoint.calls) == asked
    journal.close()


async def test_the_setting_skips_the_exam(tmp_path: Path) -> None:
    with Endpoint(by_role(verifier(says_yes))) as endpoint:
        async with Hira(settings=settings(tmp_path, endpoint.base_url, verifier_exam=False)) as hira:
            answer = await hira.ask(QUESTION)
        assert len(endpoint.calls) == 2
    assert (answer.status, answer.citations[0].by) == ("answered", "model")
    assert not (tmp_path / "cache" / "endpoints.json").exists()


async def test_runs_at_the_same_time_take_the_exam_once_and_agree(tmp_path: Path) -> None:
    with Endpoint(by_role(verifier())) as endpoint:
        async with Hira(settings=settings(tmp_path, endpoint.base_url)) as hira:
            answers = await asyncio.gather(*(hira.ask(QUESTION) for _ in range(3)))
        assert len(endpoint.calls) == 2 + 3 * 2
    assert {answer.status for answer in answers} == {"answered"}
