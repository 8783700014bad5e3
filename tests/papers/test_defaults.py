"""Every number and switch that a file of docs/papers.md sets: constants, fields with their bounds, and parameters.

`defaults.toml` has the values, by module; `python tests/papers/test_defaults.py` writes it again. Other tests hold those
of the papers as well; the rest are hira's, and each change of one is meant.
"""

import ast
import dataclasses
import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from benchmarks.papers import read_rows

ROOT = Path(__file__).parents[2]
TABLE = tomllib.loads((Path(__file__).parent / "defaults.toml").read_text(encoding="utf-8"))
TORCH = re.compile(r"^(?:import|from) (?:torch|trl|peft|transformers)\b", re.MULTILINE)
BOUNDS = ("gt", "ge", "lt", "le", "min_length", "max_length")


def list_modules() -> list[str]:
    """The modules that rows of docs/papers.md name, without those that need PyTorch."""
    rows = read_rows((ROOT / "docs" / "papers.md").read_text(encoding="utf-8"))
    named = {file for row in rows for file in row.files if file.startswith("hira/") and file.endswith(".py")}
    light = [file for file in sorted(named) if not TORCH.search((ROOT / file).read_text(encoding="utf-8"))]
    return [file.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in light]


def is_plain(value: Any) -> bool:
    return isinstance(value, bool | int | float) and type(value) in (bool, int, float)


def is_set(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def flatten(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The numbers and switches in a value, each with its place."""
    if is_plain(value):
        yield name, value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for part in dataclasses.fields(value):
            yield from flatten(f"{name}.{part.name}", getattr(value, part.name, None))
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from flatten(f"{name}.{key}", part)
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from flatten(f"{name}.{index}", part)


def find_fields(kind: type) -> Iterator[tuple[str, Any]]:
    if issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            yield from flatten(f"{kind.__name__}.{name}", field.default)
            for part in field.metadata:
                for bound in BOUNDS:
                    yield from flatten(f"{kind.__name__}.{name} {bound}", getattr(part, bound, None))
    elif dataclasses.is_dataclass(kind):
        for part in dataclasses.fields(kind):
            yield from flatten(f"{kind.__name__}.{part.name}", part.default)


def find_parameters(name: str, function: Any) -> Iterator[tuple[str, Any]]:
    for parameter in inspect.signature(function).parameters.values():
        yield from flatten(f"{name}({parameter.name})", parameter.default)


def find_defaults(module: ModuleType) -> Iterator[tuple[str, Any]]:
    tree = ast.parse(inspect.getsource(module))
    assigned = {name.id for line in tree.body for name in ast.walk(line) if isinstance(name, ast.Name) and is_set(name)}
    for name, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == module.__name__:
            yield from find_fields(value)
            for method, function in vars(value).items():
                if inspect.isfunction(function) and not (method.startswith("__") and dataclasses.is_dataclass(value)):
                    yield from find_parameters(f"{name}.{method}", function)
        elif inspect.isfunction(value) and value.__module__ == module.__name__:
            yield from find_parameters(name, value)
        elif name in assigned and name.lstrip("_").isupper():
            yield from flatten(name, value)


@pytest.mark.parametrize("module", sorted(TABLE.keys() & set(list_modules())))
def test_every_number_and_switch_is_the_one_in_the_table(module: str) -> None:
    """Of those that the table has: what is new, renamed or moved to another module is entered when the table is written
    again."""
    values = dict(find_defaults(import_module(module)))
    known = TABLE[module].keys() & values.keys()
    assert {name: values[name] for name in known} == {name: TABLE[module][name] for name in known}, "is it meant?"


def test_the_table_still_has_most_of_the_defaults() -> None:
    there = {(module, name) for module in list_modules() for name, _ in find_defaults(import_module(module))}
    held = {(module, name) for module, values in TABLE.items() for name in values}
    assert len(there & held) >= 0.9 * len(there), "write it again: python tests/papers/test_defaults.py"


def write_table() -> str:
    lines = []
    for module in list_modules():
        if values := dict(find_defaults(import_module(module))):
            spelled = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in values.items()]
            lines += [f'["{module}"]', *spelled, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    (Path(__file__).parent / "defaults.toml").write_text(write_table(), encoding="utf-8")
