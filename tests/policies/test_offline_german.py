"""Questions in German, and documents of which a part is in German."""

import pytest

from hira.policies.offline import questions
from hira.policies.offline.passages import Passage
from hira.policies.offline.reading import find

MUSEUM = Passage(
    "s1",
    "Das Museum von Varn",
    "museum.md",
    "Das Museum von Varn wurde 1927 von dem Lehrer Gustav Rehbein gegründet. Die Leiterin ist Dr. Annegret Pohl.\n\n"
    "Der Eintritt kostet 5 Euro. Der Turm ist 31 m hoch.\n\n"
    "Johann Huber was born in 1740 in Passau. Er lernte das Handwerk bei seinem Onkel Matthias Gerl in Linz.",
)


@pytest.mark.parametrize(
    ("question", "holds"),
    [
        ("Wer gründete das Museum von Varn?", "Gustav Rehbein"),
        ("Wann wurde das Museum gegründet?", "1927"),
        ("Was kostet der Eintritt?", "5 Euro"),
        ("Wer ist die Leiterin des Museums?", "Annegret Pohl"),
        ("Wie hoch ist der Turm?", "31 m"),
        ("Who founded the museum of Varn?", "Gustav Rehbein"),
        ("With whom did Johann Huber learn his craft?", "Matthias Gerl"),
        ("Where was Matthias Gerl born?", ""),
        ("Wie lang ist der Turm?", ""),
        ("Wann wurde das Museum verkauft?", ""),
        ("Wer malte den Turm?", ""),
        ("Wie viele Besucher hat das Museum?", ""),
    ],
)
def test_german_is_read_as_plainly_as_english(question: str, holds: str) -> None:
    found = find(question, [MUSEUM])
    told = found.text if found else ""
    assert holds in told
    assert bool(told) == bool(holds)


def test_what_is_done_to_ones_own_thing_stays_in_the_outer_question() -> None:
    hop = questions.hop("With whom did the maker of the clock learn his craft?")
    assert hop
    assert (hop.inner, hop.outer) == ("Who is the maker of the clock?", "With whom did {} learn his craft?")
