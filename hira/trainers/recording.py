"""What tools brought, kept in a file, so that a training run can be repeated without the web.

live      tools run as in production
record    a call that the file holds is answered from it, another is made and written down
replay    only from the file: a call that it does not hold breaks the rollout, and is counted
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hira.core.errors import HiraError, ToolDown, ToolError
from hira.evidence import Source
from hira.tools import Observation, Passage, Tool, Toolbox
from hira.trainers import records
from hira.trainers.watching import each

Mode = Literal["live", "record", "replay"]


class Unrecorded(HiraError):
    """A rollout came to a call that the recording does not hold: it is none of the run that is repeated."""


@dataclass(slots=True)
class Recording:
    """The file of results. One object serves all rollouts of a run; calls that are the same are made once."""

    path: Path
    mode: Mode = "record"
    _known: dict[str, Any] = field(default_factory=dict)
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for record in records.read(self.path):
            self._known.setdefault(record["key"], record)

    def __len__(self) -> int:
        return len(self._known)

    async def call(self, tool: Tool, arguments: Mapping[str, Any], before: "Before") -> Observation:
        """What the call brings. `before` are the calls of this rollout that the file answered in the tools' place."""
        key = json.dumps([tool.name, dict(arguments)], sort_keys=True, ensure_ascii=False, default=str)
        async with self._locks.setdefault(key, asyncio.Lock()):
            if (known := self._known.get(key)) is not None:
                before.calls.append((tool, arguments))
                return _read(known)
            if self.mode == "replay":
                before.missing.append(key)
                raise ToolError("this call was not recorded")
            await before.made()
            known = {"key": key, **await _called(tool, arguments)}
            records.append(self.path, [known])
            self._known[key] = known
        return _read(known)

    def recorded(self, tools: Toolbox) -> tuple[Toolbox, "Before"]:
        """The tools of one rollout behind the recording. Python's sandbox is deterministic, and runs."""
        before = Before()
        if self.mode == "live":
            return tools, before

        def behind(tool: Tool) -> Tool:
            async def run(arguments: dict[str, Any]) -> Observation:
                return await self.call(tool, arguments, before)

            return replace(tool, run=run, check=dict)

        return each(tools, behind), before


@dataclass(slots=True)
class Before:
    """What the recording did for one rollout: calls that it answered, and those that it could not.

    A tool may know only what was asked of it: a page can be opened once a search has shown it. So before a tool is
    really called, it is asked what the recording answered in its place.
    """

    calls: list[tuple[Tool, Mapping[str, Any]]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    async def made(self) -> None:
        earlier, self.calls = self.calls, []
        for tool, arguments in earlier:
            await _called(tool, arguments)


async def _called(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The result as JSON values; a failure that the model is told of is a result, unless it is that of the day."""
    try:
        seen = await tool.call(arguments)
    except ToolDown:
        raise
    except ToolError as error:
        return {"failed": str(error)}
    return {"text": str(seen.text), "passages": [asdict(passage) for passage in seen.passages], "ok": seen.ok}


def _read(record: Mapping[str, Any]) -> Observation:
    if "failed" in record:
        raise ToolError(record["failed"])
    passages = (Passage(Source(**one["source"]), one["text"]) for one in record["passages"])
    return Observation(record["text"], tuple(passages), record["ok"])
