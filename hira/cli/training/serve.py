"""`hira-train serve`: the command that serves a run's adapters, printed or run."""

import argparse
import os
import shutil

from hira.cli import OK
from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.trainers.serving import command, spelled


def serve(args: argparse.Namespace, shell: Shell) -> int:
    words = command((shell.folder / args.run).resolve(), args.port)
    if not args.start:
        shell.say(spelled(words))
        shell.tell(
            f"hira-train: then ask with: hira ask … --profile {args.run} --base-url http://127.0.0.1:{args.port}/v1"
        )
        return OK
    program = shutil.which(words[0], path=shell.environ.get("PATH", ""))
    if program is None:
        raise UsageError(
            "vllm is not installed",
            where="it serves each adapter as a separate model",
            fix="pip install vllm on the machine with the GPU and run the printed command there; answers of the whole "
            f"workflow are served from this process, without vLLM, by: hira serve --profile {args.run}",
        )
    shell.tell(f"hira-train: {spelled(words)}")
    # vLLM takes this process's place, so that whoever ends it ends the server
    os.execve(program, [program, *words[1:]], dict(shell.environ))  # noqa: S606 - the command that was printed
    return OK
