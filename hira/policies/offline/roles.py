"""The roles that plan, choose, distil, take notes or verify instead of answering a question, by their prompts."""

import json
import re
from collections.abc import Sequence
from typing import Any

from hira.core.bm25 import BM25, words
from hira.core.sanitize import clean
from hira.core.tool import join_arguments
from hira.evidence import CITED, find_cited
from hira.policies.dialects.answer import find_final_answer
from hira.policies.offline import Act, OfflineRequest, conclude, find_expression, find_statements, solve
from hira.policies.offline.answering import (
    NOTHING,
    Sentence,
    ShownPassage,
    cite,
    find_passages,
    make_query,
    rank,
    refuse,
    split_questions,
)

_LISTED = re.compile(r"^- ([\w.-]+): *(.*)$", re.MULTILINE)
_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_ENTRY = re.compile(r"^(m\d+)\. ", re.MULTILINE)
_EXPERTS = ("simple_search", "deep_search", "code", "multimodal")


def record(**values: Any) -> Act:
    return Act(json.dumps(values, ensure_ascii=False))


def simple_search_plan(request: OfflineRequest) -> Act:
    parts = split_questions(request.question)[: request.number("most", 3)]
    return record(queries=[make_query(part) for part in parts])


def plan_and_solve_plan(request: OfflineRequest) -> Act:
    return record(steps=split_questions(request.question)[: request.number("most", 3)])


def plan_and_solve_answer(request: OfflineRequest) -> Act:
    return Act(conclude(request.value("brought")) or refuse(request.question))


def marsrl_verifier(request: OfflineRequest) -> Act:
    reply = find_final_answer(solve(request).text)
    if CITED.sub("", find_final_answer(request.value("solution"))).split() == CITED.sub("", reply).split():
        return Act("No error was found.\n\nVerdict: correct")
    return Act(f"The solution is not what was found. This is: {reply}\n\nVerdict: incorrect")


def assign(request: OfflineRequest) -> Act:
    """The expert for a task: one of the user's whose description shares two words with it, else by what it takes."""
    task, offered = set(words(request.value("task"))), dict(_LISTED.findall(request.value("experts")))
    near = [name for name in offered if name not in _EXPERTS and len(task & set(words(offered[name]))) > 1]
    wanted = "code" if find_expression(request.question) else "deep_search" if request.files else "simple_search"
    order = (*near, wanted, "simple_search", "deep_search", *offered)
    expert = next((name for name in order if name in offered), "")
    chosen = {"chosen": _choose_notes(request)} if request.value("notes") else {}
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
    facts = [{"text": statement.text, "sources": [statement.id]} for statement in find_statements(conclusion)]
    resources = [{"description": passage.title, "path": passage.location} for passage in used]
    return record(reasoning=f"{len(read)} sources were read.", conclusion=conclusion, facts=facts, resources=resources)


def mams_search(request: OfflineRequest) -> Act:
    arguments = {"query": make_query(request.question)}
    is_done = "search" not in request.tools or join_arguments(arguments) in request.value("done")
    return Act("The report is complete.") if is_done else Act("I search for the topic.", (("search", arguments),))


def mams_state(request: OfflineRequest) -> Act:
    """Every note stays, and what the fragment says about the topic is new."""
    known = request.value("memory")
    new = _find_relevant(request.question, find_passages(request.value("chunk")), known)
    memory = [{"text": sentence.text, "sources": [sentence.id] if sentence.id else []} for sentence in new]
    return record(keep=_ENTRY.findall(known), memory=memory, plan="")


def mams_report(request: OfflineRequest) -> Act:
    written = request.value("report")
    report = written if written.startswith("#") else ""
    new = _find_relevant(request.question, find_passages(request.value("chunk")), report)
    text = "\n".join([report or f"# {request.question}\n", *(f"- {cite(sentence)}" for sentence in new)])
    return Act(f"<report>\n{text}\n</report>" if new else "<report>unchanged</report>")


def _find_relevant(topic: str, read: Sequence[ShownPassage], known: str) -> list[Sentence]:
    """The eight best whole sentences that share a word with the topic and are not known."""
    wanted = frozenset(words(topic))
    sentences = [sentence for sentence in rank(topic, read) if sentence.text.endswith((".", "!", "。"))]
    return [sentence for sentence in sentences if sentence.stems & wanted and sentence.text not in known][:8]
