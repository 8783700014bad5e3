"""The `hira-train` command, in the manner of `hira`. Each command imports its modules on demand."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module

import hira
from hira.cli import INTERRUPTED, OK, report_failure
from hira.cli.options import Command, read_options
from hira.cli.shell import Shell, open_shell
from hira.cli.training.parser import parser
from hira.core.errors import HiraError


def main(argv: Sequence[str] | None = None, shell: Shell | None = None) -> int:
    """Run one command and return its exit code. `shell` is its environment, by default that of this process."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]

    def run(shell: Shell) -> int:
        args = parser(hira.__version__).parse_args(arguments)
        command: Command = getattr(import_module(f"hira.cli.training.{args.module}"), args.command)
        return command(read_options(command, args), shell)

    return run_command(run, shell, debug="--debug" in arguments)


def run_command(command: Callable[[Shell], int], shell: Shell | None = None, *, debug: bool = False) -> int:
    """Run a command and return its exit code; an error becomes a message of at most three lines."""
    shell = replace(shell or open_shell(), program="hira-train")
    if not shell.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # transformers draws some bars with tqdm alone, also into a file
    try:
        return command(shell)
    except SystemExit as done:  # --help and --version end this way
        return int(done.code or OK)
    except KeyboardInterrupt as interruption:  # a command that can be resumed notes how
        shell.remark("; ".join(["interrupted", *getattr(interruption, "__notes__", ())]))
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort: also a fault of hira itself takes three lines
        if not isinstance(error, HiraError):
            from hira.trainers.records import full, is_full

            error = full(f"{type(error).__name__}: {error}".partition("\n")[0]) if is_full(error) else error
        return report_failure(error, shell, debug=debug)
