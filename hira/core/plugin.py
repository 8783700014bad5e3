"""Objects of the user's own, named as `module:Object` in settings."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from hira.core.errors import UsageError


def load_object(name: str) -> Any:
    """The object that `name` points to, such as `"checks:Strict"`; a class is called without arguments.

    Modules are found as Python finds them, and in the current folder, but there only until this one is loaded. Raises
    `UsageError` if there is no such object or its module cannot be loaded.
    """
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise UsageError(f"{name!r} does not name an object", fix="write module:Object")
    folder = str(Path.cwd())
    added = [] if folder in sys.path else [folder]
    sys.path += added  # only while loading: a later import must not find what lies in the current folder
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        return found() if isinstance(found, type) else found
    except (Exception, SystemExit) as error:
        what = f"{name!r} cannot be loaded: {type(error).__name__}: {error}"
        raise UsageError(what, fix="check the name, and that its packages are installed") from error
    finally:
        if added and folder in sys.path:
            sys.path.remove(folder)
