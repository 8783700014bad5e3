"""`hira-train eval`: `hira eval` with what a run trained."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import hira.cli
from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.runtime.settings import PROFILE, load


def eval(args: argparse.Namespace, shell: Shell) -> int:  # noqa: A001 - the command's name
    run = shell.folder / args.run
    if not (run / PROFILE).is_file():
        fix = "name the folder of a run that has ended; to resume one that has not: hira-train grpo --resume"
        raise UsageError("there is no profile", where=str(run), fix=fix)
    flags = [*args.flags, *(["--debug"] if args.debug else [])]
    out = [] if _names(flags, "--output") else ["--output", str(Path("eval") / f"{Path(args.data).stem}-{run.name}")]
    own = load({"profile": run}, {}, shell.folder, Path(shell.home)).workflow
    way = [] if _names(flags, "--workflow") else ["--workflow", own]
    return hira.cli.main(["eval", args.data, "--profile", str(run), *way, *out, *flags], shell)


def _names(flags: Sequence[str], name: str) -> bool:
    return any(one == name or one.startswith(f"{name}=") for one in flags)
