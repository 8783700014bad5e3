"""A batch that is decoded together: rows join it after their prompts are read, and leave it when they are done."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import pad
from transformers.cache_utils import Cache, DynamicLayer

from hira.core.policy import Sampling
from hira.policies.local.engine import PendingReply

_BELOW_ONE = 1 - 2**-40


@dataclass(frozen=True, slots=True)
class Choosing:
    """How the rows of a batch sample, as tensors of shape (B,); made anew when the batch changes."""

    temperature: torch.Tensor
    top_p: torch.Tensor
    top_k: torch.Tensor
    greedy: torch.Tensor
    filtered: bool

    @classmethod
    def of(cls, samplings: Sequence[Sampling], logits: torch.Tensor) -> "Choosing":
        """From the sampling of each row of `logits` (B, V); temperature 0 is greedy."""
        vocabulary, device = logits.shape[-1], logits.device
        heat = [1.0 if sampling.temperature is None else sampling.temperature for sampling in samplings]
        mass = [1.0 if sampling.top_p is None else sampling.top_p for sampling in samplings]
        most = [sampling.top_k or vocabulary for sampling in samplings]
        return cls(
            torch.tensor([temperature or 1.0 for temperature in heat], device=device),
            torch.tensor(mass, dtype=torch.float32, device=device),
            torch.tensor(most, device=device),
            torch.tensor([temperature == 0 for temperature in heat], device=device),
            filtered=any(share < 1 for share in mass) or any(0 < count < vocabulary for count in most),
        )


def choose(logits: torch.Tensor, how: Choosing, randoms: Sequence[float]) -> tuple[list[int], list[float]]:
    """A token for each row of `logits` (B, V), and its log-probability at the row's temperature, before any filter. It
    depends on the row's own logits and random number in [0, 1) alone."""
    logprobs = torch.log_softmax(logits.float() / how.temperature[:, None], dim=-1)
    weights = logprobs.exp()
    if how.filtered:
        weights = _filter_weights(weights, how)
    # the token in which the random share of the weights' sum lies; single precision would draw tokens of weight 0
    ends = weights.cumsum(dim=-1, dtype=torch.float64)
    share = torch.tensor(randoms, dtype=torch.float64).to(logits.device) * ends[:, -1]
    target = share.minimum(ends[:, -1] * _BELOW_ONE)[:, None]
    # with NaN weights the index must stay in the tensor: otherwise a GPU ends the process
    drawn = torch.searchsorted(ends, target, right=True).clamp_(max=weights.shape[-1] - 1)[:, 0]
    tokens = torch.where(how.greedy, logits.argmax(dim=-1), drawn)
    chosen = logprobs.gather(1, tokens[:, None])[:, 0]
    both = torch.stack((tokens.double(), chosen.double())).cpu()  # one transfer, one wait for the device
    return [int(token) for token in both[0].tolist()], both[1].tolist()


def _filter_weights(weights: torch.Tensor, how: Choosing) -> torch.Tensor:
    """The probabilities with those outside top-k, then outside top-p of what is left, at 0."""
    ordered, order = weights.sort(dim=-1, descending=True)
    rank = torch.arange(weights.shape[-1], device=weights.device)[None]
    ordered = ordered.masked_fill(rank >= how.top_k[:, None], 0.0)
    before = ordered.cumsum(dim=-1) - ordered
    outside = before >= how.top_p[:, None] * ordered.sum(dim=-1, keepdim=True)
    outside[:, 0] = False
    ordered = ordered.masked_fill(outside & (how.top_p < 1)[:, None], 0.0)
    return torch.zeros_like(weights).scatter(1, order, ordered)


_GROWTH = 128


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """One layer's keys and values, of shape (B, heads, T, size), with space allocated for many tokens at a time,
    because the layer of transformers copies everything for every token."""

    def __init__(self, **named: object) -> None:
        super().__init__(**named)  # type: ignore[no-untyped-call]
        self._room: tuple[torch.Tensor, torch.Tensor] | None = None

    def lazy_initialization(self, key_states: torch.Tensor, *_: object) -> None:
        self.dtype, self.device, self.is_initialized = key_states.dtype, key_states.device, True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: object, **__: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states)
            self.keys, self.values = key_states, value_states
            return key_states, value_states
        assert self.keys is not None  # noqa: S101 - it is initialised
        assert self.values is not None  # noqa: S101 - it is initialised
        before = self.get_seq_length()
        now = before + key_states.shape[-2]
        if self._room is None or self._room[0].shape[-2] < now:
            more = (0, 0, 0, now + _GROWTH - before)
            self._room = (pad(self.keys, more), pad(self.values, more))
        keys, values = self._room
        keys[:, :, before:now] = key_states
        values[:, :, before:now] = value_states
        self.keys, self.values = keys[:, :, :now], values[:, :, :now]
        return self.keys, self.values

    def settle(self, keys: torch.Tensor, values: torch.Tensor, width: int) -> None:
        """Hold these keys and values, `width` columns of which are taken."""
        self.lazy_initialization(keys)
        self._room = (keys, values)
        self.keys, self.values = keys[:, :, :width], values[:, :, :width]


def merge_caches(parts: Sequence[tuple[Cache, torch.Tensor, int]]) -> Cache:
    """One cache of some rows of several. Each part is a cache, the rows to take, and how many of its columns, counted
    from the newest, hold anything for them."""
    width = max(columns for _, _, columns in parts)
    whole = Cache(layer_class_to_replicate=GrowingLayer)
    for layers in zip(*(cache.layers for cache, _, _ in parts), strict=True):
        held = [(layer, rows, columns) for layer, (_, rows, columns) in zip(layers, parts, strict=True)]
        keys = _join_rows([(layer.keys, rows, columns) for layer, rows, columns in held], width)
        values = _join_rows([(layer.values, rows, columns) for layer, rows, columns in held], width)
        joined = GrowingLayer()
        joined.settle(keys, values, width)
        whole.layers.append(joined)
    return whole


def _join_rows(parts: Sequence[tuple[torch.Tensor, torch.Tensor, int]], width: int) -> torch.Tensor:
    """The rows of all parts below one another, right-aligned at `width`, with room to grow; what is padding is 0."""
    _, heads, _, size = parts[0][0].shape
    room = parts[0][0].new_empty((sum(len(rows) for _, rows, _ in parts), heads, width + _GROWTH, size))
    start = 0
    for states, rows, columns in parts:
        here = room[start : start + len(rows)]
        here[:, :, : width - columns] = 0
        here[:, :, width - columns : width] = states[:, :, states.shape[-2] - columns :].index_select(0, rows)
        start += len(rows)
    return room


# of the rows of a batch, how many may be done before those that are not are gathered
_DONE_SHARE = 0.25


class DecodingBatch:
    """Rows that share one cache, right-aligned. `reads` bounds the prompt tokens that are read at once. `done` are
    finished rows whose outcome has not been delivered yet."""

    def __init__(self, model: Any, *, reads: int) -> None:
        self.model = model
        self.device: torch.device = next(model.parameters()).device
        self.rows: list[PendingReply] = []
        self.done: list[PendingReply] = []
        self.width = 0
        self._reads = reads
        self._cache: Cache | None = None
        self._padding = torch.empty(0, dtype=torch.long)
        self._padded = False
        self._how: Choosing | None = None

    @property
    def live(self) -> list[PendingReply]:
        return [row for row in self.rows if not row.done]

    @property
    def tokens(self) -> int:
        return len(self.rows) * self.width

    def admit(self, rows: Sequence[PendingReply]) -> None:
        """Read the rows' prompts, sample a token for each, and add the unfinished ones to the batch."""
        parts: list[tuple[Cache, list[int], list[PendingReply]]] = []
        for part in _chunks(rows, self._reads):
            chunk = [row for row in part if not row.cancelled]  # nobody waits for a prompt that was given up meanwhile
            if not chunk:
                continue
            cache, places, logits = self._read(chunk)
            how = Choosing.of([row.request.sampling for row in chunk], logits)
            self._sample(chunk, logits[torch.tensor(places, device=self.device)], how)
            on = [(place, row) for place, row in zip(places, chunk, strict=True) if not row.done]
            if on:
                parts.append((cache, [place for place, _ in on], [row for _, row in on]))
        self._gather(parts)

    def step(self) -> None:
        assert self._cache is not None  # noqa: S101 - there are rows
        ids = [[row.sampled[-1] if row.sampled else 0] for row in self.rows]
        mask = None
        if self._padded:
            mask = torch.arange(self.width + 1, device=self.device)[None] >= self._padding[:, None]
        logits = self._forward(ids, mask, (self.width - self._padding)[:, None], self._cache)
        self.width += 1
        self._how = self._how or Choosing.of([row.request.sampling for row in self.rows], logits)
        self._sample(self.rows, logits, self._how)
        if sum(row.done for row in self.rows) > _DONE_SHARE * len(self.rows):
            self._gather([])

    def evict(self, rows: Sequence[PendingReply] | None = None) -> list[PendingReply]:
        """Take rows out, all if none are named, to be admitted again later."""
        out = [row for row in self.live if rows is None or row in rows]
        if len(out) == len(self.live):
            self.rows, self._cache, self.width = [], None, 0
        else:
            self._gather([], without=out)
        return out

    def _sample(self, rows: Sequence[PendingReply], logits: torch.Tensor, how: Choosing) -> None:
        tokens, logprobs = choose(logits, how, [row.draw.random() for row in rows])
        for row, token, logprob in zip(rows, tokens, logprobs, strict=True):
            if not row.done:
                row.take(token, logprob)
                if row.done:
                    self.done.append(row)

    def _read(self, rows: Sequence[PendingReply]) -> tuple[Cache, list[int], torch.Tensor]:
        """Keys and values of the rows' tokens, each distinct prompt once; which of them is whose; the last logits."""
        places: dict[tuple[int, ...], int] = {}
        where = [places.setdefault(row.ids, len(places)) for row in rows]
        width = max(map(len, places))
        padding = torch.tensor([width - len(ids) for ids in places], device=self.device)
        columns = torch.arange(width, device=self.device)[None]
        mask = columns >= padding[:, None] if any(len(ids) < width for ids in places) else None
        cache = Cache(layer_class_to_replicate=GrowingLayer)
        ids = [[0] * (width - len(ids)) + list(ids) for ids in places]
        logits = self._forward(ids, mask, (columns - padding[:, None]).clamp_(min=0), cache)
        return cache, where, logits

    def _forward(
        self, ids: list[list[int]], mask: torch.Tensor | None, positions: torch.Tensor, cache: Cache
    ) -> torch.Tensor:
        """The logits after the last of the ids, shape (B, V)."""
        output = self.model(
            input_ids=torch.tensor(ids, device=self.device),
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = output.logits[:, -1]
        return logits

    def _gather(
        self, parts: Sequence[tuple[Cache, list[int], list[PendingReply]]], without: Sequence[PendingReply] = ()
    ) -> None:
        """Rebuild the batch from its unfinished rows and the rows of the parts."""
        kept = [(index, row) for index, row in enumerate(self.rows) if not row.done and row not in without]
        whole = list(parts)
        if kept and self._cache:
            whole.insert(0, (self._cache, [index for index, _ in kept], [row for _, row in kept]))
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


def _chunks(rows: Sequence[PendingReply], limit: int) -> Iterator[list[PendingReply]]:
    """The rows, short ones first, in parts whose padded prompts have at most `limit` tokens; equal ones count once."""
    part: list[PendingReply] = []
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
