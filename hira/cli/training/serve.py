"""`hira-train serve`: the command that serves a run's adapters, printed or run."""

import argparse
import shutil
import subprocess

from hira.cli import OK
from hira.cli.shell import Shell
from hira.errors import UsageError
from hira.trainers.serving import command, spelled


def serve(args: argparse.Namespace, shell: Shell) -> int:
    words = command((shell.folder / args.run).resolve(), args.port)
    if not args.start:
        shell.say(spelled(words))
        shell.tell(
            f"hira-train: then ask with: hira ask --profile {args.run} --base-url http://127.0.0.1:{args.port}/v1"
        )
        return OK
    program = shutil.which(words[0])
    if program is None:
        fix = "pip install vllm on the machine with the GPU, or run the printed command there"
        raise UsageError("vllm is not installed", fix=fix)
    shell.tell(f"hira-train: {spelled(words)}")
    return subprocess.run([program, *words[1:]], check=False).returncode  # noqa: S603 - the command that was printed
