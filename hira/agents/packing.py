"""Packing texts of different length into as few prompts as will do (MARS, section 2.2.1 and appendix C.2)."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from hira.core.tokens import Counter, clip, count

T = TypeVar("T", bound=str)
JOINT = 1
"""Tokens between one text and the next."""


def pack(
    texts: Sequence[T], capacity: int, shorten: Callable[[T, int, Counter], T], counted: Counter = count
) -> list[list[T]]:
    """Pack the texts into bins of at most `capacity` tokens each, by first fit decreasing; deterministic.

    A longer text is cut by `shorten` to `capacity` tokens and gets a separate bin. Bins are in the order in which they
    were opened, their texts in the given order. Tokens are counted by `counted`.
    """
    sizes = [counted(text) + JOINT for text in texts]
    bins = first_fit_decreasing(sizes, capacity)
    return [
        [
            texts[index] if sizes[index] <= capacity else shorten(texts[index], capacity - JOINT, counted)
            for index in indices
        ]
        for indices in bins
    ]


def first_fit_decreasing(sizes: Sequence[int], capacity: int) -> list[list[int]]:
    """Indexes of the sizes by bin: the longest first, each into the first bin with room for it, else into a new one.

    Longer ones than `capacity` are alone. Takes O(n log n): a tree of maxima over the room of the bins leads to the
    first that fits. At most 11/9 of the fewest bins and one more are opened.
    """
    # stable: of equal ones the first given goes first
    order = sorted(range(len(sizes)), key=lambda index: -sizes[index])
    halves = sum(2 * size > capacity for size in sizes)  # no two of these fit into one bin
    bins = [[index] for index in order[:halves]]
    rooms = _Rooms([capacity - sizes[index] for index in order[:halves]] + [capacity] * (len(order) - halves))
    for index in order[halves:]:
        place = rooms.take(sizes[index])
        if place == len(bins):
            bins.append([])
        bins[place].append(index)
    return [sorted(indices) for indices in bins]


def beginning(text: str, limit: int, counted: Counter = count) -> str:
    """The beginning of a text, of no more than `limit` tokens."""
    return shorten_in(str, text, limit, counted)


def shorten_in(frame: Callable[[str], T], text: str, limit: int, counted: Counter) -> T:
    """The beginning of a text in its frame, of no more than `limit` tokens in all unless the frame alone has more."""
    aim = limit - counted(frame(""))
    while aim > 0:
        if counted(short := frame(clip(text, aim, counted=counted))) <= limit:
            return short
        aim = min(aim - 1, aim * 9 // 10)
    return frame("")


class _Rooms:
    """The room left in each bin. A node of the tree holds the largest room below it. Bins that are not opened yet are
    there with all of theirs, so that some bin always has room."""

    def __init__(self, rooms: Sequence[int]) -> None:
        self.leaves: int = 2 ** len(rooms).bit_length()
        self.room = [0] * self.leaves + [*rooms] + [0] * (self.leaves - len(rooms))
        for node in range(self.leaves - 1, 0, -1):
            self.room[node] = max(self.room[2 * node], self.room[2 * node + 1])

    def take(self, size: int) -> int:
        """The first bin with room for it, which then has less."""
        room, leaves, node = self.room, self.leaves, 1
        while node < leaves:
            node *= 2
            if room[node] < size:
                node += 1
        place = node - leaves
        left = room[node] - size
        room[node] = left
        while node > 1:
            node, beside = node // 2, room[node ^ 1]
            left = max(left, beside)
            if room[node] == left:
                break
            room[node] = left
        return place
