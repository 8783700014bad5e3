"""Sources of a conversation: each computation is one of its own, in whatever turn it was made."""

from hira import Hira


async def test_computations_of_two_turns_are_two_sources() -> None:
    async with Hira("offline") as hira:
        chat = hira.chat()
        first = await chat.ask("What is 3 + 5?")
        second = await chat.ask("What is 8 * 2?")
    assert [one.id for one in (*first.cited, *second.cited)] == ["s1", "s2"]
    assert "8 * 2" in second.cited[0].text
    assert "3 + 5" in second.rollout.sources.read["s1"].text
