"""The files of a batch: its questions, checked line by line before any work, and its answers as they finish."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self, get_args

from hira.agents.trajectory import FINAL, Status
from hira.core.errors import UsageError, find_near, suggest
from hira.core.files import replace_file
from hira.journal.encoding import DamagedRecord, read_json
from hira.journal.lines import append_lines, read_lines, repair_last_line
from hira.runtime.batch import Done, Question
from hira.runtime.validation import find_files, paths_of
from hira.tools.documents.walk import roots_of

KEYS = ("question", "id", "files", "docs")
_LIST = re.compile(r'\ufeff?\s*\[\s*[{"]')
"""The beginning of a JSON list of questions."""


def questions_of(text: str, name: str, folder: Path) -> list[Question]:
    """One question a line: plain text, or a JSON object with `question` and, if it likes, `id`, `files` and `docs`.

    Without an id, a question is named by its line. Paths start at `folder`. Other keys are left to other readers, but
    not those that look like a slip of ours. Raises `UsageError` for a table, a JSON list, and the first unusable line.
    """
    if name.lower().endswith((".csv", ".tsv")) or _LIST.match(text):
        fix = 'write one question per line, as plain text or {"question": "…"}; no question was asked'
        raise UsageError("a batch file is neither a table nor a JSON list", where=f"at {name}", fix=fix)
    lines: dict[str, int] = {}
    questions = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            question = _question(line.strip(), number, folder)
            if question.id in lines:
                raise UsageError(f"the id {question.id!r} is already used in line {lines[question.id]}")
        except UsageError as error:
            fix = f"{error.fix or 'correct the line'}; no question was asked"
            raise UsageError(error.what, where=f"in line {number} of {name}", fix=fix) from None
        lines[question.id] = number
        questions.append(question)
    if not questions:
        raise UsageError("there are no questions", where=f"in {name}", fix="write one per line")
    return questions


def _question(line: str, number: int, folder: Path) -> Question:
    if not line.startswith("{"):
        return Question(line, str(number))
    try:
        values = read_json(line)
    except DamagedRecord as error:
        raise UsageError(str(error)) from None
    for key in values:
        if key not in KEYS and (near := find_near(key, KEYS)) and near[0] not in values:
            raise UsageError(f"unknown key {key!r}", fix=suggest(key, KEYS))
    text, files, given = values.get("question"), values.get("files", []), values.get("id", number)
    if not isinstance(text, str) or not text.strip():
        raise UsageError("there is no question", fix='write {"question": "…"}')
    if not isinstance(given, str | int):
        raise UsageError("`id` must be a string or a number")
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise UsageError("`files` must be a list of paths")
    docs = None
    if "docs" in values:
        docs = [folder / Path(path).expanduser() for path in paths_of(values["docs"], "docs")]
        roots_of(docs)
    return Question(text.strip(), str(given), find_files([folder / file for file in files]), docs=docs)


STATUSES: tuple[Status, ...] = get_args(Status)


class Answers:
    """The answers of a batch in their file, as a context manager: entering it reads the file, leaving it sorts the
    lines. A file next to it notes the run of each question before its first call."""

    def __init__(self, path: Path, questions: Sequence[Question]) -> None:
        self.path = path
        self.questions = questions
        self._kept: dict[str, tuple[Status, str]] = {}
        self._begun: dict[str, str] = {}

    def __enter__(self) -> Self:
        if self.path.exists() and not self.path.is_file():
            what = f"the answers cannot be written: {self.path} is not a regular file"
            raise UsageError(what, fix="name another file with --output")
        runs = self.path.with_name(f"{self.path.name}.runs")
        new = [path for path in (runs, self.path) if not path.exists()]
        with contextlib.ExitStack() as refused:  # a refused batch leaves the folder as it was
            for path in new:
                refused.callback(path.unlink, missing_ok=True)
            try:
                self._runs = refused.enter_context(runs.open("a+b"))
                self._file = refused.enter_context(self.path.open("a+b"))
            except OSError as error:
                what = f"the answers cannot be written: {error}"
                raise UsageError(what, fix="name another file with --output") from None
            self._lock()
            self._read()
            refused.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Put the lines in order. Questions that began and have no answer remain in the notes."""
        try:
            with _writing(self.path):
                self._file.seek(0)
                lines = {str(values["id"]): line for line, values in read_lines(self._file.read()) if values}
                if not (lines or self._kept):
                    self.path.unlink()
                elif self._kept.keys() <= lines.keys():  # else it stays as it is: nothing may be lost
                    answered = (question.id for question in self.questions if question.id in lines)
                    replace_file(self.path, (lines[name] for name in answered))
                if all(name in self._kept and self._kept[name][1] == run for name, run in self._begun.items()):
                    Path(self._runs.name).unlink()
        finally:
            for file in (self._file, self._runs):
                with contextlib.suppress(OSError):  # what could not be written has been told
                    file.close()

    def list_unfinished(self) -> Iterator[Question]:
        """Yield the questions without a final answer, each with the run to resume, if it began."""
        for question in self.questions:
            status, run = self._kept.get(question.id, (None, ""))
            if status not in FINAL:
                yield replace(question, run=self._begun.get(question.id) or run)

    def statuses(self) -> list[Status]:
        return [self._kept[question.id][0] for question in self.questions if question.id in self._kept]

    def begin(self, question: Question, run: str) -> None:
        """Record the run of a question before the first call."""
        self._begun[question.id] = run
        with _writing(self.path):
            append_lines(self._runs, [{"id": question.id, "run": run}])

    def keep(self, done: Done) -> None:
        """Add the answer's line."""
        with _writing(self.path):
            append_lines(self._file, [{"id": done.question.id, **done.answer.json()}])
        self._kept[done.question.id] = done.answer.status, done.answer.rollout.run

    def _lock(self) -> None:
        """Lock the notes. Raises `UsageError` if another batch holds them. Without `fcntl`, nothing is locked."""
        with contextlib.suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(self._runs, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                what = f"another batch is writing {self.path}"
                raise UsageError(what, fix="wait until it ends, or name another file") from None

    def _read(self) -> None:
        """Read the file and drop a last line that was cut off. Raises `UsageError` for any other line that does not
        answer these questions."""
        texts = {question.id: question.text for question in self.questions}
        self._file.seek(0)
        for number, (line, record) in enumerate(read_lines(self._file.read()), 1):
            if record is None and not line.endswith(b"\n"):
                break
            values = record or {}
            name, status = str(values.get("id")), values.get("status")
            if status not in STATUSES or texts.get(name) != values.get("question"):
                what = "the file contains a line that does not answer these questions"
                raise UsageError(what, where=f"in line {number} of {self.path}", fix="name another")
            self._kept[name] = status, str(values.get("run_id", ""))
        repair_last_line(self._file)
        self._runs.seek(0)
        for _, begun in read_lines(self._runs.read()):
            if begun and str(begun.get("id")) in texts and isinstance(begun.get("run"), str):
                self._begun[str(begun["id"])] = begun["run"]


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn an `OSError` in the context, such as on a full disk, into a `UsageError`."""
    try:
        yield
    except OSError as error:
        what = f"the answers cannot be written: {error.strerror or error}"
        fix = "free some space, then run the same command again: answers in the file are kept"
        raise UsageError(what, where=f"to {path}", fix=fix) from None
