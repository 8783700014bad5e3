"""`hira` as a test runs it: with its own folder, environment and streams, in this process."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hira.cli import main
from hira.cli.shell import Shell


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Command:
    """Runs `hira ARGUMENTS…` in a folder, with these variables."""

    folder: Path
    environ: Mapping[str, str]

    def __call__(self, *argv: str, stdin: str = "", **environ: str) -> Said:
        out, err = io.StringIO(), io.StringIO()
        shell = Shell(io.StringIO(stdin), out, err, {**self.environ, **environ}, self.folder, self.folder / "home")
        return Said(main(argv, shell), out.getvalue(), err.getvalue())

    @property
    def journal(self) -> Path:
        return self.folder / "home" / ".local" / "state" / "hira" / "journal.sqlite"
