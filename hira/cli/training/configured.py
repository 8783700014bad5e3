"""The configuration that a command line names: a file, overrides, or a run to go on with."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.trainers import assembling
from hira.trainers.configuration import Configuration, load


def configured(args: argparse.Namespace, shell: Shell) -> Configuration:
    """Checked, but with nothing read that it names."""
    if getattr(args, "resume", None):
        place = shell.folder / args.resume
        found = assembling.kept(place)
        if found is None:
            raise UsageError(f"there is no run in {args.resume!r}", fix="name the output folder of a run, its `out`")
        if args.configuration:
            raise UsageError("--resume takes the configuration from the run", fix="remove the file and the overrides")
        return found.model_copy(update={"out": place})
    files = [one for one in args.configuration if "=" not in one]
    if len(files) > 1:
        raise UsageError(
            f"two files: {files[0]!r} and {files[1]!r}", fix="name one, then overrides such as train.lr=1e-5"
        )
    if not args.configuration:
        raise UsageError(
            "no configuration is named",
            fix=f"name a file: hira-train {args.command} run.toml; docs/training.md has one",
        )
    file = shell.folder / files[0] if files else None
    return load(file, [one for one in args.configuration if "=" in one])


@dataclass(frozen=True, slots=True)
class Going:
    """A plan, and whether it was begun before."""

    plan: assembling.Plan
    begun: bool

    def told(self, saved: Path | None, every: int) -> str:
        """Whether it begins or goes on, and where; `saved` is the checkpoint that there is, one comes `every` steps."""
        if not self.begun:
            return f"begun in {self.plan.folder}"
        if saved is None:
            why = f"there is no checkpoint yet; one is written every {every} steps (save_every)"
            return f"starting over in {self.plan.folder}: {why}"
        return f"resuming in {self.plan.folder} from {saved.name}"


def going(args: argparse.Namespace, shell: Shell) -> Going:
    """The run that the command line describes, ready to begin or to go on."""
    configuration = configured(args, shell)
    plan = assembling.planned(configuration, shell.folder, shell.environ, Path(shell.home))
    return Going(plan, assembling.goes_on(plan))
