"""A curve as a few lines of text."""

from collections.abc import Sequence
from itertools import pairwise

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def chart(values: Sequence[float], *, width: int = 60, height: int = 8) -> list[str]:
    """Shares from 0 to 1 as columns, with the axis on the left. More values than columns are averaged."""
    shown = _thinned(values, width)
    lines = []
    for row in range(height, 0, -1):
        filled = (min(8, max(0, round(8 * (value * height - (row - 1))))) for value in shown)
        label = f"{100 * row / height:3.0f} % " if row in (height, height // 2) else "      "
        lines.append(label + "│" + "".join(_EIGHTHS[eighths] for eighths in filled))
    return [*lines, "  0 % └" + "─" * len(shown)]


def spark(values: Sequence[float], *, width: int = 40) -> str:
    """Any values as one line, the lowest as a gap and the highest as a full block."""
    shown = _thinned(values, width)
    low, span = min(shown), (max(shown) - min(shown)) or 1.0
    return "".join(_EIGHTHS[round(8 * (value - low) / span)] for value in shown)


def _thinned(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    edges = [at * len(values) // width for at in range(width + 1)]
    return [sum(values[begin:end]) / (end - begin) for begin, end in pairwise(edges)]
