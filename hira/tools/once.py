"""Calls that are made once, however many wait for the result."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class _Shared:
    """A call that several wait for; the last one to give up ends it."""

    result: asyncio.Future[Any] | None = None
    waiting: int = 0


@dataclass(slots=True)
class Once:
    """What was brought, by key, for as long as this object lives; in one event loop."""

    _made: dict[str, _Shared] = field(default_factory=dict)

    async def __call__(
        self, key: str, call: Callable[[], Awaitable[T]], good: Callable[[T], bool] = lambda _: True
    ) -> T:
        """The result of the call; calls under one key are made once, also while the first is under way.

        What raises and what is not `good` is not kept, and an empty key keeps nothing.
        """
        if not key:
            return await call()
        made = self._made.setdefault(key, _Shared())
        if made.result is None:
            made.result = asyncio.ensure_future(call())
        made.waiting += 1
        kept = False
        try:
            result: T = await asyncio.shield(made.result)
            kept = good(result)
            return result
        finally:
            made.waiting -= 1
            if not kept and self._made.get(key) is made and (made.result.done() or not made.waiting):
                del self._made[key]
            if not made.result.done() and not made.waiting:
                made.result.cancel()
                await asyncio.wait((made.result,))
