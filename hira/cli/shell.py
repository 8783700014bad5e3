"""Where a command runs, and the view of its work: its streams, its environment, its folder. Made once, at the edge."""

import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from hira.core.errors import HiraError, UsageError
from hira.core.events import Error, Event, Notice, record

if TYPE_CHECKING:
    from hira.runtime.settings import Settings

WIDTH = 160
"""Characters of a line about an event."""
QUOTED = 200
"""Characters of a passage below its source."""
_CONTROLS = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)


@dataclass(frozen=True, slots=True)
class Shell:
    """The streams, environment and folder of a command. With `events`, a program reads stderr as JSON lines."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    environ: Mapping[str, str]
    folder: Path
    home: Path
    events: bool = False
    program: str = "hira"

    def load_settings(
        self, flags: Mapping[str, Any] = MappingProxyType({}), *, record: Mapping[str, Any] = MappingProxyType({})
    ) -> "Settings":
        """Load the settings that hold here, under these flags and over those of a recorded run."""
        from hira.runtime.settings import load  # loads pydantic, which `hira --help` does without

        return load(flags, self.environ, self.folder, self.home, record=record)

    def read_text(self, name: str, flag: str) -> str:
        """Return the text of a file that a flag names. Raises `UsageError` if it has no text."""
        try:
            text = (self.folder / Path(name).expanduser()).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise UsageError(f"{flag} {name}: there is no such file", fix="check its path from this folder") from None
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise UsageError(f"{flag} {name} cannot be read: {why}", fix="name a text file in UTF-8") from None
        if not text.strip():
            raise UsageError(f"{flag} {name} is empty", fix="name a file that is not empty")
        return text

    def say(self, text: str) -> None:
        """Print the result on stdout. Raises `HiraError` on a full disk or a closed stdout, not for `| head`."""
        try:
            self.stdout.write(encodable(visible(text), self.stdout) + "\n")
            self.stdout.flush()
        except OSError as error:
            if self.stdout is sys.stdout:  # let the interpreter's own flush at its end go nowhere instead of failing
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.stdout.fileno())
            if not isinstance(error, BrokenPipeError):
                why = error.strerror or "it is closed; redirect it, such as > answer.txt"
                raise HiraError(f"standard output cannot be written: {why}") from None

    def say_json(self, value: object) -> None:
        self.say(format_json(value))

    def tell(self, text: str) -> None:
        """Print a line for the person on stderr."""
        try:
            self.stderr.write(encodable(visible(text), self.stderr) + "\n")
            self.stderr.flush()
        except OSError:  # there is nobody left to tell
            return

    def remark(self, text: str) -> None:
        """Print a remark of the command itself for the person."""
        if self.events:
            self.event(Notice(text))
        else:
            self.tell(f"{self.program}: {text}")

    def explain(self, error: HiraError) -> None:
        """Print the error in at most three lines: what failed, where, what to do; among events as one more of them."""
        if self.events:
            self.event(Error(error.what, error.where, error.fix))
            return
        first, *rest = [line for line in (error.what, error.where, error.fix) if line]
        self.remark("\n".join([" ".join(first.split()), *(f"  {' '.join(line.split())}" for line in rest)]))

    @property
    def has_person(self) -> bool:
        """True if somebody at a terminal can be asked, and no program reads the output."""
        return not self.events and self.stdin.isatty() and self.stderr.isatty()

    def confirm(self, what: str, question: str) -> bool:
        """Ask the person at the terminal. Return False without one."""
        if not self.has_person:
            return False
        self.remark(what)
        self.tell(f"{question} [y]es, [N]o: ")
        return self.stdin.readline().strip().lower() in ("y", "yes")

    def event(self, event: Event, **about: str) -> None:
        self.tell(json.dumps({**about, **record(event)}, ensure_ascii=False, default=str))


class Counts(Protocol):
    """The counts of many questions, which say no more how long the rest will take once they are `stopping`."""

    stopping: bool


@dataclass(eq=False)
class View(AbstractContextManager["View"]):
    """Shows how far a run is, or the `counts` of many questions (`CellCounts`), as a context manager. This one
    shows nothing, and still says what has to be said."""

    shell: Shell
    counts: Counts | None = None

    def __exit__(self, *_: object) -> None:
        """Leave what is shown as it is."""

    def __call__(self, event: Event) -> None:
        """Show an event of a run."""
        if isinstance(event, Notice) and event.important:
            self.say(event.text)

    def update(self) -> None:
        """Show that the counts have changed."""

    def say(self, text: str) -> None:
        """Print a line for the person that does not belong to an event of the run."""
        self.shell.remark(text)

    def stop(self, text: str) -> None:
        """Print why the work ends soon."""
        if self.counts:
            self.counts.stopping = True
        self.say(text)

    async def keep(self) -> None:
        """Keep what is shown alive until it is cancelled."""

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Show nothing meanwhile, because a person is asked something."""
        yield


class JsonLines(View):
    """Each event as one line of JSON."""

    def __call__(self, event: Event) -> None:
        self.shell.event(event)


def format_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def open_shell() -> Shell:
    """Return this process's streams, in UTF-8 unless PYTHONIOENCODING says otherwise; printing never fails. A stream
    that was closed before the start (None) becomes the null device."""
    encoding, streams = None if os.environ.get("PYTHONIOENCODING") else "utf-8", list[Any]()
    # instead of stdout it is opened for reading alone, so that no answer is lost in silence
    for given, mode in ((sys.stdin, "r+"), (sys.stdout, "r"), (sys.stderr, "r+")):
        stream = given or Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - it is open as long as the process
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors="replace")
        streams.append(stream)
    stdin, stdout, stderr = streams
    return Shell(stdin, stdout, stderr, os.environ, Path.cwd(), Path.home())


def visible(text: str) -> str:
    """Remove the control characters that would move a cursor, change a title or turn the reading order."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n"))


def brief(text: str, width: int = WIDTH) -> str:
    """The text on one line, at most `width` characters of it."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


_SPELLED = {"→": "->", "—": "-", "…": "...", "·": "-", "’": "'"}


def encodable(text: str, stream: TextIO) -> str:
    """Return the text; of what the stream cannot write, typographic marks are spelled in ASCII, and the rest is `?`."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        pass
    except LookupError:
        encoding = "ascii"
    else:
        return text
    written = [(letter, letter.encode(encoding, "replace").decode(encoding)) for letter in text]
    return "".join(shown if shown == letter else _SPELLED.get(letter, shown) for letter, shown in written)
