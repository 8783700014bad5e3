"""Plots as SVG. Colours and type come from the page's style, so that they follow dark, light and print."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from hira.evaluation.statistics import Interval

WIDTH = 720
LABEL = 190
"""Width of the names of bars at most."""
ROW = 26
NICE = (1, 2, 2.5, 5, 10)
COLOURS = 6


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a scatter plot or a line; `y` with its interval."""

    name: str
    x: float
    y: Interval


def bars(values: Sequence[tuple[str, float | None, Interval | None]], unit: str, *, share: bool = False) -> str:
    """Horizontal bars with whiskers for intervals, one a row, in the given order. Shares are from 0 to 1."""
    known = [value for _, value, _ in values if value is not None]
    top = 1.0 if share else _nice(max(known, default=1.0) or 1.0)
    names = [_short(name, 30) for name, _, _ in values]
    label = min(LABEL, 24 + 7 * max(map(len, names), default=0))
    plot = WIDTH - label - 70
    height = ROW * len(values) + 30
    parts = [_grid_x(ticks(top), top, label, plot, height - 24, share=share)]
    for at, (name, (_, value, interval)) in enumerate(zip(names, values, strict=True)):
        y = ROW * at + 4
        parts.append(_text("name", label - 10, y + 13, name, "end"))
        if value is None:
            parts.append(_text("value", label + 6, y + 13, "–"))
            continue
        end = label + plot * min(1.0, value / top)
        parts.append(f'<rect class="bar" x="{label}" y="{y}" width="{end - label:.1f}" height="{ROW - 9}" rx="2"/>')
        if interval:
            low, high = (label + plot * min(1.0, one / top) for one in (interval.low, interval.high))
            parts.append(_whisker(low, high, y + (ROW - 9) / 2))
            end = max(end, high)
        parts.append(_text("value", end + 7, y + 13, f"{100 * value:.1f}" if share else _figure(value)))
    parts.append(_text("axis", label + plot / 2, height + 12, unit, "middle"))
    return _svg(WIDTH, height + 18, "".join(parts), unit)


def scatter(points: Sequence[Point], unit: str) -> str:
    """Accuracy against a cost, whose axis is logarithmic; each point is named."""
    shown = sorted((point for point in points if point.x > 0), key=lambda one: one.y.value, reverse=True)
    if not shown:
        return ""
    axis = _Accuracy(shown, WIDTH - 24, 400)
    low, high = (math.log10(one(point.x for point in shown)) for one in (min, max))
    low, high = math.floor(low * 2 - 0.1) / 2, math.ceil(high * 2 + 0.3) / 2

    def across(value: float) -> float:
        return axis.left + (axis.right - axis.left) * (math.log10(value) - low) / (high - low)

    parts = [axis.grid()]
    for power in range(math.floor(low), math.floor(high) + 1):
        for value in (10**power, 3 * 10**power):
            if axis.left <= (x := across(value)) <= axis.right:
                parts.append(f'<path class="grid" d="M{x:.1f} {axis.top}V{axis.bottom}"/>')
                parts.append(_text("tick", x, axis.bottom + 16, _figure(value), "middle"))
    places = [(across(point.x), axis.y(point.y.value)) for point in shown]
    taken = [(x - 6, x + 6, y + 4) for x, y in places]
    for point, (x, y) in zip(shown, places, strict=True):
        told = f"{point.name}: {100 * point.y.value:.1f} %, {_figure(point.x)}"
        parts.append(f'<path class="whisker faint" d="M{x:.1f} {axis.y(point.y.high):.1f}V{axis.y(point.y.low):.1f}"/>')
        parts.append(f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="4.5"><title>{escape(told)}</title></circle>')
        parts.append(_label(point.name, x, y, taken))
    parts.append(_text("axis", (axis.left + axis.right) / 2, axis.bottom + 36, unit, "middle"))
    return _svg(WIDTH, axis.bottom + 42, "".join(parts), f"accuracy against {unit}")


def _label(name: str, x: float, y: float, taken: list[tuple[float, float, float]]) -> str:
    """A name beside its point, on the side and the line nearest to it where it covers nothing."""
    name = _short(name, 26)
    width = 6.4 * len(name)

    def free(start: float, line: float) -> bool:
        clear = all(abs(line - other) >= 12 or start >= end or begin >= start + width for begin, end, other in taken)
        return clear and start > 40 and start + width < WIDTH

    moves = sorted(range(-60, 64, 4), key=abs)
    places = ((start, y + 4 + move) for move in moves for start in (x + 10, x - 10 - width))
    start, line = next((place for place in places if free(*place)), (x + 10, y + 4))
    taken.append((start, start + width, line))
    leader = ""
    if abs(line - y - 4) > 4:
        near = start - 3 if start > x else start + width + 3
        leader = f'<path class="leader" d="M{x:.1f} {y:.1f}L{near:.1f} {line - 4:.1f}"/>'
    return leader + _text("name", start, line, name)


def lines(series: Sequence[tuple[str, Sequence[Point]]], unit: str) -> str:
    """Accuracy against a limit, one line a series, with a band for its interval."""
    every = [point for _, points in series for point in points]
    axis = _Accuracy(every, WIDTH - 150, 320)
    xs = sorted({point.x for point in every})

    def across(value: float) -> float:
        return axis.left + (axis.right - axis.left) * (value - xs[0]) / ((xs[-1] - xs[0]) or 1.0)

    parts = [axis.grid(), *(_text("tick", across(x), axis.bottom + 16, f"{x:g}", "middle") for x in xs)]
    ends: list[float] = []
    for number, (name, points) in enumerate(series):
        ordered = sorted(points, key=lambda one: one.x)
        upper = [(across(one.x), axis.y(one.y.high)) for one in ordered]
        lower = [(across(one.x), axis.y(one.y.low)) for one in reversed(ordered)]
        middle = [(across(one.x), axis.y(one.y.value)) for one in ordered]
        colour = f"s{number % COLOURS}"
        parts.append(f'<path class="band {colour}" d="{_path([*upper, *lower])}Z"/>')
        parts.append(f'<path class="line {colour}" d="{_path(middle)}"/>')
        parts += [f'<circle class="dot {colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in middle]
        end = middle[-1][1] + 4
        while any(abs(end - other) < 14 for other in ends):
            end += 14
        ends.append(end)
        parts.append(_text(f"name {colour}", axis.right + 12, end, _short(name, 24)))
    parts.append(_text("axis", (axis.left + axis.right) / 2, axis.bottom + 36, unit, "middle"))
    return _svg(WIDTH, axis.bottom + 42, "".join(parts), f"accuracy against {unit}")


class _Accuracy:
    """An upright axis of accuracy that begins and ends at round values around the points' intervals."""

    def __init__(self, points: Sequence[Point], right: float, bottom: float) -> None:
        self.left, self.right, self.top, self.bottom = 46.0, right, 8.0, bottom
        self.low = math.floor(10 * min(point.y.low for point in points)) / 10
        self.high = max(self.low + 0.1, math.ceil(10 * max(point.y.high for point in points)) / 10)

    def y(self, value: float) -> float:
        return self.top + (self.bottom - self.top) * (self.high - value) / (self.high - self.low)

    def grid(self) -> str:
        parts = []
        for tenth in range(round(10 * self.low), round(10 * self.high) + 1):
            y = self.y(tenth / 10)
            parts.append(f'<path class="grid" d="M{self.left:.0f} {y:.1f}H{self.right:.0f}"/>')
            parts.append(_text("tick", self.left - 8, y + 4, str(10 * tenth), "end"))
        return "".join(parts)


def ticks(top: float) -> list[float]:
    """Five or so round values from 0 to the top."""
    step = _nice(top / 5)
    return [step * at for at in range(int(top / step + 1e-9) + 1)]


def _whisker(low: float, high: float, y: float) -> str:
    ends = "".join(f"M{x:.1f} {y - 3:.1f}v6" for x in (low, high))
    return f'<path class="whisker" d="M{low:.1f} {y:.1f}H{high:.1f}{ends}"/>'


def _text(kind: str, x: float, y: float, told: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(told)}</text>'


def _nice(value: float) -> float:
    """The next round number that is not less."""
    power = 10 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return float(next(nice * power for nice in NICE if nice * power >= value * (1 - 1e-9)))


def _grid_x(at: Sequence[float], top: float, left: float, plot: float, height: float, *, share: bool) -> str:
    parts = []
    for value in at:
        x = left + plot * value / top
        told = f"{100 * value:.0f}" if share else _figure(value)
        parts.append(f'<path class="grid" d="M{x:.1f} 0V{height}"/>' + _text("tick", x, height + 14, told, "middle"))
    return "".join(parts)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _figure(value: float) -> str:
    """A figure as short as it may be: 950, 1.2k, 34k, 5M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}".removesuffix(".0") + sign if value < 10 * size else f"{value / size:.0f}{sign}"
    return f"{value:.1f}".removesuffix(".0")


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _svg(width: int, height: float, inner: str, title: str) -> str:
    return f'<svg viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{escape(title)}">{inner}</svg>'
