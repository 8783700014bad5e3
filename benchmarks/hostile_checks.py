"""What the rows of hostile.py share: how an attack is told that came through, and what several of them try."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from hira.core.errors import HiraError
from hira.tools.documents import Index
from hira.tools.python import PythonSandbox


class NotHeld(Exception):
    """An attack that came through; its text says how."""


def check(held: object, told: str) -> None:
    if not held:
        raise NotHeld(told)


def outcome(work: Callable[[], str]) -> str:
    """Text, or one clear line of an error that is hira's own."""
    try:
        return f"read: {work()[:20]!r}"
    except HiraError as error:
        check("\n" not in error.what, "an error of several lines")
        return f"told: {error.what[:90]}"


def index(folder: Path, on_progress: Callable[[int, int], None] | None = None) -> tuple[list[str], list[str]]:
    """Return the names in a new index of the folder, and its warnings."""

    async def read() -> tuple[list[str], list[str]]:
        made = Index([folder])
        await made.refresh(on_progress)
        names = await made.names()
        made.close()
        return names, made.warnings

    return asyncio.run(read())


def sandboxed(code: str) -> Callable[[Path], str]:
    def attack(folder: Path) -> str:
        async def run() -> str:
            async with PythonSandbox(folder / "work") as sandbox:
                found = await sandbox.run(code)
            taken = sum(path.stat().st_blocks * 512 for path in (folder / "work").rglob("*"))
            check(taken < 300 << 20 and "REACHED" not in found.output, f"it took {taken} bytes, {found.output[:80]}")
            return found.status

        return asyncio.run(run())

    return attack
