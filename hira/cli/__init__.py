"""The `hira` command. Starting it loads argparse and little else; what a command needs is loaded by that command."""

import gc
import logging
import sys
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib import import_module

import hira
from hira.cli.options import Command, parse_arguments, read_options
from hira.cli.shell import Shell, open_shell
from hira.core.errors import EndpointError, HiraError, NotTrusted, UsageError, fault
from hira.core.events import RUNS

_MODULES = {"replay": "resume", "trace": "show", "verify": "show"}
"""Where a command is whose module does not bear its name."""
YOUNG = 10_000
"""New objects after which the youngest generation is looked through; Python's own number is 700, and looking took a
tenth of a start, whose objects stay."""
OK, BUG, USAGE, ENDPOINT, NO_EVIDENCE, PARTIAL, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


def main(argv: Sequence[str] | None = None, shell: Shell | None = None) -> int:
    """Run one command and return its exit code. `shell` is where it runs, this process by default."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    shell = replace(shell or open_shell(), events="--events" in arguments, program="hira")
    if not RUNS.handlers:  # Python would print its warnings, and commands show notices themselves
        RUNS.addHandler(logging.NullHandler())
    collections = gc.get_threshold()
    faults: AbstractContextManager[None] = nullcontext()
    if "--debug" in arguments or arguments[:1] == ["serve"]:
        from hira.agents.faults import report_faults_to

        # those of tools and experts, like those of hira's own
        faults = report_faults_to(shell.remark if shell.events else shell.tell)
    try:
        gc.set_threshold(max(collections[0], YOUNG), *collections[1:])
        with faults:
            args = parse_arguments(arguments, hira.__version__)
            name = args.command
            command: Command = getattr(import_module(f"hira.cli.{_MODULES.get(name, name)}"), name)
            options = read_options(command, args)
            try:
                return command(options, shell)
            except NotTrusted as error:
                if not shell.confirm(f"{error.what} ({error.where})", "allow it for this folder from now on?"):
                    raise
                error.allow()
                return command(options, shell)
    except SystemExit as done:  # --help and --version end this way
        return int(done.code or OK)
    except KeyboardInterrupt:
        shell.remark("interrupted")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last line of defence: also a fault of hira's own takes three lines
        return report_failure(error, shell, debug="--debug" in arguments)
    finally:
        gc.set_threshold(*collections)


def report_failure(error: Exception, shell: Shell, *, debug: bool = False) -> int:
    """Explain the error that a command ends with, with its traceback if asked for, and return the exit code."""
    known = error if isinstance(error, HiraError) else fault(error, fix="--debug shows where; report it")
    shell.explain(known)
    if debug:
        (shell.remark if shell.events else shell.tell)(traceback.format_exc())
    return code_of(known)


def code_of(error: HiraError) -> int:
    """The exit code that an error ends the command with."""
    return USAGE if isinstance(error, UsageError) else ENDPOINT if isinstance(error, EndpointError) else BUG
