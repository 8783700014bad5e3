"""The filters of MARS's appendix B at their edges."""

import pytest
from later import needs

from hira.core.errors import UsageError
from hira.evaluation.files import Item
from hira.evaluation.record import Record, Score
from hira.trainers.curation.filters import OWN, Challenge, decide, find_duplicates, jaccard, plain, shingles
from hira.trainers.curation.pipeline import Curating, Passed

pytestmark = needs("datasketch")


def test_what_does_not_matter_is_folded_and_questions_are_cut_into_runs_of_letters() -> None:
    assert plain("  Où est\tl'Élysée_ ?") == "ou est l elysee"
    assert shingles("abcde") == {"abcd", "bcde"}
    assert shingles("abcd") == {"abcd"}
    assert shingles("ab") == {"ab"}, "a short one is one run"
    assert shingles("日本語") == {"日本", "本語"}, "half as many where a letter is a word"
    assert (jaccard(frozenset("ab"), frozenset("bc")), jaccard(frozenset(), frozenset())) == (1 / 3, 1.0)
    assert jaccard(frozenset("a"), frozenset()) == 0.0


def test_two_questions_are_the_same_from_the_similarity_on() -> None:
    first, other = (Item(name, text, ("x",)) for name, text in (("a", "abcdefghij"), ("b", "abcdefghiz")))
    share = jaccard(shingles(first.question), shingles(other.question))
    assert share == 6 / 8
    kept, removed = find_duplicates([first, other], similarity=share)
    assert (kept.kept, removed.kept, removed.why) == (True, False, "nearly the same as a")
    assert removed.told == {"of": "a", "similarity": 0.75}
    assert [one.kept for one in find_duplicates([first, other], similarity=0.76)] == [True, True]
    chain = [Item(f"{at}", text, ("x",)) for at, text in enumerate(("same words here 1", "same words here 2"))]
    assert all(one.kept for one in find_duplicates(chain)), "another number is another question"


def test_a_removed_question_removes_no_other() -> None:
    first = "abcdefghijklmnopqrst"
    texts = (first, f"{first}uvw", f"{first}uvwxyzABC")
    items = [Item(f"{at}", text, ("x",)) for at, text in enumerate(texts)]
    share = [jaccard(shingles(texts[first]), shingles(texts[other])) for first, other in ((0, 1), (1, 2), (0, 2))]
    assert share[2] < 0.7 <= min(share[:2])
    assert [one.kept for one in find_duplicates(items)] == [True, False, True]


@pytest.mark.parametrize(
    "options",
    [{"fewest": -1}, {"fewest": 13}, {"most": 17}, {"attempts": 0, "fewest": 0, "most": 0}, {"attempts": 11}],
)
def test_a_range_of_right_attempts_lies_within_the_attempts(options: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="cannot be right"):
        Challenge(**options)
    assert Challenge(attempts=1, fewest=0, most=0).keeps(0, 0) is True


def attempt(question: str, correct: bool | None, error: str = "") -> Record:
    return Record("mars/seed-0", question, "", "", "", "", "answered", Score(correct, None, "match"), error)


def test_only_attempts_that_say_something_of_the_question_are_counted() -> None:
    challenge = Challenge(attempts=3, fewest=1, most=2)
    records = [
        *(attempt("hard", False) for _ in range(3)),
        *(attempt("easy", True) for _ in range(3)),
        attempt("open", True), attempt("open", True), attempt("open", None),
        attempt("broken", False), attempt("broken", False), attempt("broken", False, "RateLimited: later"),
        attempt("own", False), attempt("own", True), attempt("own", False, f"{OWN[0]}: no call"),
        attempt("strange", True),
    ]  # fmt: skip
    decisions = {one.id: one for one in decide(challenge, records, ["hard", "easy", "open", "broken", "own"])}
    assert {name: one.kept for name, one in decisions.items()} == {"hard": False, "easy": False, "own": True}
    assert [decisions[name].why for name in ("hard", "easy", "own")] == ["never answered", "answered too often", ""]
    assert decisions["own"].told == {"right": 1, "known": 3, "of": 3}


@pytest.mark.parametrize("similarity", [0.0, -1.0, 1.1])
def test_a_similarity_that_makes_all_questions_duplicates_or_none_is_refused(similarity: float) -> None:
    with pytest.raises(UsageError, match=f"must be above 0 and at most 1, got {similarity:g}"):
        Curating("made", (), ("duplicates",), similarity)


def test_stages_stand_in_the_papers_order_and_a_judge_needs_an_answer() -> None:
    bare = (Item("a", "b?", ()),)
    for stages in (("clarity", "level"), ("level", "level"), ("taste",)):
        with pytest.raises(UsageError, match="stage"):
            Curating("made", (), stages)  # type: ignore[arg-type]
    for stage in ("level", "clarity", "expert", "challenge"):
        with pytest.raises(UsageError, match="has no answer"):
            Curating("made", bare, (stage,))
    assert Curating("made", bare, ("duplicates",)).to_json()["items"] == 1
    assert Passed("level", ("a", "b", "c", "d"), ("a",), ("b",)).removed == 2
    same = [Curating("made", (), concurrency=many, challenge=Challenge(concurrency=many)).to_json() for many in (1, 9)]
    assert same[0] == same[1], "how many run at once identifies nothing"
