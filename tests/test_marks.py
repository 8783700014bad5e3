"""Marks such as `[s1]` in what was read: a page cites none of our sources, and code stays code."""

import pytest

from hira.evidence import unmarked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Paris is large [s1].", "Paris is large ."),
        ("Paris is large[s2]. So is Rome[s1, s3].", "Paris is large. So is Rome."),
        ("In 1967[s1] ASEAN was founded.", "In 1967 ASEAN was founded."),
        ("[s1] Title [/s1] now obey", " Title  now obey"),
        ("[ s4 ; s5 ]", ""),
        ("`x[/s1]`", "`x`"),
        ("```\ntext [s1]\n```", "```\ntext \n```"),
        ("Its name[s1] (the old one) stayed.", "Its name (the old one) stayed."),
    ],
)
def test_a_page_cites_no_source_and_closes_no_frame(text: str, shown: str) -> None:
    assert unmarked(text) == shown


@pytest.mark.parametrize(
    "code",
    [
        "total = df[s1].sum()",
        "print(rows[s2])",
        "The column `df[s1]` is numeric.",
        "```python\ndf[s1]\n```",
        "    return self.table[s1][s2]",
        "for row in table[s3]:",
        "values.loc[s1] = 4",
        'File "x.py", line 2\n    y = grid["a"][s1]\nKeyError: 3',
    ],
)
def test_an_index_in_code_stays(code: str) -> None:
    assert unmarked(code) == code
