"""The roles of the coordinator and of the experts, as the offline policy plays them."""

import json
import re
from typing import Any

from hira.dialects.answer import final
from hira.evidence import CITED, cited
from hira.policies.offline import computing, reading, wording
from hira.policies.offline.attachments import speaks_of, unspoken
from hira.policies.offline.conversation import Act, Asked
from hira.policies.offline.opening import OPEN_TABLE, attached, opened
from hira.policies.offline.pairs import claims
from hira.policies.offline.passages import Passage, noted, passages_of
from hira.policies.offline.program import Calls, Program, advance
from hira.policies.offline.sentences import ROW, points_back, split
from hira.policies.offline.wording import words
from hira.relevance import BM25
from hira.untrusted import clean

NOTHING = "Nothing valid was found"
LONGEST = 32
"""Words of a query."""
UNSEEN = "An offline reader of text cannot see pictures or hear sounds; a model that can has to be connected"
FURTHER = "Looking it up found nothing; explore with other words"
MEDIA = re.compile(r"\.(?:png|jpe?g|gif|webp|bmp|tiff?|mp3|wav|flac|ogg|m4a|mp4|mov|webm|mkv)\b", re.IGNORECASE)

_LISTED = re.compile(r"^- ([\w.-]+): *(.*)$", re.MULTILINE)
_KNOWN = frozenset({"simple_search", "deep_search", "code", "multimodal"})
_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_FAILED = re.compile(r"nothing (?:valid )?was found|could not|cannot|failed|no conclusion|not found", re.IGNORECASE)
_QUESTION = re.compile(r"^.*[?？]", re.DOTALL)
_ROOT = re.compile(r"^- ((?:/|[A-Za-z]:[/\\]|\\\\).*)$", re.MULTILINE)
_BRACES = str.maketrans("{}", "()")


def boxed(text: str) -> str:
    """The text as a final answer; braces that do not pair up would end it early."""
    depth = 0
    for sign in text:
        depth += (sign == "{") - (sign == "}")
        if depth < 0:
            break
    return f"\\boxed{{{text if depth == 0 else text.translate(_BRACES)}}}"


def nothing(question: str) -> str:
    return f"{NOTHING} in what was read about: {question}"


def question_of(task: str) -> str:
    """The question in a task, up to its last question mark, or all of it, without saying where the answer stands."""
    task = task.removeprefix(f"{OPEN_TABLE}: ").partition(f" {FURTHER}")[0]
    asked = _QUESTION.match(task)
    return unspoken((asked[0] if asked else task).strip())


def failed(conclusion: str) -> bool:
    """Whether a report brought no result: it cites nothing and is empty or says so."""
    return not cited(conclusion) and (not conclusion.strip() or bool(_FAILED.search(conclusion)))


def other_words(question: str) -> list[str]:
    """Other words for those of the question, for a second search."""
    asked = set(words(question))
    related = [family for family in wording.KIN if asked & set(words(" ".join(family)))]
    return [word for family in related for word in family if not set(words(word)) & asked]


def queries(task: str) -> list[str]:
    """The question's content words; after a look-up without result also its names, with other words."""
    question = question_of(task)
    kept = [word for word in re.findall(r"[^\W_](?:[\w’'.,/-]*\w)?", question) if wording.keywords(word)]
    found = [" ".join(kept[:LONGEST])]
    if FURTHER in task:
        names = wording.names(question)
        named = [word for word in kept if set(words(word)) & names]
        found += [" ".join([*named, *other_words(question)]), " ".join(named)]
    return list(dict.fromkeys(query for query in found if query.strip())) or [question]


def assign(asked: Asked) -> Act:
    """The cheapest expert that will do, by what the task takes."""
    task, offered = asked.value("task"), dict(_LISTED.findall(asked.value("experts")))
    wanted, why = "simple_search", "A page may state it directly, and looking it up costs least."
    if any(MEDIA.search(one) for one in [task, *asked.files]):
        wanted, why = "multimodal", "It is about a picture, a sound or a video."
    elif task.startswith(OPEN_TABLE):
        wanted, why = "deep_search", "A table has to be opened."
    elif task.startswith(f"{computing.COMPUTE} ") or computing.program_for(task, asked.files):
        wanted, why = "code", "It has to be computed exactly."
    elif FURTHER in task or asked.files:
        wanted, why = "deep_search", "Looking it up is not enough; documents have to be opened."
    about = set(words(task))
    if own := [name for name, told in offered.items() if name not in _KNOWN and len(about & set(words(told))) > 1]:
        wanted, why = own[0], "What it is for stands in the task."
    order = [wanted, "simple_search", "deep_search", *offered]
    return record(reason=why, expert=next((name for name in order if name in offered), ""))


def recall(asked: Asked) -> Act:
    notes = _NUMBERED.findall(asked.value("notes"))
    order = BM25([text for _, text in notes]).best(asked.value("task"), asked.number("most", 5))
    return record(chosen=[int(notes[at][0]) for at in order])


def plan_search(asked: Asked) -> Act:
    return record(queries=queries(asked.value("task"))[: asked.number("most", 3)])


def answer_search(asked: Asked) -> Act:
    question = question_of(asked.value("task"))
    found = reading.find(question, [*passages_of(asked.value("documents")), *noted(asked.notes)])
    return Act(found.text if found else nothing(question))


def deep_search(asked: Asked) -> Act:
    limit = asked.number("limit", 10)
    return advance(explore(asked), asked, "I look for what is asked.", limit=limit)


def explore(asked: Asked) -> Program:
    """Search, open the best hit, search again with other words as long as nothing covers the question."""
    task = asked.value("task")
    question = question_of(task)
    if task.startswith(OPEN_TABLE):
        return boxed((yield from opened(asked, question, queries(task))) or nothing(question))
    if task.startswith(f"{computing.COMPUTE} "):
        return boxed(nothing(question))
    read = yield from attached(asked, queries(task))
    if asked.files and (found := reading.find(question, _of(speaks_of(task, asked.files), read))):
        return boxed(found.text)
    if speaks_of(task, asked.files):
        return boxed(nothing(question))
    read += noted(asked.notes)
    seen = {""}
    for query in queries(task):
        if "search" in asked.tools:
            (brought,) = yield [("search", {"query": query})]
            read += passages_of(brought)
        ranked = reading.ranked(question, read)
        fresh = next((one.passage.location for one in ranked if one.passage.location not in seen), "")
        if fresh and "browse" in asked.tools:
            seen.add(fresh)
            (brought,) = yield [("browse", {"url": fresh, "intent": question})]
            read += passages_of(brought)
        if found := reading.find(question, read):
            return boxed(found.text)
    return boxed(nothing(question))


def _of(files: list[str], read: list[Passage]) -> list[Passage]:
    """The passages of these files; all if there are none."""
    return [one for one in read if not files or one.location in files]


def code(asked: Asked) -> Act:
    limit = asked.number("limit", 10)
    return advance(compute(asked), asked, "I compute it.", limit=limit)


def compute(asked: Asked) -> Program:
    """Write the program, run it, and close with the line that it printed last; without one, read what is attached."""
    task = asked.value("task")
    if task.startswith(OPEN_TABLE):
        return boxed((yield from opened(asked, question_of(task), queries(task))) or nothing(question_of(task)))
    program = computing.program_for(task, asked.files, asked.notes, roots(asked))
    if not program or "python" not in asked.tools:
        found = reading.find(question_of(task), (yield from attached(asked, queries(task))))
        return boxed(found.text if found else nothing(task))
    (brought,) = yield [("python", {"code": program})]
    computed = passages_of(brought)
    lines = computed[-1].text.splitlines() if computed else []
    if not any(sign in line for line in lines[-1:] for sign in ("=", " is a ")):
        return boxed(f"It could not be computed: {lines[-1] if lines else ' '.join(brought.split()[:40])}")
    return boxed(f"{lines[-1]}. [{computed[-1].id}]")


def roots(asked: Asked) -> list[str]:
    """The places that the tool says Python can read; more may be told behind each, in brackets or after one."""
    told = [asked.value("tools"), *(str(tool["function"].get("description")) for tool in asked.request.tools)]
    lines = _ROOT.findall("\n".join(told))
    read = [(line, line.rpartition(")")[0], line.partition(" (")[0]) for line in lines]
    return list(dict.fromkeys(place for places in read for place in places if place))


def cannot_see(asked: Asked) -> Act:
    del asked
    return Act(boxed(f"{UNSEEN}."))


def distil(asked: Asked) -> Act:
    """Reasoning, conclusion, facts and resources out of an expert's work; the last paragraph is its conclusion."""
    work = str(asked.values.get("work", "")).strip()
    conclusion = clean(final(work.rpartition("\n\n")[2])) or f"{NOTHING}."
    read = {passage.id: passage for passage in passages_of(work)}
    used = [read[one] for one in cited(conclusion) if one in read]
    titles = ", ".join(dict.fromkeys(passage.title for passage in used))
    reasoning = f"{len(read)} sources were read" + (f"; the result stands in {titles}." if titles else ".")
    if ROW in conclusion:
        facts = [{"text": CITED.sub("", conclusion).strip(), "sources": cited(conclusion)}]
    else:
        facts = _facts(conclusion)
    resources = [{"description": passage.title, "path": passage.location} for passage in used]
    return record(reasoning=reasoning, conclusion=conclusion, facts=facts, resources=resources)


def _facts(conclusion: str) -> list[dict[str, Any]]:
    """The cited statements; one that points back stands together with the one before it."""
    facts: list[dict[str, Any]] = []
    for text, ids in claims(conclusion):
        if facts and points_back(text) and facts[-1]["sources"] == ids:
            facts[-1]["text"] += f". {text}"
        elif text:
            facts.append({"text": text, "sources": ids})
    return facts


def anything(asked: Asked) -> Act:
    """A prompt this policy does not know, or a bare question: look for it in what was read, after one search."""
    return advance(_look(asked), asked, "I look it up.")


def _look(asked: Asked) -> Program:
    asking = _asking(asked)
    question = question_of(asking)
    calls: Calls = [("search", {"query": query}) for query in queries(question)[:1]] if "search" in asked.tools else []
    brought = (yield calls) if calls else []
    earlier = [message.text for message in asked.request.messages]
    read = passages_of("\n\n".join([*earlier, *brought]))
    # what was said without an id can be repeated, and has nothing to cite
    said = [text.replace(asking, " ") for text in earlier if not passages_of(text)]
    found = reading.find(question, read) or reading.find(question, [Passage("", "", "", one) for one in said])
    return found.text if found else f"This cannot be done offline. {nothing(question)}"


def _asking(asked: Asked) -> str:
    """What a prompt of unknown make asks: the value called so, else one that reads like a question, else its own last
    question, else its text."""
    named = [asked.value(name) for name in ("question", "task", "query", "topic", "problem")]
    asking = [asked.value(name) for name in asked.values if asked.value(name).rstrip().endswith(("?", "？"))]
    own = [one for one in split(CITED.sub("", asked.text)) if one.endswith(("?", "？"))]
    return next(filter(None, [*named, *asking, *own[-1:]]), CITED.sub("", asked.text))


def record(**values: Any) -> Act:
    return Act(json.dumps(values, ensure_ascii=False))
