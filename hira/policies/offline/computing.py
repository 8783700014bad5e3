"""Writing a Python program for what a task wants computed: arithmetic, dates, a column of a table."""

import ast
import json
import re
from collections.abc import Sequence
from pathlib import Path

from hira.evidence import CITED
from hira.policies.offline import table
from hira.policies.offline.attachments import unspoken
from hira.policies.offline.opening import SHEET_FILE, TABLE_FILE, TITLED
from hira.relevance import words

COMPUTE = "Compute"
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_VALUES = {word: at for at, word in enumerate(_UNITS.split())} | {
    word: 20 + 10 * at for at, word in enumerate(_TENS.split())
}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_SPELLED = re.compile(rf"\b(?:{'|'.join(_VALUES)})(?:[\s-]+(?:{'|'.join([*_VALUES, *_SCALES])}))*\b")
_N = r"\d+(?:\.\d+)?"
_LIST = rf"({_N}(?:\s*(?:,|and|from|by|,\s*and)\s*{_N})+)"

# phrase → what Python calls it; tried in this order
_PHRASES: tuple[tuple[str, str], ...] = (
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (rf"({_N})\s*(?:%|percent|per cent) of", r"\1 / 100 *"),
    (rf"square root of \(?({_N})\)?", r"sqrt(\1)"),
    (rf"cube root of \(?({_N})\)?", r"\1 ** (1 / 3)"),
    (r"factorial of (\d+)|(\d+) ?!(?!=)|(\d+) factorial", r"factorial(\1\2\3)"),
    (rf"({_N}) subtracted from ({_N})", r"\2 - \1"),
    (r"(?:raised )?to the power of|raised to|\^", "**"),
    (r"\bsquared\b|²", "** 2"),
    (r"\bcubed\b|³", "** 3"),
    (r"multiplied by|\btimes\b|×|·|(?<=\d) ?x ?(?=\d)", "*"),
    (r"divided by|÷", "/"),
    (r"\bmod(?:ulo)?\b", "%"),
    (r"\bplus\b|added to", "+"),
    (r"\bminus\b|−", "-"),
)
_LISTS = {
    "sum": "({})",
    "product": "({})",
    "average": "({}) / {n}",
    "mean": "({}) / {n}",
    "difference": "abs({})",
    "quotient": "({})",
}
_SIGNS = {"product": "*", "difference": "-", "quotient": "/"}
_RUN = re.compile(rf"(?:(?:sqrt|factorial|abs)\(|{_N}|\*\*|[-+*/%()]|\s)+")
_FRAME = frozenset(
    words("calculate compute evaluate result value much equal answer please exact exactly solve determine")
)
_MOST = 10_000
LONGEST = 1_000
"""Characters of a task that is looked through for something to compute."""

_MONTH = "january|february|march|april|may|june|july|august|september|october|november|december"
_DATES = (
    re.compile(r"\b(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})\b"),
    re.compile(rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m>{_MONTH}),? (?P<y>\d{{4}})\b"),
    re.compile(rf"\b(?P<m>{_MONTH}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})\b"),
)
_SHIFT = re.compile(r"(\d+) (day|week)s? (after|before)")


def program_for(task: str, files: Sequence[str], notes: Sequence[str] = (), roots: Sequence[str] = ()) -> str:
    """A Python program that prints the result in one line, empty if the task is nothing to compute.

    `notes` may hold rows of a table or name its file, `roots` are the places that Python can read.
    """
    return arithmetic(task) or dates(task) or tabular(task, files, notes, roots)


def arithmetic(task: str) -> str:
    """A program for an expression in words or symbols; empty if the task holds more than that."""
    if not (found := expression(task)):
        return ""
    return (
        f"# {found}\nfrom math import factorial, sqrt\n\nvalue = {found}\n"
        f'print({json.dumps(found + " =")}, f"{{value:.12g}}" if isinstance(value, float) else value)'
    )


def expression(task: str) -> str:
    """What a task in words or symbols wants computed, as Python writes it; empty if the task holds more than that."""
    if len(task) > LONGEST:
        return ""
    text = _in_symbols(task)
    runs = [match[0].strip() for match in _RUN.finditer(text)]
    run = max(runs, key=len, default="")
    if not (found := _balanced(run)):
        return ""
    rest = [word for word in words(text.replace(run, " ")) if word not in _FRAME]
    return "" if rest or not _safe(found) else found


def _in_symbols(task: str) -> str:
    text = _SPELLED.sub(lambda match: str(_spelled(match[0])), task.lower())
    for phrase, symbol in _PHRASES:
        text = re.sub(phrase, symbol, text)
    return re.sub(rf"(?:the )?({'|'.join(_LISTS)}) (?:of|between) (?:the numbers )?{_LIST}", _listed, text)


def _spelled(said: str) -> int:
    """A number in words: "two hundred and five" is handed over as "two hundred", "five"."""
    total = part = 0
    for word in re.split(r"[\s-]+", said):
        if word in _VALUES:
            part += _VALUES[word]
        elif word == "hundred":
            part = max(part, 1) * 100
        else:
            total, part = total + max(part, 1) * _SCALES[word], 0
    return total + part


def _listed(match: re.Match[str]) -> str:
    numbers = re.findall(_N, match[2])
    sign = f" {_SIGNS.get(match[1], '+')} "
    return _LISTS[match[1]].format(sign.join(numbers), n=len(numbers))


def _balanced(run: str) -> str:
    """The run as an expression: a sign or a bracket that belongs to the sentence around it is left out."""
    for text in (run, run.strip("()*/+% -"), run.rstrip("*/+%- ")):
        try:
            ast.parse(text.strip(), mode="eval")
        except SyntaxError:
            continue
        return text.strip()
    return ""


def _safe(expression: str) -> bool:
    """Whether it computes something, and nothing without end: exponents and factorials are small and not nested."""
    nodes = list(ast.walk(ast.parse(expression, mode="eval")))
    powers = [node for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    bounded = [*(node.right for node in powers), *(argument for call in calls for argument in call.args)]
    inner = [leaf for node in bounded for leaf in ast.walk(node)]
    small = all(abs(leaf.value) <= _MOST for leaf in inner if isinstance(leaf, ast.Constant))  # type: ignore[arg-type]
    nested = any(isinstance(leaf, ast.Pow | ast.Mult) for leaf in inner)
    return small and not nested and any(isinstance(node, ast.BinOp | ast.Call) for node in nodes)


def dates(task: str) -> str:
    """A program for the time between two dates, a date before or after another, or a day of the week."""
    text = task.lower()
    found = sorted(
        (match.start(), int(match["y"]), _month(match["m"]), int(match["d"]))
        for form in _DATES
        for match in form.finditer(text)
    )
    days = [f"date({year}, {month}, {day})" for _, year, month, day in found]
    told = " and ".join(f"{year:04}-{month:02}-{day:02}" for _, year, month, day in found)
    head = f"# days: {told}\nfrom datetime import date, timedelta\n\n"
    if len(days) == 2 and (unit := re.search(r"\b(day|week|year)s?\b", text)):
        size = {"day": "", "week": " / 7", "year": " / 365.2425"}[unit[1]]
        figure = f"abs(({days[1]} - {days[0]}).days){size}"
        return f'{head}print("{unit[1]}s from", {days[0]}, "to", {days[1]}, "=", f"{{{figure}:.10g}}")'
    if len(days) == 1 and (shift := _SHIFT.search(text)):
        sign = "+" if shift[3] == "after" else "-"
        moved = f"{days[0]} {sign} timedelta({shift[2]}s={shift[1]})"
        return f'{head}print("{shift[0]}", {days[0]}, "=", {moved})'
    if len(days) == 1 and re.search(r"weekday|day of the week", text):
        return f'{head}print({days[0]}, "is a", f"{{{days[0]}:%A}}")'
    return ""


def _month(name: str) -> int:
    return int(name) if name.isdigit() else _MONTH.split("|").index(name) + 1


def tabular(task: str, files: Sequence[str], notes: Sequence[str], roots: Sequence[str]) -> str:
    """A program that reads a table and aggregates the column that the task names."""
    if not table.operation(task):
        return ""
    question = task.partition(": ")[2] if task.startswith(COMPUTE) else task
    question = " ".join(unspoken(SHEET_FILE.sub(" ", TABLE_FILE.sub(" ", question))).split())
    titles, rows = _noted(question, notes)
    told = (task,) if rows and task.startswith(COMPUTE) else (task, *files, *notes)
    named = [match[0] for text in told for match in TABLE_FILE.finditer(text[:LONGEST])]
    named = [] if SHEET_FILE.search(task) else named
    if not (named or rows):
        return ""
    file, about = (named[0], Path(named[0]).stem) if named else (titles or "the table", titles)
    load = f"from_file(located({named[0]!r}, {list(roots)!r}))" if named else f"{rows!r}"
    return (
        f"# {table.operation(task)}, {file}\n{table.source()}\n\n"
        f"print(answer({question!r}, {load}, {about!r})"
        ' or "no column of the table fits the question")'
    )


def _noted(question: str, notes: Sequence[str]) -> tuple[str, list[dict[str, str]]]:
    """The table among the notes that answers the question, else the last one: its title and its rows."""
    told = [re.sub(r" \(source: [^()]*\)$", "", line) for note in notes for line in note.splitlines()]
    lines = [CITED.sub("", line).rstrip() for line in told]
    starts = [at for at, line in enumerate(lines) if TITLED.match(line)]
    ends = [*starts[1:], len(lines)]
    found = [
        (match[1], table.from_lines(lines[start + 1 : end]))
        for start, end in zip(starts, ends, strict=False)
        if (match := TITLED.match(lines[start]))
    ] or [("", table.from_lines(lines))]
    able = [one for one in found if table.answer(question, one[1], one[0])]
    return (able or found)[-1]


def is_tabular(question: str, files: Sequence[str]) -> bool:
    """Whether a question asks for a figure over a column of a table."""
    mentions = any(form.search(text[:LONGEST]) for text in (question, *files) for form in (TABLE_FILE, SHEET_FILE))
    told = bool(re.search(r"\b(?:column|table|rows?|spreadsheet|csv)\b", question.lower()))
    return bool(table.operation(question)) and (mentions or told)
