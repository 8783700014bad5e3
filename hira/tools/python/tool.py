"""The tool `python`, whose session opens with the first call."""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from hira.core.messages import Filled
from hira.core.prompts import Prompt
from hira.core.sanitize import clean
from hira.core.tool import Observation, Tool, text_tool
from hira.tools.python.layers import IMAGE, Mode, PythonLimits

if TYPE_CHECKING:
    from hira.tools.python.sandbox import PythonSandbox

DESCRIPTION = Prompt(__file__, "texts", "description")
FILE = Prompt(__file__, "texts", "file")
LATER = re.compile(r"[2-9]|[1-9][0-9]+")
"""Matches the ids of subtasks that may find files of earlier ones: the tool's description says so. The duration of
earlier sessions must not change it."""
_SECONDS = PythonLimits().seconds
_QUEUE = 5
"""The number of calls of one turn that may wait for each other within the tool's time."""


def open_python(
    folder: Path,
    *,
    readable: tuple[Path | str, ...] = (),
    closed: tuple[Path, ...] = (),
    named: Mapping[Path, str] = MappingProxyType({}),
    sandbox: Mode = "auto",
    image: str = IMAGE,
) -> Callable[[str], AbstractAsyncContextManager[Tool]]:
    """Return a function that opens a session for a subtask: each works in its own folder below `folder`, named by the
    subtask's id.

    It can read the folders of sessions that ended before it began. Shown paths of files are relative to these folders,
    because `folder` has another path when a run is resumed.
    """
    ended: list[Path] = []
    attached = []
    for path in readable:
        resolved = Path(path).resolve()
        begins, shown = named.get(resolved), str(resolved)
        shown = clean(shown if shown.isprintable() else repr(shown))  # a program can open what this literal says
        attached.append(FILE.fill(path=Filled(shown), named=begins is not None, begins=begins or ""))
    listed = Filled("\n".join(attached))
    descriptions = {
        later: str(DESCRIPTION.fill(seconds=f"{_SECONDS:g}", beside=later, attached=listed)) for later in (False, True)
    }

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
            )
            stack.push_async_exit(opened)
            return opened

        async def python(code: str) -> Observation:
            from hira.tools.python.results import run_code  # most sessions make no call

            return await run_code(open_sandbox(), code)

        # the sandbox itself limits results
        made = replace(text_tool(python, {"code": ""}), shown=0, stateful=True, function=None)
        try:
            async with AsyncExitStack() as stack:
                description = descriptions[bool(LATER.fullmatch(label))]
                yield replace(made, seconds=_QUEUE * (_SECONDS + 30), description=description)
        finally:
            ended.append(place)

    return open_session
