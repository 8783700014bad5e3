"""Events as records, also those of other versions."""

from typing import get_args

from hira.core.events import KINDS, AnyEvent, Error, Event, Events, Notice, RunEnded, TurnText, record
from hira.core.policy import Usage
from hira.journal.records import decode_events


def test_events_come_back_from_their_records() -> None:
    events: list[Event] = [
        TurnText("1", "of bees", reasoning=True, at=0.5),
        Notice("a limit was reached", important=True, at=1.0),
        RunEnded("run", "answered", "31 metres", Usage(2, 30, 4, cost=0.5), at=2.0),
    ]
    assert [*decode_events(map(record, events))] == events


def test_what_another_version_recorded_is_passed_over_where_it_is_not_known() -> None:
    known = record(Notice("the end"))
    usage = {"calls": 1, "prompt_tokens": 2, "completion_tokens": 3, "colours": 4}
    ended = {"event": "RunEnded", "at": 3.0, "run": "run", "status": "answered", "answer": "A", "usage": usage}
    foreign = [{"event": "Dreamt", "text": "of bees"}, {"event": "Notice"}, {"text": "no kind"}, {**ended, "usage": 5}]
    told = [*decode_events([*foreign, {**known, "colour": "red"}, ended])]
    assert told == [Notice("the end"), RunEnded("run", "answered", "A", Usage(1, 2, 3), at=3.0)]


def test_the_union_of_events_leaves_none_out() -> None:
    assert {*get_args(AnyEvent)} == {*KINDS.values()} - {Error}


def test_a_secret_that_is_a_part_of_a_fields_name_is_masked_in_values_alone() -> None:
    read: list[Event] = []
    Events(read.append, secrets=frozenset({"important"}))(Notice("an important text", important=True))
    (notice,) = read
    assert isinstance(notice, Notice)
    assert ("important" in notice.text, notice.important) == (False, True)
