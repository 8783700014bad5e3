"""`hira` as a test runs it: with its own folder, environment and streams, in this process or in a real one."""

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from hira.cli import main
from hira.cli.shell import Shell
from hira.testing.endpoint import Endpoint


class Process(subprocess.Popen[str]):
    """A process that does not outlive a failed test."""

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind:
            self.kill()
        super().__exit__(kind, value, traceback)


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Command:
    """Runs `hira ARGUMENTS…` in a folder, with these variables."""

    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *argv: str, stdin: str = "", **environ: str) -> Said:
        out, err = io.StringIO(), io.StringIO()
        shell = Shell(io.StringIO(stdin), out, err, {**self.environ, **environ}, self.folder, self.folder / "home")
        return Said(main(argv, shell), out.getvalue(), err.getvalue())

    def start(self, *argv: str, program: tuple[str, ...] = ("-m", "hira"), **more: Any) -> Process:
        """Start the real command in a separate process, with `environ` among its variables."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HIRA_", "OPENAI_", "XDG_"))}
        named = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        environ = {**kept, "HOME": str(self.folder / "home"), **self.environ, **named.pop("environ", {})}
        return Process(
            [sys.executable, *program, *argv], cwd=self.folder, env=environ, text=True, encoding="utf-8", **named
        )

    def run(self, *argv: str, **more: Any) -> Said:
        """Run the real command to its end."""
        with self.start(*argv, **more) as process:
            out, err = process.communicate(timeout=60)
        return Said(process.returncode, out or "", err)

    def write(self, **files: str) -> None:
        """Write files below the folder `docs`."""
        (self.folder / "docs").mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (self.folder / "docs" / f"{name}.txt").write_text(f"{text}\n", encoding="utf-8")

    @property
    def journal(self) -> Path:
        return self.folder / "home" / ".local" / "state" / "hira" / "journal.sqlite"


def at(endpoint: Endpoint) -> tuple[str, ...]:
    """The flags that name an endpoint's model."""
    return ("--model", endpoint.model, "--base-url", endpoint.base_url)
