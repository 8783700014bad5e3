"""Where to run what reads a text of somebody else: here, in a thread, or in a child process with limits."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

TINY, SMALL, LARGE = 4_000, 50_000, 20_000_000
"""Characters. Texts with fewer than the first run at once, because passing them on takes longer. Texts with fewer than
the second run in a thread, which is faster than sending them to a child, and so do texts with more than the third,
because sending them would block the loop."""


async def run_apart(size: int, function: Callable[..., T], *arguments: Any) -> T:
    """Run the function in the best place for a text of that size: here, in the shared worker, or in a thread."""
    if size < TINY:
        await asyncio.sleep(0)  # here it can be cancelled, as in the other cases
        return function(*arguments)
    if not SMALL < size <= LARGE:
        return await asyncio.to_thread(function, *arguments)
    from hira.core.child import open_shared_worker  # few texts are as long

    return await open_shared_worker().run(size, function, *arguments)
