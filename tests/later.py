"""Names that are imported at their first use: to collect the tests costs no process the seconds that torch takes."""

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


class Later:
    """Stands for what `make` makes, which is made once, when it is first used."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    @cached_property
    def made(self) -> Any:
        return self.make()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks at every name of a file so
            raise AttributeError(name)
        return getattr(self.made, name)

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.made(*given, **named)

    def __len__(self) -> int:
        return len(self.made)


def later(name: str) -> Any:
    """`torch`, or `hira.trainers.weights:Muon`: a package, or a name of a module that imports torch and its kin."""

    def found() -> Any:
        module, _, own = name.partition(":")
        if find_spec("torch"):
            import_module("torch").set_num_threads(1)
        return getattr(import_module(module), own) if own else import_module(module)

    return Later(found)


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skips tests where one of the packages is not installed, and imports none."""
    missing = [package for package in packages if not find_spec(package)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")
