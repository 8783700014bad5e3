"""Rows become micro-batches: as many as a budget of tokens holds, the longest first, one role at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hira.trainers.group import Weighted


@dataclass(frozen=True, slots=True)
class Micro:
    """Rows that go through the model together, all of one role and so of one adapter.

    `rows` may be empty: a micro-batch that only keeps step with other processes.
    """

    role: str
    adapter: str
    rows: tuple[Weighted, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, the longest prompt, the longest completion: what padding makes of it."""
        if not self.rows:
            return (1, 1, 1)
        return (
            len(self.rows),
            max(len(one.row.prompt) for one in self.rows),
            max(len(one.row.completion) for one in self.rows),
        )

    @property
    def padded(self) -> int:
        """Tokens with the padding."""
        rows, prompt, completion = self.shape
        return rows * (prompt + completion)


def adapter_of(role: str, adapters: Mapping[str, str]) -> str:
    """The adapter of a role; `*` names that of all roles without one of their own."""
    return adapters.get(role) or adapters.get("*", "default")


def packed(rows: Sequence[Weighted], budget: int, adapters: Mapping[str, str]) -> list[Micro]:
    """Micro-batches of at most `budget` tokens with their padding, or of one row that is longer by itself.

    The longest comes first, so that memory runs out in the first micro-batch or never; then they go by adapter, so that
    it is switched as rarely as can be. The same rows in any order bring the same micro-batches.
    """
    made: list[Micro] = []
    for role in sorted({one.row.role for one in rows}):
        adapter = adapter_of(role, adapters)
        open_rows: list[Weighted] = []
        for one in sorted((one for one in rows if one.row.role == role), key=_order):
            if open_rows and Micro(role, adapter, (*open_rows, one)).padded > budget:
                made.append(Micro(role, adapter, tuple(open_rows)))
                open_rows = []
            open_rows.append(one)
        made.append(Micro(role, adapter, tuple(open_rows)))
    if not made:
        return made
    largest = max(made, key=lambda micro: micro.padded)
    return sorted(made, key=lambda micro: (micro is not largest, micro.adapter != largest.adapter, micro.adapter))


def _order(one: Weighted) -> tuple[int, int, str, str, str, int]:
    row = one.row
    return (-row.length, -len(row.prompt), row.question, row.rollout, row.conversation, row.part)


def shared(rows: Sequence[Weighted], processes: int) -> list[list[Weighted]]:
    """The rows dealt out to so many processes: the longest first, each to the one with the fewest tokens so far."""
    dealt: list[list[Weighted]] = [[] for _ in range(processes)]
    held = [0] * processes
    for one in sorted(rows, key=_order):
        least = held.index(min(held))
        dealt[least].append(one)
        held[least] += one.row.length
    return dealt


def in_step(micros: Sequence[Micro], most: int) -> list[Micro]:
    """As many micro-batches as the process that has `most`: empty ones at the end, of the adapter that was last."""
    role, adapter = (micros[-1].role, micros[-1].adapter) if micros else ("", "")
    return [*micros, *[Micro(role, adapter, ())] * (most - len(micros))]
