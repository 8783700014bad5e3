"""The planner, as the offline policy plays it: it plans by the form of the question.

A direct question is one subtask. A question inside a question is answered first, and the name it brings is put into the
outer one. A comparison is two look-ups. A sum, a span of days or a column of a table is computed.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass

from hira.messages import Filled
from hira.policies.offline import computing, questions
from hira.policies.offline.attachments import speaks_of
from hira.policies.offline.conversation import Act, Asked
from hira.policies.offline.opening import OPEN_TABLE, PARTIAL, SHEET_FILE, TABLE_FILE
from hira.policies.offline.program import Calls, Program, advance
from hira.policies.offline.reading import DIFFER, is_row
from hira.policies.offline.roles import FURTHER, MEDIA, boxed, failed, other_words
from hira.policies.offline.table import operation
from hira.untrusted import clean

_HOPS = 4
_OVER_ROWS = frozenset({"average", "median", "total", "difference"})
"""What a sentence seldom tells: a table is looked for first."""


@dataclass(frozen=True, slots=True)
class Result:
    """What is known about a question: `text` with its citations, empty if nothing is, and the `question` itself."""

    text: str
    question: str


Plan = Generator[Calls, list[str], Result]


def plan(asked: Asked) -> Act:
    several, limit = asked.number("several", 1), asked.number("limit", 10)
    return advance(answer(asked), asked, "", several=several, limit=limit)


def carried_out(asked: Asked, work: Callable[[str], Generator[Calls, list[str], str]]) -> Program:
    """The same plan by a role that does each subtask itself: `work` brings its conclusion."""
    plan = answer(asked)
    try:
        calls = next(plan)
        while True:
            reports: list[str] = []
            for _, arguments in calls:
                reports.append((yield from work(arguments["task"])))
            calls = plan.send(reports)
    except StopIteration as end:
        return str(end.value)


def answer(asked: Asked) -> Program:
    """The way to the answer, in calls of `subtask`."""
    question, files = questions.priced(" ".join(asked.value("question").split())), asked.files
    if seen := [file for file in files if MEDIA.search(file)]:
        (report,) = yield [("subtask", {"task": f"{question} It is about: {', '.join(seen)}"})]
        return boxed(concluded(report))
    result = yield from solve_all(questions.parts(question), files)
    first = "" if result.text or result.question == question else f", which has to be answered first: {result.question}"
    return boxed(result.text or _without(asked, question, first))


def _without(asked: Asked, question: str, first: str) -> str:
    """Why there is no answer."""
    offered = {line.partition(":")[0] for line in asked.listed("experts", "experts")}
    if not asked.files and offered and not offered & {"simple_search", "deep_search"}:
        return f"Nothing was given to search: name documents with --docs, or a file with --file. Asked was: {question}"
    told = " ".join([question[: computing.LONGEST], *asked.files])
    if (sheet := SHEET_FILE.search(told)) and operation(question):
        return (
            f"This was not computed from {sheet[0]}. Offline, tables are computed from CSV and TSV files, and from a"
            f" sheet only where it can be shown as a whole. Asked was: {question}"
        )
    return f"The documents do not hold the answer to this question: {question}{first}"


def solve_all(parts: list[str], files: list[str]) -> Plan:
    """Answer every question of several asked at once; half an answer is none."""
    results: list[Result] = []
    for part in parts:
        result = yield from solve(part, files, _HOPS)
        if not result.text:
            return result
        results.append(result)
    texts = dict.fromkeys(one.text for one in results)
    return Result(" ".join(texts), results[0].question)


def solve(question: str, files: list[str], hops: int) -> Plan:
    """Answer a question by its form; `hops` bounds how many questions may stand inside each other."""
    if computing.arithmetic(question) or computing.dates(question):
        return Result((yield from _try(question)), question)
    named, told = _tables(question, files), computing.is_tabular(question, [])
    if named or told:
        result = yield from _over_table(question, [] if SHEET_FILE.search(question) else named)
        if result.text or told or not _other_text(question, files):
            return result if result.text or not told else (yield from _row(question))
    elif operation(question) in _OVER_ROWS and (result := (yield from _over_table(question, []))).text:
        return result
    compared, inner = questions.comparison(question), questions.hop(question) if hops else None
    if compared and not speaks_of(question, files):
        return (yield from _compare(question, compared))
    if inner and inner.sure:
        return (yield from _follow(question, inner, files, hops))
    return (yield from _direct(question, inner, files, hops))


def _tables(question: str, files: list[str]) -> list[str]:
    """The tables by name that a figure may be taken from: those that the question names, else those attached."""
    if not operation(question):
        return []
    places = [question] if SHEET_FILE.search(question[: computing.LONGEST]) else [question, *files]
    forms = (TABLE_FILE, SHEET_FILE)
    return [name[0] for text in places for form in forms for name in form.finditer(text[: computing.LONGEST])]


def _other_text(question: str, files: list[str]) -> bool:
    """Whether the answer may stand elsewhere than in the tables that are attached."""
    about = speaks_of(question, files) or ([] if files else [question])
    return not about or any(not (TABLE_FILE.search(one) or SHEET_FILE.search(one)) for one in about)


def _direct(question: str, inner: questions.Hop | None, files: list[str], hops: int) -> Plan:
    """Look the question up; if that finds nothing, follow what may stand inside it, else explore with other words."""
    text = yield from _try(question)
    asked = operation(question)
    if text and (not (asked and is_row(text)) or text.endswith(DIFFER)):
        return Result(text, question)
    if asked and asked not in _OVER_ROWS and (result := (yield from _over_table(question, []))).text:
        return result
    if text and asked == "number":
        return Result(text, question)
    if inner and (result := (yield from _follow(question, inner, files, hops))).text:
        return result
    return Result((yield from _try(_further(question))), question)


def _try(task: str) -> Generator[Calls, list[str], str]:
    """The conclusion of one subtask, empty if it found nothing."""
    (report,) = yield [("subtask", {"task": task})]
    conclusion = concluded(report)
    return "" if failed(conclusion) else conclusion


def _row(question: str) -> Plan:
    """The row of a table in which the answer stands, where none could be computed over."""
    text = yield from _try(question)
    return Result(text if is_row(text) else "", question)


def _look_up(question: str) -> Plan:
    """One subtask, and one more that says that the first found nothing."""
    text = (yield from _try(question)) or (yield from _try(_further(question)))
    return Result(text, question)


def _further(question: str) -> str:
    others = other_words(question)
    return f"{question} {FURTHER}{': ' + ', '.join(others) if others else ''}."


def _follow(question: str, hop: questions.Hop, files: list[str], hops: int) -> Plan:
    """The inner question first; then the outer one with the name that was found in its place."""
    first = yield from solve(hop.inner, files, hops - 1)
    name = questions.entity(first.text, hop.inner, hop.noun)
    if not name:
        return Result("", first.question) if not first.text else (yield from _look_up(question))
    second = yield from solve(hop.outer.replace("{}", name, 1), files, hops - 1)
    return Result(f"{second.text} {first.text}" if second.text else "", second.question)


def _compare(question: str, compared: questions.Comparison) -> Plan:
    """Look both figures up, in one turn if the run allows it; then compare, or have the difference computed."""
    found = [concluded(report) for report in (yield [("subtask", {"task": task}) for task in compared.lookups])]
    for at, task in enumerate(compared.lookups):
        if failed(found[at]):
            found[at] = yield from _try(_further(task))
    figures = [questions.figure(text, task) for text, task in zip(found, compared.lookups, strict=True)]
    missing = [task for task, value in zip(compared.lookups, figures, strict=True) if value is None]
    if missing:
        return Result("", missing[0])
    values = [value for value in figures if value is not None]
    first, second = (value * compared.sign for value in values)
    if compared.asks == "difference":
        computed = yield from _try(f"{computing.COMPUTE} {max(values):.12g} - {min(values):.12g}")
        verdict = computed or f"{abs(first - second):.12g}."
    elif compared.asks == "whether":
        verdict = "Yes." if first > second else "No."
    elif first == second:
        verdict = "Neither."
    else:
        verdict = compared.names[0 if first > second else 1] + "."
    return Result(f"{verdict[0].upper()}{verdict[1:]} {' '.join(found)}", question)


def _over_table(question: str, named: list[str]) -> Plan:
    """Open the table, unless a file is named, and compute over all of its rows."""
    if not named:
        rows = yield from _try(f"{OPEN_TABLE}: {question}")
        if rows.startswith(PARTIAL):
            named = [match[0] for match in TABLE_FILE.finditer(rows.partition("\n")[0])][-1:]
        if not rows or (rows.startswith(PARTIAL) and not named):
            return Result("", question)
    where = f" {named[0]}" if named and named[0] not in question else ""
    return Result((yield from _try(f"{computing.COMPUTE} from the table{where}: {question}")), question)


def concluded(report: str) -> str:
    """The conclusion that a report carries among its values; a report without values is taken whole."""
    said = report.values.get("conclusion", "") if isinstance(report, Filled) else report
    return clean(str(said)).strip()
