"""Which copies tell the kind of thing that a question asks for. Each claim copies its text word by word, so only the
question decides."""

import pytest

from hira.evidence import Judgement
from hira.evidence.copies import check_words
from hira.evidence.passages import Passages


def judge(claim: str, question: str) -> Judgement:
    return check_words(claim, Passages(f"{claim}."), question=question)


@pytest.mark.parametrize(
    ("claim", "question"),
    [
        ("Cycling on the quay is not allowed", "May I cycle on the quay?"),
        ("Hunde sind auf der Mole erlaubt", "Darf ich Hunde auf der Mole führen?"),
        ("Orm Tveit followed Edda Kroll as warden in 1911", "Who did Orm Tveit follow?"),
        ("Der Kahn fährt an drei Tagen", "An wie vielen Tagen fährt der Kahn?"),
        ("Das Fass besteht aus Eiche", "Woraus besteht das Fass?"),
        ("Das Fass leckte, weil der Boden brach", "Weshalb leckte das Fass?"),
        ("A kiln in Hask was offered and refused", "Where was a kiln offered and refused?"),
        ("The boat is built of larch", "What's the boat built of?"),
        ("The pantry is in the east wing", "where's the pantry"),
        ("The pantry is in the east wing", "Could you tell me where the pantry is?"),
        ("The warden of Hask is Tova Lindt", "Do you know who the warden of Hask is?"),
        ("The tower is 31 metres high", "Please tell me how high the tower is."),
        ("Der Kahn fährt um 9 Uhr", "Können Sie mir sagen, wann der Kahn fährt?"),
        ("The ferry sails every 40 minutes", "How often does the ferry sail?"),
        ("The rope is replaced every second month", "How often is the rope replaced?"),
        ("The bell rings three times a day", "How often does the bell ring?"),
        ("The members may vote once by letter", "How many times may the members vote by letter?"),
        ("In 1911, 14 barges sank", "How many barges sank in 1911?"),
        ("The hall covers 900 square metres", "How large is the hall?"),
        ("The mill was opened at 9:30 on 4 May 1911", "At what time was the mill opened?"),
        ("The mill was opened at 9:30 on 4 May 1911", "On which day was the mill opened?"),
        ("The mill was opened at 9:30 on 4 May 1911", "In which year was the mill opened?"),
        ("The mill burnt down through a spark", "How did the mill burn down?"),
        ("The warden perished of typhus", "How did the warden perish?"),
        ("Den Kahn steuert Orm Tveit", "Wer steuert den Kahn?"),
        ("Der Kahn wurde von Orm Tveit gesteuert", "Wer hat den Kahn gesteuert?"),
        ("Die Summe der Kosten beträgt 90 Euro", "Wie hoch sind die Kosten?"),
    ],
)
def test_words_that_only_ask_are_not_wanted_in_the_answer(claim: str, question: str) -> None:
    lacking = judge(claim, question).lacking
    assert {word.lower() for word in lacking} <= {"cycle", "führen"}, lacking


@pytest.mark.parametrize(
    ("claim", "questions"),
    [
        ("The mill was opened in May 1911", "How large is the mill?|On which day was the mill opened?"),
        ("The mill was opened in May 1911", "At what time was the mill opened?|How did the mill open?"),
        ("The lease of the mill runs from 4 May 1911", "How long is the lease of the mill?"),
        ("A fire broke out in the loft of the mill", "How did the fire break out?"),
        ("Der Kahn fährt nach Vesk", "Wer fährt den Kahn?"),
        ("Die Mole 3 kostete 4,2 Millionen Euro", "Wie hoch ist die Mole 3?|Wann kostete die Mole 3 Millionen?"),
        ("The rent rose by 40 crowns", "To how much did the rent rise?"),
        ("The ferry sails in 20 minutes", "How often does the ferry sail?"),
        ("A kiln in Hask was offered but not built", "Where was a kiln built?"),
        ("The vice warden of Hask is Tova Lindt", "Could you tell me who the warden of Hask is?"),
        ("Members may extend the term by five years", "How many times may members extend the term?"),
    ],
)
def test_a_copy_that_tells_another_thing_does_not_answer(claim: str, questions: str) -> None:
    for question in questions.split("|"):
        judged = judge(claim, question)
        assert judged.verdict.holds
        assert judged.lacking, question


@pytest.mark.parametrize(
    ("claim", "question"),
    [
        ("Ines Roe believes that the mill ground 900 sacks", "How many sacks did the mill grind?"),
        ("The mill will grind 900 sacks in 1911", "How many sacks did the mill grind in 1911?"),
        ("The lock used to close at 6:00", "When does the lock close?"),
        ("The weir would have cost 900 crowns", "What did the weir cost?"),
        ("The lock was supposed to open in 1911", "When did the lock open?"),
        ("Orm Tveit promised to plant 900 elms", "How many elms did Orm Tveit plant?"),
        ("Die Mühle soll 1911 geöffnet haben", "Wann wurde die Mühle geöffnet?"),
        ("The guild was led by Tova Lindt", "Who leads the guild?"),
        ("Tova Lindt leads the guild", "Who led the guild?"),
        ("The lock opened at 6:00", "When does the lock open?"),
        ("The warden is Tova Lindt", "Who was the warden?"),
    ],
)
def test_what_is_thought_planned_or_of_another_time_does_not_answer(claim: str, question: str) -> None:
    assert judge(claim, question).lacking


@pytest.mark.parametrize(
    ("claim", "question"),
    [
        ("The lock will open in 1911", "When will the lock open?"),
        ("The lock will open in 1911", "When does the lock open?"),
        ("The weir would cost 900 crowns", "What would the weir cost?"),
        ("Ines Roe believes in ghosts", "What does Ines Roe believe in?"),
        ("The council agreed to drain the weir", "What did the council agree?"),
        ("The lock was opened in May", "When was the lock opened?"),
        ("Tova Lindt led the guild", "Who led the guild?"),
        ("Orm Tveit was the warden of Hask", "Who is Orm Tveit?"),
        ("Die Mühlen sollen 1911 öffnen", "Wann öffnen die Mühlen?"),
        ("Das Bad kostet 900 Kronen", "Was kostet das Bad?"),
    ],
)
def test_a_question_about_what_is_thought_or_to_come_is_answered_by_it(claim: str, question: str) -> None:
    assert not judge(claim, question).lacking


@pytest.mark.parametrize(
    ("question", "tells"),
    [
        ("Did Selby beat Hask?", True),
        ("When did Selby beat Hask?", True),
        ("Who was beaten by Selby?", True),
        ("Did Hask beat Selby?", False),
        ("When did Hask beat Selby?", False),
        ("Who was beaten by Hask?", False),
        ("By whom was Selby beaten?", False),
        ("Who did Hask beat?", False),
    ],
)
@pytest.mark.parametrize("claim", ["Selby beat Hask in 1911", "Hask was beaten by Selby in 1911"])
def test_who_acts_in_the_question_acts_in_the_claim(claim: str, question: str, *, tells: bool) -> None:
    assert bool(judge(claim, question).lacking) != tells


HALL = "# Vesk Hall\n\n{}"


@pytest.mark.parametrize(
    ("claim", "question", "tells"),
    [
        ("The café closes at 16:00", "When does the hall close?", False),
        ("Vesk Hall closes at 16:00", "When does the hall close?", True),
        ("It closes at 16:00", "When does the hall close?", True),
        ("We close at 16:00", "When does the hall close?", True),
        ("The manager of the bar is Tim Ohl", "Who is the manager of the hall?", False),
        ("The manager is Tim Ohl", "Who is the manager of the hall?", True),
        ("The school next to the hall was sold in 2009", "When was the hall sold?", False),
        ("The hall next to the school was sold in 2009", "When was the hall sold?", True),
        ("The stage has 14 lamps", "How many lamps does the hall have?", False),
        ("The hall will have 14 lamps", "How many lamps does the hall have?", False),
        ("The office in Selby is open at noon", "When is the office in Vesk open?", False),
    ],
)
def test_a_title_lends_no_subject_to_a_sentence_about_another_thing(claim: str, question: str, *, tells: bool) -> None:
    judged = check_words(claim, Passages(HALL.format(f"{claim}.")), question=question, context="Vesk Hall")
    assert judged.verdict.holds
    assert bool(judged.lacking) != tells


@pytest.mark.parametrize(
    ("question", "tells"),
    [
        ("When was the Sula built?", True),
        ("When was the Petrel built?", False),
        ("Where was the Petrel built?", False),
        ("When was the Sula replaced?", False),
        ("Who replaced the Sula?", False),
        ("Since when had the Petrel sailed?", True),
    ],
)
def test_one_clause_tells_what_is_asked_for(question: str, *, tells: bool) -> None:
    claim = "The Sula was built in 1998 in Gdansk and replaced the Petrel, which had sailed since 1967"
    assert bool(judge(claim, question).lacking) != tells


def test_a_short_claim_of_two_clauses_tells_in_one_of_them() -> None:
    question = "When was the mill founded?"
    assert judge("The mill was founded by Ida and closed in 1971", question).lacking
    assert not judge("The mill was founded by Ida in 1912 and closed in 1971", question).lacking


@pytest.mark.parametrize(
    ("question", "tells"),
    [
        ("Which room has a beamer?", False),
        ("Which room has no beamer?", True),
        ("Does Birch have a beamer?", True),
        ("How many seats does Birch have?", True),
        ("Since when has Birch been open?", True),
    ],
)
def test_no_in_the_column_that_is_asked_for_takes_the_row_back(question: str, *, tells: bool) -> None:
    row = "Room: Birch | Seats: 40 | Beamer: no | Open since: 2019"
    judged = check_words(
        row.replace(" |", ","), Passages(f"{row}\nRoom: Elm | Seats: 90 | Beamer: yes"), question=question
    )
    assert judged.verdict.holds
    assert bool(judged.lacking) != tells


def test_up_to_and_working_days_are_quantities_and_a_line_of_column_names_is_no_answer() -> None:
    assert not judge("You may stay on up to three days a week", "How many days a week may you stay?").lacking
    assert not judge("Parcels take up to eight working days", "How long do parcels take?").lacking
    columns = "columns: A = Region, B = Target met"
    judged = check_words(columns, Passages(f"{columns}\nrow 2: Region: North | Target met: yes"))
    assert not judged.verdict.holds
