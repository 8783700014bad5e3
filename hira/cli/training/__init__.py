"""The `hira-train` command: the same manners as `hira`. What a command needs is loaded by that command."""

import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import hira
from hira.cli import BUG, INTERRUPTED, OK, code_of
from hira.cli.shell import Shell, of_this_process
from hira.cli.training.parser import parser
from hira.core.errors import HiraError


def main(argv: Sequence[str] | None = None, shell: Shell | None = None) -> int:
    """Run one command and return its exit code. `shell` is where it runs, this process by default."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    shell = shell or of_this_process()
    try:
        args = parser(hira.__version__).parse_args(arguments)
        command = import_module(f"hira.cli.training.{args.command}")
        code: int = getattr(command, args.command)(args, shell)
    except SystemExit as done:  # --help and --version end this way
        return int(done.code or OK)
    except KeyboardInterrupt:
        shell.tell("hira-train: interrupted; run the same command to resume from the last checkpoint")
        return INTERRUPTED
    except HiraError as error:
        explain(error, shell)
        trace, code = traceback.format_exc(), code_of(error)
    except Exception as error:  # noqa: BLE001 - the last line of defence: a fault of hira's own, told in three lines
        explain(_told(error), shell)
        trace, code = traceback.format_exc(), BUG
    else:
        return code
    if "--debug" in arguments:
        shell.tell(trace)
    return code


def _told(error: Exception) -> HiraError:
    from hira.trainers.records import full, is_full

    if is_full(error):
        return full(f"{type(error).__name__}: {error}".partition("\n")[0])
    return HiraError(f"a fault in hira-train: {type(error).__name__}: {error}", fix="--debug shows where; report it")


def explain(error: HiraError, shell: Shell) -> None:
    """The error in at most three lines: what failed, where, what to do."""
    first, *rest = [line for line in (error.what, error.where, error.fix) if line]
    told = [f"hira-train: {' '.join(first.split())}", *(f"  {' '.join(line.split())}" for line in rest)]
    shell.tell("\n".join(told))
