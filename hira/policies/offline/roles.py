"""The roles of the coordinator and of the experts that read, as the offline policy plays them."""

import json
import re
from typing import Any

from hira.dialects.answer import final
from hira.evidence import CITED, cited, claims
from hira.policies.offline import reading
from hira.policies.offline.conversation import Act, Asked
from hira.policies.offline.program import Calls, Program, advance
from hira.relevance import BM25, words

NOTHING = "Nothing valid was found"
UNSEEN = "An offline reader of text cannot see pictures or hear sounds; connect a model that can"
OTHER_WORDS = "Looking it up found nothing; explore with other words"

_LISTED = re.compile(r"^- ([\w.-]+):", re.MULTILINE)
_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_FAILED = re.compile(r"nothing (?:valid )?was found|could not|cannot|failed|no conclusion|not found", re.IGNORECASE)
_UNFOUND = re.compile(r"found nothing|not found|no result", re.IGNORECASE)
_MEDIA = re.compile(r"\.(?:png|jpe?g|gif|webp|bmp|tiff?|mp3|wav|flac|ogg|m4a|mp4|mov|webm|mkv)\b", re.IGNORECASE)
_QUESTION = re.compile(r"^.*[?？]", re.DOTALL)
_KIN = (
    {"founded", "established", "created", "set up"},
    {"built", "constructed", "completed", "erected"},
    {"born", "birth", "birthplace"},
    {"died", "death"},
    {"wrote", "written", "author"},
    {"invented", "invention", "inventor", "developed"},
    {"maximum", "most", "limit", "highest"},
    {"located", "lies", "situated"},
    {"use", "employ", "based on"},
    {"big", "large", "size", "area"},
)


def boxed(text: str) -> str:
    return f"\\boxed{{{text}}}"


def question_of(task: str) -> str:
    """The question in a task: up to its last question mark, or all of it."""
    asked = _QUESTION.match(task)
    return (asked[0] if asked else task).strip()


def failed(conclusion: str) -> bool:
    """Whether a report brought no result: it cites nothing and is empty or says so."""
    return not cited(conclusion) and (not conclusion.strip() or bool(_FAILED.search(conclusion)))


def other_words(question: str) -> list[str]:
    """Words of the question's own families that it does not use, for a second search."""
    asked = set(re.findall(r"\w+", question.lower()))
    return sorted({word for family in _KIN if asked & family for word in family - asked})


def queries(task: str) -> list[str]:
    """At most three queries: the question's words, its names, and other words for the same."""
    question = question_of(task)
    kept = [word for word in re.findall(r"[\w’'.,/-]*\w", question) if reading.keywords(word)]
    named = [word for word in kept if set(words(word)) & reading.names(question)]
    others = other_words(question) if _UNFOUND.search(task) else []
    found = [" ".join(kept), " ".join([*named, *others]) if others else ""]
    return list(dict.fromkeys(query for query in found if query)) or [task]


def assign(asked: Asked) -> Act:
    from hira.policies.offline.computing import program_for

    task, offered = asked.value("task"), _LISTED.findall(asked.value("experts"))
    wanted, why = ["simple_search"], "A page may state it directly, and looking it up costs least."
    if any(_MEDIA.search(one) for one in [task, *asked.files]):
        wanted, why = ["multimodal"], "It is about a picture, a sound or a video."
    elif program_for(task, asked.files, []):
        wanted, why = ["code"], "It has to be computed exactly."
    elif _UNFOUND.search(task):
        wanted, why = ["deep_search"], "Looking it up did not find it."
    chosen = next((name for name in [*wanted, "simple_search", "deep_search", *offered] if name in offered), "")
    return record(reason=why, expert=chosen)


def recall(asked: Asked) -> Act:
    notes = _NUMBERED.findall(asked.value("notes"))
    order = BM25([text for _, text in notes]).best(asked.value("task"), int(asked.value("most") or 5))
    return record(chosen=[int(notes[at][0]) for at in order])


def plan_search(asked: Asked) -> Act:
    return record(queries=queries(asked.value("task"))[: int(asked.value("most") or 3)])


def answer_search(asked: Asked) -> Act:
    question = question_of(asked.value("task"))
    return Act(answer(question, asked.value("documents"), "\n".join(asked.notes)))


def answer(question: str, documents: str, given: str = "") -> str:
    """One or two sentences of the documents with their ids, or that nothing was found."""
    found = reading.find(question, reading.passages(documents), given)
    return found.text if found else f"{NOTHING} in what was read about: {question}"


def deep_search(asked: Asked) -> Act:
    limit = int(asked.value("limit") or 10)
    return advance(_explore(asked), asked, "I look for what is asked.", limit=limit)


def _explore(asked: Asked) -> Program:
    """Search, open the best hit, search again with other words as long as nothing covers the question."""
    task = asked.value("task")
    question, given = question_of(task), "\n".join(asked.notes)
    read: list[reading.Passage] = []
    opened: set[str] = set()
    for query in queries(task):
        if "search" in asked.tools:
            (brought,) = yield [("search", {"query": query})]
            read += reading.passages(brought)
        ranked = [entry[2].passage.location for entry in reading.best(question, read, given)]
        fresh = next((location for location in ranked if location not in opened), "")
        if fresh and "browse" in asked.tools:
            opened.add(fresh)
            (brought,) = yield [("browse", {"url": fresh, "intent": question})]
            read += reading.passages(brought)
        if found := reading.find(question, read, given):
            return boxed(found.text)
    return boxed(f"{NOTHING} in what was read about: {question}")


def cannot_see(asked: Asked) -> Act:
    del asked
    return Act(boxed(f"{UNSEEN}."))


def distil(asked: Asked) -> Act:
    """Reasoning, conclusion, facts and resources out of an expert's work; the last paragraph is its conclusion."""
    work = asked.value("work")
    conclusion = final(work.strip().rpartition("\n\n")[2]) or f"{NOTHING}."
    ids = cited(conclusion)
    read = {passage.id: passage for passage in reading.passages(work)}
    used = [read[one] for one in ids if one in read]
    titles = ", ".join(dict.fromkeys(passage.title for passage in used))
    reasoning = f"{len(read)} sources were read" + (f"; the result stands in {titles}." if titles else ".")
    facts = [{"text": text, "sources": sources} for text, sources in claims(conclusion) if text]
    resources = [{"description": passage.title, "path": passage.location} for passage in used]
    return record(reasoning=reasoning, conclusion=conclusion, facts=facts, resources=resources)


def anything(asked: Asked) -> Act:
    """A prompt this policy does not know: look for its question in what was read, searching once if it may."""
    return advance(_look(asked), asked, "")


def _look(asked: Asked) -> Program:
    question = _question(asked)
    calls: Calls = [("search", {"query": query}) for query in queries(question)[:1]] if "search" in asked.tools else []
    brought = (yield calls) if calls else []
    earlier = [message.text for message in asked.request.messages]
    found = reading.find(question_of(question), reading.passages("\n\n".join([*earlier, *brought])))
    return (
        found.text if found else f"I cannot do this offline. {NOTHING} in what was read about: {question_of(question)}"
    )


def _question(asked: Asked) -> str:
    """What a prompt of unknown make asks: the value called so, else one that reads like a question, else its text."""
    named = [asked.value(name) for name in ("question", "task", "query", "topic", "problem")]
    asking = [asked.value(name) for name in asked.values if asked.value(name).rstrip().endswith(("?", "？"))]
    return next(filter(None, [*named, *asking]), CITED.sub("", asked.text))


def record(**values: Any) -> Act:
    return Act(json.dumps(values, ensure_ascii=False))
