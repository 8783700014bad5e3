"""A question of a data set, with what counts as its answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Item:
    """`answers` are taken one for another; of `every` all have to be said. Where the set says that a question is
    `unanswerable`, right is who says so, and cites nothing. `category` is what results are broken down by: one
    label, or several with bars between them. `judge` is the one of HiRA's that its set asks for. `meta` is what else
    the set holds."""

    id: str
    question: str
    answers: tuple[str, ...] = ()
    every: tuple[str, ...] = ()
    category: str = ""
    files: tuple[Path, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    unanswerable: bool = False
    judge: str = ""

    @property
    def labels(self) -> list[str]:
        return labels_of(self.category)

    @property
    def answerable(self) -> bool:
        """Whether an answer is known."""
        return bool(self.answers or self.every)

    @property
    def gold(self) -> str:
        """The answer as a judge reads it."""
        return " and ".join(self.every) if self.every else " or ".join(self.answers)


def labels_of(category: str) -> list[str]:
    """The labels of a category such as `level 2 | without file`."""
    return [label.strip() for label in category.split("|") if label.strip()]
