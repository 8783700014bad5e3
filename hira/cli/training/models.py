"""`hira-train base`, `eval`, `merge` and `serve`: the models before and after a run."""

import argparse
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import hira.cli
from hira.cli import OK
from hira.cli.shell import Shell
from hira.cli.training.demo import find_model
from hira.core.errors import UsageError
from hira.runtime.settings import PROFILE, load
from hira.trainers.preflight import check_installed
from hira.trainers.profile import explain_unfinished, serve_command


def base(args: argparse.Namespace, shell: Shell) -> int:
    check_installed()
    from hira.trainers.models import write_base

    folder = shell.folder / args.folder
    parameters = write_base(find_model(args.model, shell), folder)
    shell.tell(f"hira-train: wrote {parameters / 1e6:,.0f} million parameters to {folder}; train them with:")
    shell.say(f"model.name={args.folder}")
    return OK


def eval(args: argparse.Namespace, shell: Shell) -> int:  # noqa: A001 - the command's name
    run = shell.folder / args.run
    if not (run / PROFILE).is_file():
        raise explain_unfinished(run)
    flags = [*args.flags, *(["--debug"] if args.debug else [])]
    out = [] if _names(flags, "--output") else ["--output", str(Path("eval") / f"{Path(args.data).stem}-{run.name}")]
    workflow = load({"profile": run}, {}, shell.folder, Path(shell.home)).workflow
    way = [] if _names(flags, "--workflow") else ["--workflow", workflow]
    return hira.cli.main(["eval", args.data, "--profile", str(run), *way, *out, *flags], shell)


def _names(flags: Sequence[str], name: str) -> bool:
    return any(flag == name or flag.startswith(f"{name}=") for flag in flags)


def merge(args: argparse.Namespace, shell: Shell) -> int:
    check_installed()
    from hira.trainers import models

    models.merge(shell.folder / args.run, shell.folder / args.folder, args.adapter)
    shell.tell(f"hira-train: wrote the merged model to {shell.folder / args.folder}; ask it with --model:")
    shell.say(f"hf:{args.folder}")
    return OK


def serve(args: argparse.Namespace, shell: Shell) -> int:
    words = serve_command((shell.folder / args.run).resolve(), args.port)
    if not args.start:
        shell.say(shlex.join(words))
        shell.tell(
            f"hira-train: then ask with: hira ask … --profile {args.run} --base-url http://127.0.0.1:{args.port}/v1"
        )
        return OK
    program = shutil.which(words[0], path=shell.environ.get("PATH", ""))
    if program is None:
        raise UsageError(
            "vllm is not installed",
            where="it serves each adapter as a separate model",
            fix="install it on the machine with the GPU (pip install vllm); or serve the answers of the whole "
            f"workflow without it: hira serve --profile {args.run}",
        )
    shell.tell(f"hira-train: {shlex.join(words)}")
    # vLLM replaces this process, so that ending it ends the server
    os.execve(program, [program, *words[1:]], dict(shell.environ))  # noqa: S606 - the command that was printed
    return OK
