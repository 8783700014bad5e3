"""The roles that call no tool: they read what their prompt shows, choose, distil, write reports, or judge."""

import json
import re
from collections.abc import Sequence
from typing import Any

from hira.core.bm25 import BM25, words
from hira.core.sanitize import clean
from hira.evidence import CITED, find_cited
from hira.evidence.passages import is_related
from hira.policies.dialects.answer import find_final_answer
from hira.policies.offline.answering import (
    NOTHING,
    Sentence,
    ShownPassage,
    cite,
    find_answer,
    find_passages,
    make_query,
    rank,
    refuse,
    split_questions,
)
from hira.policies.offline.solving import (
    FURTHER,
    MEDIA,
    REPORTING,
    Act,
    OfflineRequest,
    Program,
    advance,
    box,
    conclude,
    find_expression,
    find_statements,
    spell,
)

_LISTED = re.compile(r"^- ([\w.-]+): *(.*)$", re.MULTILINE)
_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_NOTE = re.compile(r"^(.*) \(source: (s\d+)[^()]*\)$")
_LOCATED = re.compile(r"^- s\d+: .*\(([^()]*(?:\([^()]*\))?[^()]*)\)(?:, an extract)?$", re.MULTILINE)
_ENTRY = re.compile(r"^(m\d+)\. ", re.MULTILINE)
_SECTION = re.compile(r"^## (.+)\n\n((?:- .*\n?)*)", re.MULTILINE)
PART = re.compile(r"[,;:，；：、。]|\b(?:and|or|versus|vs|with|between|for|of)\b|和|与|及|或|对比")


def record(**values: Any) -> Act:
    return Act(json.dumps(values, ensure_ascii=False))


def answer(request: OfflineRequest) -> Act:
    """Answer the question from the passages of the prompt; for another role, otherwise name the nearest sentence."""
    text, read = _answer_question(request, request.question)
    return Act(refuse(request.question, read) if NOTHING in text and request.prompt in REPORTING else text)


def verify(request: OfflineRequest) -> Act:
    """The verdict on a solution: it has to be what the passages say."""
    reply = _answer_question(request, request.question)[0]
    if CITED.sub("", find_final_answer(request.value("solution"))).split() == CITED.sub("", reply).split():
        return Act("No error was found.\n\nVerdict: correct")
    return Act(f"The solution is not what was found. This is: {reply}\n\nVerdict: incorrect")


def _answer_question(request: OfflineRequest, question: str) -> tuple[str, list[ShownPassage]]:
    """Return the answer from the passages and notes of the prompt, and these passages and notes."""
    read = find_passages("\n\n".join(str(value) for value in request.values.values()))
    notes = map(_NOTE.match, request.list_entries("known", "notes"))
    read += [ShownPassage(note[2], "", "", note[1]) for note in notes if note]
    answers = [(part, find_answer(part, read)) for part in split_questions(question)]
    missing = [f"{NOTHING}: {part}" for part, sentence in answers if sentence is None]
    return (missing or [" ".join(dict.fromkeys(cite(sentence) for _, sentence in answers if sentence))])[0], read


def combine(request: OfflineRequest) -> Act:
    """Combine the results of a plan's steps; refuse if one of them has none."""
    return Act(conclude(request.value("brought")) or f"{NOTHING}: {request.question}")


def plan(request: OfflineRequest) -> Act:
    """The searches, or the steps of a plan: one for each question of the task."""
    parts = split_questions(request.question)[: request.number("most", 3)]
    return record(steps=parts) if request.prompt == "plan_and_solve_plan" else record(queries=[*map(make_query, parts)])


def assign(request: OfflineRequest) -> Act:
    """The expert for a task: by what it takes, an own expert by the words of its description."""
    task, offered = request.value("task"), dict(_LISTED.findall(request.value("experts")))
    known = {"simple_search", "deep_search", "code", "multimodal"}
    extra = [
        name for name, told in offered.items() if name not in known and len(set(words(task)) & set(words(told))) > 1
    ]
    wanted = "simple_search"
    if any(map(MEDIA.search, [task, *request.files])):
        wanted = "multimodal"
    elif find_expression(request.question):
        wanted = "code"
    elif FURTHER in task or request.files:
        wanted = "deep_search"
    order = [*extra, wanted, "simple_search", "deep_search", *offered]
    chosen = {"chosen": _choose_notes(request)} if request.value("notes") else {}
    expert = next((expert for expert in order if expert in offered), "")
    return record(reason="It is the cheapest that fits.", expert=expert, **chosen)


def recall(request: OfflineRequest) -> Act:
    return record(chosen=_choose_notes(request))


def _choose_notes(request: OfflineRequest) -> list[int]:
    notes = _NUMBERED.findall(request.value("notes"))
    order = BM25([text for _, text in notes]).best(request.value("task"), request.number("most", 5))
    return [int(notes[index][0]) for index in order]


def distil(request: OfflineRequest) -> Act:
    """Reasoning, conclusion, facts and resources of an expert's work; its last paragraph is the conclusion."""
    work = str(request.values.get("work", "")).strip()
    conclusion = clean(find_final_answer(work.rpartition("\n\n")[2])) or NOTHING
    read = {passage.id: passage for passage in find_passages(work)}
    used = [read[source] for source in find_cited(conclusion) if source in read]
    near = refuse(request.question, list(read.values())).partition("\n")[2] if NOTHING in conclusion else ""
    facts = [{"text": statement.text, "sources": [statement.id]} for statement in find_statements(near or conclusion)]
    resources = [{"description": passage.title, "path": passage.location} for passage in used]
    reasoning = f"{len(read)} sources were read.\n{near}".strip()
    return record(reasoning=reasoning, conclusion=conclusion, facts=facts, resources=resources)


def research(request: OfflineRequest) -> Act:
    """The Search agent of MaMs: search the topic and its parts, open what brought something, end."""
    tools, made = request.tools, request.value("done")
    looked = [("search", {"query": query}) for query in _queries(request.question)] if "search" in tools else []
    places = dict.fromkeys(_LOCATED.findall(request.value("sources")))
    opened = [("browse", {"url": place}) for place in list(places)[:5]] if "browse" in tools else []
    attached = [("files", {"path": path}) for path in request.files] if "files" in tools else []
    steps = [*attached, *looked], opened
    left = ([call for call in calls if f"- {call[0]}: {spell(call[1])} — " not in made] for calls in steps)
    todo = next(filter(None, left), [])[: request.number("several", 5)]
    plan = f"<plan>\n- [{' ' if todo else 'x'}] Search for each part of the topic and open what it brought.\n</plan>"
    return Act(plan if todo else f"{plan}\nThe report is complete.", tuple(todo))


def take_notes(request: OfflineRequest) -> Act:
    """Every note stays, and what the fragment says about the topic is new."""
    known = request.value("memory")
    new = [
        sentence
        for sentence in _worth_telling(request.question, find_passages(request.value("chunk")))
        if sentence.text not in known
    ]
    memory = [{"text": sentence.text, "sources": [sentence.id] if sentence.id else []} for sentence in new]
    return record(keep=_ENTRY.findall(known), memory=memory, plan="")


def extend_report(request: OfflineRequest) -> Act:
    """The report with what the fragment says about the topic, each sentence once, under its document's title."""
    text = _write_report(request.question, find_passages(request.value("chunk")), request.value("report"))
    return Act(f"<report>\n{text}\n</report>" if text else "<report>unchanged</report>")


def research_alone(request: OfflineRequest) -> Act:
    """A report by one role: the same searches, and the report from all that they brought."""

    def work() -> Program:
        brought = yield [
            ("search", {"query": query}) for query in _queries(request.question) if "search" in request.tools
        ]
        return _write_report(request.question, find_passages("\n\n".join(brought))) or f"{NOTHING}: {request.question}"

    return advance(work(), request)


def outline(request: OfflineRequest) -> Act:
    """The writer of WebThinker's report: a search and a section for each question of the topic."""

    def work() -> Program:
        written = ""
        for part in split_questions(request.question):
            yield [("search", {"query": make_query(part), "intent": part})]
            (written,) = yield [("write_section", {"title": part.rstrip("?"), "task": part})]
        return "The report is written." if "#" in written else box(f"{NOTHING}: {request.question}")

    return advance(work(), request)


def write_section(request: OfflineRequest) -> Act:
    text, _ = _answer_question(request, request.value("task"))
    return Act(f"## {request.value('title')}\n\n{text}")


def _queries(topic: str) -> list[str]:
    """Queries for the topic as a whole and for its parts."""
    parts = [part for part in PART.split(topic.rstrip("?？.")) if words(part)]
    return list(dict.fromkeys([make_query(topic), *(" ".join(part.split()) for part in parts)]))[:5]


def _worth_telling(topic: str, read: Sequence[ShownPassage]) -> list[Sentence]:
    """Of a question what answers it; of a topic the sentences that cover half of one of its parts."""
    if topic.endswith(("?", "？")):
        return [sentence] if (sentence := find_answer(topic, read)) else []
    sentences = [
        sentence for query in _queries(topic) for sentence in rank(query, read) if _covers_half(query, sentence)
    ]
    return list(dict.fromkeys(sentence for sentence in sentences if sentence.text.endswith((".", "!", "。"))))[:8]


def _covers_half(query: str, sentence: Sentence) -> bool:
    """Return whether a sentence contains a word of the query and, together with its heading, half of them."""
    wanted, held = set(words(query)), sentence.stems | sentence.above | sentence.before
    half = 2 * sum(is_related(word, held) for word in wanted) >= len(wanted)
    return half and any(is_related(word, sentence.stems) for word in wanted)


def _write_report(topic: str, read: Sequence[ShownPassage], before: str = "") -> str:
    """Extend the earlier report with the sentences about the topic, in a section for each document; empty without
    both."""
    sections = {title: lines.splitlines() for title, lines in _SECTION.findall(before)}
    titles = {sentence.id: " ".join(sentence.title.split()) for sentence in read}
    for sentence in _worth_telling(topic, read):
        if sentence.text not in before:
            sections.setdefault(titles.get(sentence.id) or topic, []).append(f"- {cite(sentence)}")
    parts = [f"## {title}\n\n" + "\n".join(dict.fromkeys(lines)) for title, lines in sections.items()]
    return "\n\n".join([f"# {topic}", *parts]) if parts else ""


_PREFIXES = {"Key": "关键标准：", "Important": "重要标准：", "Optional": "可选标准：", "Error": "错误标准："}
_COMMON = frozenset(words("report says deals criterion key important asked"))
_SIGNS = {
    "Cites its sources": ("Important", 3, r"\[s?\d+\]"),
    "Gives figures": ("Optional", 2, r"\d"),
    "Has sections": ("Optional", 1, r"(?m)^#"),
    "Cites nothing": ("Error", -1, r"\A(?!(?s:.*)\[s?\d+\])"),
}
"""Items on the form of a report, by title: kind, weight, and the pattern of a report that matches."""


def write_rubric(request: OfflineRequest) -> Act:
    """An item for the topic, one for each of its parts, and those on form."""
    query = request.value("query")
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


def rate_item(request: OfflineRequest) -> Act:
    """From 1 to 10: whether the report has the form, else the share of the item's words that it holds."""
    report, (_, _, sign) = request.value("report"), _SIGNS.get(request.value("title"), ("", 0, ""))
    share = bool(re.search(sign, report)) if sign else find_coverage(request.value("criterion"), report)
    return record(reason="By the words of the item.", rating=1 + round(9 * share))


def rate_rubric(request: OfflineRequest) -> Act:
    share = find_coverage(request.value("query"), request.value("rubric"))
    return record(reason="By the words of the query.", reward=round(1 + 3 * share, 2), confidence=50)


def rate_report(request: OfflineRequest) -> Act:
    share = find_coverage(request.value("query"), request.value("report"))
    return record(reason="By the words of the query.", rating=1 + round(9 * share))


def prefer_report(request: OfflineRequest) -> Act:
    first, second = (find_coverage(request.value("query"), request.value(name)) for name in ("first", "second"))
    return record(reason="By the words of the query.", better="A" if first >= second else "B")


def find_coverage(wanted: str, text: str) -> float:
    """The share of the words of one text that another holds; 0 if the first has none."""
    wanted_words, held = set(words(wanted)) - _COMMON, frozenset(words(text))
    return sum(is_related(word, held) for word in wanted_words) / len(wanted_words) if wanted_words else 0.0
