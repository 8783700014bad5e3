"""Verifiers: which sources a claim is held against, what a broken verifier costs, and when an answer is accepted."""

import asyncio
from collections.abc import Sequence

import pytest

from hira.agents.run_context import RunContext
from hira.core.events import Events, Notice
from hira.core.sources import join_question_and_answer
from hira.evidence import (
    OUTPUT,
    Citation,
    Judgement,
    Source,
    SourcedClaim,
    Sources,
    Verdict,
    Verifier,
    check,
    is_accepted,
    verify,
    verify_answer,
)
from hira.testing import ScriptedPolicy, make_context
from hira.workflows import rollout

WEIR = Source(
    "weir.md", "The weir", "The weir of Arn was mended in 1911 by the smith Jonas Keel. Its crest is 41 m long."
)
FERRY = Source(
    "ferry.md", "The ferry", "The ferry of Arn crosses the Dell every hour. Lena Brook has steered it since 1987."
)


def read(*sources: Source) -> Sources:
    found = Sources()
    for source in sources:
        found.add(source)
    return found


def test_a_claim_without_a_mark_is_attributed_to_the_source_that_supports_it() -> None:
    (one,) = verify("Lena Brook has steered the ferry since 1987.", read(WEIR, FERRY))
    assert (one.source, one.attributed, one.verdict) == ("s2", True, "supported")
    assert "Lena Brook" in one.quote


def test_a_claim_with_a_mark_is_held_against_that_source_alone() -> None:
    (one,) = verify("Lena Brook has steered the ferry since 1987 [s1].", read(WEIR, FERRY))
    assert (one.source, one.attributed, one.verdict) == ("s1", False, "unsupported")


def test_a_bare_answer_is_joined_to_its_question_by_another_source() -> None:
    pages = read(
        Source("tova.md", "Tova", "Tova Reed was born in Melby. She paints."),
        Source("melby.md", "Melby", "Melby lies on the river Havel. Melby lies below the hill Birka."),
        Source("jarrow.md", "Jarrow", "Jarrow lies on the river Oder."),
    )
    question = "Which river flows through the town where Tova Reed was born?"
    assert verify("Havel [s2]", pages, question)[0].verdict == "supported"
    assert verify("Havel", pages, question)[0].source == "s2"
    assert verify("Oder [s3]", pages, question)[0].verdict == "unsupported"


def test_a_sentence_of_the_source_is_a_quotation() -> None:
    assert check("Its crest is 41 m long", WEIR).by == "quote"
    assert check("The crest of the weir of Arn is 41 m long", WEIR).by == "lexical"
    wrapped = Source("w", "W", "Some say:\nits crest\nis 41 m long; others differ.")
    assert (check("Its crest is 41 m long", wrapped).by, check("Its crest is 41", wrapped).by) == ("quote", "lexical")


def test_a_tools_result_counts_together_with_its_call() -> None:
    call = 'orders({"sql": "SELECT sum(amount) FROM orders WHERE customer = \'Ada\'"})'
    source = Source("tool:orders(…)", "orders", join_question_and_answer(call, "15.0"), "tool")
    assert check("Ada's orders sum to 15.0", source).verdict == "supported"
    assert check("Ada's orders sum to 16.0", source).verdict != "supported"
    assert check("The orders of Bert sum to 15.0", source).verdict != "supported"
    assert check("Bert's orders sum to 15.0", source).verdict != "supported"


@pytest.mark.parametrize(
    ("claim", "program", "output", "verdict"),
    [
        ("The mean is 42.0", "print('mean', sum(v) / len(v))", "mean 42.0", "supported"),
        ("Perth is the capital", "print('Perth is the capital')", "Perth is the capital", "unchecked"),
        ("rows = 32", 'print("rows =", 32)', "rows = 32", "unchecked"),
        ("rows = 32", 'few, many = 3, 2\nprint("rows =", count())', "rows = 32", "supported"),
        (
            "Tilsen is the largest",
            "print(max({'Orlen': f(1), 'Tilsen': f(2)}), 'is the largest')",
            "Tilsen is the largest",
            "supported",
        ),
    ],
)
def test_what_a_program_was_written_with_and_only_printed_is_no_evidence(
    claim: str, program: str, output: str, verdict: Verdict
) -> None:
    assert check(claim, Source("python:1", "p", f"{program}{OUTPUT}{output}", "computation")).verdict == verdict


@pytest.mark.parametrize("unit", ["[a](", "word:word", "| a "])
def test_a_hostile_source_is_compared_in_one_pass(unit: str) -> None:
    """The rules of hira 0.1 took minutes for the first two."""
    hostile = Source("x", "X", unit * 40_000, id="s1")
    for claim in ("The mill of Lom was opened in 1801", unit.strip() * 5 or "a b"):
        assert check(claim, hostile).verdict in {"supported", "unsupported", "unchecked", "contradicted"}


class Broken:
    name = "broken"

    def __init__(self, reply: object) -> None:
        self.reply = reply

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> Sequence[Judgement]:
        if isinstance(self.reply, Exception):
            raise self.reply
        if self.reply == "slow":
            await asyncio.sleep(60)
        return self.reply  # type: ignore[return-value]  # nonsense is what is tested


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (ZeroDivisionError("no weights"), "ZeroDivisionError: no weights"),
        ("slow", "no verdict within 0.05 seconds"),
        ([], "0 judgements for 1 claims"),
        (["supported"], "no judgement: 'supported'"),
        ([Judgement("supported", float("nan"))], "no judgement"),
    ],
)
async def test_a_broken_verifier_leaves_claims_unchecked_and_says_why(reply: object, why: str) -> None:
    assert isinstance(Broken(reply), Verifier)
    citations, (reason,) = await verify_answer("The weir leaks [s1].", read(WEIR), "", Broken(reply), seconds=0.05)
    assert [(one.verdict, one.by) for one in citations] == [("unchecked", "broken")]
    assert reason.startswith("verifier 'broken' failed: ")
    assert why in reason


class Says:
    name = "says"

    def __init__(self, answer: str) -> None:
        self.answer = answer

    async def run(self, question: str, context: RunContext) -> str:
        return self.answer


async def test_a_run_with_a_broken_verifier_ends_with_its_answer_and_a_notice() -> None:
    notices: list[Notice] = []
    context = make_context(ScriptedPolicy([]), verifier=Broken(OSError("the disk is gone")))
    context.events = Events(lambda event: notices.append(event) if isinstance(event, Notice) else None)
    context.rollout.sources.add(WEIR)
    record = await rollout(Says("The weir leaks."), "What does the weir do?", context)
    assert (record.status, record.answer) == ("unverified", "The weir leaks.")
    assert any("the disk is gone" in one.text and one.important for one in notices)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("The smith Jonas Keel mended the weir of Arn in 1911.", "answered"),
        ("The smith Jonas Keel mended the weir of Arn in 1911. It took him eleven weeks of hard winter.", "answered"),
        ("A duck drew the plans. The weir of Arn was mended in 1911.", "unverified"),
        ("The weir is haunted by a duck.", "unverified"),
        ("The documents do not say who paid the smith.", "insufficient_evidence"),
        ("", "failed"),
    ],
)
async def test_the_status_says_what_the_answer_is_worth(answer: str, status: str) -> None:
    context = make_context(ScriptedPolicy([]))
    context.rollout.sources.add(WEIR)
    assert (await rollout(Says(answer), "Who mended the weir?", context)).status == status


async def test_what_follows_a_refusal_is_checked_and_the_refusal_stays_one() -> None:
    context = make_context(ScriptedPolicy([]))
    context.rollout.sources.add(WEIR)
    answer = "The documents do not say who paid the smith, but the weir of Arn was mended in 1911. It was painted red."
    record = await rollout(Says(answer), "Who paid the smith?", context)
    assert record.status == "insufficient_evidence"
    assert [(one.claim, one.verdict) for one in record.citations] == [
        ("the weir of Arn was mended in 1911", "supported"),
        ("It was painted red", "unsupported"),
    ]


def made(*verdicts: Verdict) -> list[Citation]:
    return [Citation("s1", f"claim {at}", "", verdict) for at, verdict in enumerate(verdicts)]


def test_an_answer_is_accepted_by_its_first_claim_and_a_report_by_half_of_them() -> None:
    assert is_accepted(made("supported", "unsupported", "unchecked"))
    assert not is_accepted(made("unsupported", "supported", "supported"))
    assert not is_accepted(made("supported", "contradicted"))
    assert is_accepted(made("unsupported", *["supported"] * 5, *["unchecked"] * 4))
    assert not is_accepted(made(*["supported"] * 4, *["unsupported"] * 6))
    assert not is_accepted([])
