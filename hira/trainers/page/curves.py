"""Curves over the steps of a run as small SVG plots, in the style of the evaluation's page."""

import math
from collections.abc import Mapping, Sequence
from html import escape

from hira.evaluation.page.plots import COLOURS, ticks

WIDTH, HEIGHT = 400, 200
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 10, 26
Curve = Sequence[tuple[float, float]]


def curves(title: str, series: Mapping[str, Curve], *, share: bool = False) -> str:
    """One plot: a line for each series, with its last value. Shares are from 0 to 1 and told in %."""
    shown = {name: points for name, points in series.items() if points}
    if not shown:
        return ""
    xs = [x for points in shown.values() for x, _ in points]
    ys = [y for points in shown.values() for _, y in points]
    low, high = (0.0, 1.0) if share else _range(ys)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    first, last = min(xs), max(xs)

    def at(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (right - LEFT) * (x - first) / ((last - first) or 1.0)
        return across, TOP + (bottom - TOP) * (high - min(max(y, low), high)) / (high - low)

    parts = []
    for value in _marks(low, high):
        _, y = at(first, value)
        told = f"{100 * value:.0f} %" if share else _figure(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{told}</text>')
    for x in dict.fromkeys((first, last)):
        anchor = "start" if x == first else "end"
        parts.append(
            f'<text class="tick" x="{at(x, low)[0]:.1f}" y="{bottom + 17}" text-anchor="{anchor}">{x:g}</text>'
        )
    for number, points in enumerate(shown.values()):
        placed = [at(x, y) for x, y in points]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in placed)
        x, y = placed[-1]
        parts.append(f'<path class="line s{number % COLOURS}" d="M{line}"/>')
        parts.append(f'<circle class="dot s{number % COLOURS}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
    inner = "".join(parts)
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{inner}</svg>'
    names = "".join(
        f'<li class="s{number % COLOURS}">{escape(name)} <b>{_last(points, share=share)}</b></li>'
        for number, (name, points) in enumerate(shown.items())
    )
    return f'<figure class="card"><figcaption>{escape(title)}</figcaption>{svg}<ul class="names">{names}</ul></figure>'


def _last(points: Curve, *, share: bool) -> str:
    value = points[-1][1]
    return f"{100 * value:.0f} %" if share else _figure(value)


def _range(ys: Sequence[float]) -> tuple[float, float]:
    """Round values around the data; 0 is among them where it is near."""
    low, high = min(ys), max(ys)
    if low >= 0 and low < 0.6 * high:
        low = 0.0
    if high - low < 1e-9:
        low, high = (low - 0.5, high + 0.5) if high else (0.0, 1.0)
    step = ticks(high - low)[1] if len(ticks(high - low)) > 1 else high - low
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _marks(low: float, high: float) -> list[float]:
    step = ticks(high - low)[1]
    return [low + step * at for at in range(round((high - low) / step) + 1)]


def _figure(value: float) -> str:
    """Three digits that count, and a sign for thousands."""
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.3g}M"
    if size >= 1e4:
        return f"{value / 1e3:.3g}k"
    return f"{value:.0e}" if 0 < size < 1e-3 else f"{value:.3g}"
