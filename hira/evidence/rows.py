"""Copies of rows of tables and of results of tools, whose words have no order."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from hira.core.patterns import compile_lazily
from hira.evidence.cells import Cell
from hira.evidence.passages import LIMITING, VOIDING, Word, is_row, read_words
from hira.evidence.sentence import VOIDING_ABOVE, Sentence, is_condition, is_past, read_keys

_OPERATORS = frozenset("+ - − * / = ** < >".split())
_TELLING = frozenset(
    "role job post position title profession occupation function office type kind category status name year colour"
    " color size country region city rolle beruf amt funktion typ art land stadt farbe rôle fonction poste pays ville"
    " couleur cargo puesto país ciudad color 职务 职位 角色 类型 状态 国家 城市".split()
)
"""Names of columns that add nothing to a cell: "Ida is director" needs no "role"."""
_BEARING = frozenset("name holder person member nom nombre titular 姓名 名称".split())
"""Names of columns whose cells may be the subject of a row."""
_QUALIFYING = read_keys(
    "next previous former planned expected proposed forecast target asking prior old future last maximum minimum max"
    " min"
)
"""Words in the name of a column that a claim about its cells has to have: the "previous user" is not the user."""
_ENDED = VOIDING_ABOVE | frozenset("old resigned retired interim acting inactive expired deceased ended".split())
"""Cells, and words of a remark after a value, of what is no more or not quite so."""
_ENDING = frozenset("left until end ended resigned retired ende ausgeschieden".split())
"""Names of columns with the date on which a row ends to be so."""
_YEAR = compile_lazily(r"(?:18|19|20)\d\d")


def is_copied_record(claim: Sequence[Word], sentence: Sentence) -> bool:
    """Compare a claim with a row or a tool's result, whose words have no order. A column that the claim names has its
    cell in the claim, and numbers are in the result, not in its call."""
    if sentence.is_row:
        return _fits_row(claim, [_read_cell(cell) for cell in sentence.cells], sentence)
    ours, theirs = ({word.key for word in some if is_condition(word)} for some in (claim, sentence.words))
    if ours != theirs | sentence.conditions:
        return False
    keys = {word.key for word in claim}
    if keys <= sentence.keys and keys.isdisjoint(_OPERATORS):
        return _are_in_order(claim, sentence.words)
    numbers = {word.key for word in claim if word.kind == "number"}
    computed = not numbers or not numbers.isdisjoint(sentence.keys)
    return computed and keys <= sentence.keys | sentence.around and not keys.isdisjoint(sentence.keys)


def loses_remark(claim: Sequence[Word], rest: Sequence[Word]) -> bool:
    """Return whether a claim ends before a remark that its value needs: "(planned)", and unless it is about the past
    "(until 2019)", "(interim)", "(2015–2019)"; "(until 2019: Otto)" is about another. `rest` begins with the remark."""
    end = next((place for place, word in enumerate(rest) if place and word.marked and not word.inside), len(rest))
    said = {word.text.lower() for word in rest[:end]}
    another = any(word.kind == "name" and word.text.lower() not in _ENDED for word in rest[:end])
    ended = not said.isdisjoint(_ENDED | {"until"}) or sum(_YEAR.fullmatch(text) is not None for text in said) > 1
    unreal = any(word.inside and is_condition(word) and word.text != "until" for word in rest[:end])
    return not another and (unreal or (ended and not _is_about_past(claim)))


def _is_about_past(claim: Sequence[Word]) -> bool:
    return any(word.tense == "past" or is_past(word.text) for word in claim)


class _CellKeys(NamedTuple):
    """The keys of a cell: of its column's name, whose light words count, and of its text. A claim names the column by
    one of the words in `mark`. A year is no `figure`. Without the conditions no claim has the cell (`limits`), or even
    another cell of its row (`bars`), and unless it is about the past none with what ended (`ends`)."""

    name: frozenset[str]
    text: frozenset[str]
    figure: bool
    mark: frozenset[str]
    limits: frozenset[str]
    bars: frozenset[str]
    ends: frozenset[str]


def _read_cell(cell: Cell) -> _CellKeys:
    words = read_words(cell.text)
    light = frozenset(word for word in cell.name.lower().split() if not read_words(word))
    figure = bool(words) and words[0].kind == "number" and not _YEAR.fullmatch(cell.text)
    text = frozenset(word.key for word in words)
    bars = text if cell.text.lower() in VOIDING else frozenset(word.key for word in words if is_condition(word))
    name = read_words(cell.name)
    content, limits = read_keys(cell.name), frozenset(word.key for word in name if is_condition(word))
    dated = cell.name.lower() in _ENDING and any(_YEAR.fullmatch(word.text) for word in words)
    ends = text if dated or cell.text.lower() in _ENDED else frozenset()
    return _CellKeys(content | light, text, figure, content or light, limits, bars, ends)


def _fits_row(claim: Sequence[Word], cells: Sequence[_CellKeys], sentence: Sentence) -> bool:
    """Return whether a row says a claim. The claim has whole cells, and says which row it is about and which columns
    they are in; a column that the claim names comes with its cell, in the same order."""
    places: dict[str, int] = {}
    for place, word in enumerate(claim):
        for key in (word.key, word.text.lower(), *word.link.split()):
            places.setdefault(key, place)
    keys = {word.key for word in claim}
    held = [cell for cell in cells if cell.text and cell.text <= keys]
    values = frozenset[str]().union(*(cell.text for cell in held))
    names = frozenset[str]().union(*(cell.name for cell in cells))
    said = {word.key for word in claim if word.text.lower() not in names}
    if not held or not said <= values | names | sentence.topic:
        return False
    texts = [cell.text for cell, read in zip(sentence.cells, cells, strict=True) if read in held]
    if not all(_are_in_order(read_words(text), claim) and _keeps_limits(claim, text, names) for text in texts):
        return False
    first = read_words(sentence.cells[0].text)
    if len(held) > 1 and cells[0] not in held and any(word.kind != "number" for word in first):
        return False  # the other cells of a row are its first one's, not each other's
    theirs = sentence.conditions.union(*(cell.limits for cell in held), *(cell.bars for cell in cells))
    ended = any(not cell.ends <= keys for cell in cells) and not _is_about_past(claim)
    if ended or not {word.key for word in claim if is_condition(word)} <= theirs <= keys:
        return False
    if not (_names_columns(held, cells, set(places)) and _picks_row(held, cells, sentence)):
        return False
    named = [cell for cell in cells if cell.name and cell.name <= places.keys() and not cell.name <= values]
    return all(cell in held for cell in named) and _keeps_columns(claim, named, values, places)


def _are_in_order(words: Sequence[Word], among: Sequence[Word]) -> bool:
    """Return whether words are among others, in the same order."""
    rest = iter([word.key for word in among])
    return all(word.key in rest for word in words)


def _keeps_limits(claim: Sequence[Word], text: str, names: frozenset[str]) -> bool:
    """Return whether a claim has the limits of a cell's figures ("about 70 kg"), and others only by a column's name."""
    words = read_words(text)
    numbers = {word.key for word in words if word.kind == "number"}
    ours, theirs = (
        {(word.key, link) for word in some if word.key in numbers for link in LIMITING & {*word.link.split()}}
        for some in (claim, words)
    )
    return theirs <= ours and all(link in names for _, link in ours - theirs)


def _keeps_columns(
    claim: Sequence[Word], named: Sequence[_CellKeys], values: frozenset[str], places: dict[str, int]
) -> bool:
    """Return whether a claim gives the columns that it names their own cells: directly after the name, as in "the
    manager of the branch Moss", else in the same order."""
    bound = []
    for column, word in pairwise(claim):
        whose = [cell for cell in named if column.key in cell.name]
        inside = [cell for cell in whose if word.key in cell.text]
        # "the manager of Ida" is in another cell than Ida, unless the column is named "manager of"
        turned = any((cell in inside) != ("of" in cell.name) for cell in whose)
        if turned and "of" in word.link.split() and word.kind != "number" and word.key in values:
            return False
        if word.close and whose and not inside and any(word.key in cell.text for cell in named):
            return False
        bound += inside if word.close else []
    loose = [cell for cell in named if cell not in bound]
    by_name = sorted(loose, key=lambda cell: min(places[key] for key in cell.name))
    return by_name == sorted(loose, key=lambda cell: min(places[key] for key in cell.text))


def _names_columns(held: Sequence[_CellKeys], cells: Sequence[_CellKeys], places: set[str]) -> bool:
    """Return whether a claim has a word of each cell's column that no other column's name has as well. Without one
    come the subject of the row, and cells of a column whose name tells nothing."""
    if any(not cell.name & _QUALIFYING <= places for cell in held):
        return False
    unnamed = [cell for cell in held if cell.name and cell.mark.isdisjoint(places)]
    subjects = [cell for cell in unnamed if not cell.mark <= _TELLING]
    if len(subjects) > 1 or any(cell.figure for cell in unnamed):
        return False
    if subjects and len(unnamed) > 1 and subjects[0] is not cells[0] and not subjects[0].mark <= _BEARING:
        return False
    partly = [cell.mark.intersection(places) for cell in held if cell not in unnamed and not cell.mark <= places]
    return not any(mark and sum(mark <= cell.mark for cell in cells) > 1 for mark in partly)


def _picks_row(held: Sequence[_CellKeys], cells: Sequence[_CellKeys], sentence: Sentence) -> bool:
    """Return whether a claim with these cells is about no other row near: "the price is 5 euros" is about all."""
    if cells[0] in held or (len(held) > 1 and not all(cell.figure for cell in held)):
        return True
    ours = [cell for cell in sentence.cells if cell.name and _read_cell(cell) in held]
    near = range(max(sentence.place - 2, 0), min(sentence.place + 3, len(sentence.passages.sentences)))
    rows = [dict(sentence.passages.read_cells(place)) for place in near if is_row(sentence.passages.sentences[place])]
    return not any(row.get(cell.name, cell.text) != cell.text for row in rows for cell in ours)
