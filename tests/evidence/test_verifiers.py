"""Verifiers: which sources a claim is held against, what a broken verifier costs, and when an answer is accepted."""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import hira
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
    find_lacking,
    is_accepted,
    verify,
    verify_answer,
)
from hira.evidence.verdicts import ALARM
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
    (one,) = verify("The ferry of Arn crosses the Dell every hour.", read(WEIR, FERRY))
    assert (one.source, one.attributed, one.verdict) == ("s2", True, "supported")
    assert one.quote == "The ferry of Arn crosses the Dell every hour."


def test_a_claim_with_a_mark_is_held_against_that_source_alone() -> None:
    (one,) = verify("The ferry of Arn crosses the Dell every hour [s1].", read(WEIR, FERRY))
    assert (one.source, one.attributed, one.verdict) == ("s1", False, "unsupported")


def test_a_bare_answer_is_supported_by_a_sentence_that_has_the_words_of_the_question_too() -> None:
    pages = read(
        Source("melby.md", "Melby", "Melby lies on the river Havel below the hill Birka."),
        Source("jarrow.md", "Jarrow", "Jarrow lies on the river Oder."),
    )
    question = "Which river does Melby lie on?"
    assert verify("Havel [s1]", pages, question)[0].verdict == "supported"
    assert verify("Havel", pages, question)[0].source == "s1"
    assert verify("Oder [s2]", pages, question)[0].verdict == "unsupported"
    assert verify("Birka [s2]", pages, question)[0].missing == ("Birka",)


def test_a_sentence_of_the_source_is_a_quotation() -> None:
    assert check("Its crest is 41 m long", WEIR).by == "quote"
    assert check("The crest of the weir of Arn is 41 m long", WEIR).by == "lexical"
    wrapped = Source("w", "W", "The crest of the weir of Arn, which the smith mended,\nis 41 m long.")
    assert check("The crest of the weir of Arn, which the smith mended, is 41 m long", wrapped).by == "quote"


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
        ("The weir of Arn was mended in 1911 by the smith Jonas Keel.", "answered"),
        ("The weir of Arn was mended by the smith Jonas Keel. It was a time of hard winters.", "unverified"),
        ("The weir of Arn was mended by the smith Jonas Keel. It took him eleven weeks.", "unverified"),
        ("The weir of Arn was mended in 1911. The mender was the smith Ida Moss.", "unverified"),
        ("The weir of Arn was mended in 1911. It was never mended by a smith.", "unverified"),
        ("The weir of Arn was mended in 1911. The smith Jonas Keel broke the weir of Arn.", "unverified"),
        ("A duck drew the plans. The weir of Arn was mended in 1911.", "unverified"),
        ("The weir of Arn was mended in 1911 by the baker Jonas Keel.", "unverified"),
        ("The weir is haunted by a duck.", "unverified"),
        ("The documents do not say who paid the smith.", "insufficient_evidence"),
        ("", "failed"),
    ],
)
async def test_the_status_says_what_the_answer_is_worth(answer: str, status: str) -> None:
    context = make_context(ScriptedPolicy([]))
    context.rollout.sources.add(WEIR)
    assert (await rollout(Says(answer), "Who mended the weir?", context)).status == status


@pytest.mark.parametrize(
    ("question", "answer", "lacking"),
    [
        ("Where was the smith Jonas Keel born?", "The weir of Arn was mended by the smith Jonas Keel.", ("born",)),
        ("How deep is the Dell at the weir?", "The crest of the weir is 41 m long.", ("Dell",)),
        ("How long is the crest of the weir?", "The crest of the weir is 41 m long.", ()),
    ],
)
async def test_a_supported_claim_that_does_not_speak_of_the_question_leaves_an_answer_unverified(
    question: str, answer: str, lacking: tuple[str, ...]
) -> None:
    context = make_context(ScriptedPolicy([]))
    context.rollout.sources.add(WEIR)
    record = await rollout(Says(answer), question, context)
    assert record.citations[0].verdict == "supported"
    assert record.lacking == lacking
    assert (record.status, record.answers) == (("unverified", "no") if lacking else ("answered", "yes"))


def test_claims_that_name_the_same_thing_speak_of_the_question_together() -> None:
    rooms = "Jonas Keel mended the weir of Arn. Jonas Keel was born in Tarn."
    question = "Where was the smith who mended the weir of Arn born?"
    sources = read(Source("k.md", "The smith", rooms))
    alone = verify("Jonas Keel was born in Tarn.", sources, question)
    both = verify("Jonas Keel mended the weir of Arn. Jonas Keel was born in Tarn.", sources, question)
    assert find_lacking(alone, question) == ("mended", "weir", "Arn")
    assert find_lacking(both, question) == ()


async def test_without_a_check_every_answer_but_a_refusal_counts_as_answered() -> None:
    for answer, status in (("A duck did it.", "answered"), ("The sources do not say.", "insufficient_evidence")):
        context = make_context(ScriptedPolicy([]), verify="off")
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


def made(*verdicts: str) -> list[Citation]:
    return [Citation("s1", f"claim {at}", "", Verdict(verdict)) for at, verdict in enumerate(verdicts)]


def test_an_answer_needs_all_of_its_claims_and_a_report_nine_of_ten() -> None:
    assert not is_accepted(made("supported", "unsupported"))
    assert not is_accepted(made("unsupported", "supported", "supported"))
    assert not is_accepted(made("supported", "contradicted"))
    assert not is_accepted(made("unsupported", *["supported"] * 8))
    assert is_accepted(made("unsupported", *["supported"] * 9))
    assert is_accepted(made("unchecked", *["supported"] * 18, "unsupported"))
    assert not is_accepted(made("unsupported", "unchecked", *["supported"] * 17))
    assert not is_accepted(made("contradicted", *["supported"] * 9))
    assert not is_accepted([])


def test_a_verdict_is_a_plain_string_with_its_meaning_and_its_rank() -> None:
    assert json.loads(json.dumps([*Verdict])) == ["unchecked", "unsupported", "contradicted", "supported"]
    assert [verdict.rank for verdict in Verdict] == [0, 1, 2, 3]
    assert [verdict for verdict in Verdict if verdict.holds] == [Verdict.SUPPORTED]
    assert [verdict for verdict in Verdict if verdict.denies] == [Verdict.CONTRADICTED]
    assert all(verdict.label() == verdict and verdict.label(chinese=True) != verdict for verdict in Verdict)


def test_the_worst_verdict_is_the_one_that_a_reader_must_see_first() -> None:
    assert max([Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.UNSUPPORTED], key=ALARM.index) == "contradicted"
    assert max([Verdict.SUPPORTED, Verdict.UNCHECKED], key=ALARM.index) == "unchecked"


def test_a_judgement_or_citation_with_an_unknown_verdict_is_refused() -> None:
    assert Judgement("supported").verdict is Verdict.SUPPORTED  # type: ignore[arg-type]  # as a plug-in writes it
    assert made("unsupported")[0].verdict is Verdict.UNSUPPORTED
    with pytest.raises(ValueError, match="fine"):
        Judgement("fine")  # type: ignore[arg-type]


def test_a_verdict_is_spelled_in_one_file() -> None:
    """A new verdict changes `verdicts.py`, and nothing else breaks."""
    root = Path(hira.__file__).parent
    spelled = re.compile(r'"(?:(?:un)?supported|contradicted|unchecked)"')
    files = {str(path.relative_to(root)) for path in root.rglob("*.py") if spelled.search(path.read_text("utf-8"))}
    assert files == {"evidence/verdicts.py"}
