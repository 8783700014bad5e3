"""`hira eval` from the command line: what it prints, what it refuses, what it resumes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Command, Said

from hira.core.policy import Request
from hira.testing import Endpoint
from hira.testing.server import HttpServer

pytestmark = pytest.mark.heavy(seconds=1)

QUESTIONS = [
    {"id": "a", "question": "How high is the tower of Alta?", "answer": "31 metres", "level": "easy"},
    {"id": "b", "question": "How high is the tower of Brava?", "answer": "43 metres", "level": "easy"},
    {"id": "c", "question": "Who painted the tower of Alta?", "answer": [], "level": "hard"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for name, metres in {"Alta": 31, "Brava": 42}.items():
        (tmp_path / "docs" / f"{name}.txt").write_text(f"The tower of {name} is {metres} metres high.\n")
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(one) + "\n" for one in QUESTIONS))
    (tmp_path / "misspelt.jsonl").write_text('{"question": "How high is the tower of Alta?", "answr": "31 metres"}\n')
    return tmp_path


def hira(folder: Path, *words: str, **environ: str) -> Said:
    return Command(folder, {"XDG_CACHE_HOME": str(folder / "cache")})(*words, **environ)


OFFLINE = ("--model", "offline", "--docs", "docs")


def test_questions_of_a_file_are_asked_scored_and_reported(folder: Path) -> None:
    said = hira(folder, "eval", "q.jsonl", *OFFLINE, "--workflow", "hira,rag", "--output", "out", "--json")
    assert said.code == 0
    rows = json.loads(said.out)["rows"]
    assert [(row["workflow"], row["asked"], round(row["accuracy"] * 3)) for row in rows] == [
        ("hira", 3, 2),
        ("rag", 3, 2),
    ]
    told = {name: (one["scored"], one["right"], one["accuracy"]) for name, one in rows[0]["categories"].items()}
    assert told == {"easy": (2, 1, 0.5), "hard": (1, 1, 1.0)}
    made = {path.name for path in (folder / "out").iterdir()}
    assert {"summary.json", "summary.md", "report.html", "manifest.json", "records.jsonl", "plan.json"} <= made
    manifest = json.loads((folder / "out/manifest.json").read_text())
    assert manifest["versions"]["hira"]
    assert "agents/planner.md" in manifest["prompts"]
    again = hira(folder, "eval", "q.jsonl", *OFFLINE, "--workflow", "hira,rag", "--output", "out", "--json")
    assert again.out == said.out
    assert "6 of 6 questions are finished" in again.err


def test_an_evaluation_without_a_model_says_so_next_to_its_figures(folder: Path) -> None:
    said = hira(folder, "eval", "q.jsonl", "--docs", "docs", "--workflow", "rag", "-q", HIRA_MODEL="")
    assert said.err.count("no model is connected: `offline` quotes your documents") == 1


def test_the_workflow_is_that_of_ask_unless_a_flag_names_another(folder: Path) -> None:
    for setting, flags, used in (("", (), "auto"), ("rag", (), "rag"), ("rag", ("--workflow", "direct"), "direct")):
        (folder / "hira.toml").write_text(f'workflow = "{setting}"\n' if setting else "")
        said = hira(folder, "eval", "q.jsonl", *OFFLINE, *flags, "--limit", "1", "--output", used, "--json")
        assert [row["workflow"] for row in json.loads(said.out)["rows"]] == [used], said.err
    (folder / "hira.toml").write_text('workflow = "flows:Mine"\n')
    said = hira(folder, "eval", "q.jsonl", *OFFLINE)
    assert (said.code, "flows:Mine" in said.err) == (2, True), said.err


def test_the_reason_why_runs_failed_is_printed(folder: Path) -> None:
    said = hira(folder, "eval", "q.jsonl", "--model", "offline", "--workflow", "rag", "--output", "out")
    assert said.out.count("--docs") == 1


def test_an_evaluation_and_a_sweep_of_one_file_have_folders_of_their_own(folder: Path) -> None:
    assert hira(folder, "eval", "q.jsonl", *OFFLINE, "--limit", "1").code == 0
    said = hira(folder, "eval", "sweep", "q.jsonl", *OFFLINE, "--limit", "1", "--max-subtasks", "1")
    assert said.code == 0, said.err
    assert sorted(one.name for one in (folder / "eval").iterdir()) == ["q", "q-sweep"]
    assert f"the report is in {folder / 'eval' / 'q-sweep' / 'report.html'}" in said.err


def test_known_answers_that_lie_among_the_documents_are_not_read(folder: Path) -> None:
    (folder / "q.jsonl").rename(folder / "docs" / "q.jsonl")
    asked = ("--model", "offline", "--docs", "docs")
    said = hira(folder, "eval", "docs/q.jsonl", *asked, "--output", "docs/eval")
    q, out = folder / "docs/q.jsonl", folder / "docs/eval"
    assert f"excluded from the documents because it contains reference answers: {q} and {out}" in said.err
    records = (folder / "docs/eval/records.jsonl").read_text()
    assert "31 metres high. [s1]" in records
    assert "question: How high" not in records
    later = hira(folder, "ask", "Who painted the tower of Alta?", *asked)
    assert "docs/eval is left out: it contains records of hira" in later.err
    assert "eval/" not in later.out
    named = hira(folder, "ask", "How high is the tower of Brava?", *asked[:3], "docs/eval/records.jsonl", "--json")
    assert "records.jsonl" in str(json.loads(named.out)["sources"])


def test_an_evaluation_is_not_written_over_its_documents(folder: Path) -> None:
    for out in ("docs", ".", "docs/Alta.txt"):
        docs = "docs/Alta.txt" if out.endswith(".txt") else "docs"
        said = hira(folder, "eval", "q.jsonl", "--model", "offline", "--docs", docs, "--output", out)
        assert said.code == 2
        assert "is or contains the documents" in said.err
        assert not list(folder.rglob("plan.json"))


def test_a_folder_that_cannot_be_written_is_refused(folder: Path) -> None:
    (folder / "taken").write_text("a file\n")
    said = hira(folder, "eval", "q.jsonl", *OFFLINE, "--output", "taken")
    assert said.code == 2
    assert "the folder of this evaluation cannot be written: File exists" in said.err
    assert "name another folder with --output" in said.err


def test_two_ways_of_asking_are_compared_in_one_folder_and_in_two(folder: Path) -> None:
    for workflows, output in (
        ("direct,rag,react", "one"),
        ("rag,direct", "two"),
        ("direct", "before"),
        ("rag", "after"),
    ):
        hira(folder, "eval", "q.jsonl", *OFFLINE, "--workflow", workflows, "--output", output, "--quiet")
    said = hira(folder, "eval", "diff", "before", "after")
    assert said.code == 0
    assert "33.3 → 66.7 over 3 questions" in said.out
    assert "+ a: How high is the tower of Alta?" in said.out
    assert json.loads(hira(folder, "eval", "diff", "before", "after", "--json").out)["pairs"][0]["p"] == 1.0
    said = hira(folder, "eval", "diff", "one", "direct", "rag")
    assert "direct · offline → rag · offline: 33.3 → 66.7 over 3 questions" in said.out
    for words, says in {
        (): "name two of them after the folder",
        ("direct", "rug"): "did you mean 'rag'?",
        ("direct", "offline"): "fits several ways of asking",
        ("rag", "rag"): "one way of asking, not two",
        ("rag", "react", "direct"): "write hira eval diff FOLDER WAY WAY",
    }.items():
        refused = hira(folder, "eval", "diff", "one", *words)
        assert (refused.code, says in refused.err) == (2, True), refused.err
    assert "rag · offline → direct · offline: 66.7 → 33.3" in hira(folder, "eval", "diff", "two").out


def test_what_cannot_be_evaluated_is_told_in_three_lines(folder: Path) -> None:
    for words, says in (
        (["eval", "q.jsonl", "--workflow", "mras"], "did you mean 'mars'?"),
        (["eval", "q.jsonl", "--metric", "hira"], "`offline` cannot judge answers"),
        (["eval", "sweep", "q.jsonl", "--max-subtasks", "0,1"], "0 is not a number of subtasks"),
        (["eval", "q.jsonl", "--column", "question"], "does not name a column"),
        (["eval", "q.jsonl", "--concurrency", "0"], "`concurrency` must be a whole number of at least 1, got 0"),
        (
            ["eval", "misspelt.jsonl"],
            "has no reference answer\n  in misspelt.jsonl; its other columns: answr",
        ),
        (["eval", "diff", "docs", "docs"], "holds no evaluation"),
        (
            ["eval", "q.jsonl", "--metric", "rubric", "--judge", "m", "--base-url", "http://127.0.0.1:9"],
            "has no rubric",
        ),
    ):
        more = ["--model", "offline", "--docs", "docs"] if words[1] != "diff" else []
        said = hira(folder, *words, *more)
        assert said.code == 2, said
        assert says in said.err
        assert len([line for line in said.err.splitlines() if "hira" in line or line.startswith("  ")]) <= 4


def test_what_a_metric_lacks_for_the_last_row_is_told_before_the_first_is_asked(folder: Path) -> None:
    items = [{"title": f"t{at}", "description": f"Key Criterion: c{at}", "weight": 5} for at in range(7)]
    rows = [{"question": "q", "rubric": items}, {"question": "r", "rubric": items[:2]}]
    (folder / "r.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    with Endpoint(["An answer."]) as endpoint:
        model = ("--model", "scripted", "--base-url", endpoint.base_url, "--workflow", "direct")
        for metric, says in {
            "rubric": "question '2' has no rubric that can be used: there are 2 items; write 7 to 20",
            "race": "question '1' has no criteria that can be used: the column is missing",
            "simpleqa": "question '1' has no reference answer",
        }.items():
            said = hira(folder, "eval", "r.jsonl", *model, "--metric", metric, "--output", metric, HIRA_API_KEY="k")
            assert (said.code, says in said.err) == (2, True), said.err
            assert not (folder / metric).exists()
    assert not endpoint.calls


@pytest.fixture
def refusing() -> Iterator[str]:
    """The base URL of an endpoint that refuses every key."""
    server = HttpServer(lambda _, exchange: exchange.json(401, {}))
    server.start()
    yield f"http://127.0.0.1:{server.port}/v1"
    server.close()


def test_a_judge_that_nobody_can_ask_is_told_before_the_first_question(folder: Path, refusing: str) -> None:
    with Endpoint(["An answer."]) as answering:
        model = ("--model", "scripted", "--base-url", answering.base_url, "--workflow", "direct", "--metric", "hira")
        for url, says in (
            ("http://127.0.0.1:9/v1", "the judge cannot be reached"),
            (refusing, "the judge's endpoint refuses the key"),
        ):
            (folder / "hira.toml").write_text(f'[roles.judge]\nbase_url = "{url}"\nmodel = "m"\napi_key = "wrong"\n')
            said = hira(folder, "eval", "q.jsonl", *model, "--output", "out", HIRA_API_KEY="right", HIRA_TRUST=url)
            assert (said.code, says in said.err) == (3, True), said.err
    assert not answering.calls
    assert not (folder / "out").exists()


def reporting(request: Request) -> str:
    """Reply as a model whose reports grow with the seed, or as a judge that prefers long reports."""
    text = request.messages[-1].text
    asked = text.rpartition("Reply with")[2]
    if '"better"' in asked:
        first, second = (text.partition(f"[Report {one}]")[2].partition(f"[End of report {one}]")[0] for one in "AB")
        return json.dumps({"better": "A" if len(first) > len(second) else "B"})
    if '"superficial"' in asked:
        return json.dumps({"superficial": "It only repeats itself." if text.count("tower again") > 1 else ""})
    if '"items"' in asked:
        items = [{"title": f"Item {at}", "description": f"Key Criterion: c{at}", "weight": 5} for at in range(7)]
        return json.dumps({"items": items})
    if '"rating"' in asked:
        return json.dumps({"rating": min(10, 1 + text.count("tower"))})
    return "A report on the tower." + " The tower again." * (request.sampling.seed or 0)


def test_the_two_best_reports_of_a_query_are_annotated_and_ways_of_scoring_are_measured_by_them(folder: Path) -> None:
    """Rubrics paper, sections 3.2 (stages 2 and 3) and 4.1, Table 1."""
    items = [{"title": f"t{at}", "description": f"Key Criterion: it tells {at}", "weight": 5} for at in range(7)]
    (folder / "r.jsonl").write_text(json.dumps({"question": "Report on Alta.", "rubric": items}) + "\n")
    with Endpoint({"*": reporting}) as endpoint:
        model = ("--model", "scripted", "--base-url", endpoint.base_url)
        asked = (*model, "--workflow", "direct", "--metric", "rubric", "--repeats", "3", "--output", "out", "-q")
        said = hira(folder, "eval", "r.jsonl", *asked, HIRA_API_KEY="k")
        assert said.code == 0, said.err
        said = hira(folder, "eval", "candidates", "out")
        (row,) = map(json.loads, said.out.splitlines())
        best = {f"A report on the tower.{' The tower again.' * seed}" for seed in (1, 2)}
        assert {row["first"], row["second"]} == best, "the worst of three is left out"
        cold = (*asked[:-3], "--output", "cold", "-q")
        again = hira(folder, "eval", "r.jsonl", *cold, HIRA_API_KEY="k", HIRA_TEMPERATURE="0")
        assert again.code == 0, again.err
        said = hira(folder, "eval", "candidates", "out", "cold", *model, HIRA_API_KEY="k")
        assert "2 of 6 reports have evident faults and are left out" in said.err
        (sound,) = map(json.loads, said.out.splitlines())
        assert {sound["first"], sound["second"]} == {
            "A report on the tower.",
            "A report on the tower. The tower again.",
        }
        row["preferred"] = "first" if len(row["first"]) > len(row["second"]) else "second"
        (folder / "pairs.jsonl").write_text(json.dumps(row))
        said = hira(folder, "eval", "preferences", "pairs.jsonl", *model, "--json", HIRA_API_KEY="k")
    assert said.code == 0, said.err
    found = {one["way"]: (one["pairs"], one["unscored"], one["accuracy"]["value"]) for one in json.loads(said.out)}
    assert found == dict.fromkeys(("general", "pointwise", "pairwise", "rubric"), (1, 0, 1.0))


def judging(request: Request) -> str:
    right = "31 metres" in request.messages[-1].text.partition("Response:")[2]
    return json.dumps({"reason": "by the number", "verdict": "correct" if right else "incorrect"})


@pytest.mark.parametrize(
    ("flags", "limit", "scored", "reply"),
    [
        (("--max-calls", "2", "--max-tokens", "4000", "--max-reply-tokens", "7"), "", 3, 2048),
        ((), "max_calls = 1\nmax_reply_tokens = 77", 2, 77),
    ],
    ids=["of a run", "of the judge"],
)
def test_what_a_run_may_spend_is_not_what_the_judge_may(
    folder: Path, flags: tuple[str, ...], limit: str, scored: int, reply: int
) -> None:
    with Endpoint(judging) as endpoint:
        (folder / "hira.toml").write_text(
            f'[roles.judge]\nbase_url = "{endpoint.base_url}"\nmodel = "scripted"\napi_key = "k"\n{limit}\n'
        )
        metric = ("--workflow", "rag", "--metric", "hira", "--output", "j", "--json", "--concurrency", "1")
        said = hira(folder, "eval", "q.jsonl", *OFFLINE, *metric, *flags, HIRA_TRUST=endpoint.base_url)
    assert said.code == 0, said.err
    (row,) = json.loads(said.out)["rows"]
    assert (row["asked"], row["scored"]) == (3, scored)
    assert {call.body["max_tokens"] for call in endpoint.calls} == {reply}


def test_a_judge_is_compared_with_human_labels(folder: Path) -> None:
    labels = [
        {"question": "q", "answer": "31 metres", "response": "It is 31 metres.", "label": True},
        {"question": "q", "answer": "31 metres", "response": "It is 42 metres.", "label": False},
        {"question": "q", "answer": "31 metres", "response": "It is 31 metres, or 42.", "label": "incorrect"},
        {"question": "q", "answer": "31 metres", "response": "31 metres", "label": "yes"},
    ]
    (folder / "labels.jsonl").write_text("".join(json.dumps(one) + "\n" for one in labels))
    with Endpoint(judging) as endpoint:
        asked = ("eval", "judge", "labels.jsonl", "--model", "scripted", "--base-url", endpoint.base_url)
        said = hira(folder, *asked, "--json", HIRA_API_KEY="k")
        shown = hira(folder, *asked, HIRA_API_KEY="k")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert (found["labelled"], found["unscored"], found["accepted"], found["refused"]) == (4, 0, 1, 0)
    assert found["agreed"]["value"] == pytest.approx(3 / 4)
    assert found["kappa"] == pytest.approx(0.5)
    assert found["wrong"] == [[3, "by the number"]]
    assert "agrees on 75.0 % of 4" in shown.out
    (folder / "labels.jsonl").write_text(json.dumps({**labels[0], "label": "perhaps"}))
    refused = hira(folder, *asked, HIRA_API_KEY="k")
    assert refused.code == 2
    assert "the label 'perhaps' is not true or false" in refused.err
