import pytest

from hira.policies.dialects.answer import find_under_heading


@pytest.mark.parametrize(
    "text",
    [
        "# Final\n## Conclusion\n31 m [s1].\n\n## Observations\nNone.",
        "## Conclusion: 31 m [s1].\n### Observations\nNone.",
        "## **Conclusion**\n\n31 m [s1].\n**Observations:**\nNone.",
        "**Conclusion:** 31 m [s1].\n**Observations**\nNone.",
        "**Conclusion**: 31 m [s1].",
        "Conclusion:\n31 m [s1].\n## Observations\nNone.",
        "Some words first.\n## 1. Conclusion\n31 m [s1].\n# Conclusion\nAnother.",
    ],
)
def test_what_stands_under_a_heading_is_found_however_it_is_marked(text: str) -> None:
    assert find_under_heading(text, "Conclusion") == "31 m [s1]."


def test_what_is_bold_within_a_section_does_not_end_it() -> None:
    text = (
        "## Conclusion\nIt is **31 m** high.\n**Note** that it was 30 m.\n- **Source**: a list\n## Observations\nNone."
    )
    assert find_under_heading(text, "Conclusion").splitlines()[-1] == "- **Source**: a list"


@pytest.mark.parametrize(
    "text", ["", "It is 31 m.", "In conclusion: it is 31 m.", "## Conclusions\nNone.", "Conclusion drawn"]
)
def test_without_the_heading_there_is_nothing_under_it(text: str) -> None:
    assert find_under_heading(text, "Conclusion") == ""


def test_a_section_at_the_end_may_be_empty() -> None:
    assert (
        find_under_heading("## Conclusion\n\n## Observations", "Conclusion")
        == find_under_heading("## Conclusion", "Conclusion")
        == ""
    )
