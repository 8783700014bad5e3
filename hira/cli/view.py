"""The view of work in progress: one that shows nothing, and one of JSON lines; `hira.cli.progress` has plain lines."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from hira.cli.shell import Shell, visible
from hira.core.events import Event, Notice

WIDTH = 160


class View:
    """Shows how far work is, as a context manager. This one shows nothing, and still says what has to be said."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def __enter__(self) -> Self:
        return self

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


def brief(text: str, width: int = WIDTH) -> str:
    """The text on one line, at most `width` characters of it."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"
