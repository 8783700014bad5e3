"""How a reply is received: its text is shown as it comes, and it is completed with the time and money it took."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from hira.agents.role import RoleConfig
from hira.agents.trajectory import Trajectory
from hira.core.concurrency import EndsEarly
from hira.core.errors import UsageError
from hira.core.events import Events, Notice, TurnText
from hira.core.policy import Completion, Delta, Usage
from hira.policies.dialects.text_calls import HeldText
from hira.tools import Tool

if TYPE_CHECKING:
    from hira.policies.dialects.quoted import IsQuoted


class ReadableCalls(NamedTuple):
    """The calls that are read in a reply."""

    tools: tuple[Tool, ...] = ()
    """All tools that may be called, also those that the model is not shown."""
    is_quoted: "IsQuoted | None" = None
    """Returns whether a call only quotes a source."""


@dataclass(slots=True)
class Receiver:
    """Receives one reply in a conversation."""

    trajectory: Trajectory
    config: RoleConfig
    events: Events
    within: EndsEarly
    """The time that the reply may take."""
    known_notes: set[str]
    """The notices that the run has shown already."""
    streamed: list[str]  # the pieces of the text so far; an empty one is a sign of life
    held: HeldText | None = None
    """Keeps tool calls out of the text that readers see; None without readers."""
    told: set[str] = field(default_factory=set)
    """The notes that were shown before the reply ended."""

    def watch(self, delta: Delta) -> None:
        self.streamed.append(delta.text)
        if self.held and delta.text:
            self.held(delta)

    def show(self, delta: Delta) -> None:
        """Show a piece that is not a part of a call."""
        name, role = self.trajectory.conversation, self.trajectory.role
        self.events(TurnText(name, delta.text, delta.reasoning, role))

    def tell(self, text: str, endpoint: str = "") -> None:
        """Show a notice at once: a later note of the reply, or that the call waits for this endpoint."""
        if text not in self.known_notes:
            self.told.add(text)
            self.events(Notice(f"{self.trajectory.role}: {text}", endpoint=endpoint, passing=bool(endpoint)))

    def finish(self, completion: Completion) -> Completion:
        """Complete a new reply with the seconds it took, and with its cost if only a price is known."""
        if self.held:
            self.held.end()
        if not isinstance(completion, Completion):
            what = f"policy {self.config.policy.model!r} must return a Completion, got {completion!r}"
            raise UsageError(what, fix="return hira.core.policy.Completion(text): docs/policies.md")
        usage = completion.usage
        price = None if usage.cost is not None else self.config.prices.of(completion.model) or self.config.price
        seconds = asyncio.get_running_loop().time() - (self.within.began or 0.0)
        cost = price.of(usage) if price else usage.cost
        return replace(completion, usage=replace(usage, seconds=seconds, cost=cost))

    def count_lost(self, usage: Usage) -> Usage:
        """Enter what a reply has cost that nobody got, because it broke off or the run had to end."""
        if not usage.completion_tokens:
            return Usage()
        if price := self.config.price:
            usage = replace(usage, cost=price.of(usage))
        self.trajectory.lost += usage
        return usage
