"""Rubrics and ratings by words: a report is worth what it shares with the query. Nothing here judges quality."""

import re

from hira.core.bm25 import words
from hira.policies.offline.answering import holds
from hira.policies.offline.request import Act, Asked
from hira.policies.offline.roles import PART, record

_PREFIXES = {"Key": "关键标准：", "Important": "重要标准：", "Optional": "可选标准：", "Error": "错误标准："}
_COMMON = frozenset(words("report says deals criterion key important asked"))
_SIGNS = {
    "Cites its sources": ("Important", 3, r"\[s?\d+\]"),
    "Gives figures": ("Optional", 2, r"\d"),
    "Has sections": ("Optional", 1, r"(?m)^#"),
    "Cites nothing": ("Error", -1, r"\A(?!(?s:.*)\[s?\d+\])"),
}
"""Items on the form of a report, by title: kind, weight, and the pattern of a report that matches."""


def write_rubric(asked: Asked) -> Act:
    """An item for the topic, one for each of its parts, and those on form."""
    query = asked.value("query")
    parts = [" ".join(part.split()) for part in PART.split(query) if words(part)][:6] or [query]
    items = [("Key", 5, "Topic", f"The report is about {' '.join(parts)}."), ("Key", 5, "Answers the query", query)]
    items += [("Important", 4, f"Covers {part}", f"The report deals with {part}.") for part in parts]
    items += [(kind, weight, title, f"The report {title.lower()}.") for title, (kind, weight, _) in _SIGNS.items()]
    chinese = re.search(r"[\u4e00-\u9fff]", query)
    prefixes = _PREFIXES if chinese else {kind: f"{kind} Criterion: " for kind in _PREFIXES}
    told = (
        {"title": title, "description": prefixes[kind] + text, "weight": worth} for kind, worth, title, text in items
    )
    return record(items=list(told))


def rate_item(asked: Asked) -> Act:
    """From 1 to 10: whether the report has the form, else the share of the item's words that it holds."""
    report, (_, _, sign) = asked.value("report"), _SIGNS.get(asked.value("title"), ("", 0, ""))
    share = bool(re.search(sign, report)) if sign else find_coverage(asked.value("criterion"), report)
    return record(reason="By the words of the item.", rating=1 + round(9 * share))


def rate_rubric(asked: Asked) -> Act:
    share = find_coverage(asked.value("query"), asked.value("rubric"))
    return record(reason="By the words of the query.", reward=round(1 + 3 * share, 2), confidence=50)


def rate_report(asked: Asked) -> Act:
    share = find_coverage(asked.value("query"), asked.value("report"))
    return record(reason="By the words of the query.", rating=1 + round(9 * share))


def prefer_report(asked: Asked) -> Act:
    first, second = (find_coverage(asked.value("query"), asked.value(name)) for name in ("first", "second"))
    return record(reason="By the words of the query.", better="A" if first >= second else "B")


def find_coverage(wanted: str, text: str) -> float:
    """The share of the words of one text that another holds; 0 if the first has none."""
    asked, held = set(words(wanted)) - _COMMON, frozenset(words(text))
    return sum(holds(word, held) for word in asked) / len(asked) if asked else 0.0
