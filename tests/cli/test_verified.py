"""What `hira ask` and `hira verify` print about an answer that was checked, answers as JSON (`--schema`), and the codes
they end with."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hira.cli import ENDPOINT
from hira.core.policy import Request
from hira.testing import Endpoint, calling
from tests.cli.command import Command, Said, at

MILL = "The mill of Orsk was built in 1742 by Ida Lorn.\nIn 1790 a flood took its wheel.\n"
INVENTED = "The mill of Orsk serves pancakes to visitors."
REFUSED = "The documents do not say who painted the mill."


@pytest.fixture
def hira(tmp_path: Path) -> Command:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "mill.md").write_text(MILL, encoding="utf-8")
    return Command(tmp_path, {"HIRA_VERIFIER_EXAM": "false"})


def answering(answer: str, verdict: str = "unsupported", quote: str = "") -> Callable[[Request], str]:
    def reply(request: Request) -> str:
        judged = json.dumps({"claims": [{"number": 1, "quote": quote, "verdict": verdict}], "answers": "yes"})
        return judged if "Check claims against excerpts" in request.messages[0].text else answer

    return reply


def ask(hira: Command, endpoint: Endpoint, *more: str) -> Said:
    return hira("ask", "Who built the mill of Orsk?", "--workflow", "rag", "-q", "--docs", "docs", *at(endpoint), *more)


@pytest.mark.parametrize(
    ("verdict", "err"),
    [
        (
            "unsupported",
            "the answer is not verified: the check did not find it in a source\n",
        ),
        ("contradicted", "[s1] contradicts a claim in the answer"),
    ],
)
def test_an_unsupported_answer_is_printed_and_marked_and_nothing_is_suggested_that_was_done(
    hira: Command, verdict: str, err: str
) -> None:
    with Endpoint(answering(INVENTED, verdict, "a flood took its wheel")) as endpoint:
        said = ask(hira, endpoint)
    assert said.code == 4
    missing = "; the quotation does not say: serves, pancakes, visitors" if verdict == "unsupported" else ""
    assert said.out.startswith(f"The mill of Orsk serves pancakes to visitors ({verdict}{missing}).\n")
    assert err in said.err
    assert "--docs" not in said.err


def test_a_later_claim_that_no_source_has_leaves_the_answer_unverified(hira: Command) -> None:
    built = "The mill of Orsk was built in 1742 by Ida Lorn [s1]."
    with Endpoint(answering(f"{built} In 1791 a flood took its wheel.")) as endpoint:
        wrong = ask(hira, endpoint, "--verify", "lexical")
    with Endpoint(answering(f"{built} Many people like to visit it.")) as endpoint:
        added = ask(hira, endpoint, "--verify", "lexical")
    assert (wrong.code, added.code) == (4, 4)
    assert "the check did not find “In 1791 a flood took its wheel” in a source" in wrong.err


def test_a_refusal_is_no_evidence_and_suggests_other_documents(hira: Command) -> None:
    with Endpoint(answering(REFUSED)) as endpoint:
        said = ask(hira, endpoint)
    assert (said.code, said.out) == (4, f"{REFUSED}\n")
    assert "hira: not enough evidence\n" in said.err, "the answer says what is missing"
    assert "closest: “The mill of Orsk was built in 1742 by Ida Lorn.” (mill.md)" in said.err
    assert "other documents or a web search" in said.err
    assert "--docs" not in said.err


def test_the_closest_sentence_is_of_the_newest_edition(hira: Command, tmp_path: Path) -> None:
    docs = tmp_path / "port"
    docs.mkdir()
    docs.joinpath("port-2024.md").write_text("# Port 2024\n\nThe port did lose 10 tons of fish.\n", "utf-8")
    docs.joinpath("port-2025.md").write_text("# Port 2025\n\nThe port has 20 tons of fish in June.\n", "utf-8")
    question = "How many tons of fish did the port lose in May?"
    said = hira("ask", question, "--docs", str(docs), "--workflow", "rag", "--model", "offline")
    assert "(port-2025.md" in said.err


def test_verify_shows_the_verdicts_of_the_run_without_a_network_and_judges_again_when_asked(hira: Command) -> None:
    with Endpoint(answering(INVENTED, "supported", "The mill of Orsk was built in 1742")) as endpoint:
        assert ask(hira, endpoint).code == 0
    again = hira("verify", "last")
    assert again.code == 0
    assert again.out.startswith("supported     [s1] mill — mill.md (model, found by hira)\n")
    by_words = hira("verify", "last", "--verify", "lexical", "--json")
    assert by_words.code == 4
    assert json.loads(by_words.out)["citations"][0]["by"] == "lexical"
    with Endpoint(answering("", "unsupported")) as other:
        by_model = hira("verify", "last", "--model", other.model, "--base-url", other.base_url)
    assert by_model.code == 4
    assert by_model.out.startswith("unsupported ")
    assert (hira("replay", "last", "--quiet").code, hira("show", "last").code) == (0, 0)


def test_verify_says_that_words_alone_decide_if_the_model_fails_the_exam(hira: Command) -> None:
    with Endpoint(answering(INVENTED)) as endpoint:
        ask(hira, endpoint)
        said = hira("verify", "last", *at(endpoint), HIRA_VERIFIER_EXAM="true")
    assert said.code == 4
    assert "the model did not pass the exam of verifiers" in said.err
    assert "words alone decide" in said.err
    assert "(lexical, the closest source that hira found)" in said.out


SCHEMA = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}
BUILT = r"\boxed{The mill of Orsk was built in 1742 by Ida Lorn [s1].}"


def test_a_failed_run_lists_what_it_read_without_a_verdict(hira: Command) -> None:
    search = calling("search", query="mill of Orsk")
    with Endpoint([search], faults=lambda number: "403" if number > 1 else "") as endpoint:
        said = ask(hira, endpoint, "--workflow", "react")
    assert said.code == ENDPOINT
    assert "[s1] mill — mill.md" in said.out
    assert "supported" not in said.out


def test_a_run_whose_model_never_answered_ends_with_the_error_alone(hira: Command) -> None:
    with Endpoint(faults=lambda _: "403") as endpoint:
        said = ask(hira, endpoint)
    assert (said.code, said.out) == (ENDPOINT, "")


@pytest.fixture
def typed(hira: Command) -> Command:
    (hira.folder / "year.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    (hira.folder / "typo.json").write_text('{"type": "objec"}', encoding="utf-8")
    return hira


def ask_typed(typed: Command, replies: list[str], schema: str = "year.json") -> Said:
    with Endpoint(replies) as endpoint:
        return ask(typed, endpoint, "--verify", "lexical", "--schema", schema)


def test_with_a_schema_stdout_is_the_json(typed: Command) -> None:
    said = ask_typed(typed, [BUILT, '{"year": 1742}'])
    assert (said.code, json.loads(said.out)) == (0, {"year": 1742})


def test_without_a_value_the_text_goes_to_stderr_and_the_code_is_4(typed: Command) -> None:
    said = ask_typed(typed, [BUILT, "1742", "the year 1742"])
    assert (said.code, said.out) == (4, "")
    assert "The mill of Orsk was built in 1742 by Ida Lorn [s1]." in said.err
    assert "use a stronger model" in said.err
    said = typed("ask", "Who built the mill?", "--docs", "docs", "-m", "offline", "--schema", "year.json")
    assert said.code == 4
    assert said.err.endswith("name a model\n  --model NAME connects one (hira doctor)\n")


def test_a_file_without_a_schema_is_refused_before_any_call(typed: Command) -> None:
    for schema, says in (
        ("missing.json", "--schema missing.json: there is no such file"),
        ("docs/mill.md", "--schema docs/mill.md: not valid JSON: expected value"),
        ("typo.json", "'objec' is not one of ['array', 'boolean', "),
    ):
        said = ask_typed(typed, [], schema)
        assert (said.code, said.out, said.err.count(schema)) == (2, "", 1)
        assert says in said.err
