"""Questions with their answers, and the files they are read from: JSON lines, a JSON array or CSV, with the usual
columns or named ones."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any

from hira.core.errors import UsageError
from hira.journal.encoding import read_json
from hira.runtime.validation import find_files


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its known answer."""

    id: str
    question: str
    answers: tuple[str, ...] = ()
    """Texts of which any is right."""
    every: tuple[str, ...] = ()
    """Texts that must all be present."""
    category: str = ""
    """Groups the results: one label, or several with bars between them."""
    files: tuple[Path, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    """The set's other columns."""
    unanswerable: bool = False
    """True if a right answer says that nothing can be known, and cites nothing."""
    judge: str = ""
    """The HiRA judge of its set."""

    @property
    def labels(self) -> list[str]:
        return labels_of(self.category)

    @property
    def answerable(self) -> bool:
        """True if there is a known answer."""
        return bool(self.answers or self.every)

    @property
    def gold(self) -> str:
        """The answer as a judge reads it."""
        return " and ".join(self.every) if self.every else " or ".join(self.answers)


def labels_of(category: str) -> list[str]:
    """Return the labels of a category such as `level 2 | without file`."""
    return [label.strip() for label in category.split("|") if label.strip()]


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "query", "problem", "prompt", "Question", "input"),
    "answer": (
        "answers", "answer", "golden_answers", "gold", "Final answer", "Answer", "target", "possible_answers", "output"
    ),
    "id": ("id", "_id", "task_id", "qid", "question_id"),
    "category": ("category", "level", "Level", "difficulty", "type", "subject", "topic"),
    "files": ("files", "file", "file_path", "file_name"),
    "every": ("every",),
    "answerable": ("answerable",),
}  # fmt: skip
"""The names of each part of an item in common sets, best first."""
_NOTHING = frozenset({"", "none", "null", "nan"})
_ANSWERABLE = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def items_of(path: Path, columns: Mapping[str, str] | None = None) -> list[Item]:
    """Return the items of a file. `columns` names columns with other names. Raises `UsageError` with the line of an
    unreadable row."""
    return read_rows(rows_of(path), path.parent, str(path), columns or {})


def rows_of(path: Path) -> list[Mapping[str, Any]]:
    """Return the rows of a file, each with the names of its columns."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"the questions cannot be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError:
        raise UsageError("the questions are not UTF-8 text", where=f"in {path}", fix="convert the file") from None
    if path.suffix in (".csv", ".tsv"):
        return list(_cells(text, path))
    if text.lstrip().startswith("["):
        try:
            value = read_json(text)
        except ValueError as error:
            raise UsageError(str(error), where=f"in {path}", fix="correct the file") from None
        rows: list[Mapping[str, Any]] = [row for row in value if isinstance(row, dict)]
        if len(rows) < len(value):
            number = next(number for number, row in enumerate(value, 1) if not isinstance(row, dict))
            raise UsageError("not a JSON object", where=f"entry {number} of {path}", fix='write {"question": "…"}')
        return rows
    return list(_lines(text, path))


def require_columns(row: Mapping[str, Any], names: Sequence[str], where: str) -> list[str]:
    """Return the texts of these columns. Raises `UsageError` for one that is missing or empty."""
    texts = ["" if row.get(name) is None else str(row[name]).strip() for name in names]
    if "" in texts:
        what = f"there is no {names[texts.index('')]!r}"
        raise UsageError(what, where=where, fix=f"each row needs {', '.join(names)}")
    return texts


def _cells(text: str, path: Path) -> Iterator[Mapping[str, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if path.suffix == ".tsv" else ",")
    try:
        for row in reader:
            if None in row:
                what = "the row has more cells than there are columns"
                where = f"in line {reader.line_num} of {path}"
                raise UsageError(what, where=where, fix="quote a cell that holds the separator")
            yield row
    except csv.Error as error:
        where, fix = f"in line {reader.line_num} of {path}", "write long texts as JSON lines"
        raise UsageError(f"the table cannot be read: {error}", where=where, fix=fix) from None


def _lines(text: str, path: Path) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = read_json(line)
        except ValueError as error:
            where = f"in line {number} of {path}"
            raise UsageError(str(error), where=where, fix="correct the line") from None
        if not isinstance(row, dict):
            raise UsageError("not a JSON object", where=f"in line {number} of {path}", fix='write {"question": "…"}')
        yield row


def read_rows(
    rows: Sequence[Mapping[str, Any]],
    folder: Path,
    name: str,
    columns: Mapping[str, str],
    *,
    within: Path | None = None,
) -> list[Item]:
    """Return rows as items; columns other than question, answer, id, category and files become `meta`. Files are in
    `folder`; links may lead to files in `within`, by default also `folder`. Raises `UsageError` for a wrong row or
    column."""
    if not rows:
        raise UsageError("there are no questions", where=f"in {name}")
    known = {column for row in rows for column in row}
    if strange := sorted(set(columns) - set(COLUMNS)):
        raise UsageError(f"a question has no part {strange[0]!r}", fix=f"there are {', '.join(COLUMNS)}")
    if missing := sorted(set(columns.values()) - known):
        fix = f"it has {', '.join(sorted(known))}"
        raise UsageError(f"there is no column {missing[0]!r}", where=f"in {name}", fix=fix)
    chosen = {
        part: columns.get(part) or next((column for column in names if column in known), "")
        for part, names in COLUMNS.items()
    }
    if not chosen["question"]:
        fix = f"name it: --column question=NAME; the file has {', '.join(sorted(known))}"
        raise UsageError("there is no column with the questions", where=f"in {name}", fix=fix)
    folder = folder.absolute()
    kept = (folder, within or folder)
    items = [_item(row, chosen, kept, f"question {number} of {name}", number) for number, row in enumerate(rows, 1)]
    seen: dict[str, int] = {}
    for number, item in enumerate(items, 1):
        if item.id in seen:
            what = f"the id {item.id!r} is already used by question {seen[item.id]}"
            raise UsageError(what, where=f"question {number} of {name}")
        seen[item.id] = number
    return items


def _item(row: Mapping[str, Any], chosen: Mapping[str, str], kept: tuple[Path, Path], where: str, number: int) -> Item:
    def value(part: str) -> Any:
        return row.get(chosen[part]) if chosen[part] else None

    question = str(value("question") or "").strip()
    if not question:
        raise UsageError("the question is empty", where=where, fix="fill it in or remove the row")
    given = value("id")
    try:
        answerable = _answerable(value("answerable"), None if value("every") else value("answer"))
        files = find_files([_inside(text, *kept) for text in parse_texts(value("files"))])
    except UsageError as error:
        raise UsageError(error.what, where=where, fix=error.fix) from None
    answers, every = list[str](), list[str]()
    if answerable is not False:
        answers, every = parse_texts(value("answer")), parse_texts(value("every"))
    return Item(
        str(number if given in (None, "") else given),
        question,
        tuple(answers),
        tuple(every),
        str(value("category") or "").strip(),
        files,
        {key: value for key, value in row.items() if key not in chosen.values() and value not in (None, "")},
        unanswerable=answerable is False,
    )


def _answerable(value: Any, answer: Any) -> bool | None:
    """Return whether a row says that its question can be answered: in its own column, or with an empty list of answers.
    None if it does not say: a missing answer may be in another column."""
    if value not in (None, ""):
        known = _ANSWERABLE.get(str(value).strip().lower())
        if known is None:
            raise UsageError(f"`answerable` must be true or false, got {value!r}", fix="write true or false")
        return known
    empty = answer.strip() == "[]" if isinstance(answer, str) else isinstance(answer, Sequence) and not answer
    return False if empty else None


def _inside(name: str, folder: Path, within: Path) -> Path:
    """Return the path of a row's file. Raises `UsageError` for one outside the folder, by its name or by a link."""
    path, foreign = folder / name, PureWindowsPath(name)
    try:
        inside = path.resolve().is_relative_to(within.resolve())
    except (OSError, RuntimeError, ValueError):  # circular links, a zero byte
        inside = False
    if not inside or foreign.anchor or ".." in foreign.parts:
        what = f"the file {name!r} is outside the folder of the questions"
        raise UsageError(what, fix=f"attach files from {folder}, with relative paths")
    return path


def parse_texts(value: Any) -> list[str]:
    """Return one or several texts: from a list, a list in JSON, `{"value": …, "aliases": […]}`, or the text itself."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        texts = [parse_texts(value.get(key)) for key in ("value", "answer", "aliases")]
        return list(dict.fromkeys(text for each in texts for text in each))
    if isinstance(value, Sequence) and not isinstance(value, str):
        # an entry that is a text counts as it is, even "None"
        texts = [[entry.strip()] if isinstance(entry, str) and entry.strip() else parse_texts(entry) for entry in value]
        return list(dict.fromkeys(text for each in texts for text in each))
    text = str(value).strip()
    if text.startswith("[") and text.endswith("]"):
        try:
            return parse_texts(read_json(text))
        except ValueError:
            pass
    return [] if text.lower() in _NOTHING else [text]
