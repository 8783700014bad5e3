"""The code of the current folder that settings name: its files and a digest of them, to which consent is bound."""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from importlib.machinery import all_suffixes
from pathlib import Path

_LONGEST_NAME = 200
_LONGEST_SOURCE, _LONGEST_FILE = 5_000_000, 100_000_000
"""Bytes up to which imports are followed, and up to which the content counts."""


def digest_local_code(names: Iterable[str]) -> str:
    """Return a digest of the files in the current folder that these modules or scripts consist of, with those that they
    import; empty if the folder has no such file.

    Imports are followed where the code names a module, in an import statement or as a text. Code that finds its files
    in another way is covered only by the files that the digest reaches.
    """
    here = Path.cwd()
    waiting = [(here, name) for name in names]
    files: dict[Path, bytes] = {}
    looked: set[tuple[Path, str]] = set()
    while waiting:
        root, name = waiting.pop()
        if (root, name) in looked:
            continue
        looked.add((root, name))
        for path in _list_files(root, name):
            if path not in files and path.is_relative_to(here) and path.is_file():
                files[path] = _digest_file(path)
                if path.suffix == ".py":
                    start = path.parent if path == root / name else root  # a script finds its modules in its own folder
                    waiting += ((start if base is None else base, module) for base, module in _find_imports(path))
    whole = hashlib.sha256()
    for path, digest in sorted(files.items()):
        whole.update(f"{path.relative_to(here)}\0".encode("utf-8", "surrogateescape") + digest)
    return whole.hexdigest()[:16] if files else ""


def _digest_file(path: Path) -> bytes:
    """Return the digest of the content; of size and time where there is too much of it, or none that can be read."""
    about = path.stat()
    try:
        if about.st_size <= _LONGEST_FILE:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        pass
    return f"{about.st_size} {about.st_mtime_ns}".encode()


def _list_files(root: Path, name: str) -> Iterator[Path]:
    """List the files that a script of this name, or a module with the packages around it, may have."""
    if "\0" in name or len(name) > _LONGEST_NAME:
        return
    yield root / name
    if _is_module(name):
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            module = root.joinpath(*parts[:length])
            for suffix in all_suffixes():
                yield module.with_name(module.name + suffix)
                yield module / f"__init__{suffix}"
        yield module / "__main__.py"


def _is_module(name: str) -> bool:
    """Return whether a module can have this name."""
    return len(name) <= _LONGEST_NAME and all(part.isidentifier() for part in name.split("."))


def _find_imports(path: Path) -> Iterator[tuple[Path | None, str]]:
    """Yield the modules that a file imports: the folder from which a relative import starts, else None, and the name.
    A file that Python cannot parse imports nothing."""
    try:
        nodes = [*ast.walk(ast.parse(path.read_bytes()))] if path.stat().st_size <= _LONGEST_SOURCE else []
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((None, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[min(node.level, len(path.parents)) - 1] if node.level else None
            for alias in node.names:  # what a star imports is part of the module itself
                names = filter(None, (node.module, alias.name if alias.name != "*" else None))
                yield base, ".".join(names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_module(node.value):
            yield None, node.value  # such as import_module("plugins.depth")
