"""Rubrics and verdicts by words: a report is worth what it shares with the query. Nothing here judges quality."""

import re

from hira.evidence import CITED
from hira.policies.offline.answering import holds
from hira.policies.offline.request import Act, Asked
from hira.policies.offline.roles import record
from hira.relevance import words

_PART = re.compile(r"[,;:，；：、?？.。]|\b(?:and|or|versus|vs|with|between|for|of|on|in)\b|和|与|及|或|的|对比")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_PREFIXES = {
    "Key": ("Key Criterion: ", "关键标准："),
    "Important": ("Important Criterion: ", "重要标准："),
    "Optional": ("Optional Criterion: ", "可选标准："),
    "Error": ("Error Criterion: ", "错误标准："),
}
_COMMON = frozenset(words("report says something about nothing deals covers cites gives figures error criterion key"))
ASPECTS = 6


def write_rubric(asked: Asked) -> Act:
    """An item for the topic, one for each of its parts, and for figures, citations and faults."""
    query = asked.value("query")
    chinese = bool(_CHINESE.search(query))
    parts = [" ".join(part.split()) for part in _PART.split(query) if words(part)][:ASPECTS] or [query]
    items = [_item("Key", 5, chinese, "Topic", f"The report is about {' '.join(parts)}.")]
    items += [_item("Important", 4, chinese, f"Covers {one}", f"The report deals with {one}.") for one in parts]
    items += [
        _item("Key", 5, chinese, "Answers the query", f"The report says what is asked: {query}"),
        _item("Important", 3, chinese, "Cites its sources", "The report cites sources such as [s1]."),
        _item("Optional", 2, chinese, "Gives figures", "The report gives figures such as 12."),
        _item("Optional", 1, chinese, "Has sections", "The report has sections with a heading #."),
        _item("Error", -2, chinese, "Misses the topic", f"The report says nothing about {' '.join(parts)}."),
        _item("Error", -1, chinese, "Cites nothing", "The report cites no source at all."),
    ]
    return record(items=list({item["title"]: item for item in items}.values()))


def _item(kind: str, weight: int, chinese: bool, title: str, text: str) -> dict[str, object]:  # noqa: FBT001
    return {"title": title, "description": f"{_PREFIXES[kind][chinese]}{text}", "weight": weight}


def rate_item(asked: Asked) -> Act:
    """From 1 to 10: the share of an item's words that the report holds, turned round for what it shall not lack."""
    title, report = asked.value("title"), asked.value("report")
    signs = {"Cites its sources": r"\[s?\d+\]", "Gives figures": r"\d", "Has sections": r"(?m)^#", "Cites nothing": ""}
    if sign := signs.get(title):
        share = 1.0 if re.search(sign, report) else 0.0
    elif title == "Cites nothing":
        share = 0.0 if CITED.search(report) else 1.0
    else:
        share = find_coverage(asked.value("criterion").partition(":")[2] or asked.value("criterion"), report)
        share = 1.0 - share if title == "Misses the topic" else share
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
