"""Objects by name: those of installed packages, by their entry points, and hira's own."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar, cast

T = TypeVar("T")
TOOLS, WORKFLOWS = "hira.tools", "hira.workflows"
"""The groups of entry points in which packages name their tools and workflows."""


def find_installed(group: str) -> Mapping[str, Sequence[EntryPoint]]:
    """Return the entry points of a group by name. Nothing is loaded."""
    return _find_in_path(group, tuple(sys.path))


@lru_cache(maxsize=8)
def _find_in_path(group: str, _path: tuple[str, ...]) -> Mapping[str, Sequence[EntryPoint]]:
    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        points.setdefault(point.name, []).append(point)
    return points


def package_of(point: EntryPoint) -> str:
    return repr(point.dist.name if point.dist else "?")


@dataclass(frozen=True, eq=False)
class LazyMapping(Mapping[str, T]):
    """Objects by name, each loaded at its first use. `places` says where each is, as `package.module:Object`."""

    places: Mapping[str, str]

    def __getitem__(self, name: str) -> T:
        module, _, attribute = self.places[name].partition(":")
        return cast("T", getattr(import_module(module), attribute))

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)
