"""The sources of questions: the built-in set, a file, or a public set; and the selection from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hira.core.errors import UsageError, did_you_mean
from hira.evaluation.files import Item, items_of
from hira.evaluation.mini import DOCS, QUESTIONS
from hira.evaluation.public import REPORTS, SETS, draw, load_public
from hira.evaluation.tables import TABLES, load_table

MINI = "mini"
KINDS = (".jsonl", ".json", ".csv", ".tsv")


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection of questions: some categories, a sample drawn with a seed, or the first ones (of each column of
    a table)."""

    categories: tuple[str, ...] = ()
    sample: int | None = None
    limit: int | None = None
    seed: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)
    split: str = ""
    config: str = ""


@dataclass(frozen=True, slots=True)
class Data:
    """Questions with their set's name, the documents that come with them, their default metric, and the file or folder
    that they and their answers were read from, if there is one."""

    name: str
    items: tuple[Item, ...]
    docs: tuple[Path, ...] = ()
    metric: str = "match"
    file: Path | None = None


def load(name: str, wanted: Selection, folder: Path) -> Data:
    """Load the questions of `name`: `mini`, a file, a public set (`hira.evaluation.public`) or a table of a paper
    (`hira.evaluation.tables`). Raises `UsageError` for a missing file or an unknown set."""
    if name == MINI:
        return Data(MINI, choose_items(items_of(QUESTIONS), wanted, MINI), (DOCS,))
    known, equals, file = name.partition("=")
    given = folder / Path(file).expanduser() if equals else None
    if known in TABLES:
        items = load_table(known, given, seed=wanted.seed, limit=wanted.limit)
        chosen = choose_items(items, replace(wanted, limit=None), known)
        return Data(known, chosen, metric=TABLES[known].metric, file=given)
    if known in (*SETS, REPORTS):
        if given and not given.exists():
            raise UsageError(f"there is no file {file!r}", fix=f"write {known}=FILE with a file that exists")
        rows = load_public(known, file=given, split=wanted.split, config=wanted.config)
        metric = SETS[known].metric if known in SETS else "race"
        return Data(known, choose_items(rows, wanted, known), metric=metric, file=given)
    path = folder / Path(name).expanduser()
    if path.is_file():
        return Data(path.name, choose_items(items_of(path, wanted.columns), wanted, name), file=path)
    if path.suffix in KINDS:
        raise UsageError(f"there is no file {name!r}", fix="name a file of questions, or a set such as mini")
    raise UsageError(f"unknown set {name!r}", fix=did_you_mean(name, [MINI, *SETS, *TABLES, REPORTS]))


def choose_items(items: Sequence[Item], wanted: Selection, name: str) -> tuple[Item, ...]:
    """Return the wanted items, in the order of the set. The same seed draws the same ones."""
    for flag, number in (("--sample", wanted.sample), ("--limit", wanted.limit)):
        if number is not None and number < 1:
            raise UsageError(f"{flag} must be at least 1, got {number}", fix="give 1 or more")
    known = {label for item in items for label in item.labels}
    if strange := [category for category in wanted.categories if category not in known]:
        raise UsageError(f"there is no category {strange[0]!r} in {name}", fix=did_you_mean(strange[0], sorted(known)))
    left = [item for item in items if not wanted.categories or set(item.labels) & set(wanted.categories)]
    left = list(draw(left, wanted.sample, wanted.seed))[: wanted.limit]
    if not left:
        raise UsageError(f"no question of {name} is left", fix="select more questions")
    return tuple(left)
