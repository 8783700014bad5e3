"""Tools without a function, which replay the tools of a recorded run."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from typing_extensions import TypedDict

from hira.core.errors import ToolError
from hira.core.messages import Media
from hira.core.tool import Observation, Tool
from hira.journal.encoding import validate
from hira.tools import SINGLE, Toolbox


class _ToolRecord(TypedDict):
    name: str
    description: str
    parameters: dict[str, Any]
    pure: bool
    stateful: bool


class _ToolboxRecord(TypedDict, total=False):
    search: _ToolRecord
    scholar: _ToolRecord
    browse: _ToolRecord
    files: _ToolRecord
    python: _ToolRecord
    media: bool
    visible: tuple[str, ...]
    extra: list[_ToolRecord]
    scoped: dict[str, list[_ToolRecord]]


def stand_ins(values: Mapping[str, Any]) -> Toolbox:
    """Return a toolbox that looks like the recorded one. The results of its tools have to come from the record."""
    record: Mapping[str, Any] = validate(_ToolboxRecord, values, "the tools of the run")

    async def refuse_call(_arguments: Mapping[str, Any]) -> Observation:
        raise ToolError("this run is replayed, and the record does not hold this call")

    def refuse_media(path: str) -> Media:
        raise ToolError(f"this run is replayed, and {path!r} is not read")

    def make(*records: Mapping[str, Any]) -> tuple[Tool, ...]:
        return tuple(Tool(**record, run=refuse_call) for record in records)

    @asynccontextmanager
    async def open_python(_subtask: str) -> AsyncIterator[Tool]:
        yield make(record["python"])[0]

    return Toolbox(
        **{name: make(record[name])[0] for name in SINGLE if name in record},
        python=open_python if record.get("python") else None,
        media=refuse_media if record.get("media") else None,
        visible=tuple(record.get("visible", ())),
        extra=make(*record.get("extra", ())),
        scoped={role: make(*tools) for role, tools in record.get("scoped", {}).items()},
    )
