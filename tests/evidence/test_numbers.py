"""Numbers, signs, units and short names that look alike: which of them a copy may exchange."""

import pytest

from hira.core.sources import Source
from hira.evidence import check
from hira.evidence.copies import check_words
from hira.evidence.passages import Passages, read_number, split_sentences
from hira.evidence.quotations import holds_values


def accepts(claim: str, text: str, question: str = "", record: str | None = None) -> bool:
    judged = check_words(claim, Passages(text), question=question, record=record)
    return judged.verdict.holds and not judged.lacking


@pytest.mark.parametrize(
    ("claim", "text", "holds"),
    [
        ("Harrow 2.3 reads maps", "Harrow 2.30 reads maps.", False),
        ("Harrow 2.30 reads maps", "Harrow 2.30 reads maps.", True),
        ("Harrow 2 reads maps", "Harrow 2.0 reads maps.", False),
        ("Harrow 2.13.4 reads maps", "Harrow 2.1.34 reads maps.", False),
        ("Paragraph 7.2 forbids dogs", "Paragraph 7.20 forbids dogs.", False),
        ("The pass costs 6.5 euros", "The pass costs 6.50 euros.", True),
        ("The pass costs 6 euros", "The pass costs 6.00 euros.", True),
        ("The pass costs €6.50", "The pass costs EUR 6.50.", False),
        ("The pass costs 6.50 EUR", "The pass costs 6.5 EUR.", True),
        ("The fine is 100 euros", "The fine is 100.00 euros.", True),
        ("The share is 6.5%", "The share is 6.50 percent.", True),
        ("The rope weighs 6.5 kg", "Rope 6.5 is blue. The rope weighs 6.50 kg.", True),
        ("The profit is 3.1 million", "The profit is 3.10 million.", True),
    ],
)
def test_zeros_at_the_end_of_a_fraction_count_except_in_amounts(claim: str, text: str, *, holds: bool) -> None:
    assert accepts(claim, text) == holds


@pytest.mark.parametrize(
    ("claim", "text", "holds"),
    [
        ("The fee of Moss is 6.5 EUR", "| Place | Fee (EUR) |\n|---|---|\n| Moss | 6.50 |\n| Lund | 7.50 |", True),
        ("The fee of Moss is 6.50 EUR", "| Place | Fee (EUR) |\n|---|---|\n| Moss | 6.50 |\n| Lund | 7.50 |", True),
        ("The edition of Moss is 6.5", "| Place | Edition |\n|---|---|\n| Moss | 6.50 |\n| Lund | 7.50 |", False),
        ("The load of the hook is 70 kg", "| Part | Load |\n|---|---|\n| hook | ~70 kg |", False),
        ("The load of the hook is about 70 kg", "| Part | Load |\n|---|---|\n| hook | ~70 kg |", True),
        ("The load of the hook is about 70 kg", "| Part | Load |\n|---|---|\n| hook | 70 kg |", False),
        ("The load of the hook is 70 kg", "| Part | Load |\n|---|---|\n| hook | ≤ 70 kg |", False),
        ("Ida is a member until 1987", "| Member | Until |\n|---|---|\n| Ida | 1987 |", True),
    ],
)
def test_a_cell_has_the_unit_of_its_column_and_keeps_its_limit(claim: str, text: str, *, holds: bool) -> None:
    assert accepts(claim, text) == holds


@pytest.mark.parametrize(
    ("claim", "holds"), [("The sum of the fees is 15", True), ("The sum of the fees is 15.5", False)]
)
def test_a_result_that_was_computed_is_compared_by_value(claim: str, *, holds: bool) -> None:
    assert accepts(claim, "15.0", record="sum of the fees") == holds


SIGNS = ("≤ 9 kg", "≥ 9 kg", "< 9 kg", "> 9 kg", "~9 kg", "± 9 kg", "9 kg")


@pytest.mark.parametrize("told", SIGNS)
@pytest.mark.parametrize("written", SIGNS)
def test_a_sign_before_a_number_is_a_limit(told: str, written: str) -> None:
    text = f"The weight of the parcel is {written}."
    assert accepts(f"The weight of the parcel is {told}", text) == (told == written)
    assert accepts(told, text, "What is the weight of the parcel?") == (told == written)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("≤ 9 kg", "at most 9 kg"),
        ("≥ 9 kg", "at least 9 kg"),
        ("<= 9 kg", "≤9 kg"),
        (">= 9 kg", "≥9 kg"),
        ("<9 kg", "less than 9 kg"),
        ("> €9", "more than €9"),
        ("≈ 9 kg", "about 9 kg"),
        ("+/- 9 kg", "±9 kg"),
        ("> -9 °C", "more than −9 °C"),
    ],
)
def test_a_sign_and_the_words_for_it_are_one_limit(one: str, other: str) -> None:
    assert accepts(f"The value is {one}", f"The value is {other}.")
    assert accepts(f"The value is {other}", f"The value is {one}.")


def test_a_sign_between_two_numbers_is_an_operator() -> None:
    assert accepts("12 > 9", "The check says 12 > 9.") == accepts("12 + 9", "The check says 12 + 9.")
    assert not accepts("The check says 12 < 9", "The check says 12 > 9.")
    assert not accepts("The check says 12 <= 9", "The check says 12 >= 9.")


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Loom is written in C", "Loom is written in C++."),
        ("Loom is written in C#", "Loom is written in C++."),
        ("Loom is written in F", "Loom is written in F#."),
        ("The blood group of Ida is B-", "The blood group of Ida is B+."),
        ("The blood group of Ida is AB", "The blood group of Ida is AB−."),
        ("The bond is rated BBB-", "The bond is rated BBB+."),
        ("The mark of Otto is 2", "The mark of Otto is 2-."),
        ("The film is for those aged 16", "The film is for those aged 16+."),
        ("The course leads to B2", "The course leads to B2+."),
    ],
)
def test_a_sign_at_the_end_of_a_short_name_belongs_to_it(claim: str, text: str) -> None:
    assert not accepts(claim, text)
    assert accepts(text.rstrip("."), text)
    assert not accepts(text.rstrip("."), f"{claim}.")


def test_a_name_that_ends_with_a_sign_may_end_a_sentence() -> None:
    text = "Loom is written in C++. The tool Reed needs C#. The rating fell to A-. It was 8 °C. Nobody came."
    assert len(list(split_sentences(text))) == 5
    assert accepts("C++", text, "In what is Loom written?")
    assert not accepts("C#", text, "In what is Loom written?")


def test_a_name_with_a_sign_is_no_other_form_of_the_one_without() -> None:
    assert not accepts("9", "The score of BBB+ is 9.", "What is the score of BBB?")


GERMAN = (
    "Das Stadion fasst 31.500 Zuschauer. Die Pacht beträgt 14.200 Euro im Jahr. Der Mast ist 14,5 Meter hoch und"
    " 2,250 Tonnen schwer."
)
ENGLISH = "The stadium seats 31,500 people. The rent is 14,200 euros. The mast has a weight of 2.250 tonnes."


@pytest.mark.parametrize(
    ("claim", "text", "holds"),
    [
        ("Das Stadion fasst 31.500 Zuschauer", GERMAN, True),
        ("Das Stadion fasst 31500 Zuschauer", GERMAN, True),
        ("Das Stadion fasst 31,5 Zuschauer", GERMAN, False),
        ("Die Pacht beträgt 14,2 Euro im Jahr", GERMAN, False),
        ("Die Pacht beträgt 14,20 Euro im Jahr", GERMAN, False),
        ("Die Pacht beträgt 14200 Euro im Jahr", GERMAN, True),
        ("Der Mast ist 14,50 Meter hoch", GERMAN, True),
        ("Der Mast ist 14.5 Meter hoch", GERMAN, True),
        ("Der Mast ist 145 Meter hoch", GERMAN, False),
        ("The stadium seats 31500 people", ENGLISH, True),
        ("The stadium seats 31.5 people", ENGLISH, False),
        ("The stadium seats 31.500 people", ENGLISH, False),
        ("The rent is 14,200.00 euros", ENGLISH, True),
        ("The mast has a weight of 2250 tonnes", ENGLISH, False),
        ("The mast has a weight of 2.25 tonnes", ENGLISH, False),
        ("The mast has a weight of 2.250 tonnes", ENGLISH, True),
        ("Pacht: 14.200 Euro", "Pacht: 14.200 Euro", True),
        ("Pacht: 14,2 Euro", "Pacht: 14.200 Euro", False),
    ],
)
def test_a_point_or_comma_before_three_digits_is_read_as_the_language_writes_it(
    claim: str, text: str, *, holds: bool
) -> None:
    assert accepts(claim, text) == holds


def test_a_cell_and_a_short_claim_are_read_in_the_language_of_the_text() -> None:
    rows = "| Ort | Pacht | Gewicht |\n|---|---|---|\n| Varn | 14.200 Euro | 2,250 t |\n| Selb | 9.100 Euro | 1,5 t |"
    table = f"{rows}\n\nDie Pacht gilt für das Jahr."
    assert accepts("Varn: Pacht 14200 Euro", table)
    assert accepts("Varn: Pacht 14.200 Euro", table)
    assert not accepts("Varn: Pacht 14,2 Euro", table)
    assert accepts("Varn: Gewicht 2,250 t", table)
    assert not accepts("Varn: Gewicht 2250 t", table)
    assert holds_values("The rent is 14,200 euros", "Die Pacht beträgt 14.200 Euro im Jahr.", GERMAN, "")
    assert not holds_values("The rent is 14.2 euros", "Die Pacht beträgt 14.200 Euro im Jahr.", GERMAN, "")


@pytest.mark.parametrize(
    ("written", "grouping", "key"),
    [
        ("12.500", ".", "125e5"),
        ("12.500", "", "12500e2"),
        ("12,500", "", "125e5"),
        ("12,500", ".", "12500e2"),
        ("0.500", ".", "500e0"),
        ("1500.25", ".", "150025e4"),
        ("1.234,56", ".", "123456e4"),
        ("1,234.567", ".", "1234567e4"),
        ("1.234.567,8", "", "12345678e7"),
        ("3.11.2", "", "3.11.2"),
        ("–4.2", "", "-42e1"),
    ],
)
def test_a_number_is_its_value_and_the_zeros_of_its_fraction(written: str, grouping: str, key: str) -> None:
    assert read_number(written, grouping) == key


@pytest.mark.parametrize(
    ("claim", "text", "holds"),
    [
        ("Nachts waren es 7 Grad", "Nachts waren es –7 Grad.", False),
        ("Nachts waren es -7 Grad", "Nachts waren es –7 Grad.", True),
        ("The loss is 4.2 million", "The loss is –4.2 million.", False),
        ("The tour takes 10–12 days", "The tour takes 10 – 12 days.", True),
        ("The tour takes 10–12 days", "The tour takes 10 –12 days.", True),
        ("The share is 10%–12%", "The share is 10% – 12%.", True),
        ("The result of Varn is -3", "| Place | Result |\n|---|---|\n| Varn | –3 |\n| Selb | 3 |", True),
        ("The result of Varn is 3", "| Place | Result |\n|---|---|\n| Varn | –3 |\n| Selb | 5 |", False),
    ],
)
def test_a_dash_before_a_number_is_a_minus_unless_a_number_is_before_it(claim: str, text: str, *, holds: bool) -> None:
    assert accepts(claim, text) == holds


@pytest.mark.parametrize(
    ("claim", "text", "holds"),
    [
        ("The wheel yields 3 mW", "The wheel yields 3 MW.", False),
        ("The wheel yields 3 MW", "The wheel yields 3MW.", True),
        ("The coil has 3 mΩ", "The coil has 3 MΩ.", False),
        ("The coil has 3 MΩ", "The coil has 3 M\u2126.", True),
        ("The card holds 3 Gb", "The card holds 3 GB.", False),
        ("The card holds 3 KB", "The card holds 3 kB.", True),
        ("The flask holds 3 mL", "The flask holds 3 ml.", True),
        ("The cable is 3 M long", "The cable is 3 m long.", False),
        ("The sack weighs 3 KG", "The sack weighs 3 kg.", True),
        ("The clock runs at 3 ghz", "The clock runs at 3 GHz.", True),
        ("The plan t is old", "The plan T is old.", True),
        ("The power of Varn is 3 MW", "| Plant | Power (MW) |\n|---|---|\n| Varn | 3 |", True),
        ("The power of Varn is 3 mW", "| Plant | Power (MW) |\n|---|---|\n| Varn | 3 |", False),
    ],
)
def test_units_that_differ_only_by_case_are_different(claim: str, text: str, *, holds: bool) -> None:
    assert accepts(claim, text) == holds


def test_check_names_the_sign_that_a_source_does_not_have() -> None:
    judged = check("Loom is written in C#.", Source("a.md", "Loom", "Loom is written in C++."))
    assert judged.missing == ("C#",)
