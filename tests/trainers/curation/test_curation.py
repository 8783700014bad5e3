"""Curation: what each stage keeps, that a decision is made once, and that what nobody could decide is not lost."""

import json
from collections import Counter
from pathlib import Path

from later import needs
from terminal import Terminal

from hira.agents.run_context import RoleConfig, RunContext
from hira.core.errors import EndpointError
from hira.core.policy import Request
from hira.evaluation.files import Item, items_of
from hira.evaluation.scorers import match
from hira.policies.dialects import NATIVE
from hira.runtime.settings import Settings
from hira.testing import Endpoint, ScriptedPolicy
from hira.trainers.curation.filters import Challenge, find_duplicates
from hira.trainers.curation.pipeline import CURATED, FUNNEL, Curating, Curation, write_funnel

pytestmark = needs("datasketch")


def item(name: str, question: str, answer: str = "yes") -> Item:
    return Item(name, question, (answer,))


GOOD = item("good", "Which enzyme unwinds the double helix ahead of a replication fork?", "helicase")
AGAIN = item("again", "Which enzyme unwinds the double helix, ahead of the replication fork ?", "helicase")
VAGUE = item("vague", "What does the text above say about it?", "much")
EASY = item("easy", "How many legs does a horse have?", "four")
SMALL = item("small", "Write a poem about spring.", "a poem")
SCHOOL = item("school", "At which gait is a horse fastest?", "gallop")
ALL = (GOOD, AGAIN, VAGUE, EASY, SMALL, SCHOOL)


def judge(request: Request) -> str:
    """Says of each question what a good judge would say of it."""
    prompt, values = request.messages[-1].prompt, request.messages[-1].values
    question = str(values["question"])
    if prompt == "curation_level":
        level = (
            "none" if "poem" in question else "school" if "horse" in question and "legs" not in question else "graduate"
        )
        return json.dumps({"reason": "so", "discipline": "biology", "level": level})
    if prompt == "curation_clarity":
        return json.dumps({"reason": "so", "clear": "no" if "text above" in question else "yes"})
    return json.dumps({"reason": "so", "expert": "no" if "legs" in question else "yes"})


def context(replies: object = judge) -> tuple[RunContext, ScriptedPolicy]:
    policy = ScriptedPolicy(replies)  # type: ignore[arg-type]
    return RunContext({"*": RoleConfig(policy, dialect=NATIVE)}), policy


JUDGED = ("level", "duplicates", "clarity", "expert")


async def test_each_stage_keeps_what_it_is_there_for(tmp_path: Path) -> None:
    found = Curation(Curating("made", ALL, JUDGED), tmp_path, context()[0])  # type: ignore[arg-type]
    assert [one.id for one in await found.run()] == ["good"]
    gone = {one.stage: set(one.came) - set(one.kept) for one in found.passed}
    assert gone == {"level": {"small", "school"}, "duplicates": {"again"}, "clarity": {"vague"}, "expert": {"easy"}}
    (kept,) = [json.loads(line) for line in (tmp_path / CURATED).read_text().splitlines()]
    assert (kept["id"], kept["answers"], kept["discipline"]) == ("good", ["helicase"], "biology")
    assert [one.id for one in items_of(tmp_path / CURATED)] == ["good"]


def test_the_judge_scores_attempts_by_the_criteria_of_hle(tmp_path: Path) -> None:
    def reply(request: Request) -> str:
        if "Correct answer:" in request.messages[-1].text:
            return json.dumps({"extracted_final_answer": "h", "reasoning": "r", "correct": "yes", "confidence": 100})
        return "It is an enzyme."

    (tmp_path / "pool.jsonl").write_text(json.dumps({"question": GOOD.question, "answer": "helicase"}) + "\n")
    here = Terminal(tmp_path)
    with Endpoint({"*": reply}) as endpoint:
        words = ["--stages", "challenge", "--attempts", "2", "--keep", "2-2", "--workflow", "direct"]
        asked = [*words, "--base-url", endpoint.base_url, "--model", "scripted", "--judge", "scripted"]
        assert here.train("curate", "pool.jsonl", *asked) == 0, here.err
    (kept,) = (tmp_path / "curation" / "pool" / CURATED).read_text().splitlines()
    assert "helicase" in kept, "right by the judge, not by its words"


def test_a_range_that_is_none_is_refused_with_an_example(tmp_path: Path) -> None:
    (tmp_path / "pool.jsonl").write_text(json.dumps({"question": GOOD.question, "answer": "helicase"}) + "\n")
    here = Terminal(tmp_path)
    for keep in ("some", "1-many", "-3"):
        assert here.train("curate", "pool.jsonl", "--stages", "challenge", f"--keep={keep}") == 2
        assert "write --keep 1-12" in here.err


async def test_what_a_judge_could_not_decide_is_neither_kept_nor_removed(tmp_path: Path) -> None:
    def down(request: Request) -> str:
        if request.messages[0].prompt == "curation_clarity":
            raise EndpointError("the model is down")
        return judge(request)

    curating = Curating("made", ALL, JUDGED)  # type: ignore[arg-type]
    first = Curation(curating, tmp_path, context(down)[0])
    assert await first.run() == []
    clarity = next(one for one in first.passed if one.stage == "clarity")
    assert (clarity.undecided, clarity.removed) == (("good", "vague", "easy"), 0)
    assert [one.id for one in await Curation(curating, tmp_path, context()[0]).run()] == ["good"]


# --- near-duplicates


def test_the_first_of_those_that_are_alike_is_kept_and_numbers_tell_questions_apart() -> None:
    asked = (
        GOOD,
        AGAIN,
        item("2", "What is the sum of all primes below 20?"),
        item("3", "What is the sum of all primes below 30?"),
    )
    found = {one.id: one for one in find_duplicates(asked)}
    assert [name for name, one in found.items() if one.kept] == ["good", "2", "3"]
    assert found["again"].told["of"] == "good"


# --- best of N


def test_one_to_twelve_of_sixteen_are_kept_and_what_is_open_stays_open() -> None:
    for right, unknown, kept in (
        (0, 0, False),
        (1, 0, True),
        (12, 0, True),
        (13, 0, False),
        (16, 0, False),
        (0, 1, None),
        (12, 1, None),
        (1, 11, True),
        (13, 3, False),
    ):
        assert Challenge().keeps(right, unknown) is kept


async def test_attempts_of_a_workflow_decide_and_go_on_where_they_were(tmp_path: Path) -> None:
    """Over real HTTP: three questions, of which one is always answered, one at times, one never."""
    seen: Counter[str] = Counter()

    def reply(request: Request) -> str:
        text = request.messages[-1].text
        which = next(name for name in ("easy", "fair", "hard") if name in text)
        seen[which] += 1
        right = which == "easy" or (which == "fair" and seen[which] % 2)
        return "\\boxed{known}" if right else "\\boxed{other}"

    asked = tuple(item(name, f"Say what is {name}?", "known") for name in ("easy", "fair", "hard"))
    with Endpoint({"*": reply}) as endpoint:
        general = Settings(model=endpoint.model, base_url=endpoint.base_url, api_key="k", cache=tmp_path / "c")
        challenge = Challenge(4, 1, 3, "direct", concurrency=2)
        curating = Curating("made", asked, ("challenge",), challenge=challenge)
        first = Curation(curating, tmp_path / "out", settings=general, score=match)
        assert [one.id for one in await first.run()] == ["fair"]
        calls = len(endpoint.calls)
        assert calls == 12
        again = Curation(curating, tmp_path / "out", settings=general, score=match)
        assert [one.id for one in await again.run()] == ["fair"]
        assert len(endpoint.calls) == calls
    assert {one.id: one.told["right"] for one in again.decisions_of("challenge").values()} == {
        "easy": 4,
        "fair": 2,
        "hard": 0,
    }
    told = write_funnel(again)
    assert "| answered at times | 3 | 2 | 0 | 1 | 33 % |" in told
    assert "| 2 | 1 | kept |" in told
    assert told in (tmp_path / "out" / FUNNEL).read_text()
