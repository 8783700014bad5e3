"""What `hira ask` and `hira verify` print about an answer that was checked, and the codes they end with."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hira import Hira, tool
from hira.agents.trajectory import Rollout
from hira.cli.report import as_html, as_markdown
from hira.core.policy import Request
from hira.evidence import Source, verify
from hira.runtime.answer import answer_of
from hira.runtime.settings import Settings
from hira.testing import Endpoint, ScriptedPolicy, calling
from tests.cli.command import Command, Said

MILL = "The mill of Orsk was built in 1742 by Ida Lorn.\nIn 1790 a flood took its wheel.\n"
RIGHT = "According to the documents, the mill of Orsk was built by Ida Lorn."
INVENTED = "The mill of Orsk serves pancakes to visitors."
REFUSED = "The documents do not say who painted the mill."


@pytest.fixture
def hira(tmp_path: Path) -> Command:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "mill.md").write_text(MILL, encoding="utf-8")
    return Command(tmp_path, {})


def answering(answer: str, verdict: str = "unsupported", quote: str = "") -> Callable[[Request], str]:
    def reply(request: Request) -> str:
        judged = json.dumps({"claims": [{"number": 1, "quote": quote, "verdict": verdict}]})
        return judged if "Check claims against excerpts" in request.messages[0].text else answer

    return reply


def ask(hira: Command, endpoint: Endpoint, *more: str) -> Said:
    where = ("--docs", "docs", "--base-url", endpoint.base_url, "--model", endpoint.model)
    return hira("ask", "Who built the mill of Orsk?", "--workflow", "rag", "--quiet", *where, *more)


def test_a_right_answer_without_marks_is_printed_with_its_source_and_accepted(hira: Command) -> None:
    with Endpoint(answering(RIGHT, "supported", "built in 1742 by Ida Lorn")) as endpoint:
        said = ask(hira, endpoint)
    assert (said.code, said.err) == (0, "")
    assert said.out == f"{RIGHT}\n\n[s1] mill — mill.md (supported, attributed)\n"


def test_an_unsupported_answer_is_printed_and_marked_and_nothing_is_suggested_that_was_done(hira: Command) -> None:
    with Endpoint(answering(INVENTED)) as endpoint:
        said = ask(hira, endpoint)
    assert said.code == 4
    assert said.out.startswith("The mill of Orsk serves pancakes to visitors (unsupported).\n")
    assert "the answer is not verified: no source supports its main claim" in said.err
    assert "--docs" not in said.err


def test_a_refusal_is_no_evidence_and_suggests_other_documents(hira: Command) -> None:
    with Endpoint(answering(REFUSED)) as endpoint:
        said = ask(hira, endpoint)
    assert (said.code, said.out) == (4, f"{REFUSED}\n")
    assert "not enough evidence: what was read does not hold the answer" in said.err
    assert "other documents or a web search" in said.err
    assert "--docs" not in said.err


def test_without_documents_naming_some_is_suggested(hira: Command) -> None:
    with Endpoint(answering("Ida Lorn built it.")) as endpoint:
        where = ("--base-url", endpoint.base_url, "--model", endpoint.model, "--workflow", "hira")
        said = hira("ask", "Who built the mill of Orsk?", "--quiet", *where)
    assert said.code == 4
    assert "--docs" in said.err


def test_a_contradicted_claim_is_marked_and_its_source_named(hira: Command) -> None:
    with Endpoint(answering(INVENTED, "contradicted", "a flood took its wheel")) as endpoint:
        said = ask(hira, endpoint)
    assert said.code == 4
    assert "(contradicted)" in said.out
    assert "[s1] contradicts a claim in the answer" in said.err


def test_json_tells_of_each_citation_what_was_claimed_and_how_it_was_checked(hira: Command) -> None:
    with Endpoint(answering(INVENTED)) as endpoint:
        found = json.loads(ask(hira, endpoint, "--json").out)
    (one,) = found["citations"]
    assert (found["status"], found["answer"]) == ("unverified", INVENTED)
    assert one["claim"] == INVENTED.rstrip(".")
    assert (one["verdict"], one["score"], one["by"], one["attributed"]) == ("unsupported", 0.0, "model", True)


def test_verify_shows_the_verdicts_of_the_run_without_a_network_and_judges_again_when_asked(hira: Command) -> None:
    with Endpoint(answering(INVENTED, "supported", "a flood took its wheel")) as endpoint:
        assert ask(hira, endpoint).code == 0
    again = hira("verify", "last")
    assert again.code == 0
    assert again.out.startswith("supported     [s1] mill — mill.md (model, attributed)\n")
    by_words = hira("verify", "last", "--verify", "lexical", "--json")
    assert by_words.code == 4
    assert json.loads(by_words.out)["citations"][0]["by"] == "lexical"
    with Endpoint(answering("", "unsupported")) as other:
        by_model = hira("verify", "last", "--model", other.model, "--base-url", other.base_url)
    assert by_model.code == 4
    assert by_model.out.startswith("unsupported ")
    assert (hira("replay", "last", "--quiet").code, hira("show", "last").code) == (0, 0)


def test_a_report_marks_what_is_not_supported() -> None:
    record = Rollout("r1", "The mill", "mams", answer="# The mill\n\nIt serves pancakes [s1]. Ida Lorn built it [s1].")
    record.sources.add(Source("mill.md", "The mill", MILL))
    record.citations = verify(record.answer, record.sources)
    answer = answer_of(record, "scripted")
    assert "It serves pancakes [1] (unsupported). Ida Lorn built it [1]." in as_markdown(answer)
    assert "(unsupported). Ida Lorn" in as_html(answer)
    assert answer.text == record.answer


async def test_what_an_own_tool_returned_is_evidence_together_with_its_call() -> None:
    @tool
    def query(sql: str) -> str:
        """Run SQL over the orders."""
        return "15.0" if "Ada" in sql else "0.0"

    asked = "What do Ada's orders sum to?"
    policy = ScriptedPolicy(
        {
            "planner": [calling("subtask", task=asked), r"\boxed{The orders of Ada sum to 15.0 [s1].}"],
            "coordinator": [
                '{"reason": "a table", "expert": "deep_search"}',
                '{"reasoning": "", "conclusion": "The orders of Ada sum to 15.0 [s1]."}',
            ],
            "*": [calling("query", sql="SELECT sum(amount) FROM orders WHERE name = 'Ada'"), r"\boxed{15.0 [s1]}"],
        }
    )
    given = Settings(model="scripted", journal=None, cache=None)
    async with Hira(settings=given, tools=[query], policies={"*": policy}) as hira:
        answer = await hira.ask(asked)
    assert (answer.status, answer.text) == ("answered", "The orders of Ada sum to 15.0 [s1].")
    (source,) = answer.sources
    assert (source.kind, source.evidence) == ("tool", "15.0")
    assert "WHERE name = 'Ada'" in source.call
