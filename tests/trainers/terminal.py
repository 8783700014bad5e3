"""A command line in a folder, and what it said: `environ` has no key and no endpoint. And plans of runs there."""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hira.cli import main as hira_main
from hira.cli.shell import Shell
from hira.cli.training import main as train_main
from hira.cli.training.demo import run as run_demo
from hira.trainers.assembly import TrainingPlan, make_plan
from hira.trainers.configuration import load_configuration


class Terminal:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ: Mapping[str, str] = {}
        self.out, self.err = "", ""

    def hira(self, *arguments: str) -> int:
        return self._run(hira_main, arguments)

    def train(self, *arguments: str) -> int:
        return self._run(train_main, arguments)

    def demo(self, recipe: Any, *arguments: str) -> int:
        """Run a script's demo."""
        return self._run(lambda given, shell: run_demo(recipe, given, shell), arguments)

    def _run(self, command: Callable[[list[str], Shell], int], arguments: Sequence[str]) -> int:
        out, err = io.StringIO(), io.StringIO()
        code = command(list(arguments), Shell(io.StringIO(), out, err, self.environ, self.folder, self.folder))
        self.out, self.err = out.getvalue(), err.getvalue()
        return code


def plan_in(folder: Path, values: Mapping[str, Any], environ: Mapping[str, str] = MappingProxyType({})) -> TrainingPlan:
    """The plan of a run that is configured by these values, in a folder that is also the home folder."""
    overrides = [f"{name}={value}" for name, value in values.items()]
    return make_plan(load_configuration(None, overrides), folder, environ, folder)
