"""A stage's decision on a question, and the file that keeps one line for each."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from hira.core.errors import UsageError
from hira.trainers import records

Stage = Literal["level", "duplicates", "clarity", "expert", "challenge"]
STAGES: tuple[Stage, ...] = ("level", "duplicates", "clarity", "expert", "challenge")
"""In the order of MARS, appendix B."""
DECISIONS = "decisions.jsonl"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the question with that id is kept by the stage, and why. `told` are the stage's own figures.

    What could not be decided, because a judge failed, makes no decision: it is neither kept nor removed, and is asked
    again when the curation goes on.
    """

    stage: Stage
    id: str
    kept: bool
    why: str = ""
    told: Mapping[str, Any] = field(default_factory=dict)


class Decisions:
    """The decisions of a folder. A later line about the same stage and question replaces an earlier one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        whole_lines(path)
        self.known: dict[tuple[str, str], Decision] = {}
        for at, values in enumerate(records.read(path), 1):
            try:
                one = Decision(**values)
            except TypeError as error:
                where, fix = f"in line {at} of {path}", "remove the line"
                raise UsageError(f"no decision: {error}", where=where, fix=fix) from None
            self.known[one.stage, one.id] = one

    def of(self, stage: Stage) -> dict[str, Decision]:
        """By question."""
        return {question: one for (own, question), one in self.known.items() if own == stage}

    def enter(self, found: Iterable[Decision]) -> None:
        """Keep decisions, and write those that say something new."""
        new = [one for one in found if self.known.get((one.stage, one.id)) != one]
        if new:
            records.append(self.path, map(asdict, new))
            self.known.update({(one.stage, one.id): one for one in new})


def whole_lines(path: Path) -> None:
    """Cut off a last line that was not written to its end, so that the next one does not stand behind it."""
    if path.is_file() and (held := path.read_bytes()) and not held.endswith(b"\n"):
        path.write_bytes(held[: held.rfind(b"\n") + 1])
