"""Rows become micro-batches: as many as a budget of tokens holds, the longest first, one role at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hira.trainers.group import Weighted

CANARY = 32


@dataclass(frozen=True, slots=True)
class Micro:
    """Rows that go through the model together, all of one role and so of one adapter.

    `rows` may be empty: a micro-batch that only keeps step with other processes.
    """

    role: str
    adapter: str
    rows: tuple[Weighted, ...]

    @property
    def prompt(self) -> int:
        """How many ids every row begins with before anything is scored: as many as the shortest prompt has.

        The rest of a longer prompt is scored with the completion, at weight 0. So nothing is padded on the left, and
        positions are those that the sampler had.
        """
        return min((len(one.row.prompt) for one in self.rows), default=1)

    @property
    def width(self) -> int:
        return max((one.row.length for one in self.rows), default=2)

    @property
    def padded(self) -> int:
        """Tokens with the padding."""
        return len(self.rows) * self.width


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


def in_step(dealt: Sequence[Sequence[Micro]], own: int) -> list[tuple[Micro, int]]:
    """The micro-batches of process `own`, each with the number of rows to pad it to: all processes make as many of
    them, of as many rows, as the one that has most. An empty one has the adapter of the one before it."""
    most = max(map(len, dealt))
    idle = [Micro(micros[-1].role, micros[-1].adapter, ()) if micros else Micro("", "", ()) for micros in dealt]
    whole = [[*micros, *[none] * (most - len(micros))] for micros, none in zip(dealt, idle, strict=True)]
    rows = [max(1, *(len(micros[at].rows) for micros in whole)) for at in range(most)]
    return list(zip(whole[own], rows, strict=True))


def canary(micros: Sequence[Micro]) -> tuple[str, list[int]] | None:
    """An adapter, and the last ids of a row that it is trained on: what it says there has to change with the first
    step. None if no micro-batch holds a row."""
    for micro in micros:
        if micro.rows:
            row = micro.rows[0].row
            return micro.adapter, [*row.prompt, *row.completion][-CANARY:]
    return None
