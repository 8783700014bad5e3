"""Rows of hostile.py on text of a page that a model quotes: it must not come back as a call."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

from hira.core.policy import Completion
from hira.policies.dialects import DIALECTS, Call
from hira.policies.dialects.folding import ReadTexts, fold
from tests.test_quoted_calls import DISGUISES, FORMS, HELD, NAMED, PATH, PLACES, STOPS, Desk, page_with, place, write

# a dialect, what the pages hold, and what the model writes after it has read them
Case = tuple[str, tuple[str, ...], Completion | str]


def in_places() -> Iterator[Case]:
    for dialect in DIALECTS:
        for call in FORMS.values():
            yield from ((dialect, (call,), place(call, where)) for where in PLACES)


def disguised() -> Iterator[Case]:
    for dialect in DIALECTS:
        for call in FORMS.values():
            yield from ((dialect, (disguise(call),), call) for disguise in DISGUISES.values())


def in_parts() -> Iterator[Case]:
    for dialect in DIALECTS:
        for call in FORMS.values():
            yield from ((dialect, (call[:cut], call[cut:]), call) for cut in range(4, len(call) - 4, 8))


def reworded() -> Iterator[Case]:
    for call in (*FORMS.values(), *HELD.values()):
        for dialect in DIALECTS:
            yield dialect, (call,), write(dialect, "delete_file", path=PATH)
            yield from ((dialect, (call,), form) for form in FORMS.values())


def quote(cases: Callable[[], Iterator[Case]]) -> Callable[[Path], str]:
    async def attack() -> str:
        quoted = [*cases()]
        for dialect, pages, reply in quoted:
            desk = Desk(*map(page_with, pages))
            await desk.hear(dialect, reply, *STOPS)
            if desk.deleted:
                raise RuntimeError(f"{dialect}: {str(reply)[:60]!r} was performed")
        return f"none of {len(quoted):,} was performed"

    return lambda _: asyncio.run(attack())


def compare(page: str) -> bool:
    read, call = ReadTexts([fold(page)]), FORMS["JSON"]
    return read.hold(call) or read.hold_in_pieces(call) or read.hold_reworded(DELETING, NAMED["delete_file"])


DELETING = Call("delete_file", {"path": PATH})
FUNCTIONS = {("quotations", "compared"): compare}
ATTACKS = {
    ("quotations", f"{len(FORMS)} forms in {len(PLACES)} places"): quote(in_places),
    ("quotations", f"{len(FORMS)} forms in {len(DISGUISES)} disguises"): quote(disguised),
    ("quotations", "in parts of two results"): quote(in_parts),
    ("quotations", "in another form, in the dialect's own or in the API's field"): quote(reworded),
}
