"""Other lessons of one: the same said of other people and places."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hira.trainers.demo.matpo.world import KINDS
from hira.trainers.demo.tokens import DAYS, IDS, YEARS
from hira.trainers.rows import Row


def renamed(tokenizer: Any) -> Callable[[Row, random.Random], Row]:
    """Makes other lessons of one: the same said of other people and places, on another day, from other sources.

    Names are one token each, so that to exchange them is to have lived in another world; the model has to learn to
    read names and cannot learn them by heart.
    """
    kinds = [[_id(tokenizer, name) for name in names] for names in (*KINDS, YEARS, DAYS)]
    sources = [[_id(tokenizer, f"{slash}s{at}") for at in range(1, IDS + 1)] for slash in ("", "/")]

    def changed(row: Row, chance: random.Random) -> Row:
        other = dict[int, int]()
        for ids in kinds:
            other.update(zip(ids, chance.sample(ids, len(ids)), strict=True))
        order = chance.sample(range(IDS), IDS)
        for ids in sources:
            other.update((one, ids[at]) for one, at in zip(ids, order, strict=True))

        def exchanged(ids: Sequence[int]) -> tuple[int, ...]:
            return tuple(other.get(one, one) for one in ids)

        return replace(row, prompt=exchanged(row.prompt), completion=exchanged(row.completion))

    return changed


def _id(tokenizer: Any, text: str) -> int:
    (one,) = tokenizer(text, add_special_tokens=False)["input_ids"]
    return int(one)
