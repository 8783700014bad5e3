"""HiRA's tables and figures, made by `hira eval` from files in the shape of its four sets."""

import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hira.cli import main
from hira.cli.shell import Shell
from hira.core.errors import UsageError
from hira.core.policy import Request
from hira.evaluation.cells import ablation, grid, sweep
from hira.evaluation.data import Selection, load
from hira.evaluation.public import REPORTS
from hira.evaluation.public import SETS as SETS_OF_THE_HUB
from hira.evaluation.tables import TABLES, load_table
from hira.runtime.factory import configure_roles
from hira.runtime.settings import RoleSettings, Settings
from hira.testing import Endpoint, calling
from hira.testing.script import Reply

TOOLS = {"text": "1. Web browser\n2. Calculator", "image": "1. Image recognition tools", "video": "1. Video parsing"}


def gaia(at: int, level: int, tools: str = "text", file: str = "") -> dict[str, Any]:
    metadata = {"Steps": "…", "Tools": TOOLS[tools], "Number of tools": "1"}
    known = {"task_id": f"g{at}", "Question": f"gaia {at}?", "Level": level, "Final answer": "17"}
    return {**known, "file_name": file, "Annotator Metadata": metadata}


def hle(at: int, category: str) -> dict[str, Any]:
    return {"id": f"h{at}", "question": f"hle {at}?", "image": "", "answer": "17", "category": category}


SETS = {
    "gaia": [gaia(1, 1), gaia(2, 1), gaia(3, 2, "image"), gaia(4, 3, "video"), gaia(5, 2, file="table.csv")],
    "webwalkerqa": [
        {"question": "web 1?", "answer": "17", "info": {"difficulty_level": "easy", "lang": "en"}},
        {"question": "web 2?", "answer": "17", "info": {"difficulty_level": "hard", "lang": "zh"}},
    ],
    "hle": [
        *(hle(at, name) for at, name in enumerate(("Math", "Physics", "Biology/Medicine", "Chemistry"))),
        *(hle(at, name) for at, name in enumerate(("Computer Science/AI", "Engineering"), 4)),
        *(hle(at, name) for at, name in enumerate(("Humanities/Social Science", "Other"), 6)),
        {**hle(9, "Math"), "image": "data:image/png;base64,x"},
    ],
    "simpleqa": [{"problem": f"simple {at}?", "answer": "17"} for at in range(3)],
}
WRONG = ("gaia 2?", "hle 5?", "web 2?", "simple 0?")
SEARCHES_TWICE = "gaia"


def said(request: Request) -> Reply:
    """A model that searches once, twice for GAIA, and is wrong on some questions; and the judges of all sets."""
    text = request.messages[-1].text
    if "Known answer:" in text:
        right = "17" in text.partition("Response:")[2]
        return json.dumps({"reason": "by the number", "verdict": "correct" if right else "incorrect"})
    results = sum(message.role == "tool" for message in request.messages)
    asked = str(request.messages)
    if request.tools and results < (2 if SEARCHES_TWICE in asked else 1):
        return calling("search", query=f"towers {results}")
    return "\\boxed{18}" if any(one in asked for one in WRONG) else "\\boxed{17}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sets").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "sets" / "table.csv").write_text("a,b\n1,2\n")
    for name in ("alta", "brava"):
        (tmp_path / "docs" / f"{name}.txt").write_text(f"The towers of {name} are 0 or 1 m high.")
    for name, rows in SETS.items():
        (tmp_path / "sets" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint({"*": said}) as made:
        yield made


def test_table_1_draws_200_500_and_200_questions_and_takes_all_of_gaia(tmp_path: Path) -> None:
    many = {name: [{**rows[0], "id": at, "task_id": at} for at in range(600)] for name, rows in SETS.items()}
    for name, rows in many.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    items = load_table("hira-table1", tmp_path)
    drawn = Counter(item.labels[0] for item in items)
    assert drawn == {"gaia": 600, "webwalkerqa": 200, "hle": 500, "simpleqa": 200}
    assert items != load_table("hira-table1", tmp_path, seed=1)


def write_reports(folder: Path) -> None:
    """Five queries of DeepResearch Bench, with criteria of two dimensions and a reference report."""
    criterion = {"criterion": "it says why", "explanation": "", "weight": 1.0}
    criteria = {"criterions": {name: [criterion] for name in ("depth", "readability")}}
    criteria["dimension_weight"] = {"depth": 0.75, "readability": 0.25}
    rows = [
        {"id": at, "language": "en", "prompt": f"Compare funds {at}.", "article": "Funds differ."} for at in range(5)
    ]
    for name in ("prompt_data/query.jsonl", "criteria_data/criteria.jsonl", "test_data/cleaned_data/reference.jsonl"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("".join(json.dumps({**row, **criteria}) + "\n" for row in rows))


@pytest.mark.parametrize("name", TABLES)
def test_a_limit_takes_the_first_questions_of_each_set(name: str, tmp_path: Path) -> None:
    if name == "rubrics-table2":
        write_reports(tmp_path / REPORTS)
    for known in set(TABLES[name].sets) - {REPORTS}:
        columns = SETS_OF_THE_HUB[known].columns
        row = {columns["question"]: "How high?", columns["answer"]: "17", "Level": 1}
        (tmp_path / f"{known}.jsonl").write_text("".join(json.dumps({**row, "id": at}) + "\n" for at in range(5)))
    items = load(f"{name}={tmp_path}", Selection(limit=2), tmp_path).items
    assert Counter(item.labels[0] for item in items) == dict.fromkeys(TABLES[name].sets, 2)


@pytest.mark.parametrize("name", TABLES)
def test_a_set_that_is_missing_in_the_folder_of_a_table_is_named_with_all_that_belong_there(
    name: str, tmp_path: Path
) -> None:
    first = next(iter(TABLES[name].sets))
    with pytest.raises(UsageError, match=f"there is no {first}") as missing:
        load_table(name, tmp_path)
    assert missing.value.where == f"in {tmp_path}"
    places = [known if known == REPORTS else f"{known}.jsonl" for known in TABLES[name].sets]
    assert missing.value.fix == f"save the sets there as {', '.join(places)}"


def test_a_limited_table_has_every_column_of_the_paper(folder: Path) -> None:
    whole, limited = (load("hira-table1=sets", Selection(limit=limit), folder).items for limit in (None, 1))
    assert len(limited) < len(whole)
    assert {label for item in limited for label in item.labels} == {label for item in whole for label in item.labels}


def test_every_table_and_figure_of_hira_runs_the_papers_system() -> None:
    table = grid(list(TABLES["hira-table1"].workflows), [], 1, TABLES["hira-table1"])
    hiras = [cell for cell in [*table, *sweep([1], "hira", [], 1), *ablation("hira", [], 1)] if cell.workflow == "hira"]
    assert len(hiras) > 8
    own = Settings(model="offline", workflows={"hira": {"faithful": False}, "react": {"max_calls": 3}})
    for cell in hiras:
        settings = cell.settings(own)
        assert settings.workflows["hira"]["faithful"] is True, cell.name
        assert settings.workflows["react"] == {"max_calls": 3}, "other settings stay"


def test_table_1_has_eight_baselines_and_hira_under_each_model() -> None:
    workflows = ("direct", "rag", "search-o1", "webthinker", "codeact", "multimodal", "plan-and-solve", "react", "hira")
    cells = grid(TABLES["hira-table1"].workflows, ["first", "second"], 1, TABLES["hira-table1"])
    asked = [(cell.workflow, cell.settings(Settings(model="other")).model) for cell in cells]
    assert asked == [(workflow, model) for workflow in workflows for model in ("first", "second")]


def test_every_row_of_table_1_is_sampled_as_the_paper_samples() -> None:
    for cell in grid(list(TABLES["hira-table1"].workflows), [], 1, TABLES["hira-table1"]):
        settings = cell.settings(Settings(model="offline", temperature=0.1))
        assert (settings.temperature, settings.top_p, settings.top_k) == (0.7, 0.95, 20)


def evaluated(folder: Path, data: str, endpoint: Endpoint, workflow: str = "react") -> dict[str, dict[str, str]]:
    """What `hira eval` prints: each table below its heading, one row, by column."""
    out, err = io.StringIO(), io.StringIO()
    environ = {"XDG_CACHE_HOME": str(folder / "cache"), "HIRA_API_KEY": "k"}
    words = ["eval", data, "--workflow", workflow, "--model", "scripted", "--base-url", endpoint.base_url]
    asked = [*words, "--docs", "docs", "--output", "out", "--judge", "judging"]
    assert main(asked, Shell(io.StringIO(), out, err, environ, folder, folder)) == 0, err.getvalue()
    tables: dict[str, dict[str, str]] = {}
    for part in out.getvalue().split("\n#")[0:]:
        title, _, body = part.partition("\n")
        head, _, row, *_ = [line for line in body.splitlines() if line.startswith("|")]
        cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in (head, row)]
        tables[title.strip("# ")] = dict(zip(*cells, strict=True))
    return tables


def test_one_command_prints_the_columns_of_table_1_and_of_fig_4_and_5(folder: Path, endpoint: Endpoint) -> None:
    tables = evaluated(folder, "hira-table1=sets", endpoint)
    told = tables["By category"]
    columns = {
        "gaia level 1": "50.0 (1 of 2)",
        "gaia level 2": "100.0 (1 of 1)",  # the one with a file is in no level
        "gaia level 3": "100.0 (1 of 1)",
        "gaia without file": "75.0 (3 of 4)",
        "webwalkerqa easy": "100.0 (1 of 1)",
        "webwalkerqa hard": "0.0 (0 of 1)",
        "webwalkerqa": "50.0 (1 of 2)",
        "hle NS": "100.0 (4 of 4)",
        "hle CE": "50.0 (1 of 2)",
        "hle SF": "100.0 (2 of 2)",
        "hle": "87.5 (7 of 8)",
        "simpleqa": "66.7 (2 of 3)",
        "gaia reasoning & web browsing": "50.0 (1 of 2)",
        "gaia multi-modality": "100.0 (2 of 2)",
        "gaia file understanding": "100.0 (1 of 1)",
    }
    assert {name: told[name] for name in columns} == columns
    spent = tables["Completion tokens and tool calls of a question"]
    assert {name: spent[name].partition(" · ")[2] for name in ("gaia", "hle", "simpleqa")} == {
        "gaia": "2.0",
        "hle": "1.0",
        "simpleqa": "1.0",
    }


def test_mars_table_1_has_the_eight_subjects_of_the_paper(folder: Path) -> None:
    items = load("mars-table1=sets", Selection(), folder).items
    subjects = (
        "Biology/Medicine",
        "Chemistry",
        "Computer Science/AI",
        "Engineering",
        "Humanities/Social Science",
        "Math",
    )
    assert {label for item in items for label in item.labels} >= {
        "hle", *(f"hle {subject}" for subject in (*subjects, "Physics", "Other"))
    }  # fmt: skip


def test_the_tables_of_mars_are_judged_by_hle_and_by_short_answers() -> None:
    first, second = TABLES["mars-table1"], TABLES["mars-table2"]
    assert (first.metric, second.metric) == ("hle", "hira")
    assert not {*first.judges, *second.judges}
    assert {*second.sets} == {"nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihop", "musique", "bamboogle"}
    assert {"direct", "search-o1", "mars"} <= {*first.workflows} & {*second.workflows}
    assert "webthinker" in first.workflows
    assert "rag" in second.workflows


def test_a_report_has_the_calls_of_each_tool_of_a_question(folder: Path, endpoint: Endpoint) -> None:
    tables = evaluated(folder, "hira-table1=sets", endpoint)
    asked = sum(map(len, SETS.values())) - 1
    assert tables["Calls of each tool"]["search"] == f"{(asked + len(SETS['gaia'])) / asked:.3g}"


def test_webwalkerqa_has_its_own_judge_in_table_1_and_all_others_that_of_short_answers(
    folder: Path, endpoint: Endpoint
) -> None:
    evaluated(folder, "hira-table1=sets", endpoint)
    asked = [(call.body["model"], str(call.body["messages"][-1])) for call in endpoint.calls]
    judged = [text for _, text in asked if "Known answer:" in text]
    assert len(judged) == 18
    assert {(model, text in judged) for model, text in asked} == {("judging", True), ("scripted", False)}
    assert {one for one in ("web", "gaia", "hle", "simple") for text in judged if one in text.partition("Known")[0]}
    for text in judged:
        question = text.partition("Known answer:")[0]
        assert ("all key information" in text) == ("web 1?" in question or "web 2?" in question)


def test_a_dry_run_of_a_table_adds_up_what_every_row_and_the_judge_could_take(folder: Path) -> None:
    (folder / "hira.toml").write_text("[prices.scripted]\ninput = 1\noutput = 2\n")
    told = []
    for workflows in ("react", "hira", "react,hira"):
        out, err = io.StringIO(), io.StringIO()
        words = ["eval", "hira-table1=sets", "--workflow", workflows, "--docs", "docs", "--model", "scripted"]
        shell = Shell(io.StringIO(), out, err, {}, folder, folder)
        assert main([*words, "--judge", "scripted", "--dry-run", "--json"], shell) == 0, err.getvalue()
        told.append(json.loads(out.getvalue()))
    react, hira, both = told
    for measure in ("calls", "tokens", "cost"):
        assert react["all"][measure] < hira["all"][measure]
        assert react["all"][measure] + hira["all"][measure] == pytest.approx(both["all"][measure])
    assert react["rows"]["judge"]["calls"] == 2 * 18
    assert not list(folder.glob("eval*")), "nothing was asked"


def test_direct_reasoning_runs_with_and_without_thinking_and_sends_top_k(folder: Path, endpoint: Endpoint) -> None:
    thinking = {"chat_template_kwargs": {"enable_thinking": False}}
    (folder / "hira.toml").write_text(
        "[roles.reasoner]\nextra_body = { chat_template_kwargs = { enable_thinking = false } }\n"
    )
    evaluated(folder, "hira-table1=sets", endpoint, workflow="direct")
    asked = [call.body for call in endpoint.calls if "Known answer:" not in str(call.body["messages"][-1])]
    judged = [call.body for call in endpoint.calls if call.body not in asked]
    assert all(thinking.items() <= body.items() for body in asked)
    assert {body["top_k"] for body in asked} == {20}
    assert judged
    assert not any("chat_template_kwargs" in body for body in judged), "a setting of one role"
    with pytest.raises(UsageError, match="extra_body"):
        configure_roles(Settings(model="offline", roles={"*": RoleSettings(extra_body=thinking)}), {})


def test_table_1_of_marsrl_has_the_solver_alone_and_the_whole_system_as_its_rows() -> None:
    solver, system = grid(["marsrl"], [], 1, TABLES["marsrl-table1"])
    assert (solver.variant, system.variant) == ("Solver", "Reasoning System")
    alone, whole = (cell.settings(Settings(model="offline")).workflows["marsrl"] for cell in (solver, system))
    assert alone == {**whole, "rounds": 1}
    assert whole == {"search": False, "reply": 65_536}
    settings = system.settings(Settings(model="offline", top_k=20, temperature=1.0))
    assert (settings.temperature, settings.top_p) == (0.6, 0.95)


def test_fig_5_of_matpo_compares_it_with_its_single_agent() -> None:
    several, alone = grid(["matpo"], [], 1, TABLES["matpo-fig5"])
    options = [cell.settings(Settings(model="offline")).workflows["matpo"] for cell in (several, alone)]
    assert [one["planner"] for one in options] == [True, False]
    assert options[0]["planner_summary"] is False
    assert alone.variant == "single agent"
    assert (TABLES["matpo-fig5"].metric, TABLES["matpo-fig5"].judges) == ("simpleqa", {}), "one judge for all sets"


def test_table_2_of_the_rubrics_paper_has_a_column_for_each_dimension_and_one_for_all(folder: Path) -> None:
    """The target earns 3 in depth against 1, and 1 in readability against 3: shares of 75 and 25; overall
    (0.75 · 3 + 0.25 · 1) / 4 = 62.5."""

    def rates(request: Request) -> str:
        deep = "dimension of quality: depth" in request.messages[-1].text
        if "Rate two reports" not in request.messages[-1].text:
            return "# Funds\n\nThey differ."
        return json.dumps({"ratings": [{"number": 1, "first": 3 if deep else 1, "second": 1 if deep else 3}]})

    assert TABLES["rubrics-table2"].workflows == ("react-report", "mams")
    write_reports(folder / "sets" / REPORTS)
    with Endpoint({"*": rates}) as endpoint:
        tables = evaluated(folder, "rubrics-table2=sets", endpoint, "direct")
    row = tables["Parts of the score"]
    assert {name: row[name] for name in ("depth", "readability", "overall")} == {
        "depth": "75.0",
        "readability": "25.0",
        "overall": "62.5",
    }
