"""A trial of the sandbox: a session that tries to escape, so that reports state what really holds."""

import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hira.core.errors import ToolDown
from hira.tools.python.layers import IMAGE, Mode
from hira.tools.python.sandbox import PythonSandbox

_SECONDS = 10.0
TRIES = {
    "read": "open({outside!r}).read()",
    "write": "open({outside!r}, 'a').close()",
    "connect": "__import__('socket').create_connection(('127.0.0.1', {port}), 2).close()",
    "start programs": "__import__('os').fork() or __import__('os')._exit(0)",
}
"""Forbidden actions of a program: on a file outside of its folder, on a port of this machine, with other programs."""
_TRIED: dict[Mode, tuple[str, ...]] = {"auto": tuple(TRIES), "container": ("read", "write", "connect")}


@dataclass(frozen=True, slots=True)
class SandboxTrial:
    """The attempts that were `tried`, those that got `through`, and the `trouble` that prevented the trial, if any."""

    tried: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    trouble: str = ""


async def try_sandbox(mode: Mode = "auto", image: str = IMAGE) -> SandboxTrial:
    """Start a session and let a program try forbidden actions."""
    try:
        with (
            tempfile.TemporaryDirectory(prefix="hira-") as folder,
            tempfile.NamedTemporaryFile(dir=folder) as outside,
            socket.create_server(("127.0.0.1", 0)) as server,
        ):
            names = {"outside": outside.name, "port": server.getsockname()[1]}
            async with PythonSandbox(Path(folder, "work"), sandbox=mode, image=image) as sandbox:
                programs = {attempt: TRIES[attempt].format(**names) for attempt in _TRIED.get(mode, ())}
                return await try_programs(sandbox, programs)
    except ToolDown as error:
        return SandboxTrial(trouble=error.what)
    except OSError as error:
        return SandboxTrial(trouble=f"nothing could be tried: {error}")


async def try_programs(sandbox: PythonSandbox, programs: Mapping[str, str]) -> SandboxTrial:
    """Run these programs, each with its name. Raises `ToolDown` if no code can be run."""
    if (await sandbox.run("6 * 7", seconds=_SECONDS)).value != "42":
        return SandboxTrial(trouble="Python was started, but does not run code")
    outcomes = {name: await sandbox.run(code, seconds=_SECONDS) for name, code in programs.items()}
    return SandboxTrial(tuple(programs), tuple(name for name, outcome in outcomes.items() if outcome.status == "ok"))
