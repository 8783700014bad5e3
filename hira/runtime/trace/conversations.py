"""Recorded runs as training data: one line a conversation."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from hira.core.errors import UsageError
from hira.core.files import replace_file
from hira.journal.lines import encode_line
from hira.runtime.trace.reading import Reading, ReadTurn


def conversations(reading: Reading) -> Iterator[dict[str, Any]]:
    """Yield each conversation of a run: its turns with their messages and completions.

    `messages` are those of the last turn, so that a conversation that only grew is one training example; a turn that
    does not continue the one before it has its own.
    """
    entry = reading.entry
    threads: dict[str, list[ReadTurn]] = {}
    for turn in reading.turns:
        if turn.completion:
            threads.setdefault(turn.conversation, []).append(turn)
    for name, turns in threads.items():
        yield {
            "run_id": entry.id,
            "question": entry.question,
            "workflow": entry.workflow,
            "status": entry.state,
            "answer": entry.answer,
            "conversation": name,
            "role": turns[0].role,
            "messages": [message.wire for message in turns[-1].request.messages],
            "turns": [
                {
                    "model": turn.model,
                    "kept": turn.kept,
                    "added": [message.wire for message in turn.request.messages[turn.kept :]],
                    "completion": to_jsonable_python(turn.completion),
                }
                for turn in turns
            ],
        }


def write_lines(lines: Iterable[Any], path: Path) -> int:
    """Write one JSON object a line, and return how many. Readers of the path see the old file or the whole new one."""
    try:
        return replace_file(path, map(encode_line, lines), private=True)
    except OSError as error:
        raise UsageError(f"the file could not be written: {error}", where=f"to {path}") from None
