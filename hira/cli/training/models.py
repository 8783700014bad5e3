"""`hira-train base`, `eval`, `merge` and `serve`: the models before and after a run."""

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import hira.cli
from hira.cli import OK
from hira.cli.shell import Shell
from hira.cli.training.demo import find_model
from hira.core.errors import UsageError
from hira.runtime.settings import PROFILE, load
from hira.trainers.preflight import check_installed
from hira.trainers.profile import explain_unfinished, serve_command


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options of `base`, `eval`, `merge` and `serve`. An option that a command lacks has its default."""

    run: str = ""
    model: str = ""
    folder: str = ""
    """The folder that `base` and `merge` write."""
    adapter: str = ""
    data: str = ""
    flags: tuple[str, ...] = ()
    start: bool = False
    port: int = 8000
    debug: bool = False


def base(options: ModelOptions, shell: Shell) -> int:
    check_installed()
    from hira.trainers.models import write_base

    folder = shell.folder / options.folder
    name = find_model(options.model, shell)
    shell.remark(f"converting {options.model}")
    parameters = write_base(name, folder)
    shell.remark(f"wrote {parameters / 1e6:,.0f} million parameters to {folder}; train them with:")
    shell.say(f"model.name={options.folder}")
    return OK


def eval(options: ModelOptions, shell: Shell) -> int:  # noqa: A001 - the command's name
    run = shell.folder / options.run
    if not (run / PROFILE).is_file():
        raise explain_unfinished(run)
    arguments = ["eval", options.data, "--profile", str(run)]
    workflow = load({"profile": run}, {}, shell.folder, Path(shell.home)).workflow
    folder = str(Path("eval") / f"{Path(options.data).stem}-{run.name}")
    for name, default in (("--workflow", workflow), ("--output", folder)):
        if not any(flag == name or flag.startswith(f"{name}=") for flag in options.flags):
            arguments += [name, default]
    return hira.cli.main([*arguments, *options.flags, *(["--debug"] if options.debug else [])], shell)


def merge(options: ModelOptions, shell: Shell) -> int:
    check_installed()
    from hira.trainers import models

    models.merge(shell.folder / options.run, shell.folder / options.folder, options.adapter)
    shell.remark(f"wrote the merged model to {shell.folder / options.folder}; ask it with --model:")
    shell.say(f"hf:{options.folder}")
    return OK


def serve(options: ModelOptions, shell: Shell) -> int:
    words = serve_command((shell.folder / options.run).resolve(), options.port)
    if not options.start:
        shell.say(shlex.join(words))
        shell.remark(f"then ask with: hira ask … --profile {options.run} --base-url http://127.0.0.1:{options.port}/v1")
        return OK
    program = shutil.which(words[0], path=shell.environ.get("PATH", ""))
    if program is None:
        raise UsageError(
            "vllm is not installed",
            where="it serves each adapter as a separate model",
            fix="install it on the machine with the GPU (pip install vllm); or serve the answers of the whole "
            f"workflow without it: hira serve --profile {options.run}",
        )
    shell.remark(shlex.join(words))
    # vLLM replaces this process, so that ending it ends the server
    os.execve(program, [program, *words[1:]], dict(shell.environ))  # noqa: S606 - the command that was printed
    return OK
