"""The tool `python`: a computed number becomes a source that can be cited and checked.

Files that a program wrote are separate sources: figures to look at, texts to cite.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hira.core.errors import ToolError
from hira.core.messages import Filled
from hira.core.prompts import Prompt
from hira.core.sanitize import clean
from hira.core.tool import Observation, Passage, Tool, tool
from hira.evidence import OUTPUT, Source, inert
from hira.tools.python.limits import IMAGE, Mode, PythonLimits

if TYPE_CHECKING:
    from hira.tools.python.sandbox import Outcome, PythonSandbox

DESCRIPTION = Prompt(__file__, "texts", "description")
FILE = Prompt(__file__, "texts", "file")
FIGURE = Prompt(__file__, "texts", "figure")

PICTURES = frozenset([".png", ".jpg", ".jpeg", ".gif", ".webp"])
MOST = 5
"""The most files of one call that become sources; of the others only the paths are shown."""
LARGEST = 100_000
"""The most bytes of a text file that are kept as its source."""
_SHOWN = 400
_TITLE = 80
_QUEUE = 5
"""The number of calls of one turn that may wait for each other within the tool's time."""


def python_tool(sandbox: "PythonSandbox") -> Tool:
    """Create the tool of one session. The model reads the errors of its code, and repairs it."""
    follows = _among_others(sandbox) and _is_later(sandbox.label)
    return _make_tool(lambda: sandbox, sandbox.readable, {}, sandbox.limits, follows=follows)


def _make_tool(
    open_sandbox: "Callable[[], PythonSandbox]",
    readable: Iterable[Path],
    named: Mapping[Path, str],
    limits: PythonLimits,
    *,
    follows: bool,
) -> Tool:
    """Create the tool of a session that opens with the first call."""

    async def run(arguments: Mapping[str, Any]) -> Observation:
        sandbox, code = open_sandbox(), str(arguments["code"])
        outcome = await sandbox.run(code)
        seen = make_observation(outcome, code, sandbox)
        return (
            replace(seen, passages=(*seen.passages, *await _read_yields(outcome, code, sandbox))) if seen.ok else seen
        )

    attached = "\n".join(_format_path(path, named.get(path)) for path in readable)
    described = DESCRIPTION.fill(seconds=f"{limits.seconds:g}", beside=follows, attached=Filled(attached))
    seconds = _QUEUE * (limits.seconds + 30)
    return replace(_shape(), run=run, seconds=seconds, description=str(described), stateful=True, function=None)


@cache
def _shape() -> Tool:
    """Create the tool without a session; cached, because reading a signature takes longer than the rest. The sandbox
    limits the length of results itself."""

    async def python(code: str) -> Observation:
        raise ToolError(f"no session runs {code!r}")

    return tool(python, shown=0)


def _format_path(path: Path, begins: str | None) -> str:
    place = str(path)
    place = clean(place if place.isprintable() else repr(place))  # a program can open what this literal says
    return FILE.fill(path=Filled(place), named=begins is not None, begins=begins or "")


def _among_others(sandbox: "PythonSandbox") -> bool:
    """Return whether the session's folder is next to those of other sessions, each named by its label."""
    return bool(sandbox.label) and sandbox.folder.name == sandbox.label


def _is_later(label: str) -> bool:
    """Return whether sessions of earlier subtasks may have left files. Only the number decides, so that the tool's
    description does not depend on their duration."""
    return label.isdecimal() and int(label) > 1


def make_observation(outcome: "Outcome", code: str, sandbox: "PythonSandbox") -> Observation:
    """Return a successful call as a source: the code, its result, and its files; a failed one as plain text."""
    written = "".join(f"\nwrote {_name_written(path, sandbox)}" for path in outcome.files)
    if outcome.status != "ok":
        return Observation(inert(f"{outcome.text}{written}"), ok=False)
    first = next((line.strip("# ") for line in code.splitlines() if line.strip("# ")), "")
    shown = outcome.text or "(nothing was printed, and the last line has no value)"
    text = f"{code.strip()}{OUTPUT}{shown}{written}"
    source = Source(_locate_call(outcome, sandbox), first[:_TITLE] or "computation", text, "computation")
    return Observation(passages=(Passage(source, text),))


def _name_written(path: Path, sandbox: "PythonSandbox") -> Path:
    """Return the shown path of a file that was written, which later sessions can open."""
    base = Path("..") / sandbox.label if _among_others(sandbox) else sandbox.folder
    return base / path.relative_to(sandbox.folder)


def _locate_call(outcome: "Outcome", sandbox: "PythonSandbox") -> str:
    return f"python:{sandbox.label}.{outcome.number}" if sandbox.label else f"python:{outcome.number}"


async def _read_yields(outcome: "Outcome", code: str, sandbox: "PythonSandbox") -> list[Passage]:
    """Return the pictures and texts that a call wrote, as separate sources, the pictures first."""
    paths = sorted(outcome.files, key=lambda path: path.suffix.lower() not in PICTURES)[:MOST]
    contents = await sandbox.contents(paths, LARGEST + 1)
    place = _locate_call(outcome, sandbox)
    made = (_make_source(str(_name_written(path, sandbox)), content, code, place) for path, content in contents.items())
    return [passage for passage in made if passage]


def _make_source(name: str, content: bytes, code: str, place: str) -> Passage | None:
    """Return a picture as media, with a text about its origin; a text as a computation; None for anything else.

    `name` is the shown path, `place` names the program.
    """
    title = Path(name).name
    if Path(name).suffix.lower() in PICTURES:
        told = FIGURE.fill(place=place, name=name)
        return Passage(Source(name, title, told, "media"), told)
    try:
        text = content[:LARGEST].decode("utf-8", "strict" if len(content) <= LARGEST else "ignore")
    except UnicodeDecodeError:
        return None
    if "\0" in text or not text.strip():
        return None
    rest = " …" if len(content) > LARGEST else ""
    head = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"
    return Passage(Source(name, title, f"{code.strip()}{OUTPUT}{text}{rest}", "computation"), head)


def open_python(
    folder: Path,
    *,
    readable: tuple[Path | str, ...] = (),
    closed: tuple[Path, ...] = (),
    named: Mapping[Path, str] = MappingProxyType({}),
    sandbox: Mode = "auto",
    image: str = IMAGE,
    limits: PythonLimits = PythonLimits(),  # noqa: B008 - frozen
) -> Callable[[str], AbstractAsyncContextManager[Tool]]:
    """Return a function that opens a session for a subtask: each works in its own folder below `folder`, named by the
    subtask's id.

    It can read the folders of sessions that ended before it began. Shown paths of files are relative to these folders,
    because `folder` has another path when a run is resumed.
    """
    ended: list[Path] = []
    paths = [Path(path).resolve() for path in readable]

    @asynccontextmanager
    async def open_session(label: str) -> AsyncIterator[Tool]:
        place = folder / label
        earlier = tuple(path for path in ended if path != place)

        @cache
        def open_sandbox() -> "PythonSandbox":
            from hira.tools.python.sandbox import PythonSandbox

            opened = PythonSandbox(
                place,
                readable=readable,
                closed=closed,
                earlier=earlier,
                label=label,
                sandbox=sandbox,
                image=image,
                limits=limits,
            )
            stack.push_async_exit(opened)
            return opened

        try:
            async with AsyncExitStack() as stack:
                yield _make_tool(open_sandbox, paths, named, limits, follows=_is_later(label))
        finally:
            ended.append(place)

    return open_session
