"""Rubrics and their judges as the offline policy plays them: items from the words and the form of the query, ratings by
whether a report holds the words of an item. It measures coverage and form, and nothing of quality beyond them."""

import re
from collections.abc import Callable, Mapping

from hira.evidence import CITED
from hira.evidence.references import is_chinese, without_references
from hira.policies.offline.conversation import Act, Asked
from hira.policies.offline.roles import record
from hira.policies.offline.wording import folded, holds, keywords, words

ASPECTS = 10
"""Aspects of a query that have an item of their own at most."""
LISTED = 6
"""Words of a query that an item names at most."""

_PART = re.compile(
    r"[,;:，；：、?？!！.。]|\b(?:and|or|versus|vs|with|between|against|of|on|for|in)\b|和|与|及|以及|或|的|对比"
)
_ASKING = re.compile(
    r"^(?:please |write |give |prepare |compar\w+ |descri\w+ |explain\w* |analy\w+ |discuss\w* |summari\w+ |a |an |"
    r"the |me |report |study |overview |how |why |what |which |is |are |does |do |did |"
    r"请|撰写|写|分析|比较|报告|研究|介绍|为什么|如何)+",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^#{1,6}\s+\S", re.MULTILINE)
_HEADED = re.compile(r"^#{1,6}\s.*$", re.MULTILINE)
_NUMBERED = re.compile(r"\[\d+\]")
_FIGURE = re.compile(r"\d")
_FORMS = (
    (r"\bcompar|\bversus\b|\bvs\b|\bdifferen|\bbetter\b|对比|比较|区别", "compares", 4),
    (r"\bwhy\b|\bcaus|\breason|\banaly|\bexplain|\bhow\b|为什么|原因|分析|如何", "causes", 4),
    (r"\brecommend|\bshould\b|\badvi[cs]e|\bstrateg|\bplan\b|\bmeasures?\b|建议|应该|策略|措施|方案", "recommends", 4),
    (r"\bfuture|\btrend|\boutlook|\bforecast|趋势|未来|展望|前景", "outlook", 3),
    (r"\brisk|\bchalleng|\blimit|\bproblem|风险|挑战|问题", "risks", 3),
)
_SAID: Mapping[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "topic": (
        ("Answers the query", "Key Criterion: The report is about {} and says what is asked about it."),
        ("回应所问", "关键标准：报告围绕{}展开，并回答了所提出的问题。"),
    ),
    "sections": (
        ("Clear sections", "Key Criterion: The report is divided into sections with headings."),
        ("结构清晰", "关键标准：报告分为若干章节，并有标题。"),
    ),
    "aspect": (
        ("Covers {}", "Important Criterion: The report deals with {} and says something definite about it."),
        ("涵盖{}", "重要标准：报告论及{}，并给出明确内容。"),
    ),
    "sources": (
        ("Cites its sources", "Important Criterion: Statements of the report are followed by citations of sources."),
        ("注明来源", "重要标准：报告的陈述附有来源引用。"),
    ),
    "figures": (
        ("Gives figures", "Optional Criterion: The report supports what it says by figures or dates."),
        ("给出数据", "可选标准：报告用数字或日期支持其论述。"),
    ),
    "compares": (
        ("Compares directly", "Important Criterion: The report compares, and names the difference or what is better."),
        ("直接比较", "重要标准：报告进行比较，并指出差异或优劣。"),
    ),
    "causes": (
        (
            "Explains causes",
            "Important Criterion: The report explains the cause or the reason, because of which it is so.",
        ),
        ("解释原因", "重要标准：报告解释原因或机制，说明为何如此。"),
    ),
    "recommends": (
        (
            "Draws a conclusion",
            "Important Criterion: The report ends in a conclusion or a recommendation of what to do.",
        ),
        ("得出结论", "重要标准：报告给出结论或建议。"),
    ),
    "outlook": (
        ("Looks ahead", "Important Criterion: The report tells the future trend or outlook."),
        ("展望未来", "重要标准：报告说明未来趋势或前景。"),
    ),
    "risks": (
        ("Names risks", "Important Criterion: The report names a risk, a challenge, a problem or a limit."),
        ("指出风险", "重要标准：报告指出风险、挑战或问题。"),
    ),
    "brief": (
        ("Says it once", "Optional Criterion: No sentence of the report stands in it twice."),
        ("不重复", "可选标准：报告中没有重复的句子。"),
    ),
    "misses": (
        ("Misses the topic", "Error Criterion: The report says nothing about {}."),
        ("偏离主题", "错误标准：报告没有提到{}。"),
    ),
    "bare": (
        ("Cites nothing", "Error Criterion: The report cites no source at all."),
        ("没有来源", "错误标准：报告没有引用任何来源。"),
    ),
}
_GENERAL = re.compile(
    r"\b(?:reports?|deals?|covers?|discuss\w*|mentions?|includ\w+|describ\w+|explain\w*|provid\w+|gives?|says?|states?|"
    r"identif\w+|contains?|must|should|may|clear(?:ly)?)\b|报告|应当|应该|应|包括|说明|提供|描述",
    re.IGNORECASE,
)
"""What an item says of any report."""
_MISSING = re.compile(r"says nothing about|does not mention|没有提到|未提及", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?!\[)|(?<=[。！？])(?!\s*\[)|\n+")


def generate(asked: Asked) -> Act:
    """Seven items that every report should meet, one for each aspect of the query and one for its form."""
    query = asked.value("query")
    chinese = is_chinese(query)
    named = (", " if not chinese else "、").join(aspects(query)[:LISTED]) or query
    items = [_item("topic", 5, chinese, named), _item("sections", 5, chinese)]
    items += [_item("aspect", 4 if at < 3 else 3, chinese, one) for at, one in enumerate(aspects(query)[:ASPECTS])]
    items += [_item(name, weight, chinese) for form, name, weight in _FORMS if re.search(form, query, re.IGNORECASE)]
    items += [_item("sources", 4, chinese), _item("figures", 2, chinese), _item("brief", 1, chinese)]
    items += [_item("misses", -2, chinese, named), _item("bare", -1, chinese)]
    return record(items=list({item["title"]: item for item in items}.values()))


def rate(asked: Asked) -> Act:
    """How far an item is true of the report, from 1 to 10."""
    share = _true(asked.value("title"), asked.value("criterion"), asked.value("report"))
    return record(reason="By the words and the form of the report.", rating=1 + round(9 * share))


def quality(asked: Asked) -> Act:
    """How much of the query the rubric names: of 4, one for being valid, three for that."""
    share = coverage(asked.value("query"), asked.value("rubric"))
    return record(reason="By the words that they share.", reward=round(1 + 3 * share, 2), confidence=50)


def pointwise(asked: Asked) -> Act:
    worth = _worth(asked.value("query"), asked.value("report"))
    return record(
        reason="By the words of the query that it holds, its sections and citations.", rating=1 + round(9 * worth)
    )


def pairwise(asked: Asked) -> Act:
    query = asked.value("query")
    first, second = (_worth(query, asked.value(name)) for name in ("first", "second"))
    return record(reason="By the words of the query that they hold.", better="A" if first >= second else "B")


def aspects(query: str) -> list[str]:
    """The parts of a query that name something, without the words that only ask for it."""
    parts = (_ASKING.sub("", part.strip()).strip(" '\"“”‘’()（）《》") for part in _PART.split(query))
    return list(dict.fromkeys(part for part in parts if keywords(part)))


def coverage(wanted: str, text: str) -> float:
    """The share of the words of one text that another holds; 0 if the first has none."""
    asked = keywords(wanted)
    held = frozenset(words(folded(text)))
    return sum(holds(word, held) for word in asked) / len(asked) if asked else 0.0


def _true(title: str, criterion: str, report: str) -> float:
    """From 0 to 1. Items of form are recognised by their title, others go by their words."""
    name = next((name for name, said in _SAID.items() if title in (said[0][0], said[1][0])), "")
    cites = len(CITED.findall(report)) + len(_NUMBERED.findall(report))
    said = _HEADED.sub("", without_references(report))
    sentences = [one.strip() for one in _SENTENCE.split(said) if len(words(one)) > 2]
    forms: Mapping[str, float] = {
        "sections": min(1.0, len(_HEADING.findall(report)) / 3),
        "sources": min(1.0, 2 * cites / max(1, len(sentences))),
        "figures": min(1.0, sum(bool(_FIGURE.search(one)) for one in sentences) / 3),
        "brief": len(set(sentences)) / len(sentences) if sentences else 0.0,
        "bare": 0.0 if cites else 1.0,
    }
    if name in forms:
        return forms[name]
    if name in (pattern[1] for pattern in _FORMS):
        form = next(form for form, own, _ in _FORMS if own == name)
        return 1.0 if re.search(form, report, re.IGNORECASE) else 0.0
    about = _about(criterion)
    if _MISSING.search(criterion):
        return 1.0 - coverage(about, report)
    return coverage(about, report)


def _about(criterion: str) -> str:
    """What an item is about: of one of ours what was filled in, else all of it."""
    for english, chinese in _SAID.values():
        for _, said in (english, chinese):
            front, _, back = said.replace("：", ":").partition(":")[2].strip().partition("{}")
            told = criterion.replace("：", ":")
            if back and told.startswith(front) and told.endswith(back):
                return told.removeprefix(front).removesuffix(back)
    return _GENERAL.sub(" ", criterion)


def _worth(query: str, report: str) -> float:
    """What a report is worth by what can be counted: mostly coverage, then sections and citations."""
    held = coverage(query, report)
    form = [_true(_SAID[name][0][0], "", report) for name in ("sections", "sources", "figures")]
    return 0.7 * held + 0.3 * held * sum(form) / len(form)


def _item(name: str, weight: int, chinese: bool, about: str = "") -> dict[str, object]:  # noqa: FBT001
    title, said = _SAID[name][chinese]
    return {"title": title.format(about), "description": said.format(about), "weight": weight}


ROLES: Mapping[str, Callable[[Asked], Act]] = {
    "rubric_generate": generate,
    "rubric_rate": rate,
    "rubric_quality": quality,
    "rubric_pointwise": pointwise,
    "rubric_pairwise": pairwise,
}
