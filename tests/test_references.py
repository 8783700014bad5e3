"""Citations as numbers, and the list of what they stand for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.evidence import Source, find_cited
from hira.evidence.citations import is_chinese, language, number_references, references, without_references

READ = {f"s{at}": Source(f"{at}.txt", f"Title {at}", "", id=f"s{at}") for at in range(1, 9)}


def test_numbers_count_from_one_in_the_order_of_first_citation() -> None:
    text = "Three [s3]. One and three [s1, s3]. Two [s2]."
    assert number_references(text, READ) == "Three [1]. One and three [1][2]. Two [3]."
    assert [(one.number, one.source.id) for one in references(text, READ)] == [(1, "s3"), (2, "s1"), (3, "s2")]


@given(st.lists(st.sampled_from(sorted(READ)), max_size=12))
def test_every_citation_leads_to_its_source(ids: list[str]) -> None:
    text = " ".join(f"Claim [{one}]." for one in ids)
    listed = {one.number: one.source.id for one in references(text, READ)}
    assert list(listed) == list(range(1, len(set(ids)) + 1))
    shown = number_references(text, READ, "<{}>")
    assert [listed[int(part.split(">")[0])] for part in shown.split("<")[1:]] == ids
    assert set(listed.values()) == set(find_cited(text))


@pytest.mark.parametrize(
    ("text", "chinese"),
    [
        ("介绍 iPhone 的历史", True),
        ("What does 你好 mean in English, and since when?", False),
        ("灯台の歴史について", False),
    ],
)
def test_a_topic_in_chinese_is_known(text: str, *, chinese: bool) -> None:
    assert is_chinese(text) is chinese
    assert language(text) == ("Chinese (中文)" if chinese else "the language of the topic")


@pytest.mark.parametrize(
    "tail",
    [
        "## References\n\n1. Tides - https://example.org/tides\n2. Moon",
        "**Sources:**\n\n- [s1] Tides\n- [s2] Moon",
        "参考文献：\n[1] 潮汐 https://example.org",
    ],
)
def test_a_list_of_references_at_the_end_is_taken_off(tail: str) -> None:
    assert without_references(f"# Report\n\nText [s1].\n\n{tail}\n") == "# Report\n\nText [s1]."


@pytest.mark.parametrize(
    "whole",
    [
        "# Energy\n\n## Sources\n\n- Sun gives most of it [s1].\n- Wind the rest [s2].",
        "# Report\n\n## References\n\nThe letter refers to three others [s1].",
    ],
)
def test_a_section_that_says_something_stays(whole: str) -> None:
    assert without_references(whole) == whole
