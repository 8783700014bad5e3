"""Questions that are made one by one: each a line as soon as it is there, none made twice."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from hira.core.concurrency import map_concurrently
from hira.evaluation.item import Item
from hira.trainers import records
from hira.trainers.curation.decision import whole_lines
from hira.trainers.curation.pipeline import begun, row_of

MADE = "questions.jsonl"
Make = Callable[[str], Awaitable[Item | None]]


async def made(
    folder: Path, plan: Mapping[str, Any], names: Sequence[str], make: Make, concurrency: int
) -> AsyncGenerator[tuple[str, Item | None], None]:
    """What is made under each of the names that are missing in the folder; None where it could not be made, which is
    tried again another time. Raises `UsageError` for a folder in which something else was made."""
    begun(folder, plan)
    path = folder / MADE
    whole_lines(path)
    done = {str(one["id"]) for one in records.read(path)}

    async def one(name: str) -> tuple[str, Item | None]:
        return name, await make(name)

    missing = [name for name in names if name not in done]
    async with aclosing(map_concurrently(missing, concurrency, one)) as found:
        async for name, item in found:
            if item is not None:
                records.append(path, [row_of(item)])
            yield name, item
