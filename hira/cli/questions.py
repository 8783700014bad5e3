"""The file of a batch's questions. What is wrong with it is told with its line before any work."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hira.core.errors import UsageError
from hira.runtime.batch import Question
from hira.runtime.settings import nearest
from hira.runtime.validation import present

KEYS = ("question", "id", "files")


def questions_of(text: str, name: str, folder: Path) -> list[Question]:
    """One question a line: plain text, or a JSON object with `question` and, if it likes, `id` and `files`.

    Without an id, a question is named by its line. Paths start at `folder`. Other keys are left to other readers, but
    not those that look like a slip of ours. Raises `UsageError` for the first line that cannot be used.
    """
    found: dict[str, int] = {}
    questions = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            question = _question(line.strip(), number, folder)
            if question.id in found:
                raise UsageError(f"the id {question.id!r} is already used in line {found[question.id]}")
        except UsageError as error:
            fix = error.fix or "correct the line"
            raise UsageError(
                error.what, where=f"in line {number} of {name}", fix=f"{fix}; no question was asked"
            ) from None
        found[question.id] = number
        questions.append(question)
    if not questions:
        raise UsageError("there are no questions", where=f"in {name}", fix="write one per line")
    return questions


def _question(line: str, number: int, folder: Path) -> Question:
    if not line.startswith("{"):
        return Question(line, str(number))
    try:
        values = json.loads(line)
    except ValueError as error:
        raise UsageError(f"not valid JSON: {error}") from None
    for key in values:
        if key not in KEYS and (near := nearest(key, KEYS)) and near not in values:
            raise UsageError(f"unknown key {key!r}", fix=f"did you mean {near!r}?")
    text, files, given = values.get("question"), values.get("files", []), values.get("id", number)
    if not isinstance(text, str) or not text.strip():
        raise UsageError("there is no question", fix='write {"question": "…"}')
    if not isinstance(given, str | int):
        raise UsageError("`id` must be a string or a number")
    if not isinstance(files, list) or not all(isinstance(one, str) for one in files):
        raise UsageError("`files` must be a list of paths")
    return Question(text.strip(), str(given), present([folder / one for one in files]))


def lines_of(raw: bytes) -> Iterator[tuple[int, bytes, Mapping[str, Any] | None]]:
    """Each line of a file of JSON lines: where it begins, its bytes, and its object; None for what is no object."""
    at = 0
    for line in raw.splitlines(keepends=True):
        try:
            values = json.loads(line)
        except ValueError:
            values = None
        yield at, line, values if isinstance(values, dict) else None
        at += len(line)
