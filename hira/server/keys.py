"""The clients, and the limits of their runs: how many in parallel, and for how much in total."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from hira.core.budget import Allowance, Ledger, Limits
from hira.core.errors import OutOfBudget
from hira.runtime.settings import KeySettings

ANYBODY = 64
"""Parallel runs if no key is required."""


class RejectedRequest(Exception):
    """A refused request, in the terms of the OpenAI API: a `code`, the `kind` of error, and the `field` of the request
    that is at fault, which the message then names."""

    def __init__(
        self, status: int, message: str, code: str = "", *, kind: str = "invalid_request_error", field: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = f"{field}: {message}" if field else message
        self.field = field
        self.kind = kind
        self.code = code


class KeySpent(OutOfBudget):
    """The key's remaining budget does not pay for the call."""


@dataclass(slots=True)
class Client:
    """One key, with the `allowance` of all its runs since the server started; `tag` marks the names of its runs, so
    that no other client sees them."""

    name: str
    limits: KeySettings
    tag: str
    running: int = 0
    allowance: Allowance = field(init=False)
    _free: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        limits = Limits(self.limits.max_tokens, self.limits.max_cost)
        self.allowance = Allowance(Ledger(limits, f" of the key {self.name!r}", KeySpent))

    @property
    def mark(self) -> str:
        """The part that every name of this client's runs contains; empty for a client who sees all runs."""
        return f"-{self.tag}-" if self.tag else ""

    def owns(self, run: str) -> bool:
        return self.mark in run

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[None]:
        """Wait for a place among the key's runs. Raises `RejectedRequest` if the key's budget is used up."""
        async with self._free:
            await self._free.wait_for(lambda: self.running < self.limits.concurrency)
            self.check_budget()
            self.running += 1
        try:
            yield
        finally:
            async with self._free:
                self.running -= 1
                self._free.notify()

    @asynccontextmanager
    async def release(self) -> AsyncIterator[None]:
        """Give the place to another of the key's runs for as long as a person decides, then wait for one again."""
        async with self._free:
            self.running -= 1
            self._free.notify()
        try:
            yield
            async with self._free:
                await self._free.wait_for(lambda: self.running < self.limits.concurrency)
        finally:
            self.running += 1  # a stopped run writes its answer at once, even if all places are taken

    def check_budget(self) -> None:
        """Raise `RejectedRequest` if the key's budget is used up."""
        spent = self.allowance.ledger.spent
        used = ((spent.tokens, self.limits.max_tokens), (spent.cost or 0.0, self.limits.max_cost))
        if any(limit is not None and amount >= limit for amount, limit in used):
            raise self.refuse_spent()

    def refuse_spent(self, unpaid: KeySpent | None = None) -> RejectedRequest:
        """Return the error of a key whose budget is used up, or of a run whose first call was `unpaid`: calls in flight
        may leave enough for it."""
        if unpaid and unpaid.fix:
            return RejectedRequest(429, f"{unpaid.what}; {unpaid.fix}", "rate_limit_exceeded", kind="requests")
        what = f"the budget of the key {self.name!r} is used up"
        return RejectedRequest(429, what, "insufficient_quota", kind="insufficient_quota")


class Clients:
    """The clients by their keys; without keys everybody is one client, who sees every run."""

    def __init__(self, keys: Mapping[str, KeySettings]) -> None:
        self._anybody = None if keys else Client("", KeySettings(concurrency=ANYBODY), "")
        self._clients = [Client(name, limits, tag_of(limits.key.get_secret_value())) for name, limits in keys.items()]

    def of(self, authorization: str) -> Client:
        """Return the client of an Authorization header. Raises `RejectedRequest` if the key is missing or wrong."""
        if self._anybody:
            return self._anybody
        scheme, _, text = authorization.strip().partition(" ")
        text = text.strip() if scheme.lower() == "bearer" else ""
        owner = None
        for client in self._clients:  # all of them, so that the time reveals nothing
            if hmac.compare_digest(client.limits.key.get_secret_value().encode(), text.encode()):
                owner = client
        if owner is None:
            what = "the key is wrong" if text else "a key is needed: Authorization: Bearer KEY"
            raise RejectedRequest(401, what, "invalid_api_key", kind="authentication_error")
        return owner


def tag_of(key: str) -> str:
    """Return the tag of a key's runs, which reveals nothing about a key that cannot be guessed."""
    return hashlib.sha256(f"hira serve {key}".encode()).hexdigest()[:10]
