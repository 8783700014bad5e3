"""`hira-train curate` over real HTTP: what each form of the command makes, says and returns."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from later import needs
from terminal import Terminal

from hira.cli import OK, PARTIAL
from hira.core.errors import UsageError
from hira.core.policy import Request
from hira.evaluation.files import Item
from hira.testing import Endpoint
from hira.trainers import records
from hira.trainers.curation.filters import Challenge, StageDecision
from hira.trainers.curation.pipeline import (
    CURATED,
    DECISIONS,
    Curating,
    Curation,
    Passed,
    format_funnel,
    format_outcomes,
    row_of,
)

FACTS = [
    {"subject": "Vell", "relation": "flows through", "object": "Arnby"},
    {"subject": "Arnby", "relation": "founded by", "object": "Odder"},
    {"subject": "Odder", "relation": "born in", "object": "1904", "value": True},
]
Said = Callable[..., tuple[int, Terminal]]


def curating(folder: Path, reply: Callable[[Request], str]) -> Said:
    """The command with a model that answers so."""

    def run(*words: str) -> tuple[int, Terminal]:
        here = Terminal(folder)
        with Endpoint({"*": reply}) as endpoint:
            asked = ("curate", *words, "--model", "scripted", "--base-url", endpoint.base_url)
            return here.train(*asked), here

    return run


def write(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path.name


def test_questions_are_written_for_chains_of_the_graph_and_what_failed_is_made_by_the_same_command(
    tmp_path: Path,
) -> None:
    good = False

    def reply(request: Request) -> str:
        text = request.messages[0].text
        start = next(name for name in ("Vell", "Arnby", "Odder") if f"1. {name} –" in text)
        return json.dumps({"question": f"What is known of {start}?" if good or start != "Vell" else "Of what?"})

    run = curating(tmp_path, reply)
    graph = write(tmp_path / "facts.jsonl", [dict(fact) for fact in FACTS])
    code, here = run(graph, "--from-graph", "9", "--hops", "1-2")
    made = tmp_path / "curation" / "facts" / "questions.jsonl"
    assert code == PARTIAL, here.err
    assert "the graph has only 5 chains of 1-2 facts" in here.err
    assert "2 of 5 could not be made; run the same command to try again" in here.err
    assert here.out.strip() == str(made)
    assert len(records.read(made)) == 3
    good = True
    code, here = run(graph, "--from-graph", "9", "--hops", "1-2")
    assert code == OK, here.err
    rows = records.read(made)
    assert len({row["id"] for row in rows}) == 5
    assert {row["category"] for row in rows} == {"1 hops", "2 hops"}
    by = {row["answers"][0]: row for row in rows if row["question"] == "What is known of Vell?"}
    assert set(by) == {"Arnby", "Odder"}
    assert by["Odder"]["path"] == [["Vell", "flows through", "Arnby"], ["Arnby", "founded by", "Odder"]]
    code, here = run(graph, "--from-graph", "2", "--hops", "3", "--output", "long")
    assert code == OK, here.err
    (row,) = records.read(tmp_path / "long" / "questions.jsonl")
    assert (row["answers"], row["category"], row["id"]) == (["1904"], "3 hops", "0-1")
    assert "the graph has only 1 chain of 3 facts" in here.err
    code, here = run(graph, "--from-graph", "5", "--hops", "1-2", "--output", "all")
    assert code == OK, here.err
    assert "the graph has only" not in here.err
    code, here = run(graph, "--from-graph", "3", "--hops", "1-2")
    assert code == 2, "the folder holds another plan"
    code, here = run(graph, "--from-graph", "1", "--hops", "2-1", "--output", "none")
    assert code == 2
    assert "there are no paths of 2 to 1 facts" in here.err


def test_queries_are_rewritten_and_keep_their_old_form_and_answers(tmp_path: Path) -> None:
    def reply(request: Request) -> str:
        text = request.messages[0].text
        return "nothing" if "mills" in text else json.dumps({"kept": [], "query": "Report on towers."})

    asked = [{"id": "a", "question": "towers?", "answer": "31 m"}, {"id": "b", "question": "mills?", "answer": "2"}]
    run = curating(tmp_path, reply)
    code, here = run(write(tmp_path / "pool.jsonl", [dict(row) for row in asked]), "--rewrite")
    assert code == PARTIAL
    assert "b is not rewritten: " in here.err
    assert "1 of 2 could not be made" in here.err
    (row,) = records.read(tmp_path / "curation" / "pool" / "questions.jsonl")
    assert (row["id"], row["question"], row["original"], row["answers"]) == (
        "a",
        "Report on towers.",
        "towers?",
        ["31 m"],
    )
    code, here = run("pool.jsonl", "--rewrite", "--limit", "1", "--output", "one")
    assert (code, here.err.count("could not be made")) == (OK, 0)


def test_duplicates_need_no_model_and_the_funnel_is_printed(tmp_path: Path) -> None:
    pytest.importorskip("datasketch")
    same = "Which enzyme unwinds the double helix ahead of a replication fork?"
    rows = [{"id": str(at), "question": question, "answer": "x"} for at, question in enumerate((same, same, "Why so?"))]
    here = Terminal(tmp_path)
    assert here.train("curate", write(tmp_path / "pool.jsonl", rows), "--stages", "duplicates") == OK, here.err
    assert "| no near-duplicate | 3 | 1 | 0 | 2 | 67 % |" in here.out
    assert "duplicates: 2 of 3 kept" in here.err
    assert f"wrote the questions to {tmp_path / 'curation' / 'pool' / CURATED}" in here.err
    assert [row["id"] for row in records.read(tmp_path / "curation" / "pool" / CURATED)] == ["0", "2"]


def test_a_judge_that_cannot_decide_leaves_a_partial_result_and_says_so(tmp_path: Path) -> None:
    able = False

    def reply(request: Request) -> str:
        return (
            json.dumps({"reason": "so", "clear": "yes"}) if able or "What is one" in request.messages[0].text else "no"
        )

    rows = [{"id": name, "question": f"What is {name}?", "answer": "x"} for name in ("one", "two")]
    run = curating(tmp_path, reply)
    code, here = run(write(tmp_path / "pool.jsonl", rows), "--stages", "clarity")
    assert code == PARTIAL, here.err
    assert "clarity: 1 of 2 kept, 1 undecided" in here.err
    assert "1 decision could not be made; run the same command to try again" in here.err
    able = True
    code, here = run("pool.jsonl", "--stages", "clarity")
    assert code == OK, here.err
    assert "clarity: 2 of 2 kept\n" in here.err
    assert "could not be made" not in here.err


def test_a_single_number_keeps_exactly_so_many_right_attempts_by_the_metric_that_is_named(tmp_path: Path) -> None:
    rows = [{"id": name, "question": f"What is {name}?", "answer": "31 m"} for name in ("one", "two")]
    run = curating(tmp_path, lambda request: "31 m" if "one" in request.messages[-1].text else "It is 31 m.")
    name = write(tmp_path / "pool.jsonl", rows)
    words = ("--stages", "challenge", "--attempts", "2", "--workflow", "direct")
    for number, (flags, kept) in enumerate((
        (("--keep", "2"), ["one", "two"]),
        (("--keep", "1"), []),
        (("--keep", "0-1"), []),
        (("--keep", "2-2", "--metric", "em"), ["one"]),
        (("--keep", "0", "--metric", "em"), ["two"]),
    )):  # fmt: skip
        code, here = run(name, *words, *flags, "--output", f"out{number}")
        assert code == OK, here.err
        assert [row["id"] for row in records.read(tmp_path / f"out{number}" / CURATED)] == kept, flags


# --- the description of a curation, its tables and its questions


ITEMS = (Item("1", "q1", ("a",)), Item("2", "q2", ("b",)))


def test_stages_are_known_in_order_and_each_once_and_those_that_judge_need_answers() -> None:
    bare = (*ITEMS, Item("3", "q3"))
    for stages, items, what in (
        (("level", "fame"), ITEMS, "unknown stage 'fame'"),
        (("clarity", "level"), ITEMS, "wrong order"),
        (("level", "level"), ITEMS, "wrong order"),
        (("duplicates", "expert"), bare, "the question '3' has no answer"),
        (("level",), bare, "the question '3' has no answer"),
        (("clarity",), bare, "the question '3' has no answer"),
        (("challenge",), bare, "the question '3' has no answer"),
    ):
        with pytest.raises(UsageError, match=what):
            Curating("made", items, stages)  # type: ignore[arg-type]
    Curating("made", bare, ("duplicates",))
    one, other = (Curating("made", ITEMS, concurrency=many, challenge=Challenge(concurrency=many)) for many in (1, 9))
    assert one.to_json() == other.to_json(), "how many calls run at once does not matter"
    assert one.to_json()["items"] == 2
    known = one.to_json()
    assert (known["concurrency"], known["challenge"]["concurrency"]) == (0, 0), "as in folders of earlier versions"


async def test_a_stage_without_its_judge_or_workflow_is_refused(tmp_path: Path) -> None:
    for stage, fix in (("level", "--judge"), ("challenge", "--model")):
        curation = Curation(Curating("made", ITEMS, (stage,)), tmp_path / stage)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=f"the stage '{stage}' asks a") as caught:
            await curation.run()
        assert fix in caught.value.fix


@needs("datasketch")
async def test_a_later_decision_replaces_an_earlier_one_and_unchanged_ones_are_not_written_again(
    tmp_path: Path,
) -> None:
    given = Curating("made", ITEMS, ("duplicates",))
    first = Curation(given, tmp_path)
    assert len(await first.run()) == 2
    assert len(records.read(tmp_path / DECISIONS)) == 2
    await Curation(given, tmp_path).run()
    assert len(records.read(tmp_path / DECISIONS)) == 2
    records.append_records(tmp_path / DECISIONS, [{"stage": "level", "id": "1", "kept": False, "told": {"of": "x"}}])
    records.append_records(tmp_path / DECISIONS, [{"stage": "level", "id": "1", "kept": True, "told": {"level": "y"}}])
    again = Curation(given, tmp_path)
    assert again.decisions_of("level") == {"1": StageDecision("level", "1", kept=True, told={"level": "y"})}
    await again.run()
    assert [row.get("level") for row in records.read(tmp_path / CURATED)] == ["y", None]


def test_the_tables_have_a_row_for_each_stage_and_each_number_of_right_attempts() -> None:
    passed = [Passed("level", ("1", "2", "3", "4"), ("1",), ("2",)), Passed("clarity", (), (), ())]
    assert passed[0].removed == 2
    rows = format_funnel(4, passed).splitlines()
    assert rows[2:] == [
        "| all questions | 4 |  |  | 4 |  |",
        "| academic level | 4 | 2 | 1 | 1 | 25 % |",
        "| clear | 0 | 0 | 0 | 0 | – |",
    ]
    told = [{"right": 1, "known": 3}, {"right": 1, "known": 3}, {"right": 2, "known": 2}, {"right": 3, "known": 3}]
    decisions = [StageDecision("challenge", str(at), kept=True, told=one) for at, one in enumerate(told)]
    assert format_outcomes(decisions, Challenge(3, 1, 2)).splitlines() == [
        "| right of 3 | questions |  |",
        "| --- | ---: | ---: |",
        "| 0 | 0 | removed |",
        "| 1 | 2 | kept |",
        "| 2 | 0 | kept |",
        "| 3 | 1 | removed |",
    ], "only what is known of all attempts is counted"


def test_a_question_is_written_with_all_that_is_known_of_it() -> None:
    whole = Item("1", "q", (), ("a", "b"), "c | d", (Path("f.png"),), {"note": "n", "id": "other"})
    assert row_of(whole) == {
        "id": "1", "question": "q", "every": ["a", "b"], "category": "c | d", "files": ["f.png"], "note": "n"
    }  # fmt: skip
    assert row_of(ITEMS[0]) == {"id": "1", "question": "q1", "answers": ["a"]}
