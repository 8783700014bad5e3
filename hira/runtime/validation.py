"""Validation of the arguments of `Hira`, before anything is built: a `UsageError` names the argument and a fix."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.core.errors import UsageError
from hira.core.sanitize import is_text, printable
from hira.runtime.settings import OFF, Settings

if TYPE_CHECKING:
    from hira.agents.output_type import OutputType

Paths = str | Path | Sequence[str | Path]
HANDED_OVER = ("client", "workflow", "tools", "experts", "policies", "verifier", "approve", "approve_tool", "hooks")
"""The arguments of `Hira` that are objects of the program."""


def check(given: Mapping[str, Any]) -> None:
    """Raise `UsageError` for the first of these arguments of `Hira` that is not what it should be."""
    given = {name: value for name, value in given.items() if value is not None}
    for name in ("model", "base_url", "api_key", "search", "verify", "instructions", "otel"):
        value = given.get(name, "")
        if name == "search" and not isinstance(value, str):
            from hira.tools.retriever import make_search_tool  # few runs have one

            make_search_tool(value)
        elif not isinstance(value, str) and not (name == "otel" and value is False):
            shown = type(value).__name__ if name == "api_key" else repr(value)
            raise UsageError(f"`{name}` must be a string, got {shown}", fix=f'write {name}="…"')
    otel = given.get("otel") or OFF
    if otel != OFF and not otel.startswith(("http://", "https://")):
        raise UsageError(f"`otel` must be the address of a collector, got {otel!r}", fix='write otel="http://…:4318"')
    roles = given.get("roles", {})
    if not isinstance(roles, Mapping) or not all(isinstance(role, str) for role in (*roles, *roles.values())):
        raise UsageError(f"`roles` must map roles to models, got {roles!r}", fix='write roles={"planner": "MODEL"}')
    if not isinstance(given.get("settings"), Settings | None):
        raise UsageError(f"`settings` must be a Settings, got {given['settings']!r}", fix="write settings=Settings(…)")
    for name in ("journal", "memory"):
        if not isinstance(given.get(name), bool | str | Path | None):
            raise UsageError(f"`{name}` must be a path or a bool, got {given[name]!r}", fix=f"write {name}=True")
    if not given.keys().isdisjoint(HANDED_OVER):
        from hira.runtime.objects import check_objects  # many programs hand over none

        check_objects(given)


def make_output_type(shape: Any) -> "OutputType":
    """Return the type of an answer's additional value. Raises `UsageError`."""
    from hira.agents.output_type import OutputType  # few questions have one

    return OutputType(shape)


LONGEST_QUESTION = 400_000
"""Characters, about 100,000 tokens; in a server together with the earlier messages."""


def question_of(question: object) -> str:
    """Return the printable question. Raises `UsageError` if it is not a string, blank, or too long."""
    if not isinstance(question, str):
        fix = 'write ask("…"), or in a batch Question("…") of hira.runtime.batch'
        raise UsageError(f"the question must be a string, got {question!r:.200}", fix=fix)
    if not question.strip():
        raise UsageError("the question is empty", fix='write ask("…")')
    if len(question) > LONGEST_QUESTION:
        what = f"the question has {len(question):,} characters, and it may have {LONGEST_QUESTION:,}"
        fix = "give long texts as files (--file or files=) or documents (--docs or docs=), and ask about them"
        raise UsageError(what, fix=fix)
    return printable(question)


def paths_of(paths: object, name: str) -> list[str | Path]:
    """One path or several as a list."""
    if isinstance(paths, str | Path):
        return [paths] if paths != "" else []
    if not isinstance(paths, Sequence | Collection) or isinstance(paths, bytes | Mapping):
        raise UsageError(
            f"`{name}` must be a path, got {paths!r}", fix=f'write {name}="papers" or {name}=["a.pdf", "b.md"]'
        )
    for path in paths:
        if not isinstance(path, str | Path):
            raise UsageError(f"`{name}` must contain only paths, got {path!r}", fix="give paths as str or pathlib.Path")
    return list(paths)


def find_files(paths: Paths | None) -> tuple[Path, ...]:
    """The files of a question. Raises `UsageError` for one that cannot be attached."""
    files = tuple(Path(path).expanduser() for path in paths_of(() if paths is None else paths, "files"))
    for path in files:
        if is_text(str(path)) and not path.is_file():
            what, fix = "does not exist", "name a file that exists"
            if path.is_dir():
                what, fix = "is a folder; give folders as documents (--docs or docs=)", ""
            elif path.exists():
                what, fix = "is not a regular file", "save what it holds in a file, and name that"
            raise UsageError(f"file {str(path)!r} {what}", fix=fix)
        from hira.tools.files import check_attached

        check_attached(path)
    return files
