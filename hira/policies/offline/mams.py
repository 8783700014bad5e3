"""The agents of MaMs as the offline policy plays them: search for each part of the topic, open what brought something,
note the sentences that fit, and set them under the titles of their documents."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from hira.evidence import cited, unmarked
from hira.policies.offline.attachments import speaks_of
from hira.policies.offline.conversation import Act, Asked, spelled
from hira.policies.offline.pairs import claims
from hira.policies.offline.passages import Passage, passages_of
from hira.policies.offline.program import Program, advance
from hira.policies.offline.query import Query, best, query
from hira.policies.offline.roles import queries, record
from hira.policies.offline.sentences import Sentence, points_back, sentences
from hira.policies.offline.shown import solved
from hira.policies.offline.wording import holds, keywords

PARTS = 4
"""Queries of a turn beside the one for the whole topic."""
OPENED = 5
"""Documents that are opened."""
NOTED = 8
"""Sentences of a fragment that are noted at most."""
SHARE = 0.5
"""The least share of the weight of a part that a noted sentence covers, together with what stands around it."""

_OPEN = re.compile(
    r"\bhow (?:do|does|did|have|has)\b.*\b(?:differ|compare|affect|influence|change|work|relate|develop|evolve|shape)"
    r"|^\W*what (?:are|were|is known|do we know)\b|\bwhat (?:role|effects?|impact|influence)\b|怎样|如何|哪些",
    re.IGNORECASE,
)
_PART = re.compile(r"[,;:，；：、?？!！.。]|\b(?:and|or|versus|vs|with|between|against)\b|和|与|及|以及|或|对比")
_LOCATED = re.compile(r"^- (s\d+): .*\(([^()]*(?:\([^()]*\))?[^()]*)\)(?:, an extract)?$", re.MULTILINE)
_ENTRY = re.compile(r"^(m\d+)\. (.*?)(?: \[[s\d, ]*\])?$", re.MULTILINE)
_TITLE = re.compile(r"^## (.+)$", re.MULTILINE)


def search(asked: Asked) -> Act:
    """The topic and its parts are searched first, then what the notes come from is opened, then it ends."""
    question, made = asked.value("question"), asked.value("done")
    looked = [("search", {"query": query}) for query in _parts(question)] if _searches(asked) else []
    located = dict(_LOCATED.findall(asked.value("sources")))
    opened = [("browse", {"url": place}) for place in dict.fromkeys(located.values())][:OPENED]
    opened = opened if "browse" in asked.tools else []
    attached = [("files", {"path": path}) for path in asked.files] if "files" in asked.tools else []
    steps = [*attached, *looked], opened
    names = ("Search for each part of the topic", "Open what brought something")
    left = [[call for call in step if f"- {call[0]}: {spelled(call[1])} — " not in f"{made}\n"] for step in steps]
    lines = [f"- [{' ' if todo else 'x'}] {name}" for todo, name in zip(left, names, strict=True)]
    plan = "<plan>\n" + "\n".join(lines) + "\n</plan>"
    todo = next((todo for todo in left if todo), [])[: asked.number("several", PARTS + 1)]
    return Act(plan if todo else f"{plan}\nThe report is complete.", tuple(todo))


def state(asked: Asked) -> Act:
    """Every note stays, and the sentences of the fragment that have to do with the topic are new ones."""
    noted = dict(_ENTRY.findall(asked.value("memory")))
    known = {text.strip() for text in noted.values()}
    found = [one for one in worth(asked, asked.value("chunk")) if one.text not in known]
    memory = [{"text": one.text, "sources": [one.id] if one.id else []} for one in found]
    return record(keep=list(noted), memory=memory, plan="")


def report(asked: Asked) -> Act:
    """The report with what is worth telling in the fragment, each sentence once, under its document's title."""
    question, before = asked.value("question"), asked.value("report")
    sections = _sections(before)
    for one in worth(asked, asked.value("chunk")):
        line = f"- {one.text}" + (f" [{one.id}]" if one.id else "")
        section = sections.setdefault(" ".join(unmarked(one.title).split()) or question, [])
        if not any(_bare(line) == _bare(known) for lines in sections.values() for known in lines):
            section.append(line)
    return Act(f"<report>\n{written(question, sections)}\n</report>" if sections else "<report>unchanged</report>")


def react(asked: Asked) -> Act:
    """The baseline: the same searches in one conversation, and the report from all that they brought."""
    return advance(_react(asked), asked, "I look up each part of the topic.", several=PARTS + 1, limit=50)


def _react(asked: Asked) -> Program:
    question = asked.value("question")
    looked = [("search", {"query": query}) for query in _parts(question)] if _searches(asked) else []
    attached = [("files", {"path": path}) for path in asked.files] if "files" in asked.tools else []
    brought = (yield [*attached, *looked]) if attached or looked else []
    sections: dict[str, list[str]] = {}
    for one in worth(asked, "\n\n".join(brought)):
        mark = f" [{one.id}]" if one.id else ""
        sections.setdefault(one.title or question, []).append(f"- {one.text}{mark}")
    return written(question, sections) if sections else f"Nothing that was read has to do with: {question}"


def _searches(asked: Asked) -> bool:
    """Whether documents are searched: not where the attached files are spoken of."""
    return "search" in asked.tools and not speaks_of(asked.value("question"), asked.files)


@dataclass(frozen=True, slots=True)
class Told:
    """A sentence that is worth telling, the id of its source, and what that is called."""

    text: str
    id: str
    title: str


def worth(asked: Asked, text: str) -> list[Told]:
    """What of a fragment is worth telling: of a topic the best of each part; of a question what answers it, with what
    else its sources say of it, and nothing if nothing answers it."""
    question, read = asked.value("question"), passages_of(text)
    near = [Told(one.text, one.passage.id, one.passage.title) for one in _near(question, read)]
    if not _asks(question):
        return near
    noted = [Passage(ids[0], "", "", note) for note, ids in _noted(asked.value("memory")) if ids]
    titles = {one.id: one.title for one in read}
    answer = [(claim, ids[0]) for claim, ids in claims(solved(asked, [*read, *noted])) if ids]
    found = [Told(f"{claim.rstrip('.')}.", one, titles[one]) for claim, one in answer if one in titles]
    used = {one.id for one in found}
    return list(dict.fromkeys([*found, *(one for one in near if one.id in used and not _told(one, found))]))


def _told(one: Told, found: Sequence[Told]) -> bool:
    return any(_bare(one.text) in _bare(other.text) for other in found)


def _asks(question: str) -> bool:
    """Whether it is a question with one answer, and no topic that only looks like one."""
    return question.rstrip().endswith(("?", "？")) and not _OPEN.search(question)


def _noted(memory: str) -> list[tuple[str, list[str]]]:
    return [(text, ids) for line in memory.splitlines() for text, ids in claims(re.sub(r"^m\d+\. ", "", line))]


def _near(question: str, read: Sequence[Passage]) -> list[Sentence]:
    """The sentences that have to do with each part of a topic, in their order."""
    candidates = [one for one in sentences(read) if _says(one)]
    ranked = [_fitting(part, candidates) for part in _parts(question)]
    turns = dict.fromkeys(one for several in zip_longest(*ranked) for one in several if one)
    chosen = set(list(turns)[:NOTED])
    return [one for one in candidates if one in chosen]


def _fitting(part: str, candidates: Sequence[Sentence]) -> list[Sentence]:
    """The sentences that cover enough of a part of the topic, best first. What stands in the title of a document or
    beside a sentence counts, so that "Gull Rock is younger" is told of lighthouses."""
    asked = query(part, candidates)
    return [one for _, _, one in best(asked, candidates) if asked.tells(one) and _share(asked, one) >= SHARE]


def _share(asked: Query, one: Sentence) -> float:
    """The share of a part's weight that a sentence covers; 0 if neither it nor its title holds a word of it."""
    about = one.own | one.title
    if not any(holds(word, about) for word in asked.weights):
        return 0.0
    around = about | one.beside
    return sum(weight * holds(word, around) for word, weight in asked.weights.items()) / sum(asked.weights.values())


def written(question: str, sections: Mapping[str, list[str]]) -> str:
    """The report as Markdown: the topic as its title, a section a document."""
    parts = [f"# {' '.join(question.split())}"]
    parts += [f"## {title}\n\n" + "\n".join(lines) for title, lines in sections.items() if lines]
    return "\n\n".join(parts)


def _parts(question: str) -> list[str]:
    """Queries for the topic as a whole and for each of its parts."""
    whole = queries(question)[0]
    parts = [" ".join(part.split()) for part in _PART.split(question)]
    own = [part for part in parts if keywords(part) and part != question.strip(" ?？.。!！")]
    return list(dict.fromkeys([whole, *own]))[: PARTS + 1]


def _sections(before: str) -> dict[str, list[str]]:
    """The sections of a report of ours, by title."""
    heads = list(_TITLE.finditer(before))
    ends = [*(head.start() for head in heads[1:]), len(before)]
    bodies = [before[head.end() : end].splitlines() for head, end in zip(heads, ends, strict=False)]
    return {head[1]: [line for line in body if line.strip()] for head, body in zip(heads, bodies, strict=True)}


def _says(one: Sentence) -> bool:
    """Whether it can be told as it stands: no heading, no label, no name without its marks, nothing before it."""
    broken = "__" in one.raw or "``" in one.raw or one.raw.count("`") % 2
    whole = not (one.raw.startswith("#") or broken or cited(one.text) or points_back(one.text))
    return whole and bool(re.search(r"[.!。！]\W*$", one.text))


def _bare(line: str) -> str:
    return unmarked(line).casefold().strip(" -.")


ROLES: Mapping[str, Callable[[Asked], Act]] = {
    "mams_search": search,
    "mams_state": state,
    "mams_report": report,
    "react_report": react,
}
