"""JSON lines that a training run writes, its checkpoints, and a progress line during long steps."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hira.core.errors import FULL, HiraError
from hira.core.files import replace_file
from hira.journal.lines import append_lines, encode_line, read_lines

METRICS, ROLLOUTS, EXAMS = "metrics.jsonl", "rollouts.jsonl", "exams.jsonl"


def append_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Append one line for each record. Raises `HiraError` if the disk is full; the next resume drops a cut line."""
    with writing(path), path.open("ab") as file:
        append_lines(file, records, allow_nan=False)


def cut(path: Path, step: int) -> None:
    """Drop the records after a step, and an incomplete last line."""
    if not path.is_file():
        return
    write(path, [record for record in read(path) if int(record.get("step", 0)) <= step])


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Make these records the whole file. Raises `HiraError` if the disk is full."""
    with writing(path):
        replace_file(path, map(encode_line, records))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make the folder of a file to write, and turn an `OSError` into a `HiraError` with a fix."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise unwritable(error, path) from error


def read(path: Path) -> list[dict[str, Any]]:
    """Return the records, without an incomplete last line."""
    if not path.is_file():
        return []
    return [record for _, record in read_lines(path.read_bytes()) if record is not None]


def unwritable(error: OSError, path: Path) -> HiraError:
    if is_full(error):
        return full(f"writing {path}")
    return HiraError(f"{path.name} cannot be written: {error.strerror}", where=str(path.parent), fix="check the folder")


def full(where: str) -> HiraError:
    fix = "make room (or let files be longer: ulimit -f), then resume with --resume: the last whole checkpoint is kept"
    return HiraError("the disk is full", where=where, fix=fix)


def is_full(error: BaseException) -> bool:
    """Return whether an error means a full disk, or a file over the size limit. Only Python's own errors have a number:
    safetensors and tokenizers put it into the message, and torch reports a file of the wrong length."""
    if isinstance(error, OSError):
        return error.errno in FULL
    return any(f"(os error {code})" in str(error) for code in (28, 122, 27)) or "inline_container" in str(error)


@contextmanager
def print_progress(seconds: float, tell: Callable[[str], None], describe: Callable[[], str]) -> Iterator[None]:
    """Pass the text of `describe` to `tell` every `seconds` seconds, until the context is left."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(seconds):
            tell(describe())

    thread = threading.Thread(target=beat, name="hira-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


COMPLETE = "complete.json"
"""The file that is written last: a checkpoint without it is incomplete."""


def last_checkpoint(folder: Path) -> Path | None:
    return max((path.parent for path in folder.glob(f"checkpoint-*/{COMPLETE}")), key=step_of, default=None)


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])


def find_saved(folders: Sequence[Path]) -> Path | None:
    """Return the checkpoint from which a run resumes: that of the last of these folders that has one."""
    return next((place for folder in reversed(folders) if (place := last_checkpoint(folder))), None)


@contextmanager
def explain_interruption(folders: Callable[[], Sequence[Path]]) -> Iterator[None]:
    """Add to a Ctrl-C what the same command would do next."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        saved = find_saved(folders())
        does = f"resumes from {saved.name}" if saved else "starts over, because there is no checkpoint yet"
        interruption.add_note(f"the same command {does}")
        raise
