"""Words confirm copies and nothing else: which claims a sentence says, and which of their words it does not have."""

import sys
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from hira.core.sources import Source, Sources
from hira.evidence import Judgement, check, is_accepted, verify
from hira.evidence.copies import check_words
from hira.evidence.passages import Passages, read_number
from hira.evidence.questions import MOST
from hira.evidence.quotations import holds_values

LOCK = (
    "The lock of Haverden was dug in 1764. Petra Lind surveyed the lock of Haverden. "
    "Otto Fennick paid for the lock of Haverden. The lock of Haverden leads south to the Orle."
)
GARDEN = "The garden of Ellund has nine fountains. It was laid out in 1788 by the gardener Rasmus Toft."


def judge(claim: str, text: str, question: str = "", context: str = "", record: str | None = None) -> Judgement:
    return check_words(claim, Passages(text), question=question, context=context, record=record)


@pytest.mark.parametrize(
    ("claim", "text", "missing"),
    [
        pytest.param("The governor of Ellund is Rasmus Toft", GARDEN, {"governor"}, id="a role"),
        pytest.param("It was laid out in 1788 by the mason Rasmus Toft", GARDEN, {"mason"}, id="a profession"),
        pytest.param("The lock of Haverden was filled in 1764", LOCK, {"filled"}, id="a verb"),
        pytest.param("The weir of Haverden was dug in 1764", LOCK, {"weir"}, id="a kind"),
        pytest.param("The lock of Haverden leads north to the Orle", LOCK, {"north"}, id="a direction"),
        pytest.param("The lock of Haverden was dug in 1746", LOCK, {"1746"}, id="a year"),
        pytest.param("Karl Lind surveyed the lock of Haverden", LOCK, {"Karl"}, id="a name"),
        pytest.param("Haverden was dug by prisoners", LOCK, {"prisoners"}, id="an addition"),
        pytest.param(
            "Edda Kroll was born in the hamlet of Vesk",
            "Jorn Haas was born in the hamlet of Vesk. He studied with Edda Kroll and is known for two bridges.",
            {"Edda", "Kroll"},
            id="a birthplace of another sentence",
        ),
        pytest.param(
            "Marlow Pier was drawn by Ines Corder",
            "Ines Corder drew two bridges for the county before she died in 1902.",
            {"Marlow", "Pier"},
            id="a name at the beginning",
        ),
        pytest.param(
            "The firm's rule on bicycles in the lift is that bicycles must not leave the site",
            "Keys of class K2 must not leave the site.",
            {"bicycles", "lift"},
            id="a rule about something else",
        ),
        pytest.param(
            "19 * 12 + 5 = 233",
            "The bridge has 19 arches, 12 lamps, 5 gates and 233 steps.",
            {"*", "+", "="},
            id="a calculation over digits of a text",
        ),
    ],
)
def test_a_claim_with_a_word_that_no_sentence_has_is_unsupported_and_names_it(
    claim: str, text: str, missing: set[str]
) -> None:
    judged = judge(claim, text)
    assert judged.verdict == "unsupported"
    assert missing <= set(judged.missing)
    assert judged.score < 1


def test_missing_words_are_those_of_the_nearest_sentence_each_once_in_the_order_of_the_claim() -> None:
    judged = judge("The blue weir of Haverden and the weir of Orle were dug in 1764 by blue horses", LOCK)
    assert judged.quote == "The lock of Haverden was dug in 1764."
    assert judged.missing == ("blue", "weir", "Orle", "horses")


@pytest.mark.parametrize(
    ("claim", "text", "question"),
    [
        ("Olaf taught Signe.", "Signe taught Olaf.", "Who taught Olaf?"),
        ("Olaf was taught by Signe.", "Olaf taught Signe.", "Who was taught by Signe?"),
        ("Norden bought Kest in 2001.", "Kest bought Norden in 2001.", "Who bought Norden?"),
        ("The cook fired the baker.", "The baker fired the cook.", "Who fired the cook?"),
        ("Vell lies north of Torvik.", "Torvik lies north of Vell.", "What lies north of Vell?"),
        ("Signe is older than Olaf.", "Olaf is older than Signe.", "Who is older than Signe?"),
    ],
)
def test_a_question_does_not_turn_an_exchange_of_subject_and_object_into_a_copy(
    claim: str, text: str, question: str
) -> None:
    assert judge(claim, text, question).verdict == "unsupported"
    assert judge(text, text, question).verdict == "supported"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The bridge is open every day.", "The bridge is open every day but Sunday."),
        ("All pupils passed.", "All pupils passed, with the exception of the youngest."),
        ("Every ticket covers the ferry.", "Every ticket covers the ferry, excluding the day ticket."),
        ("Alle Fähren fahren.", "Alle Fähren fahren, ausgenommen die nach Moss."),
        ("所有学生都有书", "所有学生都有书,新生除外。"),
        ("The mill will reopen in May.", "Provided that the council agrees, the mill will reopen in May."),
        ("Der Fuchs jagte den Hasen.", "Den Fuchs jagte der Hase."),
        ("Torvik is the capital of Lund.", "| Country | Capital |\n|---|---|\n| Torvik | Lund |"),
    ],
)
def test_an_exception_a_proviso_a_case_and_a_relation_of_cells_are_kept(claim: str, text: str) -> None:
    assert not judge(claim, text).verdict.holds


@pytest.mark.parametrize(
    ("answer", "text", "question", "holds"),
    [
        ("90", "| From | To | Fare |\n|---|---|---|\n| Moss | Lund | 90 |\n| Lund | Moss | 70 |",
         "What is the fare from Lund to Moss?", False),
        ("70", "| From | To | Fare |\n|---|---|---|\n| Moss | Lund | 90 |\n| Lund | Moss | 70 |",
         "What is the fare from Lund to Moss?", True),
        ("Dana Roe", "| Pupil | Teacher |\n|---|---|\n| Dana Roe | Erik Poe |",
         "Who is the teacher of Erik Poe?", False),
        ("Erik Poe", "| Pupil | Teacher |\n|---|---|\n| Dana Roe | Erik Poe |",
         "Who is the teacher of Dana Roe?", True),
        ("Brann", "Brann besiegte Viking.", "Wen besiegte Brann?", False),
        ("Brann", "Brann besiegte Viking.", "Wen besiegte Viking?", False),
        ("Beta", "- Alpha: approved\n- Beta: rejected", "Which is approved?", False),
    ],
)  # fmt: skip
def test_a_short_answer_keeps_the_relation_that_its_question_asks_for(
    answer: str, text: str, question: str, *, holds: bool
) -> None:
    judged = judge(answer, text, question)
    assert (judged.verdict.holds and not judged.lacking) == holds


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("Signe Aune", "Who built the lighthouse?"),
        ("It was Signe Aune.", "Who built the lighthouse?"),
        ("Signe Aune built it.", "Who built the lighthouse?"),
        ("1873", "When was the lighthouse built?"),
    ],
)
def test_a_short_answer_may_be_in_the_other_voice_than_its_source(answer: str, question: str) -> None:
    judged = judge(answer, "The lighthouse was built in 1873 by Signe Aune.", question)
    assert (judged.verdict, judged.lacking) == ("supported", ())


@pytest.mark.parametrize(
    ("claim", "question"),
    [
        ("Service: Mooring, Crowns: 450", "How many crowns is the mooring service?"),
        ("450 crowns", "How many crowns is the mooring?"),
    ],
)
def test_a_row_of_two_columns_answers_the_question_for_one_of_them(claim: str, question: str) -> None:
    table = "| Service | Crowns |\n|---|---|\n| Mooring | 450 |\n| Water | 30 |"
    judged = judge(claim, table, question)
    assert (judged.verdict, judged.lacking) == ("supported", ())
    other = judge(claim.replace("450", "30"), table, question)
    assert not other.verdict.holds or other.lacking == ("mooring",)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Die Brücke wurde 1873 von Ida Brand gebaut.", "Wer hat die Brücke gebaut?"),
        ("Die Brücke wurde 1873 von Ida Brand gebaut.", "In welchem Jahr wurde die Brücke gebaut?"),
        ("Le moulin a été fondé par Ida Brand en 1742.", "Qui a fondé le moulin ?"),
        ("Le musée ferme le lundi.", "Quel jour le musée ferme-t-il ?"),
        ("El molino fue construido en 1742.", "¿Cuándo fue construido el molino?"),
        ("Il mulino fu costruito nel 1742.", "Quando fu costruito il mulino?"),
        ("图书馆每周一闭馆。", "图书馆每周几闭馆？"),
        ("馆内有三万册书。", "馆内有多少册书？"),
        ("书店早上九点半开门。", "书店几点开门？"),
        ("この橋は1873年に建てられた。", "この橋は何年に建てられた？"),
    ],
)
def test_asking_words_of_other_languages_are_not_wanted_in_the_source(text: str, question: str) -> None:
    judged = judge(text, text, question)
    assert (judged.verdict, judged.lacking) == ("supported", ())


@pytest.mark.parametrize(
    ("answer", "text", "question", "holds"),
    [
        ("孙悦", "陈刚推荐了孙悦。", "陈刚推荐了谁？", True),
        ("陈刚推荐了孙悦", "陈刚推荐了孙悦。", "陈刚推荐了谁？", True),
        ("陈刚", "陈刚推荐了孙悦。", "谁推荐了孙悦？", True),
        ("五", "船上有五名水手。", "船上有几名水手？", True),
        ("陈刚", "陈刚推荐了孙悦。", "陈刚推荐了谁？", False),
        ("陈刚", "陈刚推荐了孙悦。", "孙悦推荐了谁？", False),
        ("孙悦", "陈刚推荐了孙悦。", "谁推荐了孙悦？", False),
        ("孙悦", "陈刚推荐了孙悦。", "陈刚开除了谁？", False),
        ("孙悦", "陈刚推荐了孙悦的老师。", "陈刚推荐了谁？", False),
        ("孙悦", "陈刚没有推荐孙悦。", "陈刚推荐了谁？", False),
        ("赵敏", "陈刚推荐了孙悦。赵敏离开了。", "陈刚推荐了谁？", False),
        ("松本", "山口は松本を選んだ。", "山口は誰を選んだ？", True),
        ("山口", "山口は松本を選んだ。", "山口は誰を選んだ？", False),
    ],
)
def test_a_short_answer_without_spaces_is_read_in_place_of_the_asking_word(
    answer: str, text: str, question: str, *, holds: bool
) -> None:
    assert judge(answer, text, question).verdict.holds == holds


def test_the_missing_words_are_those_of_the_claim() -> None:
    judged = judge("馆长是王丽华。", "馆长是李强。", "馆长是谁？")
    assert judged.verdict == "unsupported"
    assert not [word for word in judged.missing if "谁" in word]


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The lock of Haverden was dug in 1764", LOCK),
        ("The lock was dug in 1764", LOCK),
        ("The lock of Haverden was dug", LOCK),
        ("In 1764 the lock of Haverden was dug", LOCK),
        ("The lock of Haverden was surveyed by Petra Lind", LOCK),
        ("Runa Holt surveyed the lock", "The lock was surveyed by Runa Holt."),
        ("The keeper of the lock is Runa Holt", "Runa Holt is the keeper of the lock."),
        ("Runa Holt was the keeper of the lock", "The keeper of the lock was Runa Holt."),
        ("Tore was taught by Runa", "Runa taught Tore."),
        ("The Sorva flows past Tarn", "The Sorva flows past Tarn every spring."),
        ("Lars died in Tarn", "Lars, who founded the firm, died in Tarn."),
        ("Ida beat Lars in 1931", "Ida beat Lars in 1931 and 1935."),
        ("Lena is a ship owner", "Lena is a ship owner."),
        ("Ida Moe founded Tarn Press in Vesk in 1987", "Tarn Press was founded in 1987 in Vesk by Ida Moe."),
        ("In 1987 Tarn Press was founded in Vesk by Ida Moe", "Ida Moe founded Tarn Press in 1987 in Vesk."),
        ("Ida Moe founded Tarn Press in 1987", "Tarn Press was founded in 1987 in Vesk by Ida Moe."),
        ("In 1562 the glass was broken by Vesk soldiers", "In 1562 Vesk soldiers broke the glass."),
        ("The lock will be opened by Ida Moe", "Ida Moe will open the lock."),
        ("Ida Moe runs the inn in Vesk", "Ida Moe, who runs the inn in Vesk, was born in Tarn."),
        ("The inn was built by Otto", "The inn, which was built by Otto in 1742, burnt."),
    ],
)
def test_a_copy_may_leave_words_out_and_put_active_passive_and_dates_in_another_order(claim: str, text: str) -> None:
    judged = judge(claim, text)
    assert (judged.verdict, judged.missing) == ("supported", ())


def test_a_whole_sentence_is_a_quotation_and_a_part_of_it_is_not() -> None:
    assert judge("Petra Lind surveyed the lock of Haverden", LOCK).by == "quote"
    assert judge("Petra Lind surveyed the lock", LOCK).by == "lexical"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The lock of Haverden surveyed Petra Lind", LOCK),
        ("Otto Fennick surveyed the lock of Haverden", LOCK),
        ("Tore taught Runa", "Runa taught Tore."),
        ("Runa was taught by Tore", "Runa taught Tore."),
        ("Ida sold the mill to Lars", "Lars sold the mill to Ida."),
        ("Lena is the mother of Ida", "Ida is the mother of Lena."),
        ("Lorn is the capital of Vesk", "Vesk is the capital of Lorn."),
        ("Copper is heavier than tin", "Tin is heavier than copper."),
        ("The ferry sails from Dunmore to Norvik", "The ferry sails from Norvik to Dunmore."),
        ("The ferry left before the storm", "The ferry left after the storm."),
        ("The firm died", "Lars, who founded the firm, died."),
        ("Norvik was launched in 1931", "The ferry of Norvik was launched in 1931."),
    ],
)
def test_exchanged_subject_and_object_are_not_a_copy(claim: str, text: str) -> None:
    assert judge(claim, text).verdict == "unsupported"


@pytest.mark.parametrize(
    ("plain", "conditional"),
    [
        ("The ferry carries horses", "The ferry does not carry horses"),
        ("Visitors enter the tower", "Visitors may enter the tower"),
        ("A second bridge was built", "A second bridge was planned and built"),
        ("The museum is open daily", "The museum is open daily except Mondays"),
        ("The pier was destroyed", "The pier was nearly destroyed"),
        ("Members pay a fee", "Members must pay a fee"),
        ("The mill opened in 1911", "The mill never opened in 1911"),
        ("The ferry sank", "If the storm comes, the ferry sank"),
        ("The ferry sank in 1931", "It is false that the ferry sank in 1931"),
        ("Lars won the race", "Lars hardly won the race"),
        ("The tower is guarded", "The tower isn't guarded"),
        ("Der Turm ist alt und schief", "Der Turm ist nicht alt und schief"),
        ("Le pont est ancien et rouge", "Le pont n'est pas ancien et rouge"),
    ],
)
def test_a_negation_or_a_condition_more_or_less_is_another_statement(plain: str, conditional: str) -> None:
    assert judge(plain, f"{conditional}.").verdict == "unsupported"
    assert judge(conditional, f"{plain}.").verdict == "unsupported"
    assert judge(conditional, f"{conditional}.").verdict == "supported"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The ferry sank in 1931", "Critics claimed that the ferry sank in 1931."),
        ("The ferry sank in 1931", "The story that the ferry sank in 1931 is a legend."),
        ("Lars founded the firm", "Lars refused to found the firm."),
        ("Lars won the race", "Nobody but Lars won the race."),
        ("Lars failed", "The man Lars beat failed."),
    ],
)
def test_a_statement_inside_another_is_not_one_of_its_own(claim: str, text: str) -> None:
    assert judge(claim, text).verdict == "unsupported"


@pytest.mark.parametrize(
    ("claim", "text", "verdict"),
    [
        ("The mast is 38 metres high", "The mast is 38 metres high.", "supported"),
        ("The mast is 38 metres high", "The mast is 38 feet high.", "unsupported"),
        ("The mast is 38 metres high", "The mast is 38.5 metres high.", "unsupported"),
        ("The pier cost 3.1 million crowns", "The pier cost 3,100,000 crowns.", "supported"),
        ("The pier cost 3.1 billion crowns", "The pier cost 3.1 million crowns.", "unsupported"),
        ("The pier cost 3.1 crowns", "The pier cost 3.1 million crowns.", "unsupported"),
        ("The ticket costs $5", "The ticket costs €5.", "unsupported"),
        ("The share is 12%", "The share is 12 percent.", "supported"),
        ("The share is 12 percent", "The share is 12.", "unsupported"),
        ("The hall opened on 4 May 1921", "The hall opened on May 4, 1921.", "supported"),
        ("The hall opened on May 4, 1921", "The hall opened on 4 May 1921.", "supported"),
        ("The hall opened on 5 April 1921", "The hall opened on 4 May 1921.", "unsupported"),
        ("The hall opened on 4 June 1921", "The hall opened on 4 May 1921.", "unsupported"),
        ("Berta has seven sisters", "Berta has 7 sisters.", "supported"),
        ("Berta has eight sisters", "Berta has 7 sisters.", "unsupported"),
        ("It weighs 84 kg and holds 30 l", "It weighs 84 l and holds 30 kg.", "unsupported"),
        ("The frost reached -12 degrees", "The frost reached 12 degrees.", "unsupported"),
    ],
)
def test_numbers_are_compared_by_value_with_their_unit(claim: str, text: str, verdict: str) -> None:
    assert judge(claim, text).verdict == verdict


def test_a_number_of_any_length_is_compared_as_text() -> None:
    long = "7" * 400
    assert judge(f"The key is {long}.", f"The key is {long}.").verdict == "supported"
    assert judge(f"The key is {long}.", f"The key is {long}8.").verdict == "unsupported"
    assert read_number("9" * 10_000) == "9" * 10_000 + "e10000"
    assert read_number("3,100,000") == read_number("3.100.000") == "31e7"
    assert read_number("15") == read_number("015") == "15e2"
    assert read_number("1,5") == read_number("1.5") == "15e1"


BRANDT = "Ilse Brandt studied law under Karl Ott. She was born in Tarn."


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("Ilse Brandt was born in Tarn", "supported"),
        ("Brandt was born in Tarn", "supported"),
        ("She was born in Tarn", "supported"),
        ("Karl Ott was born in Tarn", "unsupported"),
        ("Ilse Ott was born in Tarn", "unsupported"),
    ],
)
def test_a_pronoun_stands_for_the_subject_of_the_sentence_before_and_for_no_other_name(
    claim: str, verdict: str
) -> None:
    assert judge(claim, BRANDT).verdict == verdict


@pytest.mark.parametrize(
    ("claim", "text", "copied"),
    [
        ("The Sorva costs 90 euros", "The Sorva replaced the Tarn; it costs 90 euros.", False),
        ("The Sorva costs 90 euros", "The Sorva keeper has 40 keys; it costs 90 euros.", False),
        ("The Sorva sank in 1990", "The Sorva carried 2 lifeboats; they sank in 1990.", False),
        ("The Sorva sank in 1990", "The Sorva carried 1 lifeboat; it sank in 1990.", False),
        ("Ida Moe died in 1990", "Ida Moe is Otto Hahn's widow, and he died in 1990.", False),
        ("The contract ends in 2026", "The contract has 2 annexes; they end in 2026.", False),
        ("The contract ends in 2026", "The contract has an annex; it ends in 2026.", False),
        ("The mill has 400 inhabitants", "The mill is Vesk's pride; it has 400 inhabitants.", False),
        ("The mill has 400 inhabitants", "The mill is in a village; it has 400 inhabitants.", False),
        ("Otto lives in Vesk", "Otto is Ida's brother; she lives in Vesk.", False),
        ("The shop is open every day and Sunday", "The shop is open every day but Sunday.", False),
        ("All members and Vesk voted", "All members but Vesk voted.", False),
        ("Ida sold all and two shares", "Ida sold all but two shares.", False),
        ("Troops left Vesk in 1990", "Una Troops left Vesk in 1990.", False),
        ("Una Moe left Vesk in 1990", "Moe left Vesk in 1990.", False),
        ("Un troops left Vesk in 1990", "Troops left Vesk in 1990.", False),
        ("Die Hard opened in 1988", "Hard opened in 1988.", False),
        ("The pup barks", "The pier barks.", False),
        ("The shop costs 3 euros", "The shop sells bread; it costs 3 euros.", False),
        ("The Sorva costs 90 euros", "The Sorva was planned as a buoy; it costs 90 euros.", False),
        ("Otto died in 1990", "Otto was a friend of Ida; she died in 1990.", False),
        ("Otto died in 1990", "Otto was a smith; he did not die in 1990.", False),
        ("Otto died in 1990", "The son of Otto, who died in 1990, was a smith.", False),
        ("The mill is owned by Ida", "Ida owned the mill.", False),
        ("Tarn Press was founded in Vesk by Ida", "Tarn Press was founded by Ida in Lund and moved to Vesk.", False),
        ("Ida taught Otto in Vesk in 1990", "Otto taught Ida in 1990 in Vesk.", False),
    ],
)
def test_a_clause_with_a_subject_of_its_own_says_nothing_of_another(claim: str, text: str, *, copied: bool) -> None:
    assert judge(claim, text).verdict.holds is copied


FERRIES = "# Ferry Alma\n\nLaunched in 1931 at Dunmore.\n\n# Ferry Berit\n\nLaunched in 1950 at Aldham."
BRIDGE = "# The Arn bridge\n\nHugo Vane owned three boats.\n\nRepaired in 1911."


@pytest.mark.parametrize(
    ("claim", "text", "verdict"),
    [
        ("The ferry Alma was launched in 1931", FERRIES, "supported"),
        ("The ferry Berit was launched in 1950 at Aldham", FERRIES, "supported"),
        ("The ferry Alma was launched in 1950", FERRIES, "unsupported"),
        ("Dunmore was launched at the ferry Alma", FERRIES, "unsupported"),
        ("The Arn bridge was repaired in 1911", BRIDGE, "supported"),
        ("Hugo Vane owned the Arn bridge", BRIDGE, "unsupported"),
        ("Hugo Vane owned three boats", BRIDGE, "supported"),
    ],
)
def test_a_heading_may_be_the_subject_of_what_follows_and_never_its_object(claim: str, text: str, verdict: str) -> None:
    assert judge(claim, text).verdict == verdict


@pytest.mark.parametrize(
    ("claim", "text", "verdict"),
    [
        ("Anna was born in Oslo", "Anna was born in Oslo and Boris in Bergen.", "supported"),
        ("Anna was born in Bergen", "Anna was born in Oslo and Boris in Bergen.", "unsupported"),
        ("Boris was born in Oslo", "Anna was born in Oslo and Boris in Bergen.", "unsupported"),
        ("The mill was built by Ida", "The mill was built by Ida, and the bridge was built by Otto.", "supported"),
        ("The mill was built by Otto", "The mill was built by Ida, and the bridge was built by Otto.", "unsupported"),
        (
            "The mill lies at 84 m and the bridge at 30 m",
            "The mill lies at 30 m and the bridge at 84 m.",
            "unsupported",
        ),
        ("Ida owned the mill and the bridge", "Ida owned the mill.", "unsupported"),
    ],
)
def test_a_claim_does_not_cross_an_and(claim: str, text: str, verdict: str) -> None:
    assert judge(claim, text).verdict == verdict


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The mill burnt in 1801", "The mill owner burnt in 1801."),
        ("Lena is a ship", "Lena is a ship owner."),
        ("Dakota joined in 1889", "South Dakota joined in 1889."),
        ("The bridge is guarded", "The bridge keeper is guarded."),
        ("Lena sells cheese", "Lena sells cheese knives."),
        ("The harbour was opened by the king", "The harbour was opened by the king's brother."),
        ("Lars won the race", "Lars's brother won the race."),
    ],
)
def test_a_compound_does_not_lose_its_head_nor_a_name_its_first_part(claim: str, text: str) -> None:
    assert judge(claim, text).verdict == "unsupported"


CSV = "Department: Garden | Q1: 1200 | Q2: 1300\nDepartment: Kitchen | Q1: 5400 | Q2: 5600"
XLSX = (
    "columns: A = Department, B = Q1, C = Q2\nrow 14: Department: Garden | Q1: 1200 | Q2: 1300\n"
    "row 15: Department: Kitchen | Q1: 5400 | Q2: 5600"
)
MARKDOWN = "| Department | Q1 | Q2 |\n|---|---|---|\n| Garden | 1200 | 1300 |\n| Kitchen | 5400 | 5600 |"
DOGS = "| Handler | Afraid of | Result |\n|---|---|---|\n| Maja | Pepper | Rejected |\n| Otto | Salt | Confirmed |"
DOGS_CSV = "Handler: Maja | Afraid of: Pepper\nHandler: Otto | Afraid of: Salt"
SHIFTS = (
    "| Ward | Nurse | Planned beds | Free beds |\n|---|---|---|---|\n| North | Ida | 30 | 4 |\n| South |  | 12 | 9 |"
)
STAFF = "Name: Ida Brand | Role: secretary | City: Kolm\nName: Otto Poe | Role: cook | City: Vell"
FORMER = "| Name | Former role |\n|---|---|\n| Ida Brand | secretary |\n| Otto Poe | cook |"
BRANCHES = "| Branch | Leader |\n|---|---|\n| Moss | Jonas |\n| Vang | Karin |"
BARE_SHEET = "row 1: A: Director | B: Ida Brand\nrow 2: A: Desks | B: 40"


@pytest.mark.parametrize(
    ("claim", "table", "question", "holds"),
    [
        ("Otto has Salt", DOGS, "", False),
        ("Otto has Salt", DOGS_CSV, "", False),
        ("Salt", DOGS, "What does Otto have?", False),
        ("Otto", DOGS_CSV, "Who has Salt?", False),
        ("Otto is afraid of Salt", DOGS, "", True),
        ("Maja is afraid of Pepper", DOGS, "", False),
        ("Salt is afraid of Otto", DOGS, "", False),
        ("The nurse of North is Ida", SHIFTS, "", True),
        ("The nurse is Ida", SHIFTS, "", False),
        ("The beds of North are 30", SHIFTS, "", False),
        ("The planned beds of North are 30", SHIFTS, "", True),
        ("The free beds of North are 30", SHIFTS, "", False),
        ("Ida Brand is the secretary", STAFF, "", True),
        ("The secretary is Ida Brand", STAFF, "", True),
        ("Ida Brand", STAFF, "Who is the secretary?", True),
        ("Kolm", STAFF, "Which city is Ida Brand in?", True),
        ("Vang", BRANCHES, "Which branch has Karin as leader?", True),
        ("Moss", BRANCHES, "Which branch has Karin as leader?", False),
        ("Ida Brand is the secretary", FORMER, "", False),
        ("Ida Brand", FORMER, "Who is the secretary?", False),
        ("The director is Ida Brand", BARE_SHEET, "", True),
        ("40", BARE_SHEET, "How many desks are there?", True),
    ],
)  # fmt: skip
def test_a_claim_names_the_column_of_each_cell_but_the_subject_and_cells_that_say_what_it_is(
    claim: str, table: str, question: str, *, holds: bool
) -> None:
    judged = judge(claim, table, question)
    assert (judged.verdict.holds and not judged.lacking) == holds


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ("The leader of the branch Moss is Jonas", True),
        ("Jonas is the leader of the branch Moss", True),
        ("The branch with the leader Jonas is Moss", True),
        ("The leader of the branch Jonas is Moss", False),
        ("Moss is the leader of the branch Jonas", False),
        ("The branch Jonas has the leader Moss", False),
    ],
)
def test_a_row_says_both_orders_of_a_claim_and_keeps_each_cell_in_the_column_that_the_claim_gives_it(
    claim: str, *, holds: bool
) -> None:
    assert judge(claim, BRANCHES).verdict.holds == holds


@pytest.mark.parametrize(
    ("answer", "question", "holds"),
    [
        ("4", "How many free beds are there?", False),
        ("Free beds: 4", "How many free beds are there?", False),
        ("4", "How many free beds are there in North?", True),
        ("4", "How many free beds does North have?", True),
        ("9", "How many free beds does North have?", False),
        ("North has 4 free beds", "How many free beds are there?", True),
    ],
)
def test_a_cell_does_not_answer_a_question_that_several_rows_fit(answer: str, question: str, *, holds: bool) -> None:
    judged = judge(answer, SHIFTS, question)
    assert (judged.verdict.holds and not judged.lacking) == holds


YARD = (
    "The yard employs eleven carpenters. Rune keeps fifteen goats on the island. There are six masts in the shed."
    " The goats chased eight dogs."
)


@pytest.mark.parametrize(
    ("answer", "question", "holds"),
    [
        ("Eleven", "How many carpenters does the yard employ?", True),
        ("11", "How many carpenters does the yard employ?", True),
        ("11 carpenters", "How many carpenters does the yard employ?", True),
        ("Fifteen", "How many goats does Rune keep on the island?", True),
        ("Fifteen", "How many goats does Rune keep?", True),
        ("Six", "How many masts are there in the shed?", True),
        ("Eight", "How many dogs did the goats chase?", True),
        ("Eleven", "How many smiths does the yard employ?", False),
        ("Six", "How many carpenters does the yard employ?", False),
        ("Fifteen", "How many goats does Rune keep in the shed?", False),
        ("Eight", "How many dogs chased the goats?", False),
        ("Eight", "How many goats did the dogs chase?", False),
    ],
)
def test_a_number_answers_how_many_if_the_sentence_counts_the_same_things(
    answer: str, question: str, *, holds: bool
) -> None:
    assert judge(answer, YARD, question).verdict.holds == holds


TABLES = pytest.mark.parametrize("table", [CSV, XLSX, MARKDOWN], ids=["csv", "xlsx", "markdown"])


@TABLES
@pytest.mark.parametrize(
    "claim",
    [
        "The Garden department has 1300 in Q2",
        "In Q1 the Kitchen has 5400",
        "Kitchen: Q1 5400, Q2 5600",
        "The plan of the Garden in Q1 is 1200",
        "In Plan 2031, the Kitchen has 5600 in Q2",
    ],
)
def test_a_row_says_its_cells_with_their_columns_and_the_name_of_its_file(table: str, claim: str) -> None:
    judged = judge(claim, table, context="Plan 2031")
    assert (judged.verdict, judged.missing) == ("supported", ())


@TABLES
@pytest.mark.parametrize(
    "claim",
    [
        "The Garden department has 5600 in Q2",
        "The Garden department has 1200 in Q2",
        "The Kitchen has 1200 in Q1",
        "The Garden has 1300 in Q3",
        "The Cellar has 1300 in Q2",
        "The Garden department has 1300 men in Q2",
        "The Garden does not have 1300 in Q2",
    ],
)
def test_a_cell_of_another_row_or_column_is_not_supported(table: str, claim: str) -> None:
    assert judge(claim, table, context="Plan 2031").verdict == "unsupported"


@pytest.mark.parametrize(
    "table",
    [
        "| Department | Budget (thousand EUR) |\n|---|---|\n| Sales | 420 |\n| Wharf | (15) |",
        "row 2: Department: Sales | Budget (EUR, in thousands): 420\nrow 3: Department: Wharf | Budget (thousand EUR): (15)",
    ],
)
def test_a_figure_has_the_magnitude_of_its_column_and_is_negative_in_parentheses(table: str) -> None:
    def holds(claim: str) -> bool:
        return judge(claim, table).verdict.holds

    for said in ("420 thousand EUR", "420,000 EUR", "EUR 420 thousand", "0.42 million EUR"):
        assert holds(f"The budget of Sales is {said}.")
    for said in ("420", "420 EUR", "420 million EUR", "42 thousand EUR"):
        assert not holds(f"The budget of Sales is {said}.")
    assert holds("The budget of Wharf is -15,000 EUR.")
    assert not holds("The budget of Wharf is 15,000 EUR.")


@TABLES
def test_the_quotation_of_a_row_is_that_row_alone_with_its_header(table: str) -> None:
    quote = judge("The Garden department has 1300 in Q2", table).quote
    assert "Garden" in quote
    assert "Q2" in quote
    assert "Kitchen" not in quote


def test_the_missing_word_of_a_row_is_the_value_that_the_row_does_not_have() -> None:
    assert judge("The Garden department has 5600 in Q2", CSV).missing == ("5600",)


def test_the_name_of_a_sheet_is_the_heading_of_its_rows_and_not_of_another_sheets() -> None:
    book = f"(sheet Plan 2031)\n{CSV}\n\n(sheet Plan 2032)\nDepartment: Garden | Q1: 1700 | Q2: 1800"
    assert judge("The Garden plan in Q2 is 1300", book).verdict == "supported"
    assert judge("In the sheet Plan 2031, the Garden has 1300 in Q2", book).verdict == "supported"
    assert judge("In the sheet Plan 2032, the Garden has 1800 in Q2", book).verdict == "supported"
    assert judge("In the sheet Plan 2031, the Garden has 1800 in Q2", book).verdict == "unsupported"
    assert judge("In the sheet Plan 2032, the Garden has 1300 in Q2", book).verdict == "unsupported"


def test_the_title_and_the_name_of_a_file_count_with_each_of_its_sentences() -> None:
    source = Source("/home/ada/budget_2031.csv", "Plan", "Department: Garden | Q1: 1200", kind="file", id="s1")
    assert check("The Garden plan in Q1 is 1200", source).verdict == "supported"
    assert check("The Garden plan in Q1 is 1201", source).verdict == "unsupported"


def test_framing_that_names_the_document_is_not_part_of_the_claim() -> None:
    read = Sources()
    read.add(Source("plan.csv", "Plan 2031", CSV, kind="file"))
    for framing in ("According to the report,", "Based on the data in Plan 2031,", "As shown in the file,"):
        (citation,) = verify(f"{framing} the Kitchen plan in Q1 is 5400.", read)
        assert (citation.verdict, citation.claim) == ("supported", "the Kitchen plan in Q1 is 5400")


@pytest.mark.parametrize(
    ("right", "wrong", "text"),
    [
        ("努克是格陵兰的首都", "努克不是格陵兰的首都", "努克是格陵兰的首都和最大城市。它建于1728年。"),
        ("努克是格陵兰的首都", "努特是格陵兰的首都", "努克是格陵兰的首都和最大城市。它建于1728年。"),
        ("塔恩桥建于1788年", "塔恩桥建于1798年", "塔恩桥建于1788年。"),
        (
            "تأسست مدينة نوك عام 1728",
            "تأسست مدينة نوك عام 1782",
            "تأسست مدينة نوك عام 1728. وهي عاصمة غرينلاند.",
        ),
        ("تأسست مدينة نوك عام 1728", "تأسست قرية نوك عام 1728", "تأسست مدينة نوك عام 1728."),
        (
            "Der Turm von Ahlen wurde 1688 gebaut",
            "Der Turm von Ahlen wurde 1688 zerstört",
            "Der alte Turm von Ahlen wurde 1688 gebaut.",
        ),
        (
            "Der Turm von Ahlen wurde 1688 gebaut",
            "Der Turm von Ahlen wurde 1688 nicht gebaut",
            "Der alte Turm von Ahlen wurde 1688 gebaut.",
        ),
    ],
)
def test_copies_in_other_languages_are_accepted_and_exchanges_of_one_word_or_sign_are_not(
    right: str, wrong: str, text: str
) -> None:
    assert judge(right, text).verdict == "supported"
    assert judge(wrong, text).verdict == "unsupported"


@pytest.mark.parametrize("claim", ["努克是格陵兰的首都", "Нуук — столица Гренландии"])
def test_a_claim_in_another_script_than_the_text_is_unchecked(claim: str) -> None:
    assert judge(claim, "Nuuk is the capital of Greenland.").verdict == "unchecked"


@pytest.mark.parametrize(
    ("claim", "text", "verdict"),
    [
        ("Nuuk", "Nuuk is the capital of Greenland.", "supported"),
        ("Nuuk", "Nuuk is not the capital of Greenland.", "unsupported"),
        ("Sisimiut", "Nuuk is the capital of Greenland. Sisimiut is a town.", "unsupported"),
        ("Greenland", "Greenland is an island.", "unsupported"),
        ("Yes", "Nuuk is the capital of Greenland.", "unsupported"),
    ],
)
def test_an_answer_of_one_word_is_read_together_with_the_question(claim: str, text: str, verdict: str) -> None:
    assert judge(claim, text, "What is the capital of Greenland?").verdict == verdict


def test_how_much_money_is_answered_by_an_amount_and_how_much_water_by_water() -> None:
    text = "Harrow Club spent £3.4 million in 2023. The cistern holds 40 litres of oil."

    assert not judge("Harrow Club spent £3.4M", text, "How much money did Harrow Club spend?").lacking
    assert judge("The cistern holds 40 litres", text, "How much water does the cistern hold?").lacking == ("water",)


def test_a_claim_that_holds_names_the_words_of_the_question_that_it_does_not_speak_of() -> None:
    text = "The designer of the pier was Anselm Gorm. The pier was designed in 1911."
    asked = "Where was the designer of the Lorn pier born?"
    judged = judge("The designer of the pier was Anselm Gorm", text, asked, context="The Lorn pier")
    assert (judged.verdict, judged.lacking) == ("supported", ("born",))
    assert judge("The designer of the pier was Anselm Gorm", text, "Who designed the pier?").lacking == ()


@pytest.mark.parametrize(
    ("claim", "question", "lacking"),
    [
        ("The vice warden of Hask is Tova Lindt", "Who is the warden of Hask?", ("warden",)),
        ("The clerk of the warden was Tova Lindt", "Who was the warden?", ("warden",)),
        ("The vice warden of Hask is Tova Lindt", "Who is the vice warden of Hask?", ()),
        ("The warden of Hask is Tova Lindt", "Who is the warden of Hask?", ()),
        ("The old warden of Hask built the gate", "What did the warden of Hask build?", ()),
    ],
)
def test_the_bearer_of_another_role_does_not_answer_who_has_the_one_asked_for(
    claim: str, question: str, lacking: tuple[str, ...]
) -> None:
    judged = judge(claim, f"{claim}.", question)
    assert (judged.verdict, judged.lacking) == ("supported", lacking)


@pytest.mark.parametrize(
    ("answer", "question", "holds"),
    [
        ("Orm Tveit", "Who was robbed by Sunniva Hale?", True),
        ("Sunniva Hale", "Who was Orm Tveit robbed by?", True),
        ("Sunniva Hale", "By whom was Orm Tveit robbed?", True),
        ("Sunniva Hale", "Who was robbed by Orm Tveit?", False),
    ],
)
def test_a_short_answer_keeps_who_did_it_to_whom(answer: str, question: str, *, holds: bool) -> None:
    assert judge(answer, "Orm Tveit was robbed by Sunniva Hale.", question).verdict.holds == holds
    assert not judge(answer, "Orm Tveit robbed Sunniva Hale.", question).verdict.holds


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The toll is 4 percent", "The toll is 4 percent at most."),
        ("The toll is 20 crowns", "The toll is 20 crowns per cart."),
        ("The toll is 20 crowns", "The toll is 20 crowns a day."),
        ("The toll is 20 crowns", "The toll is 20 crowns for merchants."),
        ("The toll takes 4 percent", "The toll takes 4 percent of the cargo."),
        ("The leak was closed in version 1.4", "The leak was closed in version 1.40."),
        ("The gate was burnt in 1604", "The gate was burnt in 1604, which is wrong."),
        ("The gate was burnt in 1604", "The gate was burnt in 1604, but that was never confirmed."),
        ("The gate was burnt in 1604", "The gate was burnt in 1604. This is a myth."),
    ],
)
def test_a_claim_that_loses_a_limit_or_a_denial_is_no_copy(claim: str, text: str) -> None:
    assert judge(claim, text).verdict == "unsupported"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The wall is 40 metres long", "The wall is 40 metres long and carries a path."),
        ("The guild sold 40 carts", "The guild sold 40 carts in spring."),
        ("The beam is 1.50 metres long", "The beam is 1.5 metres long."),
        ("The leak was closed in version 1.40", "The leak was closed in version 1.40."),
        ("The gate was burnt", "The gate was burnt in May 1604."),
        ("The gate was burnt in 1604", "The gate was burnt in 1604. This ruined the guild."),
    ],
)
def test_a_claim_that_loses_only_a_place_or_a_date_is_a_copy(claim: str, text: str) -> None:
    assert judge(claim, text).verdict == "supported"


@pytest.mark.parametrize(
    ("claim", "quote", "held"),
    [
        ("Berta Holt sold 900 lamps", "Berta Holt sold", False),
        ("Berta Holt sold 90 lamps", "Berta Holt sold 90 lamps", True),
        ("Berta Holt opened a shop in Kolm in 1931", "opened a shop in Kolm in 1931", True),
        ("Kolm sold 90 lamps", "sold 90 lamps", False),
        ("Lamps came to 90", "sold 90 lamps", True),
    ],
)
def test_a_short_quotation_of_a_model_has_the_names_and_numbers_itself_or_leans_on_its_subject(
    claim: str, quote: str, held: bool
) -> None:
    text = "Berta Holt sold 90 lamps, and her rival sold 900 lamps. Berta Holt opened a shop in Kolm in 1931."
    assert holds_values(claim, quote, text, "") is held


CLUB = """# Harrow Rowing Club

- **Founded:** 1931, Selby, Yorkshire
- **Coach:** Mina Kerr (since 2019)
- Members: 212 as of June 2024 (up from 180)
- Total spent: £3.4M
- Boat hire: up to 4 hours
- Not allowed: dogs
"""


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ("The coach of Harrow Rowing Club is Mina Kerr", True),
        ("Mina Kerr is the coach of Harrow Rowing Club", True),
        ("Harrow Rowing Club was founded in 1931", True),
        ("Harrow Rowing Club was founded in 1931 in Selby", True),
        ("Harrow Rowing Club has 212 members", True),
        ("Harrow Rowing Club lost 212 members", False),
        ("Harrow Rowing Club spent a total of £3.4 million", True),
        ("Boat hire is up to 4 hours", True),
        ("Dogs are not allowed", True),
        ("Harrow Rowing Club is the coach", False),
        ("Harrow Rowing Club is the coach of Mina Kerr", False),
        ("Harrow Rowing Club is Mina Kerr's coach", False),
        ("Harrow Rowing Club was founded by Selby", False),
        ("The members of Harrow Rowing Club are 180", False),
        ("Boat hire is 4 hours", False),
        ("Dogs are allowed", False),
        ("Harrow Rowing Club spent a total of £3.4 billion", False),
    ],
)
def test_a_labelled_value_is_stated_with_its_label_and_what_it_is_of(claim: str, *, holds: bool) -> None:
    assert judge(claim, CLUB).verdict.holds is holds


def test_a_colon_within_a_sentence_binds_no_value() -> None:
    text = "# Selby\n\nThe regatta has three classes: juniors, Otto Falk and guests."

    assert judge("The regatta of Selby has three classes", text).verdict.holds
    assert not judge("The regatta of Selby is Otto Falk", text).verdict.holds


NOTES = """# Harrow notes

## Boathouse

- Length: 31 metres
- Racks per bay: 4
- Rent ceiling: 700 euros
- Not for: guests

The boathouse was painted by Ines Roe in 2018.

## Myths

The boathouse was built by monks.
"""


@pytest.mark.parametrize(
    ("claim", "question", "holds"),
    [
        ("The length of the boathouse is 31 metres", "", True),
        ("The boathouse was painted by Ines Roe in 2018", "", True),
        ("The boathouse was built by monks", "", False),
        ("4 racks", "How many racks are there?", False),
        ("There are 4 racks", "How many racks are there?", False),
        ("The rent is 700 euros", "What is the rent?", False),
    ],
)
def test_a_heading_lends_its_subject_and_a_part_of_a_label_has_no_value(
    claim: str, question: str, *, holds: bool
) -> None:
    assert judge(claim, NOTES, question).verdict.holds is holds


@pytest.mark.parametrize(
    ("claim", "text", "question"),
    [
        ("The jetty was mended", "The jetty is being mended.", ""),
        ("The jetty was sold to Ida Roe", "The jetty is about to be sold to Ida Roe.", ""),
        ("The jetty is painted white", "The jetty is to be painted white.", ""),
        ("Der Steg wurde 2026 saniert", "Der Steg wird 2026 saniert.", ""),
        ("There is a plan to raise the jetty", "The plan to raise the jetty was given up.", ""),
        ("The fine is 40 euros", "The fine of 40 euros was waived.", "How much is the fine?"),
        ("The fee is 30 euros", "The fee is under 30 euros.", "How much is the fee?"),
        ("30 euros", "The fee is below 30 euros.", "How much is the fee?"),
        ("1911", "The jetty was built before 1911.", "When was the jetty built?"),
        ("The jetty was tested", "- [ ] The jetty was tested", ""),
        ("The jetty is white", "~~The jetty is white.~~", ""),
    ],
)
def test_what_is_pending_given_up_limited_or_struck_out_is_not_stated(claim: str, text: str, question: str) -> None:
    assert not judge(claim, text, question).verdict.holds


def test_a_pronoun_lends_its_subject_and_not_the_rest_of_the_sentence_before() -> None:
    text = "The ferry Alma was launched in 1923 at Selby. Her crew is 12 sailors."

    judged = judge("Her crew is 12 sailors", text, "Where was the ferry Alma launched?")
    assert judged.verdict.holds
    assert judged.lacking == ("launched",)


def test_a_question_for_a_time_is_answered_by_a_number_or_a_word_of_time() -> None:
    text = "Ines Roe rows for Selby. The gate opens on Monday."

    assert judge("Ines Roe rows for Selby", text, "When does Ines Roe row?").lacking == ("When",)
    assert not judge("The gate opens on Monday", text, "When does the gate open?").lacking


def test_a_cell_is_the_first_cells_and_not_another_ones() -> None:
    text = "| Pupil | Tutor | Age |\n|---|---|---|\n| Lia | Ms Hart | 7 |\n| Ben | Mr Orr | 8 |"

    assert judge("The age of Lia is 7", text).verdict.holds
    assert judge("The tutor of Ben is Mr Orr", text).verdict.holds
    assert not judge("The age of Ms Hart is 7", text).verdict.holds


@pytest.mark.parametrize(
    ("claim", "text", "holds"),
    [
        ("Falk greeted Roe", "| Event |\n|---|\n| Roe greeted Falk |", False),
        ("The route is from Bonn to Selby", "| Route |\n|---|\n| from Selby to Bonn |", False),
        ("The rent is 1700 euros", "The rent is 1700 euros per month.", False),
        ("The closure was due to a flood", "The closure was due to a flood in the cellar.", True),
        ("Harrow Ltd was founded in 2011", "# Harrow Ltd\n\n1. Founded: 2011\n2. Seat: Selby", True),
        ("The GNP is 7", "row 1: GNP: 7 | CPI: 4", True),
        ("Rowing.Com is a firm in Selby", "Rowing.Com is a firm in Selby.", True),
    ],
)
def test_order_in_cells_limits_numbers_of_items_and_dotted_names(claim: str, text: str, *, holds: bool) -> None:
    assert judge(claim, text).verdict.holds is holds


@pytest.mark.parametrize(
    ("answer", "text", "question", "holds"),
    [
        ("1931", "In 1931 the Sellund brothers flooded the quarry.", "When did the Sellund brothers flood the quarry?", True),
        ("1931", "The Sellund brothers flooded the quarry in 1931.", "When was the quarry flooded by the Sellund brothers?", True),
        ("a kiln for tiles with four chambers", "Torp is a kiln for tiles with four chambers.", "What is Torp?", True),
        ("a kiln for tiles with four chambers", "Unlike Vann, a kiln for tiles with four chambers, Torp burns gas.",
         "What is Torp?", False),
        ("Einar Moe", "Ida's cousin Einar Moe drew the maps.", "Who drew the maps?", True),
        ("Einar Moe", "Deputy Einar Moe drew the maps.", "Who drew the maps?", False),
        ("nine", "Before the flood, nine mills worked.", "How many mills worked after the flood?", False),
        ("nine", "After the flood, nine mills worked.", "How many mills worked after the flood?", True),
        ("a drum", "A rooted fern needs a drum.", "What does a rootless fern need?", False),
    ],
)  # fmt: skip
def test_the_statement_of_an_answer_is_found_wherever_its_date_stands_and_however_long_it_is(
    answer: str, text: str, question: str, *, holds: bool
) -> None:
    judged = judge(answer, text, question)
    assert (judged.verdict.holds and not judged.lacking) is holds


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ("The covered hall has 64 stalls.", True),
        ("The covered hall is open on Tuesdays.", True),
        ("64 stalls are open on Tuesdays.", False),
    ],
)
def test_each_of_two_predicates_is_stated_by_itself(claim: str, *, holds: bool) -> None:
    text = "The covered hall has 64 stalls and is open on Tuesdays only."
    text = text if not holds else text.replace(" only", "")
    assert judge(claim, text).verdict.holds is holds


@pytest.mark.parametrize(
    ("answer", "text", "question"),
    [
        ("Rune Aas", "Head of sales: Ida Moe. Head of IT: Rune Aas.", "Who is head of sales?"),
        ("Ida Moe", "# Weather report\n\nIda Moe closed the pier.", "Who is the reporter?"),
        ("£900", "Offers came from Lind (£700) and from Moss Ltd (£900).", "What is the offer of Lind?"),
        ("Otto Berg", "Present: Ida Moe (chair), Otto Berg", "Who is the chair?"),
        ("Moss Ltd", "Contract between Lind (tenant) and Moss Ltd (landlord)", "Who is the tenant?"),
        ("The yard employs 90 people in Selby.", "The yard employs 90 people, 12 of them in Selby.", ""),
        ("I need a ticket.", "**Do I need a ticket?**", "Do I need a ticket?"),
        ("The fair begins on 4 May.", "It was moved.\n\n> The hall is booked. The fair begins on 4 May.", ""),
        ("The rent is 610 euros.", "See below.\n\n-----Original Message-----\nThe rent is 610 euros.", ""),
        ("The mill sells stolen flour.", "According to Otto Berg, the mill sells stolen flour.", ""),
        ("The budget is 900 euros.", "The budget is 900 euros, I guess.", ""),
        ("The baker is a thief.", 'Ida Moe, 1 star: "Never again. The baker is a thief."', ""),
        ("Ida Moe is the mayor.", "Ida Moe was the mayor.", "Who is the mayor?"),
        ("Ida Moe", "Ida Moe was the mayor of Selby.", "Who is the mayor of Selby?"),
        ("Ida Moe trains the juniors.", "Ida Moe trained the juniors.", ""),
        ("Pupils get 10 % off.", "Pupils get 10 % off on Fridays.", ""),
        ("Swimming is not allowed.", "Swimming is not allowed at the weir.", ""),
        ("Members get 30 days.", "Members with more than ten years of service get 30 days.", ""),
        ("The lease is one year.", "The lease is one year for members.", ""),
        ("Dogs are not admitted.", "Dogs over 20 kg are not admitted.", ""),
        ("Guests may swim.", "Guests may swim, with the consent of the warden.", ""),
        ("700 people were evacuated.", "About 700 people were evacuated.", "How many people were evacuated?"),
        ("The feast is at 18:00.", "Cancelled: feast at 18:00", "When is the feast?"),
        ("The hall has 90 seats.", "Example: The hall has 90 seats.", "How many seats has the hall?"),
        ("Das Fest ist am 3. Juli.", "Die Probe ist am 3. Mai. Das Fest ist am 11. Juli.", "Wann ist das Fest?"),
        ("The baker sings.", "The baker, Ida Moe, swims, and the smith, Otto Berg, sings.", ""),
        ("Ida Moe", "The baker, Ida Moe, swims; the smith, Otto Berg, sings.", "Who is the smith?"),
        ("Otto Berg", "The baker, Ida Moe, swims; the smith, Otto Berg, sings.", "Who is the baker?"),
        ("£5", "The fair, on Monday, is free; the market, on Friday, costs £5.", "What does the fair cost?"),
        ("Ida Moe", "Present: Ida Moe (chair), Otto Berg (clerk), Rune Aas (cook)", "Who is the clerk?"),
        ("The boat was built by Rune Aas.", "The boat, which Ida Moe drew, sank, and the pier, built by Rune Aas, burnt.",
         ""),
        ("Rune Aas", "asset: Boat | user: Ida Moe | previous_user: Rune Aas", "Who is the user of the boat?"),
        ("The minister resigned.", "The minister, according to one paper, resigned.", ""),
        ("The mill was built in 1742.", 'He said: "The mill was built in 1742 by Ida Moe."', ""),
        ("The mill was built in 1742.", 'Otto Berg wrote, "The mill was built in 1742 by Ida Moe."', ""),
        ("The mill was built in 1742.", '"The mill was built in 1742 by Ida Moe," said Otto Berg.', ""),
        ("The mill was built in 1742.", "‘The mill was built in 1742 by Ida Moe’, said Otto Berg.", ""),
        ("Die Mühle wurde 1742 gebaut.", "Otto sagte: „Die Mühle wurde 1742 von Ida Moe gebaut.“", ""),
        ("The pool closes.", "The council hopes to close the pool.", ""),
        ("The council closed the pool.", "The council was considering closing the pool.", ""),
        ("Visitors need a permit.", "Visitors need a permit in winter.", ""),
        ("The registered guests pay a fee.", "The registered guests pay a fee in winter.", ""),
        ("The feed contains maize.", "The feed contains maize in winter.", ""),
    ],
)  # fmt: skip
def test_what_holds_elsewhere_once_or_in_part_is_not_stated(answer: str, text: str, question: str) -> None:
    judged = judge(answer, text, question)
    assert not judged.verdict.holds or judged.lacking


@pytest.mark.parametrize(
    ("claim", "text", "question"),
    [
        ("Das Fest ist am 11. Juli.", "Die Probe ist am 3. Mai. Das Fest ist am 11. Juli.", "Wann ist das Fest?"),
        ("Only guide dogs are admitted.", "No. Only guide dogs are admitted.", ""),
        ("Ida Moe founded the choir in 1974.", "The choir was founded in 1974 by Ida Moe, a smith.", ""),
        ("Otto Berg trained the juniors.", "Otto Berg trained the juniors in Selby for ten years.", ""),
        ("The inn is in Selby.", "The inn is in Selby.", "Where is the inn?"),
        ("The hall is a museum.", "The hall is a museum in Selby.", "What is the hall?"),
        ("The baker swims.", "The baker, Ida Moe, swims, and the smith, Otto Berg, sings.", "Who swims?"),
        ("The smith, Otto Berg, sings.", "The baker, Ida Moe, swims; the smith, Otto Berg, sings.", "Who sings?"),
        ("The planning office opened in 1990.", "The planning office opened in 1990 in Selby.", ""),
        ("The Hope Inn served hopes and beer.", "The Hope Inn served hopes and beer in Selby.", ""),
        ("The mill was built in 1742.", 'The mill, "The Old Lady", was built in 1742 by Ida Moe.', ""),
        ("Otto Berg said that the mill was built in 1742.", 'Otto Berg said: "The mill was built in 1742 by Ida."', ""),
        ("The motto is Always up.", '- **Motto:** "Always up."', ""),
        ("A pump needs oil.", "Pumps need oil.", ""),
        ("The club agreed a price.", "The club agreed a price in May.", ""),
    ],
)
def test_a_detail_of_what_happened_may_be_left_out(claim: str, text: str, question: str) -> None:
    judged = judge(claim, text, question)
    assert (judged.verdict.holds, judged.lacking) == (True, ())


@pytest.mark.parametrize(
    ("question", "tells"),
    [
        ("How tall is the tower?", False),
        ("For how much was the tower sold?", False),
        ("Where is the tower?", False),
        ("Why was the tower sold?", False),
        ("What time was the tower sold?", False),
        ("When was the tower sold?", True),
        ("To whom was the tower sold?", True),
    ],
)
def test_a_copy_that_tells_nothing_of_the_kind_that_is_asked_for_does_not_answer(question: str, *, tells: bool) -> None:
    judged = judge("The tower was sold by Ida Moe in 1911.", "The tower was sold by Ida Moe in 1911.", question)
    assert judged.verdict.holds
    assert bool(judged.lacking) is not tells


@pytest.mark.parametrize(
    ("claim", "question", "tells"),
    [
        pytest.param("Guests get 14 towels a week", "How many guests does the inn have?", False, id="another count"),
        pytest.param("The inn has 14 regular guests", "How many guests does the inn have?", True, id="this count"),
        pytest.param("14 of the guests stay", "How many guests stay?", True, id="a count of some"),
        pytest.param("Guests are welcome from 19:00 to 22:00", "How many guests are welcome?", False, id="a time"),
        pytest.param("Guest room 7 was closed", "How many guest rooms were closed?", False, id="a label"),
        pytest.param("No more than 14 may stay as guests", "How many guests may stay?", True, id="a limit"),
        pytest.param("The guests are 14", "How many guests are there?", True, id="a value"),
        pytest.param("Der Eintritt kostet 5 Euro", "Wie viel kostet der Eintritt?", True, id="a price"),
        pytest.param("The gate was shut on 4 May by accident", "Who shut the gate?", False, id="no one by accident"),
        pytest.param("The gate was shut on 4 May by Edda Kroll", "Who shut the gate?", True, id="one after a date"),
        pytest.param("The gate was shut by a porter", "Who shut the gate?", True, id="one without a name"),
        pytest.param("The gate was shut by our night porter", "Who shut the gate?", True, id="one of several words"),
        pytest.param("She ordered a gate, which was shut in 1634", "Who shut the gate?", False, id="a clause"),
        pytest.param("Visitors may enter on Fridays", "Who visits the inn?", False, id="another word of the stem"),
        pytest.param("The designer of the inn was Edda Kroll", "Who designed the inn?", True, id="a noun for the verb"),
        pytest.param("Edda Kroll shut the gate", "WHO SHUT THE GATE?", True, id="a question in capitals"),
    ],
)  # fmt: skip
def test_a_count_is_of_what_is_asked_for_and_someone_acts(claim: str, question: str, *, tells: bool) -> None:
    """The claim copies its text word by word, so only the question decides."""
    judged = judge(claim, f"{claim}.", question, context="the inn")
    assert judged.verdict.holds
    assert bool(judged.lacking) != tells


@pytest.mark.parametrize(
    ("claim", "questions"),
    [
        ("The pier is 90 metres long", "How high is the pier?|How wide is the pier?|How old is the pier?"),
        ("The pier is 90 metres long", "How fast is the pier?|How expensive is the pier?|What colour is the pier?"),
        ("The pier is 90 metres long", "Where is the pier?|How often is the pier open?"),
        ("The pier over the Ebble was built in 1884", "Where was the pier built?|How was the pier built?"),
        ("The pier over the Ebble was built in 1884", "Who built the pier?|By whom was the pier built?"),
        ("The pier over the Ebble was built in 1884", "Which architect built the pier?|What kind of pier was built?"),
        ("The pier lies 700 metres from the station", "How long is the pier?|How high is the pier?"),
        ("The pier lies 2 km away", "How wide is the pier?"),
        ("The talk is in room 12", "What time is the talk?|When is the talk?|On which day is the talk?"),
        ("The pier was built by Edda Kroll", "In which year was the pier built?|When was the pier built?"),
        ("Die Mole ist 90 Meter lang", "Wie hoch ist die Mole?|Wie alt ist die Mole?|Welche Breite hat die Mole?"),
        ("Die Mole über die Aller wurde 1884 gebaut", "Wer hat die Mole gebaut?|Wo wurde die Mole gebaut?"),
        ("Die Mole über die Aller wurde 1884 gebaut", "Warum wurde die Mole gebaut?|Wie viele Leute bauten die Mole?"),
    ],
)
def test_a_claim_about_another_property_does_not_answer(claim: str, questions: str) -> None:
    for question in questions.split("|"):
        judged = judge(claim, f"{claim}.", question)
        assert judged.verdict.holds
        assert judged.lacking, question


@pytest.mark.parametrize(
    ("claim", "question"),
    [
        ("The pier is 90 metres long", "How long is the pier?"),
        ("The length of the pier is 90 metres", "What length has the pier?"),
        ("The pier is 140 years old", "How old is the pier?"),
        ("The ticket costs 12 euros", "What does the ticket cost?"),
        ("The pier was built of oak by hand", "How was the pier built?"),
        ("The talk is at 9", "What time is the talk?"),
        ("The talk is from 9:30 to 11:00", "When is the talk?"),
        ("The bus runs every hour, twice on Sundays", "How often does the bus run?"),
        ("The talk is in room 12", "Which room is the talk in?"),
        ("The pier was built in Vesk in 1884", "Where was the pier built?"),
        ("Edda Kroll's pier is the red one", "Which pier is the red one?"),
        ("Die Mole wurde 1884 in Vesk gebaut", "Wann wurde die Mole gebaut?"),
        ("Der Beitrag beträgt 90 Euro", "Wie hoch ist der Beitrag?"),
        ("Die Mole wurde von Edda Kroll gebaut", "Wer hat die Mole gebaut?"),
    ],
)
def test_a_claim_about_the_property_that_is_asked_for_answers(claim: str, question: str) -> None:
    judged = judge(claim, f"{claim}.", question)
    assert (judged.verdict.holds, judged.lacking) == (True, ())


@pytest.mark.parametrize(
    "text",
    [
        "The [gate of Vesk](gate.md) feeds the lower basin.",
        "The gate of Vesk feeds the [lower basin](https://example.org/basin_(vesk)) by night.",
        "The gate of Vesk feeds the lower basin.[^1]",
        "The gate of Vesk feeds the lower basin[^vesk], in the order of the valves.",
    ],
)
def test_the_text_of_a_link_counts_and_its_address_does_not(text: str) -> None:
    assert judge("The gate of Vesk feeds the lower basin.", text).verdict.holds
    assert not judge("The gate of Vesk feeds the example.", text).verdict.holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("The fee is 50 euros.", True),
        ("The fee is up to 50 euros.", False),
        ("The fee is from 50 euros.", False),
        ("The fee is ~50 euros.", False),
        ("The fee is 50 euros above the average.", False),
        ("The fee is near 50 euros.", False),
    ],
)
def test_a_limit_of_a_quantity_is_kept(text: str, *, holds: bool) -> None:
    for claim in ("The fee is 50 euros", "50 euros"):
        judged = judge(claim, text, "How much is the fee?")
        assert (judged.verdict.holds and not judged.lacking) == holds


@pytest.mark.parametrize(
    ("answer", "text", "question", "holds"),
    [
        ("The inn is in Vesk", "The inn is near Vesk.", "Where is the inn?", False),
        ("near Vesk", "The inn is near Vesk.", "Where is the inn?", True),
        ("under the bench", "The key is on the bench.", "Where is the key?", False),
        ("The inn is shut on Monday", "The inn is shut from Monday.", "When is the inn shut?", False),
        ("about 50 minutes", "A tour lasts about 50 minutes.", "How long does a tour last?", True),
        ("30 seconds", "The pause rose from 10 to 30 seconds.", "To how many seconds did the pause rise?", True),
        ("30 seconds", "The pause was raised to 30 seconds.", "To how many seconds was the pause raised?", True),
        ("30 seconds", "The pause was raised to 30 seconds.", "From how many seconds was the pause raised?", False),
    ],
)
def test_a_short_answer_keeps_its_light_word(answer: str, text: str, question: str, *, holds: bool) -> None:
    judged = judge(answer, text, question)
    assert (judged.verdict.holds and not judged.lacking) == holds


@pytest.mark.parametrize(
    ("answer", "text", "question", "holds"),
    [
        ("12 days", "Night porters have 12 days of free leave.", "How many days of free leave do night porters have?", True),
        ("4 May", "The old oven will be sold on 4 May.", "When will the old oven be sold?", True),
        ("4 May", "The old oven was sold on 4 May.", "When will the old oven be sold?", False),
        ("40", "The barge can carry 40 horses.", "How many horses can the barge carry?", True),
        ("2 years", "For pumps the pledge is 2 years.", "How long is the pledge for pumps?", True),
        ("2 years", "For pumps the pledge is 2 years.", "How long is the pledge for lamps?", False),
        ("9 crowns", "The toll is 4 crowns for carts and 9 crowns for ships.", "What is the toll for ships?", True),
        ("4 crowns", "The toll is 4 crowns for carts and 9 crowns for ships.", "What is the toll for ships?", False),
        ("9 crowns", "The toll is 4 crowns for carts and 9 crowns for ships.", "What is the toll for carts?", False),
        ("Vesk", "The fair is on 4 May 2031 in Vesk.", "Where is the fair?", True),
        ("Vesk", "The fair is on Mondays in Vesk.", "Where is the fair?", False),
        ("1911", "Das Wehr wurde 1911 gebaut.", "Wann wurde das Wehr gebaut?", True),
        ("drei Wochen", "Die Reise dauert drei Wochen.", "Wie lange dauert die Reise?", True),
        ("Otto Lenk", "Ida Moss besiegte Otto Lenk.", "Wer besiegte Ida Moss?", False),
        ("Otto Lenk", "Küster: bis 2019 Otto Lenk, jetzt Ida Moss.", "Wer ist Küster?", False),
    ],
)  # fmt: skip
def test_a_short_answer_is_put_where_a_statement_has_it(answer: str, text: str, question: str, *, holds: bool) -> None:
    judged = judge(answer, text, question)
    assert (judged.verdict.holds and not judged.lacking) == holds


@pytest.mark.parametrize(
    ("frame", "holds"),
    [
        ("A guest said: the oven is old.", False),
        ("One neighbour: the oven is old.", False),
        ("Rumour: the oven is old.", False),
        ("Note: the oven is old.", True),
        ("In Otto's opinion, the oven is old.", False),
        ("In the worst case, the oven is old.", False),
        ("In the novel, the oven is old.", False),
        ("In addition, the oven is old.", True),
        ("The oven is said to be old.", False),
        ("## Rejected proposals\n\nThe oven is old.", False),
        ("# Rejected proposals\n\n## Kitchen\n\nThe oven is old.", True),
        ("## Rejected proposals\n\n### Kitchen\n\nThe oven is old.", False),
    ],
)
def test_a_copy_leaves_out_nothing_that_takes_it_back(frame: str, *, holds: bool) -> None:
    text = frame if frame.startswith("#") and "##" in frame[2:] else f"# Inn\n\n{frame}"
    assert judge("The oven is old", text).verdict.holds == holds


@pytest.mark.parametrize(
    ("claim", "text", "holds"),
    [
        ("In 1911 the oven was sold", "In 1911, the oven was sold.", True),
        ("The oven was sold", "In 1911, the oven was sold.", True),
        ("The oven was in Vesk", "The oven was believed to be in Vesk.", False),
        ("The oven was sold in 1911", "The oven was sold before the inn closed in 1911.", False),
        ("The oven was sold in 1911", "The oven was sold after the inn was closed in 1911.", False),
        ("The oven was sold in 1911", "The oven was sold after the fire in 1911.", True),
        ("The oven was ordered", "The oven was ordered in 1911 and cancelled in 1912.", False),
        ("The choir meets every Tuesday", "The choir meets every second Tuesday.", False),
        ("The pump stops every hour", "The pump stops every 8 hours.", False),
        ("Speed is limited to 30 km/h", "Speed is limited to 30 km/h in the village.", False),
        ("Der Ofen steht in Vesk", "Frau Moss glaubt, der Ofen steht in Vesk.", False),
        ("Der Wirt ist Otto Lenk", "Der stellvertretende Wirt ist Otto Lenk.", False),
    ],
)
def test_a_part_of_a_sentence_says_what_the_whole_says(claim: str, text: str, *, holds: bool) -> None:
    assert judge(claim, text).verdict.holds == holds


INNS = """# Inns of Vesk, in Arn and Sell

Ida Moss runs Arn and visits Sell.

## Arn

The inn has 12 beds.

## Sell

The inn has 40 beds.

- **Cook:** Otto Lenk
- Marsh: 9 boats

The lake is Marsh.
"""


@pytest.mark.parametrize(
    ("answer", "question", "holds"),
    [
        ("The inn has 40 beds", "How many beds has the inn in Sell?", True),
        ("The inn has 40 beds", "How many beds has the inn in Arn?", False),
        ("The inn in Arn has 40 beds", "How many beds has the inn in Arn?", False),
        ("Otto Lenk", "Who is the cook in Sell?", True),
        ("Otto Lenk", "Who is the cook in Arn?", False),
        ("9 boats", "How many boats has Marsh?", True),
        ("9 boats", "How many boats has Sell?", False),
    ],
)
def test_a_heading_or_label_that_is_a_name_owns_what_is_below(answer: str, question: str, *, holds: bool) -> None:
    judged = judge(answer, INNS, question, context="Inns of Vesk, in Arn and Sell")
    assert (judged.verdict.holds and not judged.lacking) == holds


def test_a_row_answers_a_question_about_a_column_with_its_cell() -> None:
    rows = "| Inn | 2030 | 2031 |\n|---|---|---|\n| Arn | 12 | 14 |\n| Sell | 40 | 44 |"
    for year, beds, holds in ((2030, 12, False), (2031, 14, True)):
        judged = judge(
            f"The beds in Arn in {year} were {beds}", rows, "How many beds were in Arn in 2031?", context="beds"
        )
        assert (judged.verdict.holds and not judged.lacking) == holds


@pytest.mark.parametrize(
    ("answer", "text", "holds"),
    [
        ("Yes, the oven is old.", "The oven is old.", True),
        ("Yes. The oven is old.", "The oven is old.", True),
        ("No. The oven is old.", "The oven is old.", False),
        ("No, the oven is not old.", "The oven is not old.", True),
        ("**Yes.** The oven is not old.", "The oven is not old.", False),
        ("No, not only the oven is old.", "Not only the oven is old.", False),
    ],
)
def test_yes_and_no_fit_the_copy_behind_them(answer: str, text: str, *, holds: bool) -> None:
    source = Source("inn.md", "Inn", text, "file", "s1")
    assert is_accepted(verify(answer, Sources({"s1": source}), "Is the oven old?")) == holds
    assert not is_accepted(verify(answer, Sources({"s1": source}), "Which oven is old?"))


def test_a_date_in_digits_is_the_one_in_words() -> None:
    for date in ("2026-07-11", "11.07.2026", "11.7.2026", "11 July 2026", "July 11, 2026"):
        text = f"The fair opened on {date} in Vesk."
        assert judge("The fair opened on 11 July 2026", text).verdict.holds
        assert judge(f"The fair opened on {date}", "The fair opened on 11 July 2026.").verdict.holds
        assert not judge("The fair opened on 7 November 2026", text).verdict.holds
        assert judge(date, text, "When did the fair open?").verdict.holds
    assert judge("The fair opened on 11 July 2026", "The fair opened in Vesk.", context="2026-07-11").verdict.holds
    assert not judge("Version 11.7.2026.1 was sold", "Version 11 July 2026 was sold.").verdict.holds


def test_a_copied_row_is_read_as_the_row_is() -> None:
    """Under "Fee (thousand EUR)" 82 is 82 thousand, and (15) is a loss, in the claim as in its row."""
    row = "Name: Edda Kroll | Fee (thousand EUR): 82 | Result: (15)"
    assert judge("Name: Edda Kroll, Fee (thousand EUR): 82, Result: (15)", row).verdict.holds
    assert judge("The fee of Edda Kroll is 82,000 EUR", row).verdict.holds
    assert not judge("Name: Edda Kroll, Fee (EUR): 82", row).verdict.holds
    assert not judge("Name: Edda Kroll, Result: 15", row).verdict.holds


def test_a_claim_of_signs_about_a_computation_is_unchecked() -> None:
    assert judge("( = )", "2 = 2", record="x").verdict == "unchecked"


def test_sentences_that_are_glued_together_are_two() -> None:
    text = "The hearings were set for March 2021 and May 2022.The council closed the road."

    assert judge("The hearings were set for March 2021 and May 2022", text).verdict.holds
    assert judge("Node.js runs the clock", "Node.js runs the clock of the hall.").verdict.holds


def test_a_clause_that_gives_a_reason_is_stated_by_itself_and_one_of_a_condition_is_not() -> None:
    text = "The school closed in May, as the boilers did not heat the hall. It opens again, if the council pays."

    assert judge("The boilers did not heat the hall", text).verdict.holds
    assert not judge("The council pays", text).verdict.holds


def test_a_copy_may_leave_out_now_and_may_not_leave_out_former() -> None:
    text = "The hall now seats 400 guests. The former miller owns the hall."

    assert judge("The hall seats 400 guests", text).verdict.holds
    assert not judge("The miller owns the hall", text).verdict.holds


def test_without_a_text_and_without_a_content_word_nothing_is_checked() -> None:
    assert judge("The lock of Haverden was dug in 1764", "").verdict == "unchecked"
    assert judge("And so it was.", LOCK).verdict != "supported"
    assert judge("…", LOCK).verdict == "unchecked"


def words_of(count: int) -> Iterator[str]:
    """Different words of two and three letters."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ("".join(letters[at // 26**place % 26] for place in range(2 + at // 676)) for at in range(count))


def test_a_claim_of_300_words_is_compared_word_by_word() -> None:
    listed = list(words_of(300))
    text = f"The crew loaded {' '.join(listed)}."
    listed[150] = "zebras"
    changed = judge(f"The crew loaded {' '.join(listed)}", text)
    assert judge(text, text).verdict == "supported"
    assert (changed.verdict, changed.missing) == ("unsupported", ("zebras",))


def test_a_claim_of_more_than_the_most_content_words_is_unchecked() -> None:
    text = f"The crew loaded {' '.join(words_of(MOST + 40))}."
    assert judge(text, text).verdict == "unchecked"


def test_a_tools_result_counts_together_with_its_call_and_its_numbers_come_from_the_result() -> None:
    call = "SELECT SUM(hours) FROM shifts WHERE nurse = 'Petra' AND year = 2019"
    assert judge("Petra's shifts sum to 37.5 hours", "37.5", record=call).verdict == "supported"
    assert judge("Petra's shifts sum to 41.5 hours", "37.5", record=call).verdict == "unsupported"
    assert judge("Petra's shifts sum to 2019 hours", "37.5", record=call).verdict == "unsupported"
    assert judge("Paul's shifts sum to 37.5 hours", "37.5", record=call).missing == ("Paul's",)


def count_calls(work: Callable[[], object]) -> int:
    """How many functions the work calls: twice as many for twice the text, if it takes linear time."""
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return steps


def table_of(rows: int) -> str:
    return "\n".join(f"Place: Q{row} | Boats: {row * 7} | Keeper: Runa Holt" for row in range(rows))


def markdown_of(rows: int) -> str:
    lines = (f"| Q{row} | {row * 7} | Runa Holt |" for row in range(rows))
    return "\n".join(["| Place | Boats | Keeper |", "|---|---|---|", *lines])


def headings_of(rows: int) -> str:
    return "\n\n".join(f"{'#' * (row % 6 + 1)} Q{row}\n\nIt has {row * 7} boats." for row in range(rows // 2))


@pytest.mark.parametrize("text_of", [table_of, markdown_of, headings_of])
def test_a_table_of_10_000_rows_takes_four_times_the_work_of_one_with_a_quarter_of_them(
    text_of: Callable[[int], str],
) -> None:
    def check_all(text: str) -> None:
        passages = Passages(text)
        for claim in ("Q77 has 539 boats", "Q77 has 546 boats", "The keeper Runa Holt has boats in each place"):
            check_words(claim, passages)

    few, many = (count_calls(partial(check_all, text_of(rows))) for rows in (2_500, 10_000))
    assert many < 5 * few


def test_one_row_of_10_000_supports_a_claim_and_its_neighbour_does_not() -> None:
    passages = Passages(table_of(10_000))
    assert check_words("Q7777 has 54439 boats", passages).verdict == "supported"
    assert check_words("Q7777 has 54446 boats", passages).verdict == "unsupported"


@pytest.mark.parametrize(
    ("question", "answer", "text"),
    [
        ("How tall is the tower?", "42 metres", "The tower is 42 metres tall."),
        ("How much memory has the server?", "64 GB", "The server has 64 GB of memory."),
        ("Which discount do members receive?", "5 percent", "Members receive a discount of 5 percent."),
        ("Which server did moss replace?", "reed", "Moss replaced the server reed."),
        ("Who has won the cup?", "Ida Moe", "Ida Moe has won the cup."),
        ("Who will follow Otto Berg?", "Ida Moe", "Ida Moe will follow Otto Berg."),
        ("How long do tours last?", "about 50 minutes", "Tours last about 50 minutes."),
        ("How many guests were ill?", "About 30 guests", "About 30 guests were ill."),
        ("To how much did the rent rise?", "66 euros", "The rent rose from 61 euros to 66 euros."),
        ("When did the war end?", "1742", "The war ended in 1742."),
        ("How much did Ida Moe pay?", "64 euros", "Ida Moe paid 64 euros."),
        ("By whom was Otto Berg coached?", "Ida Moe", "Otto Berg was coached by Ida Moe."),
    ],
)
def test_an_answer_may_be_at_each_place_of_its_question(question: str, answer: str, text: str) -> None:
    judged = judge(answer, text, question)
    assert (judged.verdict.holds, judged.lacking) == (True, ())


@pytest.mark.parametrize(
    ("question", "answer", "accepted"),
    [
        ("When was Vasco da Gama buried?", "Vasco da Gama was buried in 1524", True),
        ("When was Rhys ap Hywel elected?", "Rhys ap Hywel was elected in 1988", True),
        ("Where did Abd al-Karim live?", "Abd al-Karim lived in Selby", True),
        ("Who taught Jan van Eyk?", "Ida Moe taught Jan van Eyk", True),
        ("Who taught Jan van Eyk?", "Jan van Eyk taught Ida Moe", False),
        ("Who was taught by Jan van Eyk?", "Ida Moe taught Jan van Eyk", False),
    ],
)
def test_a_small_word_between_two_names_is_no_act(question: str, answer: str, accepted: bool) -> None:
    judged = judge(answer, f"{answer}.", question)
    assert (judged.verdict.holds and not judged.lacking) is accepted


@pytest.mark.parametrize(
    ("question", "answer", "text"),
    [
        ("Who taught Otto Berg?", "Ida Moe", "Ida Moe was taught by Otto Berg."),
        ("Who did Otto Berg coach?", "Ida Moe", "Otto Berg was coached by Ida Moe."),
        ("Who has coached Otto Berg?", "Ida Moe", "Otto Berg has coached Ida Moe."),
        ("Who will follow Otto Berg?", "Ida Moe", "Otto Berg will follow Ida Moe."),
        ("Who is the father of Otto Berg?", "Ida", "Otto Berg is Ida's father."),
        ("Who is Otto's father?", "Ida", "Otto is Ida's father."),
        ("Who spoke about bees?", "Rune Aas", "The baker, Ida Moe, spoke about bees, the smith, Rune Aas, about ants."),
        ("How long do tours last?", "50 minutes", "Tours last about 50 minutes."),
        ("How long do tours last?", "about 50 minutes", "Tours last over 50 minutes."),
        ("To how much did the rent rise?", "61 euros", "The rent rose from 61 euros to 66 euros."),
        ("Where did Ida Moe move from?", "Selby", "Ida Moe moved from Arlen to Selby."),
        ("Who does Ida Moe train?", "Otto Berg", "Ida Moe trained Otto Berg."),
        ("How much does a guest pay?", "5 euros", "A guest paid 5 euros."),
        ("Who runs the mill?", "Ida Moe", "Ida Moe ran the mill for ten years."),
    ],
)
def test_an_answer_keeps_who_acts_where_to_and_when(question: str, answer: str, text: str) -> None:
    judged = judge(answer, text, question)
    assert not judged.verdict.holds or judged.lacking


@pytest.mark.parametrize(
    ("answer", "question", "accepted"),
    [
        ("Rune Aas's cousin works in Selby", "Where does Rune Aas work?", False),
        ("Dravo's partner Kelm was sold in 1978", "When was Dravo sold?", False),
        ("Dravo's rival Kelm built 40 barges in 1978", "How many barges did Dravo build in 1978?", False),
        ("Rune Aas's cousin works in Selby", "Where does Rune Aas's cousin work?", True),
        ("Selby's harbour master is Ida Moe", "Who is the harbour master of Selby?", True),
        ("Dravo's rival Kelm has 40 barges", "How many barges does Dravo have?", False),
        ("Dravo's 40 barges are old", "How many barges does Dravo have?", True),
        ("The boat of Dravo, Dravo's first one, was sold in 1978", "When was the boat of Dravo sold?", True),
    ],
)
def test_a_name_that_only_owns_the_subject_is_not_the_subject(answer: str, question: str, accepted: bool) -> None:
    judged = judge(answer, f"{answer}.", question)
    assert (judged.verdict.holds and not judged.lacking) is accepted


@pytest.mark.parametrize(
    ("answer", "question", "accepted"),
    [
        ("Arlen", "Where does the coach drive?", False),
        ("from Arlen", "Where does the coach drive?", False),
        ("The coach drives from Arlen", "Where does the coach drive?", False),
        ("Arlen", "Where does the coach drive from?", True),
        ("From Arlen", "From where does the coach drive?", True),
        ("The coach drives from Arlen", "Where does the coach drive from?", True),
        ("The coach drives from Arlen to Selby", "Where does the coach drive?", True),
    ],
)
def test_where_something_comes_from_is_not_where_it_is_or_goes(answer: str, question: str, accepted: bool) -> None:
    judged = judge(answer, "The coach drives from Arlen to Selby.", question)
    assert (judged.verdict.holds and not judged.lacking) is accepted


@pytest.mark.parametrize(("answer", "accepted"), [("Arlen", False), ("to Selby", True)])
def test_what_was_moved_is_where_it_was_moved_to(answer: str, accepted: bool) -> None:
    judged = judge(answer, "The archive was moved from Arlen to Selby in 1951.", "Where was the archive moved in 1951?")
    assert (judged.verdict.holds and not judged.lacking) is accepted


@pytest.mark.parametrize(
    ("row", "answer", "question", "accepted"),
    [
        ("Post: warden | Holder: Ida | State: retired", "Ida", "Who is the warden?", False),
        ("Post: warden | Holder: Ida | State: retired", "Ida is the warden", "Who is the warden?", False),
        ("Post: warden | Holder: Ida | Until: 2017", "Ida is the warden", "Who is the warden?", False),
        ("Post: warden | Holder: Ida | Left: 4 May 2017", "Ida", "Who is the warden?", False),
        ("Post: warden | Holder: Ida | End: 2017", "Ida", "Who is the warden?", False),
        ("Post: warden | Holder: Ida | State: working", "Ida is the warden", "Who is the warden?", True),
        ("Post: warden | Holder: Ida | State: retired", "Ida was the warden", "Who was the warden?", True),
        ("Post: warden | Holder: Ida | Until: 2017", "Ida", "Who was warden until 2017?", True),
        ("Post: warden | Holder: Ida | Until: open", "Ida", "Who is the warden?", True),
        ("Stop: Mill Lane | Place: Selby | End: 22:30", "Selby", "In which place is Mill Lane?", True),
    ],
)
def test_a_row_that_has_ended_says_nothing_of_the_present(row: str, answer: str, question: str, accepted: bool) -> None:
    judged = judge(answer, row, question)
    assert (judged.verdict.holds and not judged.lacking) is accepted


@pytest.mark.parametrize(
    ("remark", "answer", "question", "accepted"),
    [
        (" (until 2017)", "Rune Aas", "Who is the warden of Moss Hall?", False),
        (" (2011–2017)", "The warden of Moss Hall is Rune Aas", "Who is the warden of Moss Hall?", False),
        (" (retired)", "The warden of Moss Hall is Rune Aas", "Who is the warden of Moss Hall?", False),
        (" (acting)", "Rune Aas", "Who is the warden of Moss Hall?", False),
        (", resigned in 2017", "Rune Aas", "Who is the warden of Moss Hall?", False),
        (" (expected)", "Rune Aas", "Who was the warden of Moss Hall?", False),
        (" (old), Ida Moe (new)", "Rune Aas", "Who is the warden of Moss Hall?", False),
        (" (until 2017)", "Rune Aas", "Who was the warden of Moss Hall?", True),
        (" (acting)", "Rune Aas (acting)", "Who is the warden of Moss Hall?", True),
        (" (since 2017)", "Rune Aas", "Who is the warden of Moss Hall?", True),
        (" (until 2017: Ida Moe)", "Rune Aas", "Who is the warden of Moss Hall?", True),
        (", not Ida Moe", "Rune Aas", "Who is the warden of Moss Hall?", True),
        (" (phone 4410)", "The warden of Moss Hall is Rune Aas", "Who is the warden of Moss Hall?", True),
    ],
)
def test_a_value_keeps_a_remark_that_ends_it(remark: str, answer: str, question: str, accepted: bool) -> None:
    judged = judge(answer, f"# Moss Hall\n\n- **Warden:** Rune Aas{remark}\n- **Rooms:** 12\n", question)
    assert (judged.verdict.holds and not judged.lacking) is accepted


@pytest.mark.parametrize(
    ("answer", "question", "accepted"),
    [
        ("The pass does not cost 12 euros", "How much does the pass cost?", False),
        ("The warden is not Rune Aas", "Who is the warden?", False),
        ("Rune Aas is no longer the warden", "Who is the warden?", False),
        ("It is not known who drew the map", "Who drew the map?", False),
        ("It is uncertain when the chapel burnt", "When did the chapel burn?", False),
        ("Nobody knows who drew the map", "Who drew the map?", False),
        ("The painter of the map is unknown", "Who is the painter of the map?", False),
        ("It is a myth that Rune Aas drew the map", "Who drew the map?", False),
        ("Ida Moe alleges that Rune Aas drew the map", "Who drew the map?", False),
        ("Rune Aas almost drew the map in 1911", "Who drew the map?", False),
        ("The third deepest lake of Orland is the Moss", "What is the deepest lake of Orland?", False),
        ("The pass does not cost 12 euros", "Does the pass cost 12 euros?", True),
        ("The pass costs 12 euros and is not sold here", "How much does the pass cost?", True),
        ("The warden is not Rune Aas but Ida Moe", "Who is the warden?", True),
        ("The pass costs almost 12 euros", "How much does the pass cost?", True),
        ("The coach does not run on Sunday", "When does the coach not run?", True),
        ("Ida Moe alleges that Rune Aas drew the map", "What does Ida Moe allege?", True),
        ("The third deepest lake of Orland is the Moss", "What is the third deepest lake of Orland?", True),
        ("The unknown painter of the map lived in Selby", "Where did the painter of the map live?", True),
        ("The longer route takes 30 minutes", "How long does the longer route take?", True),
    ],
)
def test_a_denial_or_the_claim_of_another_answers_no_question(answer: str, question: str, accepted: bool) -> None:
    judged = judge(answer, f"{answer}.", question)
    assert judged.verdict.holds
    assert bool(judged.lacking) is not accepted


@pytest.mark.parametrize(
    ("answer", "question", "accepted"),
    [
        ("The archive buys 300 maps a year", "How many maps does the archive have?", False),
        ("The yard sold about 40 boats", "How many boats does the yard have?", False),
        ("The archive keeps 300 maps", "How many maps does the archive have?", True),
        ("The archive has 300 maps", "How many maps does the archive have?", True),
        ("The boxes have about 300 maps", "How many maps do the boxes have?", True),
        ("There are 300 maps in the archive", "How many maps does the archive have?", True),
        ("The yard sold about 40 boats", "How many boats has the yard sold?", True),
        ("The archive buys 300 maps a year", "How many maps does the archive buy a year?", True),
    ],
)
def test_what_is_done_with_things_does_not_tell_how_many_there_are(answer: str, question: str, accepted: bool) -> None:
    judged = judge(answer, f"{answer}.", question)
    assert judged.verdict.holds
    assert bool(judged.lacking) is not accepted


@pytest.mark.parametrize(
    ("claim", "text", "missing"),
    [
        ("Die Köchin hat 25 Tage Urlaub", "Jede Köchin hat 30 Tage Urlaub.", ("25",)),
        ("Die neue Brücke ist blau", "Eine neue Brücke ist rot.", ("blau",)),
        ("L'employé reçoit 25 jours", "Un employé reçoit 30 jours.", ("25",)),
        ("L’uso dell'acqua costa 4 euro", "Un uso di acqua costa 5 euro.", ("4",)),
        ("Die Hard opened in 1989", "The film Die Hard opened in 1988.", ("1989",)),
        ("Many people die in 1989", "Many people live in 1989.", ("die",)),
    ],
)
def test_articles_of_other_languages_are_not_missing(claim: str, text: str, missing: tuple[str, ...]) -> None:
    assert judge(claim, text).missing == missing


@pytest.mark.parametrize(
    ("answer", "text", "question", "accepted"),
    [
        ("Clean the filter every week.", "Clean the filter every week.", "How often must the filter be cleaned?", True),
        ("30 minutes", "Chill the dough for 30 minutes.", "How long should the dough be chilled?", True),
        ("Clean the filter every week.", "Clean the filter every week.", "How often must the pump be cleaned?", False),
        ("30 minutes", "Chill the dough for 30 minutes.", "How long may the dough be chilled?", False),
        ("90 days", "Store the milk for 90 days.", "How long can the milk be stored?", False),
        ("Clean water runs daily.", "Clean water runs daily.", "How often must the water be cleaned?", False),
        ("4711", "Die Nummer lautet 4711.", "Wie lautet die Nummer?", True),
        ("Die Spenden gehen an Ida.", "Die Spenden gehen an Ida.", "An wen gehen die Spenden?", True),
        ("A note is due on the fourth day.", "A note is due on the fourth day.", "When is a note due?", True),
    ],
)
def test_what_a_reader_is_told_to_do_and_other_forms_answer_their_question(
    answer: str, text: str, question: str, *, accepted: bool
) -> None:
    judged = judge(answer.rstrip("."), text, question)
    assert (judged.verdict.holds and not judged.lacking) is accepted


LEAVE = "Jeder Mitarbeiter hat 28 Tage Urlaub. Each employee of the board gets a car. Der Turm ist 42 Meter hoch."


@pytest.mark.parametrize(
    ("claim", "copied"),
    [
        ("Der Mitarbeiter hat 28 Tage Urlaub", True),
        ("Each employee of the board gets a car", True),
        ("The employee of the board gets a car", True),
        ("The employee gets a car", False),
        ("Jeder Turm ist 42 Meter hoch", False),
    ],
)
def test_each_may_become_the_but_keeps_its_restriction_and_the_does_not_become_each(
    claim: str, *, copied: bool
) -> None:
    assert (judge(claim, LEAVE).verdict == "supported") is copied
