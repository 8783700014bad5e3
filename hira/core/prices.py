"""Prices of tokens: given ones, otherwise those of the table that litellm ships with, read without loading litellm."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hira.core.policy import Usage

TABLE = "model_prices_and_context_window_backup.json"
_MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens. `cached` is for prompt tokens that the endpoint had in its cache."""

    input: float
    output: float
    cached: float | None = None

    def of(self, usage: Usage) -> float:
        """Return the price of this usage in US dollars."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        fresh = usage.prompt_tokens - cached
        rate = self.input if self.cached is None else self.cached
        return (fresh * self.input + cached * rate + usage.completion_tokens * self.output) / _MILLION


FREE = Price(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model: `given` ones win over those of the `table`, whose rows are litellm's."""

    given: Mapping[str, Price] = field(default_factory=dict)
    table: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)

    def of(self, *models: str) -> Price | None:
        """Return the price of the first of these names that has one; None if none has."""
        for model in models:
            if model in self.given:
                return self.given[model]
        for model in models:
            if price := _read(self.table.get(model.removeprefix("litellm/"), {})):
                return price
        return None


NO_PRICES = Prices()


def _read(row: Mapping[str, Any]) -> Price | None:
    """Read a row of litellm's table, which counts in dollars per token; None for a row without a price."""
    into, out, cached = map(row.get, ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"))
    if not isinstance(into, int | float) or not isinstance(out, int | float) or not (into or out):
        return None
    return Price(into * _MILLION, out * _MILLION, cached * _MILLION if isinstance(cached, int | float) else None)


def litellm_table() -> Mapping[str, Mapping[str, Any]]:
    """Read the table of the installed litellm, without loading litellm; empty if it is not installed."""
    spec = find_spec("litellm")
    if spec is None or not spec.origin:
        return {}
    try:
        table: dict[str, Mapping[str, Any]] = json.loads(Path(spec.origin).with_name(TABLE).read_text("utf-8"))
    except (OSError, ValueError):  # this litellm keeps its prices elsewhere: they are reported as unknown
        return {}
    return table
