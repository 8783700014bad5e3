"""Keys and values of a batch whose rows come and go, right-aligned: a row's newest token is in the last column."""

from collections.abc import Sequence

import torch
from transformers.cache_utils import Cache, DynamicLayer

_GROWTH = 128


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """One layer's keys and values, of shape (B, heads, T, size), in room that is made for many tokens at a time.

    The layer that transformers brings copies all it holds for every token.
    """

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
            self._room = (_roomy(self.keys, now + _GROWTH), _roomy(self.values, now + _GROWTH))
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


def empty() -> Cache:
    return Cache(layer_class_to_replicate=GrowingLayer)


def merge_caches(parts: Sequence[tuple[Cache, torch.Tensor, int]]) -> Cache:
    """One cache of some rows of several. Each part is a cache, the rows to take, and how many of its columns, counted
    from the newest, hold anything for them."""
    width = max(columns for _, _, columns in parts)
    whole = empty()
    for layers in zip(*(cache.layers for cache, _, _ in parts), strict=True):
        layer = GrowingLayer()
        held = [(one.keys, one.values, rows, columns) for one, (_, rows, columns) in zip(layers, parts, strict=True)]
        layer.settle(
            _joined([(keys, rows, columns) for keys, _, rows, columns in held], width),
            _joined([(values, rows, columns) for _, values, rows, columns in held], width),
            width,
        )
        whole.layers.append(layer)
    return whole


def _joined(parts: Sequence[tuple[torch.Tensor, torch.Tensor, int]], width: int) -> torch.Tensor:
    """The rows of all parts below one another, right-aligned at `width`, with room to grow; what is padding is 0."""
    _, heads, _, size = parts[0][0].shape
    room = parts[0][0].new_empty((sum(len(rows) for _, rows, _ in parts), heads, width + _GROWTH, size))
    at = 0
    for states, rows, columns in parts:
        here = room[at : at + len(rows)]
        here[:, :, : width - columns] = 0
        here[:, :, width - columns : width] = states[:, :, states.shape[-2] - columns :].index_select(0, rows)
        at += len(rows)
    return room


def _roomy(states: torch.Tensor, width: int) -> torch.Tensor:
    """The same states at the beginning of a larger tensor."""
    room = states.new_empty((*states.shape[:2], width, states.shape[-1]))
    room[:, :, : states.shape[-2]] = states
    return room
