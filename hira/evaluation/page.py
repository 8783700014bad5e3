"""`report.html`: plots and tables of the rows, and every question with the answer of each way of asking.

The page shows model output as text only, and the policy in its head blocks all other scripts and every download.
"""

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hira.core.errors import count_of
from hira.core.page import make_standalone_page, read_beside
from hira.evaluation.cells import Cell, join_way
from hira.evaluation.record import Record
from hira.evaluation.statistics import Interval
from hira.evaluation.summary import SummaryRow

_LIMIT = re.compile(r"(\d+) subtasks?(?:, (.+))?")
Series = tuple[str, Sequence[tuple[float, Interval]]]
"""A name, and values with the accuracy at each."""
LONGEST = 600
"""The most characters of an answer that the page shows."""


def page(
    summary: Sequence[SummaryRow], records: Sequence[Record], cells: Sequence[Cell], run: Mapping[str, Any]
) -> str:
    """Return the page as HTML; `run` has the data, the metric and the number of questions."""
    about = f"{count_of(run['questions'], 'question')}, {len(summary)} ways of asking, scored by {run['metric']}"
    body = f"""<main>
<header><p class="made">hira eval</p><h1>{escape(str(run["data"]))}</h1><p class="about">{escape(about)}</p></header>
{"".join(_sections(summary))}
<section class="questions"><h2>Questions <span>what each way of asking said</span></h2>
<div class="filter">
<input type="search" id="wanted" placeholder="search questions and answers" aria-label="search">
<button type="button" data-kind="">all</button>
<button type="button" data-kind="some">some right</button>
<button type="button" data-kind="none">none right</button><span id="count"></span></div>
<div class="card" id="list">{_questions(records, cells, summary)}</div></section>
</main>"""
    style, script = (read_beside(__file__, name) for name in ("page.css", "page.js"))
    return make_standalone_page(f"{run['data']}: evaluation", body, style=style, script=script)


def _sections(summary: Sequence[SummaryRow]) -> list[str]:
    """Return every figure for which these rows have data."""
    names = shorten_names(summary)
    accuracy = [(names[row.name], row.accuracy.value if row.accuracy else None, row.accuracy) for row in summary]
    drawn = draw_bars(accuracy, "accuracy in %", share=True)
    sections = [_section("Accuracy", "share of right answers in %, with 95 % intervals", drawn)]
    if limits := _limits(summary):
        drawn = draw_points(limits, "subtasks at most")
        sections.append(_section("Accuracy against the limit of subtasks", "as in HiRA, Fig. 3", drawn))
    if any(row.variant.startswith("without ") for row in summary):
        sections.append(_section("Ablation", "what each part is worth, as in HiRA, Table 2", _ablation(summary)))
    if any(row.categories for row in summary):
        sections.append(_section("By category", "right answers in %", _categories(summary, names)))
    costs: list[Series] = [
        (names[row.name], [(row.tokens, row.accuracy)]) for row in summary if row.accuracy and row.tokens
    ]
    if len(costs) > 1:
        drawn = draw_points(costs, "tokens a question, in and out", logarithmic=True)
        sections.append(_section("Accuracy against tokens", "with 95 % intervals", drawn))
    calls = draw_bars([(names[row.name], row.calls, None) for row in summary], "calls of models a question")
    tools = draw_bars([(names[row.name], row.tool_calls, None) for row in summary], "calls of tools a question")
    written = [(names[row.name], row.completion_tokens, None) for row in summary]
    length = draw_bars(written, "completion tokens a question")
    sections.append(_section("Calls and length of reasoning", "as in HiRA, Fig. 5", calls + tools + length))
    sections.append(_section("What ended how", "", _endings(summary, names)))
    return sections


def shorten_names(summary: Sequence[SummaryRow]) -> dict[str, str]:
    """Return the rows' names without their common parts, such as the only model."""
    parts = [(row.workflow, row.model, row.variant) for row in summary]
    differ = [len({part[index] for part in parts}) > 1 for index in range(3)]
    differ[0] = differ[0] or not any(differ)
    shown = {}
    for row, part in zip(summary, parts, strict=True):
        kept = [text for text, differs in zip(part, differ, strict=True) if text and differs]
        shown[row.name] = " · ".join(kept) or ("whole" if row.workflow == "hira" else row.name)
    return shown


def _limits(summary: Sequence[SummaryRow]) -> list[Series]:
    """Return the series of a sweep: for each model and variant, the limits of subtasks with their accuracy."""
    series: dict[str, list[tuple[float, Interval]]] = {}
    for row in summary:
        if row.accuracy and (limit := _LIMIT.fullmatch(row.variant)):
            name = limit[2] or ("experts described" if row.workflow == "hira" else row.workflow)
            series.setdefault(join_way(row.model, name), []).append((float(limit[1]), row.accuracy))
    return list(series.items())


def _ablation(summary: Sequence[SummaryRow]) -> str:
    whole = {row.model: row for row in summary if not row.variant}
    body = []
    for row in summary:
        base = whole.get(row.model)
        lost = ""
        if base and base.accuracy and row.accuracy and row.variant:
            lost = f"{100 * (row.accuracy.value - base.accuracy.value):+.1f}"
        value = f"{100 * row.accuracy.value:.1f}" if row.accuracy else "–"
        body.append([join_way(row.model, row.variant or "whole"), value, lost])
    return _table(["", "accuracy", "difference"], body)


def _categories(summary: Sequence[SummaryRow], names: Mapping[str, str]) -> str:
    known = list(dict.fromkeys(name for row in summary for name in row.categories))
    head = "".join(f"<th>{escape(name)}</th>" for name in known)
    rows = []
    for row in summary:
        cells = []
        for name in known:
            category = row.categories.get(name)
            if category is None or category.accuracy is None:
                cells.append("<td>–</td>")
            else:
                level = round(10 * category.accuracy)
                title = f"{category.right} of {category.scored}"
                cells.append(f'<td class="heat h{level}" title="{title}">{100 * category.accuracy:.0f}</td>')
        rows.append(f"<tr><th>{escape(names[row.name])}</th>{''.join(cells)}</tr>")
    table = f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="wide"><table class="heatmap">{table}</table></div>'


def _endings(summary: Sequence[SummaryRow], names: Mapping[str, str]) -> str:
    statuses = list(dict.fromkeys(status for row in summary for status in row.statuses))
    head = ["", *(status.replace("_", " ") for status in statuses), "citations supported", "failures"]
    body = []
    for row in summary:
        supported, checked = row.supported
        held = f"{supported} of {checked}" if checked else "–"
        failures = ", ".join(f"{kind} × {count}" for kind, count in row.failures.items())
        body.append([names[row.name], *(str(row.statuses.get(statuse, "")) for statuse in statuses), held, failures])
    return _table(head, body)


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    rows = ""
    for line in body:
        rows += f"<tr><th>{escape(line[0])}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in line[1:])}</tr>"
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>'


def _section(title: str, explanation: str, inner: str) -> str:
    note = f" <span>{escape(explanation)}</span>" if explanation else ""
    return f'<section><h2>{escape(title)}{note}</h2><div class="card">{inner}</div></section>'


def _questions(records: Sequence[Record], cells: Sequence[Cell], summary: Sequence[SummaryRow]) -> str:
    """Return every question, folded; unfolded it shows the answer of each way of asking. Different results are
    marked."""
    names = shorten_names(summary)
    called = {cell.name: cell.way for cell in cells}
    by_question: dict[tuple[str, str], list[Record]] = {}
    order = {cell.name: index for index, cell in enumerate(cells)}
    for record in sorted(records, key=lambda record: (record.category, record.id, order.get(record.cell, 0))):
        by_question.setdefault((record.id, record.question), []).append(record)
    parts = []
    for (key, question), attempts in by_question.items():
        right = sum(record.score.correct is True for record in attempts)
        kind = "all" if right == len(attempts) else "none" if right == 0 else "some"
        answers = "".join(_answer(record, names.get(called.get(record.cell, ""), record.cell)) for record in attempts)
        gold = escape(attempts[0].gold) or "<em>nothing can be known</em>"
        parts.append(
            f'<details class="question {kind}"><summary><b>{right}/{len(attempts)}</b> <span>{escape(question)}</span>'
            f"<i>{escape(attempts[0].category)} {escape(key)}</i></summary>"
            f"<p class=gold>{gold}</p><ul>{answers}</ul></details>"
        )
    return "".join(parts)


def _answer(record: Record, name: str) -> str:
    verdict = {True: "right", False: "wrong", None: "unscored"}[record.score.correct]
    text = record.answer if len(record.answer) <= LONGEST else f"{record.answer[:LONGEST]} …"
    note = record.error or (record.score.note if record.score.correct is not True else "")
    shown = f"<p class=note>{escape(note)}</p>" if note else ""
    head = f"{escape(name)} <span>{verdict}, {record.status.replace('_', ' ')}</span>"
    return f'<li class="{verdict}"><h4>{head}</h4><p>{escape(text)}</p>{shown}</li>'


WIDTH, LABELS, BAR = 720, 190, 26
"""The width of a plot, the most for its names on the left, and the distance between bars."""
COLOURS = 6


def draw_bars(values: Sequence[tuple[str, float | None, Interval | None]], unit: str, *, share: bool = False) -> str:
    """Return horizontal bars as SVG, with whiskers for intervals, in the given order. Shares are from 0 to 1."""
    top = 1.0 if share else max((value for _, value, _ in values if value), default=1.0)
    names = [name if len(name) <= 30 else f"{name[:29]}…" for name, _, _ in values]
    left = min(LABELS, 24 + 7 * max(map(len, names), default=0))
    plot = WIDTH - left - 70
    parts = []
    for index, (name, (_, value, interval)) in enumerate(zip(names, values, strict=True)):
        y = BAR * index + 17
        parts.append(f'<text class="name" x="{left - 10}" y="{y}" text-anchor="end">{escape(name)}</text>')
        end = left + plot * (value or 0.0) / top
        if value is not None:
            parts.append(f'<rect class="bar" x="{left}" y="{y - 13}" width="{end - left:.1f}" height="17" rx="2"/>')
        if interval:
            low, high = (left + plot * min(1.0, share / top) for share in (interval.low, interval.high))
            parts.append(f'<path class="whisker" d="M{low:.1f} {y - 4.5}H{high:.1f}"/>')
            end = max(end, high)
        text = "–" if value is None else f"{100 * value:.1f}" if share else f"{value:,.1f}"
        parts.append(f'<text class="value" x="{end + 7:.1f}" y="{y}">{text}</text>')
    height = BAR * len(values) + 20
    parts.append(f'<text class="axis" x="{left + plot / 2:.0f}" y="{height - 4}" text-anchor="middle">{unit}</text>')
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(unit)}">{"".join(parts)}</svg>'


def draw_points(series: Sequence[Series], unit: str, *, logarithmic: bool = False) -> str:
    """Return accuracy against values as SVG: for each series its points with whiskers, joined by a line, and its name
    after the last. On a logarithmic axis all values are above 0."""
    xs = sorted({x for _, points in series for x, _ in points})
    if logarithmic:
        steps = [step * 10.0**power for power in range(-1, 12) for step in (1, 3)]
        xs = [step for step in steps if xs[0] / 3.3 < step < xs[-1] * 3.3]
    scale = math.log10 if logarithmic else float
    left, top, width, height = 46, 8, WIDTH - LABELS - 46, 320
    within = [interval for _, points in series for _, interval in points]
    low = math.floor(10 * min(interval.low for interval in within))
    high = max(low + 1, math.ceil(10 * max(interval.high for interval in within)))

    def place(x: float, share: float) -> tuple[float, float]:
        across = (scale(x) - scale(xs[0])) / ((scale(xs[-1]) - scale(xs[0])) or 1.0)
        return left + width * across, top + height * (high - 10 * share) / (high - low)

    parts = []
    for tenth in range(low, high + 1):
        y = place(xs[0], tenth / 10)[1]
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{left + width}"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{10 * tenth}</text>')
    for x in xs:
        across = place(x, 0)[0]
        parts.append(f'<text x="{across:.1f}" y="{top + height + 18}" text-anchor="middle">{x:,.12g}</text>')
    taken: list[tuple[float, float, float]] = []
    for index, (name, points) in enumerate(series):
        middle = [place(x, interval.value) for x, interval in points]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in middle)
        parts.append(f'<g class="s{index % COLOURS}"><path class="line" d="M{line}"/>')
        for x, interval in points:
            (across, upper), (_, y), (_, lower) = (place(x, y) for y in (interval.high, interval.value, interval.low))
            parts.append(f'<path class="whisker faint" d="M{across:.1f} {upper:.1f}V{lower:.1f}"/>')
            parts.append(f'<circle cx="{across:.1f}" cy="{y:.1f}" r="4"/>')
        across, y = middle[-1]
        end = across + 7 * len(name) + 10
        while any(across < right and x < end and abs(y - other) < BAR / 2 for x, right, other in taken):
            y += 1
        taken.append((across, end, y))
        parts.append(f'<text class="label" x="{across + 10:.1f}" y="{y + 4:.1f}">{escape(name[:30])}</text></g>')
    parts.append(f'<text x="{left + width / 2:.0f}" y="{top + height + 38}" text-anchor="middle">{unit}</text>')
    title = escape(f"accuracy in % against {unit}")
    return f'<svg viewBox="0 0 {WIDTH} {top + height + 46}" role="img" aria-label="{title}">{"".join(parts)}</svg>'
