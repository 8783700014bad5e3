"""The sandbox as a plain, blocking executor: for programs that try it from outside, case by case."""

import asyncio
from pathlib import Path

from hira.core.sanitize import clean
from hira.tools.python import PythonSandbox


class Executor:
    """`run` one program after the other in one session."""

    def __init__(self, folder: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.sandbox = self.loop.run_until_complete(self._made(folder))

    @staticmethod
    async def _made(folder: str) -> PythonSandbox:
        return PythonSandbox(folder)

    def run(self, code: str, timeout: float) -> dict[str, object]:
        outcome = self.loop.run_until_complete(self.sandbox.run(code, seconds=timeout))
        return {
            "status": outcome.status,
            "stdout": clean(outcome.output),
            "stderr": "",
            "error": clean(outcome.error),
            "result": clean(outcome.value),
            "files": [str(path) for path in outcome.files],
        }

    def close(self) -> None:
        self.loop.run_until_complete(self.sandbox.close())
        self.loop.close()


def executor(folder: str | Path) -> Executor:
    return Executor(str(folder))
