"""How an interpreter begins: what it is told, what it has to say, and what it means when it does not start."""

import asyncio
import secrets
from dataclasses import asdict
from pathlib import Path

from hira.core.errors import SCARCE
from hira.tools.python.layers import Mode
from hira.tools.python.process import Ended, Interpreter
from hira.tools.python.usage import Limits

AGAIN = (0.2, 1.0)
"""Seconds before each further try, where what kept it from starting may pass."""
_SECONDS = 30.0
_BUSY = "The machine may be too busy, or out of memory."


async def configure_interpreter(
    interpreter: Interpreter, mode: Mode, folder: Path, opened: list[str], listed: list[str], limits: Limits
) -> tuple[str, ...]:
    """Tell a new interpreter what it may do; returns the layers that hold it, by its own word. Raises `Ended`."""
    setup = {
        "id": secrets.token_hex(8),
        "mode": mode,
        "folder": str(folder),
        "read": opened,
        "list": listed,
        "limits": asdict(limits),
    }
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await interpreter.ask(setup)
    except TimeoutError:
        raise Ended(f"it did not answer within {_SECONDS:g} seconds", passing=True) from None
    if "failed" in answer:
        raise Ended(f"it could not be confined: {answer['failed']}", passing=answer["errno"] in SCARCE)
    layers = tuple(answer["layers"])
    if mode == "auto" and not {"landlock", "seccomp"} <= {*layers}:
        raise Ended("it is not confined")
    return layers


def why_not(error: OSError | Ended, said: str) -> tuple[str, str, bool]:
    """Why an interpreter did not start, what to do, and whether that may pass; `said` is its last line, if any."""
    if isinstance(error, Ended):
        lacking = "MemoryError" in said or any(f"[Errno {number}]" in said for number in SCARCE)
        passing = error.passing or (not str(error) and (lacking or not said))
        return str(error) or said or "it ended at once", _BUSY if passing else "", passing
    return str(error), SCARCE.get(error.errno or 0, ""), error.errno in SCARCE
