"""Seeds of single replies: from the prompt and how often it was asked, so that they do not depend on who else asks."""

import random
from array import array
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b


class Seeds:
    """The seed of each reply under one `seed`; with None all are drawn at random."""

    def __init__(self, seed: int | None) -> None:
        self._seed = seed
        self._asked: Counter[bytes] = Counter()

    def of(self, prompt: Sequence[int], *told: object) -> int:
        """A number of 62 bits. Prompts that are the same, with the same `told`, get one after another."""
        if self._seed is None:
            return random.SystemRandom().getrandbits(62)
        who = blake2b(repr((self._seed, *told)).encode()).digest()
        key = blake2b(array("q", prompt).tobytes(), key=who, digest_size=16).digest()
        self._asked[key] += 1
        return int.from_bytes(blake2b(key + str(self._asked[key]).encode(), digest_size=8).digest()) >> 2

    def forget(self) -> None:
        """Begin to count anew."""
        self._asked.clear()
