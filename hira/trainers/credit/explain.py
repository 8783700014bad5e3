"""Credit as a table that a person can check."""

from collections.abc import Iterable

from hira.trainers.rows import Credited, Weighted

HEADS = ("group", "rollout", "conversation", "role", "reward", "advantage", "weight", "tokens")


def explain(credited: Credited) -> str:
    """One line a row: with whom it was compared, reward, advantage, weight and how many tokens it trains."""
    lines = [HEADS, *map(_line, credited.rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEADS))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    told = {
        "Z": f"{credited.normaliser:g}",
        "groups": str(len(credited.sizes)),
        "without signal": str(credited.dead),
        "singletons": str(credited.singletons),
        "left out": str(credited.excluded),
    }
    return "\n".join([*table, _joined(told.items())])


def _line(one: Weighted) -> tuple[str, ...]:
    group = "/".join(part for part in (one.group.problem, one.group.role, one.group.input[:6]) if part)
    part = f"#{one.row.part}" if one.row.part else ""
    figures = (f"{one.reward:.3f}", f"{one.advantage:+.3f}", f"{one.weight:.3g}", str(one.row.tokens))
    return (group, one.row.rollout, one.row.conversation + part, one.row.role, *figures)


def _joined(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in pairs)
