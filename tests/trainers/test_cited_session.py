"""hira's documents as tools of another framework's agent, and the verdicts on its citations as its reward."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hira import Hira
from hira.agents.trajectory import Rollout
from hira.evidence import Citation, Verdict
from hira.trainers import score_citations
from hira.trainers.cited_session import CitedSession, open_cited_session


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[CitedSession]:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "arnby.md").write_text("# Arnby\n\nThe river Vell flows through Arnby.\n")
    async with (
        Hira("offline", docs=tmp_path / "docs", journal=False) as hira,
        open_cited_session(await hira.open_session(), "r1", "Which river flows through Arnby?") as made,
    ):
        yield made


async def test_an_agent_searches_and_is_paid_for_what_its_sources_say(session: CitedSession) -> None:
    assert {tool.name for tool in session.tools} == {"search", "browse"}
    shown = await session.call("search", {"query": "river Arnby"})
    assert "[s1]" in shown
    assert "The river Vell flows through Arnby." in shown
    score = await session.score("The river Vell flows through Arnby. [s1]")
    assert (score.value, score.parts["supported"]) == (1.0, 1.0)


async def test_a_claim_that_no_source_holds_earns_nothing(session: CitedSession) -> None:
    await session.call("search", {"query": "river Arnby"})
    assert (await session.score("The river Lorn flows through Arnby. [s1]")).value == 0.0


async def test_an_answer_from_memory_alone_earns_nothing(session: CitedSession) -> None:
    assert (await session.score("The river Vell flows through Arnby.")).value == 0.0


async def test_a_wrong_call_is_told_to_the_model(session: CitedSession) -> None:
    assert "There is no tool 'google'" in await session.call("google", {})
    assert "failed" in await session.call("search", {"words": 3})


def test_each_claim_counts_once_and_a_contradicted_one_takes_a_supported_one_away() -> None:
    rollout = Rollout("r", "q", "rag")
    assert score_citations(rollout).value == 0.0
    for claim, verdict in (("a", "supported"), ("a", "unsupported"), ("b", "unsupported"), ("c", "supported")):
        rollout.citations.append(Citation("s1", claim, "", Verdict(verdict)))
    assert score_citations(rollout).value == pytest.approx(2 / 3)
    rollout.citations.append(Citation("s1", "d", "", Verdict.CONTRADICTED))
    assert score_citations(rollout).value == pytest.approx(1 / 4)
