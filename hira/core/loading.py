"""Loads the user's objects: those named as `module:Object`, and those of installed packages."""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import CodeType, MappingProxyType
from typing import Any, Protocol, runtime_checkable

from hira.core.errors import UsageError
from hira.core.plugin import find_installed, package_of


@runtime_checkable
class Configurable(Protocol):
    """An object that takes options from the settings."""

    def configure(self, options: Mapping[str, Any]) -> Any: ...

    def check(self) -> None: ...


def load_object(name: str, options: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Load the object that `name` points to, such as `"checks:Strict"`; a class is called with the options.

    Modules are found as Python finds them, and in the current folder, but there only until this one is loaded. Raises
    `UsageError` if there is no such object or its module cannot be loaded.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise UsageError(f"{name!r} does not name an object", fix="write module:Object")
    folder = str(Path.cwd())
    added = [] if folder in sys.path else [folder]
    sys.path += added  # only while loading: a later import must not find modules of the current folder
    sys.path_hooks.insert(0, _open_folder)
    sys.path_importer_cache.pop(folder, None)
    try:
        target: Any = import_module(module)
        for part in attribute.split("."):
            target = getattr(target, part)
        if isinstance(target, type):
            return target(**options)
    except (Exception, SystemExit) as error:
        what = f"{name!r} cannot be loaded: {type(error).__name__}: {error}"
        raise UsageError(what, fix="check the name, and that its packages are installed") from error
    finally:
        if added and folder in sys.path:
            sys.path.remove(folder)
        if _open_folder in sys.path_hooks:
            sys.path_hooks.remove(_open_folder)
    if options and not isinstance(target, Configurable):
        raise UsageError(f"{name!r} takes no options", fix="name a class whose parameters they are, or remove them")
    return target.configure(options) if options else target


class _SourceLoader(SourceFileLoader):
    """Compiles the source itself: a `.pyc` file in `__pycache__` may contain other code than the digest covers."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        compiled: CodeType = self.source_to_code(self.get_data(path), path)
        return compiled


_LOADERS = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (_SourceLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)


def _open_folder(path: str) -> FileFinder:
    """A path hook of Python's import for the current folder, except for packages installed in it."""
    folder = Path(path).absolute()
    if not folder.is_relative_to(Path.cwd()) or "site-packages" in folder.parts:
        raise ImportError(path)
    return FileFinder(path, *_LOADERS)


def load_named(name: str, group: str) -> Any:
    """Load the object that `name` points to as `module:Object`, or as an entry point of an installed package.

    Raises `UsageError` if there is no such object, if packages give the name to different objects, or if loading fails.
    """
    if ":" in name:
        return load_object(name)
    points = {point.value: point for point in find_installed(group).get(name, ())}
    if not points:
        known = ", ".join(find_installed(group)) or "no installed package has any"
        raise UsageError(f"{name!r} is not among the {group} of installed packages: {known}", fix="write module:Object")
    if len(points) > 1:
        several = ", ".join(f"{point.value} of {package_of(point)}" for point in points.values())
        raise UsageError(f"several packages have {name!r} among their {group}: {several}", fix="write module:Object")
    (point,) = points.values()
    try:
        extension: Any = point.load()
        return extension() if isinstance(extension, type) else extension
    except (Exception, SystemExit) as error:
        what = f"{name!r} of the package {package_of(point)} cannot be loaded: {type(error).__name__}: {error}"
        raise UsageError(what, where=f"entry point {point.value} in {group}", fix="update or remove it") from error
