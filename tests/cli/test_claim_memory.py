"""Memory across conversations: only verified claims, only about documents that have not changed."""

import json
from pathlib import Path

import pytest
from command import Command

from hira import Hira
from hira.core.errors import UsageError
from hira.runtime.claim_memory import ClaimMemory
from hira.runtime.settings import load
from hira.testing import ScriptedPolicy, calling
from hira.testing.script import ScriptedPolicy as Script

TOWERS = "The tower of Brevik was built in 1742.\n\nThe tower of Larvik has 90 steps.\n"
BUILT = "The tower of Brevik was built in 1742. [s1]"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "towers.md").write_text(TOWERS)
    return tmp_path / "docs"


def open_hira(docs: Path, *replies: str, **arguments: object) -> tuple[Hira, Script]:
    policy = ScriptedPolicy([calling("search", query="tower of Brevik built"), *replies])
    memory = docs.parent / "memory.sqlite"
    return Hira(policies={"*": policy}, docs=docs, workflow="react", memory=memory, **arguments), policy  # type: ignore[arg-type]


async def ask(docs: Path, reply: str, **arguments: object) -> tuple[str, Script]:
    """Ask once, in a new conversation, and return what the search showed."""
    hira, policy = open_hira(docs, reply, **arguments)
    async with hira:
        await hira.ask("When was the tower of Brevik built?")
    return policy.requests[-1].messages[-1].text, policy


def list_claims(docs: Path) -> list[str]:
    return [claim.claim for claim in ClaimMemory(docs.parent / "memory.sqlite").list()]


async def test_a_verified_claim_is_found_again_with_its_citation_and_date(docs: Path) -> None:
    first, _ = await ask(docs, BUILT)
    assert "verified in an answer of" not in first
    (claim,) = ClaimMemory(docs.parent / "memory.sqlite").list()
    assert (claim.claim, Path(claim.path).name) == ("The tower of Brevik was built in 1742", "towers.md")
    second, _ = await ask(docs, BUILT)
    assert f"verified in an answer of {claim.date}: The tower of Brevik was built in 1742)" in second
    assert "towers.md" in second


async def test_a_claim_found_again_is_verified_against_its_document_again(docs: Path) -> None:
    await ask(docs, BUILT)
    hira, _ = open_hira(docs, "The tower of Brevik was built in 1743. [s1]")
    async with hira:
        answer = await hira.ask("When was the tower of Brevik built?")
    assert [citation.verdict.value for citation in answer.citations] != ["supported"]
    assert list_claims(docs) == ["The tower of Brevik was built in 1742"]


@pytest.mark.parametrize("reply", ["The tower of Brevik was built in 1743. [s1]", "The tower of Oslo is red. [s1]",
                                   "The documents do not hold the answer.", "I think it was built in 1742 by Anna. [s1]"])  # fmt: skip
async def test_nothing_unverified_is_kept(reply: str, docs: Path) -> None:
    await ask(docs, reply)
    assert list_claims(docs) == [] if (docs.parent / "memory.sqlite").exists() else True


async def test_a_claim_whose_document_changed_is_not_used(docs: Path) -> None:
    await ask(docs, BUILT)
    (docs / "towers.md").write_text(TOWERS.replace("1742", "1842"))
    shown, _ = await ask(docs, "The tower of Brevik was built in 1842. [s1]")
    assert "1742" not in shown
    assert list_claims(docs) == ["The tower of Brevik was built in 1842", "The tower of Brevik was built in 1742"]


async def test_other_documents_do_not_see_it(docs: Path) -> None:
    await ask(docs, BUILT)
    other = docs.parent / "other"
    other.mkdir()
    (other / "towers.md").write_text("The tower of Brevik is made of oak.\n")
    hira, policy = open_hira(docs, "The tower of Brevik is made of oak. [s1]")
    async with hira:
        await hira.ask("When was the tower of Brevik built?", docs=other)
    assert "1742" not in policy.requests[-1].messages[-1].text


async def test_without_being_asked_nothing_is_kept(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(docs.parent / "state"))
    async with Hira("offline", docs=docs) as hira:
        await hira.ask("When was the tower of Brevik built?")
    assert not (docs.parent / "state").exists()
    async with Hira("offline", docs=docs, memory=True) as hira:
        await hira.ask("When was the tower of Brevik built?")
    assert (docs.parent / "state" / "hira" / "memory.sqlite").stat().st_mode & 0o077 == 0


async def test_a_memory_that_cannot_be_written_is_a_notice_and_the_answer_is_there(docs: Path) -> None:
    broken = docs.parent / "broken.sqlite"
    broken.write_bytes(b"no database, only text that is long enough to be read as a header" * 100)
    notices: list[str] = []
    async with Hira("offline", docs=docs, workflow="rag", memory=broken) as hira:
        run = hira.stream("When was the tower of Brevik built?")
        notices += [event.text async for event in run if type(event).__name__ == "Notice"]
    assert "1742" in run.answer.text
    assert any("nothing of this answer is remembered" in notice for notice in notices)
    assert broken.read_bytes().startswith(b"no database")


def test_a_file_of_the_folder_may_not_turn_it_on(tmp_path: Path) -> None:
    (tmp_path / "hira.toml").write_text("memory = true\n")
    with pytest.raises(UsageError, match="may not be set by a project's file"):
        load({}, {}, tmp_path, tmp_path)
    assert load({}, {"HIRA_MEMORY": "true"}, tmp_path / "a", tmp_path).memory == (
        tmp_path / ".local" / "state" / "hira" / "memory.sqlite"
    )
    assert load({}, {"HIRA_MEMORY": "off"}, tmp_path / "a", tmp_path).memory is None


def test_the_command_keeps_lists_and_forgets(docs: Path) -> None:
    hira = Command(docs.parent)
    for listed in (hira("memory"), hira("memory", "list", "--json")):
        assert (listed.code, listed.out) == (0, "")
        assert listed.err.startswith("hira: nothing is remembered")
        assert "hira ask --memory" in listed.err
    assert hira("memory", "forget", "all").code == 2
    asked = hira("ask", "When was the tower of Brevik built?", "--docs", str(docs), "--memory", "-m", "offline")
    assert (asked.code, "1742" in asked.out) == (0, True)
    hira("ask", "How many steps has the tower of Larvik?", "--docs", str(docs), "--memory", "-m", "offline")
    lines = hira("memory", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == ["2", "1"]
    assert lines[1].endswith("The tower of Brevik was built in 1742 — towers.md, lines 1–3")
    assert json.loads(hira("memory", "list", "--json").out.splitlines()[1])["question"].startswith("When was")
    (docs / "towers.md").write_text(TOWERS.replace("1742", "1842"))
    hira("ask", "When was the tower of Brevik built?", "--docs", str(docs), "--memory", "-m", "offline")
    new, *old = hira("memory", "list").out.splitlines()
    assert "1842" in new
    assert "not used" not in new
    assert all(line.endswith("(not used: the document has changed or is gone)") for line in old)
    assert hira("memory", "forget", "3").code == 0
    assert hira("memory", "forget", "7").code == 2
    assert hira("memory", "forget", "1").out == "1 claim is forgotten\n"
    assert [line.split()[0] for line in hira("memory", "list").out.splitlines()] == ["2"]
    assert hira("memory", "forget", "all").out == "1 claim is forgotten\n"
    assert hira("memory", "list").out == ""
