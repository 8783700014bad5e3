"""A batch that is decoded together: rows join it after their prompts are read, and leave it when they are done."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache

from hira.policies.local.cache import empty, merge_caches
from hira.policies.local.choosing import Choosing, choose
from hira.policies.local.rows import Asked

# of the rows of a batch, how many may be done before those that are not are gathered
_DONE_SHARE = 0.25


class Batch:
    """Rows that share one cache, right-aligned. `reads` bounds the tokens of prompts that are read at once.

    `done` are rows that have ended and whose outcome nobody has been told yet.
    """

    def __init__(self, model: Any, *, reads: int) -> None:
        self.model = model
        self.device: torch.device = next(model.parameters()).device
        self.rows: list[Asked] = []
        self.done: list[Asked] = []
        self.width = 0
        self._reads = reads
        self._cache: Cache | None = None
        self._padding = torch.empty(0, dtype=torch.long)
        self._padded = False
        self._how: Choosing | None = None

    @property
    def live(self) -> list[Asked]:
        return [row for row in self.rows if not row.done]

    @property
    def tokens(self) -> int:
        """How many tokens the cache has places for."""
        return len(self.rows) * self.width

    def admit(self, rows: Sequence[Asked]) -> None:
        """Read the rows' prompts, sample a token for each, and let those that go on join the batch."""
        parts: list[tuple[Cache, list[int], list[Asked]]] = []
        for part in _chunks(rows, self._reads):
            chunk = [row for row in part if not row.cancelled]  # nobody waits for a prompt that was given up meanwhile
            if not chunk:
                continue
            cache, places, logits = self._read(chunk)
            self._sample(chunk, logits[torch.tensor(places, device=self.device)], _choosing(chunk, logits))
            on = [(place, row) for place, row in zip(places, chunk, strict=True) if not row.done]
            if on:
                parts.append((cache, [place for place, _ in on], [row for _, row in on]))
        self._gather(parts)

    def step(self) -> None:
        """One more token for every row."""
        assert self._cache is not None  # noqa: S101 - there are rows
        ids = [[row.sampled[-1] if row.sampled else 0] for row in self.rows]
        mask = None
        if self._padded:
            mask = torch.arange(self.width + 1, device=self.device)[None] >= self._padding[:, None]
        logits = self._forward(ids, mask, (self.width - self._padding)[:, None], self._cache)
        self.width += 1
        if self._how is None:
            self._how = _choosing(self.rows, logits)
        self._sample(self.rows, logits, self._how)
        if sum(row.done for row in self.rows) > _DONE_SHARE * len(self.rows):
            self._gather([])

    def evict(self, rows: Sequence[Asked] | None = None) -> list[Asked]:
        """Take rows out, all if none are named, to be admitted again later."""
        out = [row for row in self.live if rows is None or row in rows]
        if len(out) == len(self.live):
            self.rows, self._cache, self.width = [], None, 0
        else:
            self._gather([], without=out)
        return out

    def _sample(self, rows: Sequence[Asked], logits: torch.Tensor, how: Choosing) -> None:
        tokens, logprobs = choose(logits, how, [row.draw.random() for row in rows])
        for row, token, logprob in zip(rows, tokens, logprobs, strict=True):
            if not row.done:
                row.take(token, logprob)
                if row.done:
                    self.done.append(row)

    def _read(self, rows: Sequence[Asked]) -> tuple[Cache, list[int], torch.Tensor]:
        """Keys and values of the rows' tokens, each distinct prompt once; which of them is whose; the last logits."""
        places: dict[tuple[int, ...], int] = {}
        where = [places.setdefault(row.ids, len(places)) for row in rows]
        width = max(map(len, places))
        padding = torch.tensor([width - len(ids) for ids in places], device=self.device)
        columns = torch.arange(width, device=self.device)[None]
        mask = columns >= padding[:, None] if any(len(ids) < width for ids in places) else None
        cache = empty()
        ids = [[0] * (width - len(ids)) + list(ids) for ids in places]
        logits = self._forward(ids, mask, (columns - padding[:, None]).clamp_(min=0), cache)
        return cache, where, logits

    def _forward(
        self, ids: list[list[int]], mask: torch.Tensor | None, positions: torch.Tensor, cache: Cache
    ) -> torch.Tensor:
        """The logits after the last of the ids, shape (B, V)."""
        said = self.model(
            input_ids=torch.tensor(ids, device=self.device),
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = said.logits[:, -1]
        return logits

    def _gather(self, parts: Sequence[tuple[Cache, list[int], list[Asked]]], without: Sequence[Asked] = ()) -> None:
        """Put the batch together anew: those of its rows that go on, and the rows of the parts."""
        kept = [(at, row) for at, row in enumerate(self.rows) if not row.done and row not in without]
        whole = list(parts)
        if kept and self._cache:
            whole.insert(0, (self._cache, [at for at, _ in kept], [row for _, row in kept]))
        self.rows = [row for _, _, rows in whole for row in rows]
        self._how = None
        if not self.rows:
            self._cache, self.width = None, 0
            return
        self.width = max(row.held for row in self.rows)
        self._cache = merge_caches(
            [
                (cache, torch.tensor(places, device=self.device), max(row.held for row in rows))
                for cache, places, rows in whole
            ]
        )
        padding = [self.width - row.held for row in self.rows]
        self._padded = any(padding)
        self._padding = torch.tensor(padding, device=self.device)


def _choosing(rows: Sequence[Asked], logits: torch.Tensor) -> Choosing:
    how = [(row.temperature, row.top_p, row.top_k) for row in rows]
    return Choosing.of(how, logits.shape[-1], logits.device)


def _chunks(rows: Sequence[Asked], limit: int) -> Iterator[list[Asked]]:
    """The rows, short ones first, in parts whose padded prompts have at most `limit` tokens; equal ones count once."""
    part: list[Asked] = []
    known: set[tuple[int, ...]] = set()
    for row in sorted(rows, key=lambda row: (len(row.ids), row.ids)):
        size = len(known | {row.ids}) * len(row.ids)
        if part and size > limit:
            yield part
            part, known = [], set()
        part.append(row)
        known.add(row.ids)
    if part:
        yield part
